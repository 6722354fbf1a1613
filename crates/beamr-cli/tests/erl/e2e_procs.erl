-module(e2e_procs).
-export([main/0]).

main() ->
    Self = self(),
    [spawn(fun() -> Self ! {n, N} end) || N <- lists:seq(1, 1000)],
    io:format("~p~n", [sum(1000, 0)]),
    P = spawn_link(fun() -> pong() end),
    io:format("ping ~p~n", [ping(P, 1000, 0)]),
    {Q, R} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', R, process, Q, Why} -> io:format("down ~p~n", [Why]) end,
    process_flag(trap_exit, true),
    X = spawn_link(fun() -> exit(kaputt) end),
    receive {'EXIT', X, Reason} -> io:format("exit ~p~n", [Reason]) end.

sum(0, S) -> S;
sum(K, S) -> receive {n, N} -> sum(K - 1, S + N) end.

pong() -> receive {From, ping} -> From ! pong, pong() end.
ping(_, 0, N) -> N;
ping(P, K, N) -> P ! {self(), ping}, receive pong -> ping(P, K - 1, N + 1) end.
