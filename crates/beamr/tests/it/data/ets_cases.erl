%% ets natives and match specifications of every kind; tests compare what it gives with what OTP 25, 27 and 29 give
%% (erlang:display/1 of ets_cases:run(N) for each N, one a line). It calls natives only, so that no other module is needed.
-module(ets_cases).
-export([go/1, run/1]).

go(N) -> exit(run(N)).

run(N) ->
    erase(),
    put(out, []),
    case N of
        1 -> basics();
        2 -> kind(set);
        3 -> kind(ordered_set);
        4 -> kind(bag);
        5 -> kind(duplicate_bag);
        6 -> specs();
        7 -> owners();
        8 -> counters();
        9 -> deep()
    end,
    rev(get(out), []).

rev([H|T], A) -> rev(T, [H|A]);
rev([], A) -> A.
seq(A, B) when A > B -> [];
seq(A, B) -> [A | seq(A + 1, B)].
sort([]) -> [];
sort([H|T]) -> sort([X || X <- T, X < H]) ++ [H | sort([X || X <- T, X >= H])].
sum([H|T]) -> H + sum(T);
sum([]) -> 0.
flat([]) -> [];
flat([H|T]) when is_list(H) -> flat(H) ++ flat(T);
flat([H|T]) -> [H | flat(T)].
all(T) -> ets:match_object(T, '_').
p(L, X) -> put(out, [{list_to_atom(L), X} | get(out)]).
c(F) -> try F() catch C:R:S -> {C, R, case S of [{M,Fu,A,I}|_] -> {M,Fu,if is_list(A) -> length(A); true -> A end, norm(I)}; _ -> S end} end.
norm(I) -> [case X of {error_info, Mp} -> {error_info, Mp}; _ -> X end || X <- I, element(1,X) =/= file, element(1,X) =/= line].
basics() ->
    p("new", is_reference(ets:new(a, []))),
    p("bad1", c(fun() -> ets:new("a", []) end)),
    p("bad2", c(fun() -> ets:new(a, [foo]) end)),
    N = ets:new(named, [named_table, public]),
    p("named", N),
    p("dup", c(fun() -> ets:new(named, [named_table]) end)),
    p("whereis", {is_reference(ets:whereis(named)), ets:whereis(nope), c(fun() -> ets:whereis("x") end)}),
    p("noent", c(fun() -> ets:lookup(nope, 1) end)),
    p("type", c(fun() -> ets:lookup(make_ref(), 1) end)),
    p("type2", c(fun() -> ets:lookup({a}, 1) end)),
    T0 = ets:new(x, []), ets:delete(T0),
    p("deleted", c(fun() -> ets:lookup(T0, 1) end)),
    p("deleted info", ets:info(T0)),
    p("info", [{K,V} || {K,V} <- ets:info(named), K =/= memory, K =/= id, K =/= owner]),
    p("rename", {ets:rename(named, named2), ets:info(named2, name), c(fun() -> ets:lookup(named, 1) end)}),
    ets:delete(named2),
    ok.

