%% What instructions do, group by group: `go(Group)` exits with one text per case. The expected texts are OTP's.
-module(engine_cases).
-compile([export_all, nowarn_export_all, nowarn_unused_vars]).
groups() -> [fun bits/0, fun mapsg/0, fun funs/0, fun exc/0, fun fl/0, fun big/0, fun recv/0, fun rec/0, fun bin/0, fun lst/0, fun old/0].
go(N) -> put(out, []), F = nth(N, groups()), F(), exit(rev(get(out))).
print(N) when N > 11 -> ok;
print(N) -> {_, R} = spawn_monitor(fun() -> go(N) end), receive {'DOWN', R, _, _, L} -> io:format("[~s]~n", [lists:join(",", [[$", S, $"] || S <- L])]) end, print(N + 1).
rev(L) -> rev(L, []).
rev([], A) -> A; rev([H|T], A) -> rev(T, [H|A]).
sp(F) -> spawn(erlang, apply, [F, []]).
nth(1, [H|_]) -> H; nth(N, [_|T]) -> nth(N-1, T).
seq(A, B) when A > B -> []; seq(A, B) -> [A|seq(A+1, B)].
map(_, []) -> []; map(F, [H|T]) -> [F(H)|map(F, T)].
foldl(_, A, []) -> A; foldl(F, A, [H|T]) -> foldl(F, F(H, A), T).
sum(L) -> foldl(fun(X, A) -> X + A end, 0, L).
sort(L) -> foldl(fun ins/2, [], L).
ins(X, [H|T]) when X > H -> [H|ins(X, T)]; ins(X, L) -> [X|L].
flat(L) -> rev(flat(L, [])).
flat([], A) -> A; flat([H|T], A) -> flat(T, flat(H, A)); flat(C, A) -> [C|A].
pv(_, []) -> none; pv(K, [{K, V}|_]) -> V; pv(K, [_|T]) -> pv(K, T).
id(X)->X.
t(F) -> try F() of R -> {ok,R} catch C:R:S -> {C,R,st(S)} end.
st([{M,F,A,I}|_]) -> {M,f(F),A, pv(error_info,I), pv(line,I)};
st(X) -> X.
f(F) -> F.
show(N, X) -> put(out, [s({N,X})|get(out)]).


