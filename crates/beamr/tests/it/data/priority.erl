%% Messages of priority. run() exits with what came in which order; the values are those of OTP 29.
-module(priority).
-export([run/0, mortal/0, hurry/2]).

run() ->
    process_flag(trap_exit, true),
    exit([{order, order()}, {plain_alias, plain_alias()}, {reply, reply()}, {pid, pid()}, {unaliased, unaliased()},
          {exit_alias, exit_alias([priority], [priority])}, {exit_alias_plain, exit_alias([priority], [])},
          {exit_plain_alias, exit_alias([], [priority])}, {monitor, monitored([priority])},
          {monitor_alias, monitor_alias()}, {link, linked([[priority]])}, {link_again, linked([[], [priority]])},
          {link_back, linked([[priority], []])}, {spawn_link, spawned([{link, [priority]}])},
          {spawn_monitor, spawned([{monitor, [priority]}])}, {selective, selective()}, {info, info()}, {bad, bad()}]).

order() ->
    A = alias([priority]),
    self() ! a, erlang:send(A, p1, [priority]), erlang:send(A, n1), self() ! b, erlang:send(A, p2, [priority]), A ! n2,
    flush().
plain_alias() -> A = alias([]), self() ! a, erlang:send(A, p1, [priority]), flush().
reply() ->
    A = alias([priority, reply]),
    self() ! a, erlang:send(A, p1, [priority]), erlang:send(A, p2, [priority]), flush().
pid() -> self() ! a, erlang:send(self(), p1, [priority]), flush().
unaliased() -> A = alias([priority]), unalias(A), self() ! a, erlang:send(A, p1, [priority]), flush().
exit_alias(Alias, Exit) -> A = alias(Alias), self() ! a, true = exit(A, because, Exit), flush().

born() -> spawn(?MODULE, mortal, []).
mortal() -> receive x -> exit(gone) end.
%% Returns when the process is dead and what it had to say has come.
dead(P) ->
    M = monitor(process, P),
    P ! x,
    receive {'DOWN', M, process, P, _} -> flush() end.
monitored(Options) -> P = born(), _ = monitor(process, P, Options), self() ! a, dead(P).
monitor_alias() ->
    P = born(),
    R = monitor(process, P, [priority, {alias, explicit_unalias}]),
    self() ! a, erlang:send(R, pm, [priority]), dead(P).
linked(Options) -> P = born(), links(P, Options), self() ! a, dead(P).
links(_, []) -> ok;
links(P, [O | Os]) -> link(P, O), links(P, Os).
spawned(Options) ->
    P = case spawn_opt(?MODULE, mortal, [], Options) of {X, _} -> X; X -> X end,
    self() ! a, dead(P).
%% A receive that has passed over everything looks at the urgent message next.
selective() ->
    A = alias([priority]), Me = self(),
    Me ! a,
    spawn(?MODULE, hurry, [A, Me]),
    X = receive hurry -> got end,
    B = receive b -> b end,
    {X, B, flush()}.
hurry(A, Me) -> erlang:send(A, hurry, [priority]), Me ! b.
info() ->
    {_, B} = process_info(self(), priority_messages),
    A = alias([priority]),
    {_, C} = process_info(self(), priority_messages),
    unalias(A),
    {B, C}.
bad() ->
    [try F() catch error:R -> R end
     || F <- [fun() -> alias([prio]) end, fun() -> erlang:send(self(), x, [prio]) end, fun() -> exit(self(), x, [prio]) end,
              fun() -> link(self(), [prio]) end, fun() -> monitor(process, self(), [prio]) end]].

flush() ->
    receive
        {'EXIT', _, normal} -> flush();
        {'EXIT', P, W} when P =:= self() -> [{self_exit, W} | flush()];
        {'EXIT', P, W} when is_pid(P) -> [{exit, W} | flush()];
        {'DOWN', _, process, _, W} -> [{down, W} | flush()];
        M -> [M | flush()]
    after 0 -> []
    end.