kind(K) ->
    T = ets:new(t, [K, public]),
    p("ins", ets:insert(T, [{I, I*2, <<"hello">>, [I,{I}]} || I <- seq(1, 10)])),
    p("ins dup", [ets:insert(T, {3, x}), ets:insert(T, {3, x}), ets:insert(T, {3.0, y}), ets:insert(T,{3,z})]),
    p("lookup", [ets:lookup(T, X) || X <- [1,3,3.0,11,a]]),
    p("member", [ets:member(T, X) || X <- [1,3,3.0,11]]),
    p("size", ets:info(T, size)),
    p("le", [c(fun() -> ets:lookup_element(T, A, B) end) || {A,B} <- [{1,2},{3,2},{1,5},{77,1},{1,0},{1,a}]]),
    p("insert_new", [ets:insert_new(T, {1,a}), ets:insert_new(T, {20,a}), ets:insert_new(T, [{21,a},{1,b}]), ets:insert_new(T,[{21,a},{22,b}])]),
    p("ins bad", [c(fun() -> ets:insert(T, X) end) || X <- [a, {}, [{1},a], [{1}|{2}]]]),
    p("tab2list", sort(all(T))),
    p("take", [ets:take(T, 3), ets:take(T, 3)]),
    p("del", [ets:delete(T, 1), ets:delete(T, 1), ets:lookup(T, 1)]),
    p("delobj", [ets:delete_object(T, {20,a}), ets:delete_object(T, {22,c}), ets:lookup(T,20), ets:lookup(T,22)]),
    Keys = walk(T, ets:first(T), next), 
    p("walk", sort(Keys)),
    p("walkback", sort(walk(T, ets:last(T), prev)) =:= sort(Keys)),
    case K of ordered_set -> p("order", Keys); _ -> ok end,
    p("next bad", c(fun() -> ets:next(T, 'no such') end)),
    p("next eot", c(fun() -> ets:next(T, '$end_of_table') end)),
    p("match", sort(ets:match(T, {'$1','$2','_','_'}))),
    p("match keyed", ets:match(T, {5,'$2','_','$3'})),
    p("match_object", sort(ets:match_object(T, {'_','$1','_','_'}))),
    p("select", sort(ets:select(T, [{{'$1','$2','_','_'},[{'>','$1',5}],[{{'$2','$1'}}]}]))),
    p("select whole", sort(ets:select(T, [{{'$1','_','_','_'},[{'<','$1',5}],['$_']},{{'$1','_'},[],['$$']}]))),
    p("count", [ets:select_count(T, [{{'$1','_','_','_'},[{'<','$1',5}],[true]}]), ets:select_count(T, [{'_',[],[true]}]), ets:select_count(T, [{{5,'_','_','_'},[],[true]}])]),
    p("seldel", [ets:internal_select_delete(T, [{{'$1','_','_','_'},[{'<','$1',5}],[true]}]), sort(all(T))]),
    p("selrep", [c(fun() -> ets:select_replace(T, [{{'$1','$2','_','_'},[],[{{'$1',{'+','$2',1},x,y}}]}]) end), sort(all(T))]),
    p("selrep1", [c(fun() -> ets:select_replace(T, [{{8,'$2','_','_'},[],[{{8,{'+','$2',1},x,y}}]}]) end), sort(all(T))]),
    p("selrep bad", c(fun() -> ets:select_replace(T, [{{'$1','$2','_','_'},[],[{{'$2',{'+','$2',1},x,y}}]}]) end)),
    p("sel bad", [c(fun() -> ets:select(T, X) end) || X <- [a, [], [a], [{a,b,c}], [{'$1',[],[]}], [{'$1',[{foo}],['$1']}], [{'$1',[],['$2']}], [{'$1',[],['$1']}|x]]]),
    ets:internal_delete_all(T, undefined),
    p("empty", all(T)),
    p("empty2", [ets:first(T), ets:last(T), ets:match(T,'$1'), ets:match(T,'$1',3), ets:select(T,[{'_',[],['$_']}],5)]),
    ets:insert(T, [{I, I rem 7, {I, a}} || I <- seq(1, 5000)]),
    p("big", [ets:info(T,size), length(all(T)), ets:select_count(T, [{{'_',3,'_'},[],[true]}])]),
    p("sum", sum(ets:select(T, [{{'$1','_','_'},[],['$1']}]))),
    p("chunks", chunks(ets:select(T, [{{'$1','_','_'},[],['$1']}], 700), [], 0)),
    p("chunks2", chunks(ets:match_object(T, {'_',2,'_'}, 100), [], 0)),
    p("chunks3", chunks(ets:match(T, {'$1',2,{'_','$2'}}, 5000), [], 0)),
    p("chunkskey", ets:select(T, [{{17,'_','_'},[],['$_']}], 2)),
    p("rev", length(ets:select_reverse(T, [{{'$1','_','_'},[{'=<','$1',3}],['$1']}]))),
    case K of ordered_set ->
        p("orev", ets:select_reverse(T, [{{'$1','_','_'},[{'=<','$1',3}],['$1']}])),
        p("osel", ets:select(T, [{{'$1','_','_'},[{'=<','$1',3}],['$1']}])),
        {L1,C1} = ets:select(T, [{{'$1','_','_'},[],['$1']}], 3),
        {L2,C2} = ets:select(C1), p("ochunk", {L1, L2, setelement(1,setelement(5, C2, ref),tid)}),
        {R1,D1} = ets:select_reverse(T, [{{'$1','_','_'},[],['$1']}], 3),
        {R2,D2} = ets:select_reverse(D1), p("ochunk", {R1, R2, setelement(1,setelement(5, D2, ref),tid)}),
        P = ets:new(pre, [ordered_set]),
        ets:insert(P, [{{A,B}, A*B} || A <- seq(1,50), B <- seq(1,50)]),
        ets:insert(P, [{[A,B], A*B} || A <- seq(1,5), B <- seq(1,5)]),
        p("prefix", ets:select(P, [{{{7,'$1'},'$2'},[{'<','$1',4}],[{{'$1','$2'}}]}])),
        p("prefix2", ets:select(P, [{{[3|'$1'],'$2'},[],[{{'$1','$2'}}]}])),
        p("prefix3", ets:select(P, [{{{7,'$1'},'$2'},[],['$1']},{{{9,'$1'},'$2'},[{'>','$1',48}],['$1']}])),
        p("prefix4", ets:select_reverse(P, [{{{7,'$1'},'$2'},[],['$1']}], 3)  =/= x),
        p("prefixc", ets:select_count(P, [{{{7,'$1'},'$2'},[],[true]}])),
        p("prefixd", {ets:internal_select_delete(P, [{{{7,'$1'},'$2'},[],[true]}]), ets:info(P,size)}),
        p("slot", [ets:slot(P, 0), ets:slot(P, 3), ets:slot(P, ets:info(P,size)), c(fun() -> ets:slot(P, 100000) end), c(fun() -> ets:slot(P,-1) end)]);
    _ -> p("slots", length(slots(T, 0)) )
    end,
    p("seldel big", {ets:internal_select_delete(T, [{{'$1','_','_'},[{'>','$1',2500}],[true]}]), ets:info(T,size)}),
    ets:safe_fixtable(T, true),
    F = ets:first(T),
    ets:delete(T, F),
    p("fixed next", c(fun() -> ets:next(T, F) =/= F end)),
    p("fixed", [ets:info(T, fixed), element(2, ets:info(T, safe_fixed)) =:= [{self(),1}]]),
    ets:safe_fixtable(T, false),
    p("unfixed", [ets:info(T, fixed), ets:info(T, safe_fixed)]),
    p("delete", [ets:delete(T), c(fun() -> ets:delete(T) end)]).

