%% Terms that are very deep, or endless when written out. See deep.rs.
-module(deep).
-export([run/3, forever/2, count/1, waits/0, flood/2, flooded/1]).

%% A term, made anew at each call.
make(left, N) -> left(N, []);
make(tuple, N) -> tuple(N, {});
make(right, N) -> right(N, end_of_list);
make(map, N) -> map(N, #{});
make(shared, N) -> shared(N, {leaf, 1.5});
make(lists, N) -> lists(N, []).

left(0, A) -> A;
left(N, A) -> left(N - 1, [A]).
tuple(0, A) -> A;
tuple(N, A) -> tuple(N - 1, {A}).
right(0, A) -> A;
right(N, A) -> right(N - 1, [N | A]).
map(0, A) -> A;
map(N, A) -> map(N - 1, #{k => A}).
shared(0, A) -> A;
shared(N, A) when N rem 3 =:= 0 -> shared(N - 1, {A, A});
shared(N, A) when N rem 3 =:= 1 -> shared(N - 1, [A | A]);
shared(N, A) -> shared(N - 1, #{x => A, y => A}).
%% An iolist without a byte.
lists(0, A) -> A;
lists(N, A) -> lists(N - 1, [A | A]).

%% What ends. The result is true when it is right.
run(Op, Kind, N) -> op(Op, make(Kind, N), make(Kind, N)).

op(same, A, B) -> A =:= B andalso not (A =/= B);
op(equal, A, B) -> A == B andalso not (A /= B);
op(order, A, B) -> A =< B andalso not (A < B) andalso {A, 1} < {B, 2};
op(send, A, B) ->
    Me = self(),
    Echo = start(fun() -> receive {From, X} -> From ! {self(), X} end end),
    Echo ! {Me, A},
    receive {Echo, C} -> C =:= B end;
op(spawn, A, B) ->
    Me = self(),
    start(fun() -> Me ! {got, A =:= B} end),
    receive {got, R} -> R end;
op(exit, A, B) ->
    {Pid, Ref} = watch(fun() -> exit({A, B}) end),
    receive {'DOWN', Ref, process, Pid, {C, D}} -> C =:= D andalso C =:= A end;
op(error, A, B) ->
    {Pid, Ref} = watch(fun() -> error({A, B}) end),
    receive {'DOWN', Ref, process, Pid, {{C, D}, _}} -> C =:= D andalso C =:= A end;
op(key, A, B) ->
    M = #{A => 1, {A, 2} => 2},
    Big = maps:from_list([{{A, I}, I} || I <- numbers(40)]),
    #{B := 1, {B, 2} := 2} = M,
    #{{B, 17} := 17} = Big,
    map_size(Big) =:= 40;
op(dictionary, A, B) ->
    put(A, 1),
    get(B) =:= 1;
op(ets, A, B) ->
    T = ets:new(t, [ordered_set, public]),
    S = ets:new(s, [set, public]),
    true = ets:insert(T, {A, A}),
    true = ets:insert(S, {A, A}),
    [{_, C}] = ets:lookup(T, B),
    [{_, D}] = ets:lookup(S, B),
    refused_or_found(catch ets:match(S, {B, B})),
    C =:= D andalso C =:= A;
op(hash, A, B) -> erlang:phash2(A) =:= erlang:phash2(B) andalso erlang:phash(A, 1000) =:= erlang:phash(B, 1000);
op(binary, A, B) ->
    X = term_to_binary(A),
    byte_size(X) =:= erlang:external_size(B) andalso binary_to_term(X) =:= B;
op(collect, A, B) ->
    erts_internal:garbage_collect(major),
    A =:= B.

%% A pattern that is endless when written out is refused.
refused_or_found([[]]) -> ok;
refused_or_found({'EXIT', {badarg, _}}) -> ok.

%% The natives themselves: there is no OTP behind them here.
start(F) -> spawn(erlang, apply, [F, []]).
watch(F) -> spawn_opt(erlang, apply, [F, []], [monitor]).

numbers(0) -> [];
numbers(N) -> [N | numbers(N - 1)].

%% What never ends, or not within any memory.
forever(Op, N) -> endless(Op, make(shared, N), make(lists, N)).

endless(phash2, A, _) -> erlang:phash2(A);
endless(phash, A, _) -> erlang:phash(A, 7);
endless(binary, A, _) -> byte_size(term_to_binary(A));
endless(external_size, A, _) -> erlang:external_size(A);
endless(iolist_size, _, L) -> iolist_size(L);
endless(list_to_binary, _, L) -> list_to_binary(L);
endless(list_to_binary_long, _, _) -> list_to_binary(shared_bytes(60, [<<"0123456789">>, 1]));
endless(flatten, _, L) -> flatten(L, []).

shared_bytes(0, A) -> A;
shared_bytes(N, A) -> shared_bytes(N - 1, [A, A]).

flatten([H | T], Acc) -> flatten(H, flatten(T, Acc));
flatten([], Acc) -> Acc.

%% Another process, which must come to its end meanwhile.
count(0) -> counted;
count(N) -> count(N - 1).

waits() -> receive never -> ok end.

%% Queues N messages of a few words.
flood(_, 0) -> done;
flood(To, N) ->
    To ! {message, N, [N]},
    flood(To, N - 1).

%% N messages in the queue of a process that looks for another one again and again.
flooded(N) ->
    flood(self(), N),
    self() ! last,
    receive last -> looked_through end.
