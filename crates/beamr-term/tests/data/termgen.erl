-module(termgen).
-export([main/0]).
%% Writes terms.txt and order.txt: what this OTP says about many terms.

main() ->
    rand:seed(exsss, {1,2,3}),
    Terms = hand() ++ records() ++ [rnd(5) || _ <- lists:seq(1,220)],
    {ok, F} = file:open("terms.txt", [write]),
    [line(F, T) || T <- Terms],
    file:close(F),
    O = order_terms(),
    {ok, G} = file:open("order.txt", [write]),
    [io:format(G, "~s ~s ~s~n", [hex(term_to_binary(A, [{minor_version,2}])),
        [c(A,B) || B <- O], [x(A,B) || B <- O]]) || A <- O],
    file:close(G).

line(F, T) ->
    T0 = term_to_binary(T),
    io:format(F, "~s ~s ~s ~w ~w ~w ~w~n", [
        hex(T0),
        other(T0, term_to_binary(T, [{minor_version,0}])),
        other(T0, term_to_binary(T, [{minor_version,2},deterministic])),
        erlang:external_size(T),
        erlang:phash2(T, 1 bsl 32),
        erlang:phash2(T),
        erlang:phash(T, 1 bsl 32) - 1]).

other(T, T) -> "-"; other(_, T) -> hex(T).
c(A,B) -> if A =:= B -> $e; A == B -> $=; A < B -> $<; true -> $> end.
x(A,B) -> case erts_internal:cmp_term(A,B) of N when N < 0 -> $<; 0 -> $=; _ -> $> end.

hex(B) -> [hd(integer_to_list(N,16)) || <<N:4>> <= B].

ext(B) -> binary_to_term(B).
node_atom() -> <<119,10,"other@host">>.
xpid(N,S,C) -> ext(<<131,88,(node_atom())/binary,N:32,S:32,C:32>>).
xport(N,C) -> ext(<<131,120,(node_atom())/binary,N:64,C:32>>).
xref(Ns,C) -> ext(<<131,90,(length(Ns)):16,(node_atom())/binary,C:32,(<< <<N:32>> || N <- Ns>>)/binary>>).
lref(A,B,C) -> ext(<<131,90,3:16,119,13,"nonode@nohost",0:32,A:32,B:32,C:32>>).
lpid(N,S) -> ext(<<131,88,119,13,"nonode@nohost",N:32,S:32,0:32>>).
lport(N) -> ext(<<131,120,119,13,"nonode@nohost",N:64,0:32>>).
atoms() -> ['', a, b, ab, 'A b', '$', nil, true, binary_to_atom(<<"é"/utf8>>), binary_to_atom(<<"grün"/utf8>>),
   binary_to_atom(<<"λx"/utf8>>), binary_to_atom(<<"日本語"/utf8>>), binary_to_atom(<<"😀"/utf8>>), abcdefgh, abcdefghi, abcdefghj,
   list_to_atom(lists:duplicate(255,$q)), binary_to_atom(iolist_to_binary(lists:duplicate(200, <<"ö"/utf8>>)))].
ints() -> [0,1,-1,7,255,256,-128,-255,-256,65535,65536,16#7ffffff,16#8000000,-16#8000000,-16#8000001,16#fffffff,16#10000000,
   16#7fffffff,16#80000000,-16#80000000,-16#80000001,16#ffffffff,16#100000000,(1 bsl 59)-1,1 bsl 59,-(1 bsl 59),-(1 bsl 59)-1,
   (1 bsl 63)-1,1 bsl 63,-(1 bsl 63),(1 bsl 64)-1,1 bsl 64,-(1 bsl 64),(1 bsl 128)-1,1 bsl 128,-(1 bsl 130)-12345,
   1 bsl 2039, (1 bsl 2040)-1, 1 bsl 2040, -(1 bsl 2100)+99, 123456789012345678901234567890].
floats() -> [0.0,id(-0.0),1.0,-1.0,1.5,2.0,3.141592653589793,1.0e100,1.0e-100,-1.0e22,5.0e-324,1.7976931348623157e308,
   9007199254740992.0,9007199254740993.0,1.8446744073709552e19,1152921504606846976.0,576460752303423488.0,255.0,3.4028236692093846e38].
bins() -> [<<>>,<<0>>,<<1,2,3>>,<<"hello">>,<<0:1>>,<<1:1>>,<<5:3>>,<<255,1:1>>,<<1,2,3,7:5>>,
   <<"twelve bytes">>,<<"eleven byte">>,<<"thirteen byte">>,binary:copy(<<"x">>,64),binary:copy(<<"y">>,65),
   binary:copy(<<"z">>,200),<<(binary:copy(<<"w">>,70))/binary,3:3>>,
   part(3,600),part(1,77),part(8,640),part(5,8)].
