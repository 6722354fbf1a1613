-module(e2e_io).
-compile([nowarn_unused_function]).
-export([input/0, latin1/0, meanwhile/0, big/0, errors/0, endless/0, until/0, options/0, wait/0, stop/0, old/0]).

%% Requests for input in turn, up to the end.
input() ->
    io:format("~w~n", [[io:get_line(""), io:get_line('p> ')]]),
    io:setopts([binary]),
    io:format("~w~n", [[io:get_line("q> "), io:get_chars("", 3), io:get_line({format, "~p> ", [x]})]]),
    io:setopts([list]),
    io:format("~w~n", [[io:read(""), io:read(""), io:get_line("")]]),
    io:format("~w~n", [[io:fread("", "~d ~s"), io:fread("", "~d"), io:get_line("")]]),
    io:format("~w~n", [[io:parse_erl_exprs(""), io:get_line(""), io:get_line("")]]),
    io:format("~w~n", [[io:get_chars("", 1000), io:get_line(""), io:get_chars("", 1), io:read(""), io:fread("", "~d")]]).

latin1() ->
    {ok, Line} = file:read_line(standard_io),
    ok = file:write(standard_io, Line),
    io:setopts([{encoding, latin1}]),
    Chars = io:get_line(""),
    io:put_chars(Chars),
    io:format("~ts~n", [[229, 8804]]),
    io:setopts([{encoding, unicode}]),
    Decoded = io:get_line(""),
    io:format("~w ~ts", [Decoded, Decoded]),
    io:format("~w~n", [[file:read_line(standard_io), io:get_line(""), io:get_line("")]]).

%% One process waits for a line, another one writes.
meanwhile() ->
    Me = self(),
    spawn_link(fun() -> Me ! {line, io:get_line("prompt ")} end),
    spawn_link(fun() -> timer:sleep(1), io:put_chars("go on\n"), Me ! wrote end),
    receive wrote -> ok end,
    receive {line, L} -> io:format("got ~s", [L]) end.

big() ->
    L = io:get_line(""),
    io:format("~w ~w~n", [length(L), io:get_line("")]),
    io:put_chars([lists:duplicate(300000, $x), $\n]).

errors() ->
    Try = fun(F) -> try F() catch C:R -> {C, R} end end,
    io:format("~p~n", [[Try(F) || F <- [
        fun() -> io:format("~p~n") end,
        fun() -> io:format("~q~n", [a]) end,
        fun() -> io:format("~s~n", [[8804]]) end,
        fun() -> io:put_chars(foo) end,
        fun() -> io:put_chars([55296]) end,
        fun() -> io:format(no_such_device, "x", []) end,
        fun() -> io:request(standard_io, {put_chars, latin1, [8804]}) =/= ok end,
        fun() -> element(1, io:request(standard_io, {put_chars, unicode, erlang, hd, [[foo]]})) end,
        fun() -> element(1, io:request(standard_io, nonsense)) end,
        fun() -> io:request(standard_io, {requests, [{put_chars, unicode, "a "}, {put_chars, unicode, "b\n"}]}) end,
        fun() -> io:request(user, {put_chars, "old\n"}) end,
        fun() -> io:setopts([{no_such_option, 1}]) end,
        fun() -> io:columns() end,
        fun() -> io:rows(standard_error) end,
        fun() -> io:get_line(standard_error, "") end,
        fun() -> group_leader() =:= whereis(user) end]]]).

until() ->
    io:format("~p~n", [[io:request(user, {get_until, unicode, "", ?MODULE, no_such_function, []}), io:get_line("")]]).

options() ->
    Get = fun(D) -> [lists:keyfind(K, 1, io:getopts(D)) || K <- [binary, encoding]] end,
    io:format("~p~n", [[Get(user), io:setopts([binary, latin1]), Get(user), io:setopts([{binary, false}, {encoding, utf8}]), Get(user)]]).

endless() ->
    io:put_chars("line\n"),
    endless().

old() ->
    io:format("~p~n", [io:request(user, {get_line, "> "})]),
    io:format("~p~n", [io:request(user, {get_chars, "> ", 2})]).

wait() ->
    io:put_chars("ready\n"),
    receive never -> ok end.

stop() ->
    process_flag(trap_exit, true),
    io:put_chars("stopping\n"),
    init:stop(5),
    receive never -> ok end.
