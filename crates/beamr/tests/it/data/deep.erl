%% Terms that are very deep, or endless when written out. See deep.rs.
-module(deep).
-export([run/3, forever/2, long/2, bomb/2, count/1, waits/0, flood/2, flooded/1]).

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
endless(characters, _, L) -> unicode:characters_to_list(L, latin1);
endless(md5, _, L) -> erlang:md5(L);
endless(crc32, _, L) -> erlang:crc32(L);
endless(flatten, _, L) -> flatten(L, []).

shared_bytes(0, A) -> A;
shared_bytes(N, A) -> shared_bytes(N - 1, [A, A]).

flatten([H | T], Acc) -> flatten(H, flatten(T, Acc));
flatten([], Acc) -> Acc.

%% Natives that take many slices. The data are made, then the process waits to be told.
long(Op, N) ->
    Data = data(Op, N),
    receive go -> native(Op, Data) end.

data(Op, N) when Op =:= keyfind; Op =:= keymember -> pairs(N);
data(Op, N) when Op =:= map_keys; Op =:= map_values; Op =:= map_pairs -> maps:from_list(pairs(N));
data(binary_to_term, N) -> term_to_binary(numbers(N));
data(Op, N) when Op =:= iolist_size; Op =:= iolist_to_binary; Op =:= md5; Op =:= characters -> bytes(N);
data(_, N) -> numbers(N).

native(append, L) -> L ++ [last];
native(reverse, L) -> lists:reverse(L, []);
native(member, L) -> lists:member(none, L);
native(keyfind, L) -> lists:keyfind(none, 1, L);
native(keymember, L) -> lists:keymember(none, 1, L);
native(map_keys, M) -> maps:keys(M);
native(map_values, M) -> maps:values(M);
native(map_pairs, M) -> erts_internal:map_next(0, M, []);
native(binary_to_term, B) -> binary_to_term(B);
native(term_to_binary, L) -> term_to_binary(L);
native(external_size, L) -> erlang:external_size(L);
native(phash2, L) -> erlang:phash2(L);
native(iolist_size, L) -> iolist_size(L);
native(iolist_to_binary, L) -> iolist_to_binary(L);
native(md5, L) -> erlang:md5(L);
native(characters, L) -> unicode:characters_to_list(L, latin1).

pairs(0) -> [];
pairs(N) -> [{N, N} | pairs(N - 1)].
bytes(0) -> [];
bytes(N) -> [N band 127 | bytes(N - 1)].

%% What a number asks for that nobody can have: the reason of the error, or `made`.
bomb(Op, N) ->
    try explode(Op, N) of
        _ -> made
    catch
        error:Reason -> Reason
    end.

explode(zeros, N) -> <<0:N>>;
explode(behind, N) -> <<(self_made(10))/binary, 0:N>>;
explode(sized, N) -> <<1:N/integer-unit:8>>;
explode(copy, N) -> binary:copy(<<0:8000>>, N div 8000);
explode(tuple, N) -> erlang:make_tuple(least(N div 64, 16777215), a);
explode(atomics, N) -> erts_internal:atomics_new(N div 64, 0);
explode(counters, N) -> erts_internal:counters_new(N div 64);
explode(spawn_heap, N) -> spawn_opt(erlang, self, [], [{min_heap_size, N div 64}]);
explode(flag_heap, N) -> process_flag(min_heap_size, N div 64);
explode(inflate, N) -> binary_to_term(<<131, 80, (least(N div 8, 16#FFFFFFFF)):32, 120, 156, 3, 0, 0, 0, 0, 1>>);
explode(shift, N) -> 1 bsl N;
explode(shift_shifted, N) -> (1 bsl (N bsr 20)) bsl N.

least(A, B) when A < B -> A;
least(_, B) -> B.

self_made(N) -> list_to_binary(bytes(N)).

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