part(O,S) -> B = list_to_binary(lists:seq(0,255)), <<_:O,X:S/bitstring,_/bitstring>> = B, X.
ids() -> [lpid(9,0),lpid(1000,0),lpid(16#7fff,5),lpid(5,16#1ff),xpid(9,0,3),xpid(1000,7,16#ffffffff),xpid(9,0,4),
   lport(3),lport(16#fffffff),xport(3,1),xport(16#123456789,1),
   lref(1,2,3),lref(16#3ffff,16#ffffffff,7),lref(1,2,4),xref([1,2,3],3),xref([1,2,3,4,5],3),xref([16#ffffffff],9),xref([1,2],3),xref([1,2,3],4)].
funs() -> [fun lists:map/2, fun erlang:'+'/2, fun m:f/0, fun m:f/255, f0(), f1(1), f1([a,b]), f2(1,<<"x">>), fx()].
f0() -> fun(X) -> X end.
f1(A) -> fun() -> A end.
f2(A,B) -> fun(X) -> {A,B,X} end.
fx() -> A = f1(2), fun(X,Y,Z) -> {A,X,Y,Z} end.
lists() -> [[],[1],[a],"abc",[0,255],[0,256],[-1],[a|b],[1|2],[1,2|c],[[]],[[],[]],[1,2,3,a,4,5,6,7,8,9],lists:seq(0,255),
   lists:seq(250,260),[300|lists:seq(1,20)],lists:duplicate(100,a),lists:duplicate(300,65),[[1,2,3]|"abc"],["ab",["cd"|e]],[1.0],[1]].
tuples() -> [{},{a},{1,2},{1.0,2},{a,{b,{c}}},{{},[]},list_to_tuple(lists:seq(1,255)),list_to_tuple(lists:seq(1,256)),{[]},{"abc",<<"abc">>,abc}].
maps_() -> [#{},#{a=>1},#{1=>a},#{1.0=>a},#{1=>a,1.0=>b},#{a=>1,b=>2},#{b=>1,a=>2},#{a=>1,b=>2.0},#{a=>1.0,b=>2},#{#{}=>#{}},#{[]=>{},{}=>[]},
   maps:from_list([{X,X*X}||X<-lists:seq(1,32)]),maps:from_list([{X,X}||X<-lists:seq(1,33)]),
   maps:from_list([{X,X}||X<-lists:seq(2,34)]),maps:from_list([{X,a}||X<-lists:seq(1,33)]),
   maps:from_list([{integer_to_binary(X),{X}}||X<-lists:seq(1,100)]),
   #{k=>maps:from_list([{{X},[X]}||X<-lists:seq(1,50)]),j=>#{maps:from_list([{X,X}||X<-lists:seq(1,40)])=>maps:from_list([{X/1,X}||X<-lists:seq(1,40)])}}].
id(X) -> X.
hand() -> atoms() ++ ints() ++ floats() ++ bins() ++ ids() ++ funs() ++ lists() ++ tuples() ++ maps_() ++
   [[lists(),tuples(),maps_()],{ids(),funs()},#{ids()=>floats()}].

records() -> case erlang:system_info(otp_release) of "29" -> recs(); _ -> [] end.
recs() -> C = fun(M,N,F,E) -> erlang:apply(records,create,[M,N,F,#{is_exported=>E}]) end,
   [C(m,n,[],true),C(m,n,[],false),C(m,n,[{a,1}],true),C(m,n,[{a,1}],false),C(m,n,[{a,2}],true),C(m,n,[{b,2},{a,1}],true),C(m,n,[{a,1},{b,2}],true),
    C(n,m,[{x,[a]},{y,#{}}],false),{C(m,n,[{a,<<"x">>}],true)},[1,C(x,y,[{z,3.0}],false),2],#{C(a,b,[{c,d}],true)=>C(a,b,[{c,e}],true)},
    C(m,n,[{a,C(m,q,[{r,1}],true)},{b,"str"}],false)].

rnd(0) -> leaf();
rnd(D) -> case rand:uniform(9) of
   1 -> [rnd(D-1) || _ <- lists:seq(1,rand:uniform(5))];
   2 -> list_to_tuple([rnd(D-1) || _ <- lists:seq(1,rand:uniform(5))]);
   3 -> maps:from_list([{rnd(D-2 bor 0, x),rnd(D-1)} || _ <- lists:seq(1,rand:uniform(5))]);
   4 -> [rnd(D-1)|leaf()];
   _ -> leaf() end.
rnd(D,x) when D > 0 -> rnd(D); rnd(_,x) -> leaf().
leaf() -> pick(case rand:uniform(8) of 1->atoms();2->ints();3->floats();4->bins();5->ids();6->lists();7->[rand:uniform(1000),-rand:uniform(1 bsl 40),rand:uniform(1 bsl 100),rand:uniform()];8->[crypto_free(rand:uniform(20))] end).
crypto_free(N) -> list_to_binary([rand:uniform(256)-1||_<-lists:seq(1,N)]).
pick(L) -> case lists:nth(rand:uniform(length(L)),L) of X when is_list(X), length(X) > 50 -> []; X when is_atom(X) -> case length(atom_to_list(X)) > 50 of true -> q; _ -> X end; X when is_integer(X), X > 1 bsl 200 -> 17; X -> X end.
order_terms() -> [a,ab,b,'',abcdefghi,abcdefghj,binary_to_atom(<<"é"/utf8>>),binary_to_atom(<<"λx"/utf8>>)]
   ++ [0,1,-1,256,1 bsl 59,(1 bsl 59)-1,-(1 bsl 59)-1,1 bsl 60,(1 bsl 64),(1 bsl 64)+1,-(1 bsl 64),1 bsl 128,1 bsl 2000]
   ++ [0.0,id(-0.0),1.0,0.5,576460752303423488.0,1152921504606846976.0,1.8446744073709552e19,-1.8446744073709552e19,3.4028236692093846e38,1.0e308]
   ++ [<<>>,<<0>>,<<0:1>>,<<1:1>>,<<"a">>,<<"ab">>,<<97,0:1>>,part(3,600),part(8,640)] ++ ids() ++ funs()
   ++ [[],[1],[1.0],[a|b],[1,2],[1,2|3],[[]],"abc",{},{a},{b},{1,2},{1.0,2},{1,2,3},{[],a}] ++ maps_() ++ records().