slots(T, I) -> case ets:slot(T, I) of '$end_of_table' -> []; L -> L ++ slots(T, I+1) end.
walk(_, '$end_of_table', _) -> [];
walk(T, K, F) -> [K | walk(T, ets:F(T, K), F)].
chunks('$end_of_table', L, N) -> {sum(flat([X || X <- L, is_integer(X)])), length(L), N > 0};
chunks({L, C}, Acc, N) -> chunks(ets:select(C), L ++ Acc, N + 1).

specs() ->
    T = fun(Term, MS) -> c(fun() -> erlang:match_spec_test(Term, MS, table) end) end,
    R = fun(Term, MS) -> c(fun() -> erlang:match_spec_test(Term, MS, trace) end) end,
    p("ms", [T({1,2}, [{{'$1','$2'},[],[B]}]) || B <- ['$1', '$_', '$$', {{'$2','$1'}}, [a,'$1'|'$2'], #{a => '$1', '$2' => b}, {const, {'$1'}}, {'+','$1','$2'}, {'/','$1',0}, {element, 1, '$_'}, {element, 9, '$_'}, {hd,'$1'}, {'andalso', true, {'==','$1',1}}, {'orelse', false, 3}, {'andalso', 3, true}, {'and', true, true, false}, {'or', false, 3}, {'not', true}, {'xor', true, false}, {length, [1,2]}, {size, '$_'}, {is_record, '$_', 1, 2}, {node}, {{}}, {}, "abc", <<1,2>>, 1.5, {{{{a}},'$1'}}]]),
    p("ms2", [T({1,2}, [{{'$1','$2'},G,[ok]}]) || G <- [[], [true], [false], [{'>','$1',0}], [{'>','$1',0},{'<','$2',0}], [foo], ['$1'], [{is_integer,'$1'}], [{'=:=','$1',1.0}], [{'==','$1',1.0}], [{'or',{is_atom,'$1'},{is_integer,'$2'}}], [{hd,'$1'}], a, [{foo,1}|b]]]),
    p("ms3", [T(X, [{P,[],['$$']}]) || {X,P} <- [{[1,2,3],['$1'|'$2']}, {#{a=>1,b=>2},#{a=>'$1'}}, {#{a=>1},#{b=>'$1'}}, {{a,a},{'$1','$1'}}, {{a,b},{'$1','$1'}}, {{1,1.0},{'$1','$1'}}, {x,'_'}, {x,'$5'}, {{1,2,3},{'$100','$3','$20'}}, {{1},#{'$1'=>2}}, {{1.0},{1.0}}, {{1.0},{1}}, {{<<"a">>},{<<"a">>}}, {{123456789012345678901234567890},{123456789012345678901234567890}}, {{"str"},{"str"}}]]),
    p("lint", [T({1}, X) || X <- [a, [], [a], [{a}], [{'$1',a,b}], [{'$1',[],[]}], [{'$1',[{foo}],[{bar,1},'$2',{const},{'and'},{self,1},{message,1},{return_trace},{is_atom}]}], [{#{'_'=>1},[],[a]}], [{{'$1'},[{{a,b},c}],[1|2]}]]]),
    p("trace", [R([1,2], [{P,G,B}]) || {P,G,B} <- [{['$1','$2'],[],[{return_trace}]}, {'_',[],[]}, {'$1',[],[{message,'$1'}]}, {['$1'],[],[]}, {['_','_'],[{'>',1,0}],[{message,{{a,'$_'}}},{exception_trace}]}, {['_','_'],[],[{message,false}]}, {['_','_'],[],[{caller}]}, {['_','_'],[{return_trace}],[]}, {a,[],[]}, {['_','_'],[],[{silent,true},{display,1,2}]}, {['_','_'],[],[{set_tcw,4},{message,{get_tcw}}]}, {['_'|a],[],[]}]]),
    p("badtest", [c(fun() -> erlang:match_spec_test({1}, [], foo) end), c(fun() -> erlang:match_spec_test({1}, [], trace) end)]),
    M = ets:match_spec_compile([{{'$1','$2'},[{'>','$1',1}],['$2']}]),
    p("compiled", {is_reference(M), ets:is_compiled_ms(M), ets:is_compiled_ms(make_ref()), ets:match_spec_run_r([{1,a},{2,b},{3,c},foo], M, []), c(fun() -> ets:match_spec_run_r([{1,a}|b], M, []) end), c(fun() -> ets:match_spec_run_r([{1,a}], foo, []) end)}),
    p("mscomp bad", c(fun() -> ets:match_spec_compile([{a}]) end)),
    ok.

owners() ->
    Me = self(),
    {P, Ref} = spawn_opt(erlang, apply, [fun() -> 
        A = ets:new(a, [public, {heir, Me, gift}]), B = ets:new(b, [named_table, private]), C = ets:new(c, [protected]),
        ets:insert(A, {1, from_child}), ets:insert(B, {1}), Me ! {tabs, A, B, C},
        receive stop -> ok end end, []], [monitor]),
    {A,B,C} = receive {tabs, A1, B1, C1} -> {A1,B1,C1} end,
    p("prot", [c(fun() -> ets:lookup(B, 1) end), c(fun() -> ets:insert(C, {1}) end), ets:lookup(C, 1), ets:insert(A, {2,x})]),
    p("heir", ets:info(A, heir) =:= self()),
    P ! stop, receive {'DOWN', Ref, _, _, R} -> p("down", R) end,
    receive {'ETS-TRANSFER', A, P, D} -> p("transfer", D) after 1000 -> p("transfer", none) end,
    p("after", [sort(all(A)), ets:info(A, owner) =:= self(), c(fun() -> ets:lookup(B, 1) end), c(fun() -> ets:lookup(C,1) end)]),
    S = self(),
    {P2, Ref2} = spawn_opt(erlang, apply, [fun() -> receive {'ETS-TRANSFER', T, F, X} -> S ! {got, T, F, X, ets:info(T, owner) =:= self()} end, receive stop -> ok end end, []], [monitor]),
    p("give bad", [c(fun() -> ets:give_away(A, S, x) end), c(fun() -> ets:give_away(A, foo, x) end), c(fun() -> ets:give_away(A, P, x) end)]),
    p("give", ets:give_away(A, P2, {hello, <<0:800>>})),
    receive {got, A, S, {hello,_}, O} -> p("gave", O) end,
    p("give again", c(fun() -> ets:give_away(A, P2, x) end)),
    P2 ! stop, receive {'DOWN', Ref2, _, _, _} -> ok end,
    p("gone", c(fun() -> ets:lookup(A, 1) end)),
    T = ets:new(s, []),
    p("setopts", [ets:setopts(T, {protection, public}), ets:info(T, protection), ets:setopts(T, [{heir, self(), x}]), ets:setopts(T, {heir, none}), c(fun() -> ets:setopts(T, foo) end), c(fun() -> ets:setopts(T, [{protection, x}]) end), c(fun() -> ets:setopts(T, [{heir,none},{heir,none}]) end)]),
    ets:delete(T).

counters() ->
    T = ets:new(c, []),
    ets:insert(T, [{a, 1, 2, 3}, {b, 1.5, x, 1 bsl 70}]),
    U = fun(K, O) -> c(fun() -> ets:update_counter(T, K, O) end) end,
    p("uc", [U(a, 1), U(a, {3, 10}), U(a, [{2,1},{2,1},{4,-5}]), U(a, {2,100,50,0}), U(a, {2,-100,-50,7}), U(a, []), U(a, {1,1}), U(a, {9,1}), U(a, {0,1}), U(a, {2,x}), U(a, x), U(a, [{2,1},{1,1}]), U(b, 1), U(b, {3,1}), U(b, {4,1}), U(b, {4, -(1 bsl 70)}), U(z, 1), U(a, 1 bsl 80), U(a, -(1 bsl 80)), U(a,[{2,1,x,1}])]),
    p("rows", sort(all(T))),
    p("uc4", [ets:update_counter(T, n, 5, {n, 10}), ets:update_counter(T, n, {2,1}, {zz, 10}), ets:update_counter(T, m, {2,1}, {zz, 10}), c(fun() -> ets:update_counter(T, q, 1, foo) end), ets:lookup(T, q), ets:lookup(T, m)]),
    E = fun(K, O) -> c(fun() -> ets:update_element(T, K, O) end) end,
    p("ue", [E(a, {2, [x,<<"y">>]}), E(a, [{3, z},{4,1}]), E(zz, {2,1}), E(a, {1,x}), E(a, {5,x}), E(a, {0,x}), E(a, foo), E(a, []), E(a, [{2,a}|b]), ets:lookup(T, a)]),
    Bg = ets:new(d, [bag]),
    p("bag uc", [c(fun() -> ets:update_counter(Bg, a, 1) end), c(fun() -> ets:update_element(Bg, a, {2,1}) end)]).

deep() ->
    C = fun(N) -> element(1, c(fun() -> is_reference(ets:match_spec_compile([{'$1',[nest(N, true)],['$1']}])) end)) end,
    p("deep ok", catch is_reference(ets:match_spec_compile([{'$1',[nest(2900, true)],['$1']}]))),
    p("too deep", [C(300000), element(2, c(fun() -> ets:match_spec_compile([{'$1',[nest(300000, true)],['$1']}]) end))]).

nest(0, X) -> X;
nest(N, X) -> nest(N - 1, {'or', X, {is_atom, '$1'}}).
