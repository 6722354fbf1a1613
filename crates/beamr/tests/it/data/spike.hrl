%% The same functions in both modules; what calls ?OTHER changes engines when the two run on different ones.
-export([go/1, fib/1, count/2, list/1, deep/2, thrown/1, failing/1, guarded/2, old_catch/1,
         natives/1, apply_fun/2, server/2, waits/1, unknown/1, slow/1, noise/3, bound/2, clause/1, boom/0]).

go(Case) -> exit(value(Case)).

%% One case: {Value, Reductions}.
value(fib) -> measured(fun(_) -> ?OTHER:fib(16) end);
value(count) -> measured(fun(_) -> ?OTHER:count(20000, 0) end);
value(list) -> measured(fun(_) -> sum(?OTHER:list(3000), 0) end);
value(collected) -> [sum(list(4000), 0), sum(?OTHER:list(4000), 0), ?OTHER:natives(list(3000))];
value(thrown) -> measured(fun(_) -> [guarded(thrown, 20), guarded(failing, 20), guarded(clause, ok),
                                  guarded(unknown, 1), guarded(natives, not_a_list),
                                  guarded(bound, a), guarded(apply_fun, 5)] end);
value(old_catch) -> measured(fun(_) -> old_catch(12) end);
value(natives) -> measured(fun(_) -> ?OTHER:natives(list(3000)) end);
value(funs) -> measured(fun(X) -> map(fun(Y) -> ?OTHER:apply_fun(fun(Z) -> Z + X + Y end, Y) end, [1, 2, 3]) end);
value(waits) -> measured(fun(_) -> ?OTHER:waits(30) end);
value(slow) -> measured(fun(_) -> ?OTHER:slow(0) end);
value(noise) -> order();
value(boom) -> ?OTHER:boom();
value(crash) -> deep(failing, 5).

%% Stubs between engines are words on the stack and may bring a collection forward, which costs reductions: here is room for all.
measured(F) ->
    erlang:process_flag(min_heap_size, 300000),
    erts_internal:garbage_collect(major),
    Before = reductions(),
    Value = F(10),
    {Value, reductions() - Before}.

reductions() ->
    {reductions, N} = erlang:process_info(self(), reductions),
    N.

%% Calls and returns.
fib(N) when N < 2 -> N;
fib(N) -> ?OTHER:fib(N - 1) + fib(N - 2).

%% Tail calls to and fro: the stack must not grow.
count(0, Acc) ->
    {stack_size, N} = erlang:process_info(self(), stack_size),
    {Acc, N < 10};
count(N, Acc) -> ?OTHER:count(N - 1, Acc + 1).

%% Deep frames, collected on the way.
list(0) -> [];
list(N) -> [{N, [N]} | ?OTHER:list(N - 1)].

sum([{N, [N]} | T], Acc) -> sum(T, Acc + N);
sum([], Acc) -> Acc.

%% Exceptions through frames of both.
thrown(N) -> deep(thrown, N).
failing(N) -> deep(failing, N).
deep(thrown, 0) -> throw(bottom);
deep(failing, 0) -> erlang:error(bottom);
deep(How, N) ->
    R = ?OTHER:deep(How, N - 1),
    [R | R].

guarded(Function, Argument) ->
    try called(Function, Argument) of
        Value -> {value, Value}
    catch
        throw:Thrown:Stack -> {thrown, Thrown, Stack};
        error:Reason:Stack -> {Reason, Stack}
    end.

called(thrown, N) -> ?OTHER:thrown(N);
called(failing, N) -> ?OTHER:failing(N);
called(clause, N) -> [?OTHER:clause(N)];
called(unknown, N) -> [?OTHER:unknown(N)];
called(natives, N) -> [?OTHER:natives(N)];
called(bound, N) -> [?OTHER:bound(N, 1)];
called(apply_fun, N) -> [?OTHER:apply_fun(N, 1)].

clause([A]) -> A.
bound(A, B) -> C = A + B, [C].
unknown(N) -> [nowhere:to_be_found(N)].

%% Catches nested over both engines, each caught one level up.
old_catch(0) -> exit(bottom);
old_catch(N) ->
    case catch ?OTHER:old_catch(N - 1) of
        {'EXIT', Reason} when N < 6 -> exit([N | Reason]);
        {'EXIT', Reason} -> throw({N, Reason});
        {M, Reason} -> throw({N, M, Reason});
        {M, _, Reason} when N < 12 -> throw({N, M, Reason});
        Other -> {N, Other}
    end.

%% Natives: plain, failing, trapping (long lists), to funs, raising.
natives(List) ->
    R = lists:reverse(List, [last]),
    [hd(R), length(R), lists:member({1, [1]}, R), lists:keymember(2, 1, List),
     erlang:apply(fun(X) -> ?OTHER:apply_fun(fun(Y) -> [Y] end, X) end, [1]),
     erlang:apply(?OTHER, apply_fun, [fun(Y) -> {Y} end, 2])].

map(F, [H | T]) -> [F(H) | map(F, T)];
map(_, []) -> [].

apply_fun(F, X) -> F(X).

%% Receiving in order, selectively, waiting, with timeouts.
waits(N) ->
    Me = self(),
    Server = spawn(?OTHER, server, [Me, 0]),
    R = asked(Server, N, []),
    Server ! {Me, stop},
    receive {Server, Total} -> [Total | R] end.

asked(_, 0, Acc) -> Acc;
asked(Server, N, Acc) ->
    Server ! {self(), N},
    self() ! noise,
    receive {Server, M, Sum} -> asked(Server, N - 1, [{M, Sum} | Acc]) end.

server(Client, Sum) ->
    receive
        {Client, stop} -> Client ! {self(), Sum};
        {Client, N} -> Client ! {self(), N, Sum + N}, ?OTHER:server(Client, Sum + N)
    after 60000 -> exit(timeout)
    end.

slow(N) -> receive never -> N after 1 -> {late, N} end.

%% Two processes that run against each other: who is preempted when shows in the order of their messages.
order() ->
    spawn(?OTHER, noise, [self(), a, 40]),
    spawn(?MODULE, noise, [self(), b, 40]),
    heard(80, []).

heard(0, Acc) -> Acc;
heard(N, Acc) -> receive {Who, _} -> heard(N - 1, [Who | Acc]) end.

noise(_, _, 0) -> ok;
noise(To, Who, N) ->
    fib(8),
    To ! {Who, N},
    ?OTHER:noise(To, Who, N - 1).

boom() -> [spike_natives:panics()].
