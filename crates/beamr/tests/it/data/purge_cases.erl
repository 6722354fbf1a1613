-module(purge_cases).
-export([heap/0, mailbox/0, timer/0, dictionary/0, fun_free/0, runs/0, calls/0, value/0, persistent/0, replace/0]).

tell(Held) -> receive tell -> exit(Held) end.

heap() -> X = purged:value(), tell(X).

mailbox() ->
    self() ! {held, purged:value()},
    receive tell -> ok end,
    receive {held, X} -> exit(X) end.

timer() ->
    erlang:send_after(20, self(), {held, purged:value()}),
    receive {held, X} -> tell(X) end.

dictionary() ->
    put(held, purged:value()),
    receive tell -> exit(get(held)) end.

fun_free() ->
    X = purged:value(),
    F = fun() -> X end,
    receive tell -> exit(F()) end.

runs() -> X = purged:loop(), exit(X).

calls() ->
    F = purged:make(),
    receive tell -> exit(catch F()) end.

value() -> exit(purged:version()).

persistent() ->
    persistent_term:put(?MODULE, {old, [a, b, c]}),
    persistent_term:put({?MODULE, gone}, "to be erased"),
    tell(persistent_term:get(?MODULE)).

replace() ->
    persistent_term:put(?MODULE, {new, [d]}),
    persistent_term:erase({?MODULE, gone}),
    R = {persistent_term:get(?MODULE), persistent_term:get({?MODULE, gone}, undefined)},
    tell(R).
