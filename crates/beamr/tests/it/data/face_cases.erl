%% What the tests and examples of the Rust face call.
-module(face_cases).
-export([add/2, greet/1, grow/0, echo/0, collect/1, wait_for_one/0, wait_for_exit/0,
         crash/1, crash_deep/1, exit_with/1, throw_it/1, spin/0, ping/2, start_ping/1,
         catch_host/3, call_host/3, print/1, spawn_many/1, identity/1, sum/1, watch/1,
         spawn_linked_crash/0, apply_fun/2, adder/1, fast/1, call_fast/1, register_me/1]).

add(A, B) -> A + B.

identity(T) -> T.

sum(L) -> sum(L, 0).
sum([H | T], S) -> sum(T, S + H);
sum([], S) -> S.

greet(Name) -> {ok, host:greet(Name)}.

grow() -> grow([]).
grow(L) -> grow([L | lists(1000)]).
lists(0) -> [];
lists(N) -> [N | lists(N - 1)].

%% Answers {From, Message} with {self(), Message} until stop.
echo() ->
    receive
        stop -> stopped;
        {From, Message} -> From ! {self(), Message}, echo()
    end.

%% The next N messages, in order.
collect(0) -> [];
collect(N) -> receive M -> [M | collect(N - 1)] end.

wait_for_one() -> receive M -> M end.

wait_for_exit() -> receive {'EXIT', From, Reason} -> {From, Reason} end.

crash(What) -> {wanted, _} = What, ok.

crash_deep(N) when N > 0 -> 1 + crash_deep(N - 1);
crash_deep(0) -> erlang:error(deep).

exit_with(Reason) -> exit(Reason).

throw_it(T) -> throw(T).

spin() -> spin().

%% N times there and back.
ping(_, 0) -> done;
ping(To, N) -> To ! {self(), N}, receive {To, N} -> ping(To, N - 1) end.

start_ping(N) ->
    Echo = spawn(?MODULE, echo, []),
    done = ping(Echo, N),
    Echo ! stop,
    done.

call_host(M, F, A) -> apply(M, F, A).

%% What a call raises.
catch_host(M, F, A) ->
    try apply(M, F, A) of
        V -> {value, V}
    catch
        C:R:S -> {C, R, [X || X <- S, element(1, X) =:= M]}
    end.

print(T) -> erlang:display(T).

spawn_many(N) -> length([spawn(?MODULE, wait_for_one, []) || _ <- lists(N)]).

watch(Pid) ->
    Ref = erlang:monitor(process, Pid),
    receive {'DOWN', Ref, process, Pid, Reason} -> Reason end.

spawn_linked_crash() ->
    spawn_link(?MODULE, exit_with, [inner]),
    receive never -> ok end.

adder(N) -> fun(X) -> X + N end.

apply_fun(F, X) -> F(X).

%% Replaced by a native function where there is one.
fast(X) -> {slow, X}.

call_fast(X) -> fast(X).

register_me(Name) -> register(Name, self()), wait_for_one().