bits() ->
 B = id(<<1,2,3,4,5,6,7,8,9,10>>),
 <<A:8,C:16,D/binary>> = B, show(b1,{A,C,D}),
 <<X:3,Y:5,Z:13,R/bitstring>> = B, show(b2,{X,Y,Z,R}),
 <<S:16/signed,L:16/little,SL:24/signed-little,_/binary>> = id(<<255,254,1,2,200,201,202,9>>), show(b3,{S,L,SL}),
 <<Big:128,T/binary>> = id(<<1:128,7>>), show(b4,{Big,T}),
 <<Bs:128/signed-little,_/binary>> = id(<<(-5):128/signed-little,7>>), show(b5,Bs),
 <<F:64/float,G:32/float,H:16/float,_/binary>> = id(<<1.5/float,2.25:32/float,0.5:16/float,1>>), show(b6,{F,G,H}),
 <<U/utf8,V/utf16,W/utf32,_/binary>> = id(<<"é"/utf8, 16#10437/utf16, $x/utf32, 0>>), show(b7,{U,V,W}),
 N = id(3), <<P:N/binary,Q:N/binary,_/binary>> = B, show(b8,{P,Q}),
 K = id(5), <<J:K,M:K/little,O:K/signed,_/bits>> = B, show(b9,{J,M,O}),
 show(b10, [case Z2 of <<1,_/binary>> -> one; <<2:4,_:4,_/binary>> -> two; <<"abc",RR/binary>> -> {abc,RR}; <<_:7,RR/bitstring>> when bit_size(RR) > 8 -> {long,RR}; <<_/binary>> -> bin; _ -> other end || Z2 <- [<<1,2>>,<<16#2f>>,<<"abcdef">>,<<9,9,9>>,<<>>,<<1:3>>,foo]]),
 show(b11, << <<(X1+1):8>> || <<X1:8>> <= B >>), show(b12, [X2 || <<X2:4>> <= B]), show(b13, << <<X3:5>> || X3 <- [1,2,3] >>),
 show(b14, app(<<>>, 100)), show(b15, {byte_size(app(<<>>,1000)), sum(binary_to_list(app(<<>>,1000)))}),
 AA = app(<<"x">>,30), AB = <<AA/binary, "1">>, AC = <<AA/binary, "2">>, show(b16, {AB,AC}),
 show(b17, <<1:1, (id(<<5:3>>))/bitstring, 0:4, (id(1.5)):32/float, (id(-7)):20/little>>),
 show(b18, <<(id(16#123456789abcdef0123)):80/little, (id(-16#123456789abcdef0123)):77>>),
 show(b19, skip(B, id(3))), show(b20, utf(unicode("héllo€𐐷"), [])),
 show(b21, t(fun() -> <<QQ:N/binary, _:100>> = B, QQ end)),
 show(b22, bm(B)), show(b23,[tail(B, id(I)) || I <- seq(0,10)]), show(b24, tu(id(<<1,2,3:7>>))), show(b25, tu(id(<<1,2,3>>))),
 show(b26, binary_to_list(id(<<1,2,3>>))), ok.
unicode(S) -> << <<C/utf8>> || C <- S >>.
utf(<<C/utf8, R/binary>>, A) -> utf(R, [C|A]); utf(<<>>, A) -> rev(A).
tail(B, N) -> case B of <<_:N/binary, T/binary>> -> T; _ -> none end.
tu(B) -> case B of <<_:8, R/binary>> -> {bin, R}; <<_:8, R/bitstring>> -> {bits, R} end.
bm(<<A:4,B:12,C:24/little,D:2/binary,E/binary>>) -> {A,B,C,D,E}.
skip(B, N) -> <<_:N/unit:8, _:4, X:4, R/binary>> = B, {X,R}.
app(B, 0) -> B; app(B, N) -> app(<<B/binary, N:8>>, N-1).

mapsg() ->
 M = id(#{a=>1,b=>2,"c"=>3,4.0=>5,6=>7}), #{a:=A,"c":=C} = M, show(m1,{A,C}),
 show(m2, M#{a:=10}), show(m3,M#{z=>1,a=>2}), show(m4, t(fun() -> M#{zz:=1} end)), show(m5, t(fun() -> (id(x))#{a=>1} end)),
 show(m6, [case X of #{a:=V} -> V; #{} -> empty; _ -> no end || X <- [M,#{},1]]),
 Big = foldl(fun(I,Q) -> Q#{I=>I*I} end, #{}, seq(1,200)), #{100:=H} = Big, show(m7,{H,map_size(Big),map_get(77,Big),is_map_key(300,Big)}),
 show(m8, maps:keys(Big#{300=>1,5:=x}) =:= maps:keys(Big)), show(m9, sum(maps:values(Big))),
 K = id([1,2]), show(m11, (id(#{[1,2]=>3})) ), #{K:=V11} = id(#{[1,2]=>3}), show(m12, V11),
 show(m13, t(fun() -> map_get(q, M) end)), show(m14, t(fun() -> map_size(id(1)) end)),
 show(m15, [is_map_key(a,M), is_map_key(q,M)]), show(m16, g(M)), show(m17, g(#{})), ok.
g(M) when map_get(a,M) =:= 1 -> yes; g(M) when is_map_key(b,M) -> b; g(_) -> no.

funs() ->
 A = id(5), F = fun(X) -> X + A end, show(f1,F(3)), show(f2,map(F,[1,2,3])), G = fun ?MODULE:id/1, show(f3,G([1,2])),
 show(f4, apply(id(?MODULE), id(seq), [1,3])), show(f5, apply(F,[1])), Mod=id(?MODULE), Fn=id(sum), show(f6, Mod:Fn([1,2,3])),
 show(f7, t(fun() -> (id(F))(1,2) end)), show(f8, t(fun() -> (id(foo))(1) end)), show(f9,t(fun() -> apply(id(1),foo,[]) end)), show(f10, t(fun() -> nosuch:foo(1,2) end)),
 show(f11, t(fun() -> t2:nofun(3) end)), H = fun Fact(0) -> 1; Fact(N) -> N*Fact(N-1) end, show(f12, H(30)), show(f13,[is_function(F),is_function(F,1),is_function(F,2),is_function(G,1),is_function(x)]),
 show(f14, t(fun() -> apply(F, [1|2]) end)), show(f15, (fun(X,Y,Z,W,V,U,T) -> [X,Y,Z,W,V,U,T,A] end)(1,2,3,4,5,6,7)), 
 show(f17, t(fun() -> apply(?MODULE, map, foo) end)), ok.

exc() ->
 show(e1, catch throw(x)), show(e2, (catch exit(x))), show(e3, element(1,element(2,(catch error(x))))), show(e4, t(fun() -> throw(a) end)), show(e5, t(fun() -> exit(a) end)), show(e6,t(fun() -> error(a) end)),
 show(e7, t(fun() -> error(a,[1,2]) end)), show(e8, t(fun() -> id(1)+id(a) end)), show(e9, t(fun() -> hd(id([])) end)), show(e10, t(fun() -> {a,_} = id({b,1}) end)), show(e11, t(fun() -> case id(3) of 4 -> ok end end)),
 show(e12, t(fun() -> if1(id(3)) end)), show(e13, t(fun() -> fc(id(3),4) end)), show(e14, t(fun() -> try id(5) of 6 -> ok catch throw:_ -> no end end)),
 show(e15, try try error(a) after show(after1,x) end catch error:E -> E end), show(e16, try throw({a,b}) catch throw:{a,Q} -> Q end),
 show(e17, t(fun() -> try error(foo) catch error:foo:S -> erlang:raise(exit, bar, S) end end)), show(e18, (catch map(fun(X) -> throw({t,X}) end,[1,2]))),
 show(e19, t(fun() -> element(id(5),{a}) end)), show(e20, t(fun() -> atom_to_list(id(1)) end)), show(e21, t(fun() -> list_to_atom(id(x)) end)), show(e22, deep(1000)), show(e23, t(fun() -> id(#{}) , receive after id(-1) -> ok end end)),
 show(e24, t(fun() -> length(id([a|b])) end)), show(e25, t(fun() -> (id(1)) bsl (id(1.0)) end)), show(e26, t(fun() -> tuple_size(id([])) end)), show(e27, t(fun() -> (id(1)) div (id(0)) end)), show(e28, t(fun() -> (id(1)) / (id(0)) end)), show(e29,t(fun() -> not id(1) end)), show(e30, t(fun() -> id(a) and true end)),
 show(e31, (try id(1) + id(b) catch _:_ -> caught end)), show(e32, nest(5)), show(e33, t(fun() -> -id(a) end)), show(e34, t(fun() -> bnot id(1.5) end)), ok.
nest(0) -> throw(deep); nest(N) -> try nest(N-1) of _ -> 1 catch error:x -> no; throw:deep -> N after id(N) end.
if1(X) -> if X > 5 -> a; X =:= a -> b end.
fc(1,_) -> ok; fc(2,X) when X > 100 -> no.
deep(0) -> catch error(bottom), 0; deep(N) -> 1 + (catch deep(N-1)).

fl() -> X=id(1.5), Y=id(2), show(fl1,[X+Y,X-Y,X*Y,X/Y,-X,Y/Y,X+X*X-X/X]), show(fl2,t(fun() -> Z=id(1.0e308), Z*Z*1.0 end)), show(fl3,t(fun() -> id(1 bsl 5000) * 1.0 end)), show(fl4,[trunc(X),round(X),float(Y),abs(-X),ceil(X),floor(X)]), show(fl5, [1 == 1.0, 1 =:= 1.0, id(1) < 1.5, id(1 bsl 70) > 1.0e10, id(0.0) == 0]), show(fl6, fs(1000, 0.0)), show(fl7, t(fun() -> X / id(0.0) end)), show(fl8, t(fun() -> X + id(a) end)), ok.
fs(0, A) -> A; fs(N, A) -> fs(N-1, A + N*0.5 - 1.0/N).
big() -> A=id(1 bsl 59), show(g1,[A,A-1,A*A,-A-1,-A,A bsl 1,A bsr 3,A bor 1,A band (A-1),A bxor 5,A rem 7,A div 3,(-A*2) div 7,(-A*2) rem 7, bnot A, -(-A)]), show(g2, fact(60)), show(g3, [id(-1) bsr 70, id(1) bsl 100 bsr 98, id(-5) bsl 60, id(5) bsl -1, id(576460752303423487)+1, id(-576460752303423488)-1, id(-576460752303423488) * -1, id(-576460752303423488) div -1, abs(id(-576460752303423488))]),
 show(g4, [fact(25) rem 1000007, fact(30) div fact(28), fact(40) > fact(39), fact(20) =:= fact(20), fact(25) == fact(25)*1.0]), show(g5, [X || X <- [1 bsl 60, 5, -7, 1.0], X > 4]), show(g6, loopbig(2000, 1) rem 1000003), ok.
loopbig(0, A) -> A; loopbig(N, A) -> loopbig(N-1, A*3+N).
fact(0)->1; fact(N)->N*fact(N-1).
recv() -> Self = self(), P = sp(fun() -> loop(0) end), [P ! {add,I} || I <- seq(1,10)], P ! {get,Self}, receive {sum,S} -> show(r1,S) end,
 Self ! a, Self ! b, Self ! c, receive c -> show(r2,c) end, receive X -> show(r3,X) after 0 -> none end, receive b -> ok end, receive _ -> bad after 10 -> show(r4,timeout) end,
 Pid = sp(fun() -> receive go -> exit(boom) end end), Ref = erlang:monitor(process, Pid), Pid ! go, receive {'DOWN',Ref,process,Pid,Why} -> show(r5,Why) end, R = make_ref(), Self ! {R, 1}, receive {R,V} -> show(r6,V) end,
 show(r8, sum(pmap(fun(Q) -> Q*Q end, seq(1,100)))), ok.
pmap(F,L) -> S=self(), Ps=[sp(fun() -> S ! {self(), F(X)} end) || X <- L], [receive {P,R} -> R end || P <- Ps].



loop(S) -> receive {add,N} -> loop(S+N); {get,P} -> P ! {sum,S} end.
-record(rr,{a,b=2,c=3,d,e,f}).
rec() -> R=id(#rr{a=1}), show(t1,R), show(t2,R#rr{b=5}), show(t3,R#rr{a=9,c=8,f=7}), show(t4,R#rr.c), R2=foldl(fun(I,Q) -> Q#rr{d=I} end, R, seq(1,100)), show(t5,R2), show(t6,t(fun() -> (id({x}))#rr.a end)), show(t7, setelement(2,R,z)), show(t8, is_record(R,rr)), ok.
bin() -> show(n1, iolist_to_binary(["abc",<<"def">>,[1,2,[3]]])), show(n2, list_to_tuple(seq(1,50))), show(n4, {<<1,2>> < <<1,3>>, <<1>> =:= <<1>>, byte_size(id(<<1:9>>)), bit_size(id(<<1:9>>))}), ok.
lst() -> L=seq(1,1000), show(l1,sum(map(fun(X)->X*2 end,L))), show(l2,length([X || X <- L, X rem 3 == 0])), show(l3,sort([3,1,2,a,{1},[],"x",1.5,<<>>])), show(l4,foldl(fun(X,A) -> [X|A] end,[],[1,2,3])), show(l6,[{X,Y} || X <- [1,2], Y <- [a,b]]), show(l7, sel(id(7))), show(l8,[sel(X) || X <- [1,2,3,4,5,6,7,8,9,10,100,200,-5,foo,bar,baz,1 bsl 70, 1.5, "s"]]), show(l9, [sa(X) || X <- [{},{1},{1,2},{1,2,3},{1,2,3,4},x]]), show(l12, [1,2] ++ [3]), show(l14, sum([X rem 7 || X <- L])), ok.
sel(1)->a; sel(2)->b; sel(3)->c; sel(4)->d; sel(5)->e; sel(6)->f; sel(7)->g; sel(100)->h; sel(-5)->i; sel(foo)->j; sel(bar)->k; sel(1180591620717411303424)->l; sel(1.5)->m; sel(_)->z.
sa({})->0; sa({_})->1; sa({A,_})->A; sa({_,_,_})->3; sa({_,_,_,X})->X; sa(_)->no.
old() -> put(a,1), show(o1,get(a)), show(o2,put(a,2)), show(o3,erase(a)), ok.

s(X) -> flat(p(X)).
p(X) when is_integer(X) -> integer_to_list(X);
p(X) when is_atom(X) -> atom_to_list(X);
p(X) when is_float(X) -> float_to_list(X, [{scientific,15}]);
p([]) -> "[]";
p(X) when is_list(X) -> ["[", l(X), "]"];
p(X) when is_tuple(X) -> ["{", c([p(E) || E <- tuple_to_list(X)]), "}"];
p(X) when is_map(X) -> ["#{", c([[p(K),"=>",p(V)] || {K,V} <- sort([{K,map_get(K,X)} || K <- maps:keys(X)])]), "}"];
p(X) when is_binary(X) -> ["<<", c([integer_to_list(B) || B <- binary_to_list(X)]), ">>"];
p(X) when is_bitstring(X) -> S = bit_size(X), N = S div 8, R = S rem 8, <<B:N/binary, V:R>> = X, [p(B), "+", integer_to_list(V), ":", integer_to_list(R)];
p(X) when is_function(X) -> "fun";
p(X) when is_pid(X) -> "pid";
p(_) -> "other".
l([H]) -> p(H); l([H|T]) when is_list(T) -> [p(H), ",", l(T)]; l([H|T]) -> [p(H), "|", p(T)].
c([]) -> []; c([X]) -> X; c([X|T]) -> [X, ",", c(T)].
