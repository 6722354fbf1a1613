-module(e2e_fail).
-export([badarith/0, exits/0, throws/0, halts/0, child/0, id/1]).

id(X) -> X.
badarith() -> id(1) + id(a).
exits() -> exit({my, reason}).
throws() -> throw(ball).
halts() -> io:put_chars("before\n"), halt(7).
child() ->
    {P, R} = spawn_monitor(fun() -> error(oops) end),
    receive {'DOWN', R, process, P, {oops, [_ | _]}} -> ok end,
    io:put_chars("still here\n").
