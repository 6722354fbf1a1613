%% Tracing, as OTP does it: every function ends with `ok` on a real node too.
-module(tracing_test).
-export([events/0, send_receive/0, inherited/0, tracers/0, scheduled/0]).

%% The messages that have come.
flush() -> receive M -> [M | flush()] after 0 -> [] end.

%% What has been traced of a process, in order.
traced(P) ->
    R = erlang:trace_delivered(P),
    receive {trace_delivered, P, R} -> ok end,
    [M || M <- flush(), element(1, M) =:= trace, element(2, M) =:= P].

%% A process that runs funs.
server() -> spawn(fun loop/0).
loop() -> receive {run, From, F} -> From ! {done, self(), F()}, loop(); stop -> ok end.
run(P, F) -> P ! {run, self(), F}, receive {done, P, V} -> V after 5000 -> exit(timeout) end.
stop(P) -> R = monitor(process, P), P ! stop, receive {'DOWN', R, process, P, _} -> ok end.

events() ->
    P = server(),
    1 = erlang:trace(P, true, [procs]),
    {flags, [procs]} = erlang:trace_info(P, flags),
    {tracer, Me} = erlang:trace_info(P, tracer),
    Me = self(),
    Q = run(P, fun() -> spawn_link(?MODULE, module_info, [md5]) end),
    R = monitor(process, Q), receive {'DOWN', R, process, Q, _} -> ok end,
    run(P, fun() -> register(tracing_test_name, self()), unregister(tracing_test_name) end),
    [{trace, P, spawn, Q, {?MODULE, module_info, [md5]}},
     {trace, P, link, Q},
     {trace, P, getting_unlinked, Q},
     {trace, P, register, tracing_test_name},
     {trace, P, unregister, tracing_test_name}] = traced(P),
    S = server(),
    run(P, fun() -> link(S), unlink(S) end),
    run(S, fun() -> link(P), unlink(P) end),
    run(P, fun() -> ok end),
    [{trace, P, link, S}, {trace, P, unlink, S}, {trace, P, getting_linked, S},
     {trace, P, getting_unlinked, S}] = traced(P),
    stop(P),
    [{trace, P, exit, normal}] = traced(P),
    undefined = erlang:trace_info(P, flags),
    ok = stop(S).

send_receive() ->
    P = server(),
    Me = self(),
    1 = erlang:trace(P, true, [send, 'receive']),
    F = fun() -> Me ! hello end,
    hello = run(P, F),
    [{trace, P, 'receive', {run, Me, F}}, {trace, P, send, hello, Me}, {trace, P, send, {done, P, hello}, Me}] =
        traced(P),
    Dead = spawn(fun() -> ok end),
    D = monitor(process, Dead), receive {'DOWN', D, process, Dead, _} -> ok end,
    run(P, fun() -> Dead ! gone end),
    [_, {trace, P, send_to_non_existing_process, gone, Dead}, _] = traced(P),
    %% Patterns.
    1 = erlang:trace_pattern(send, [{['_', {done, '_', '$1'}], [], [{message, '$1'}]}], []),
    {match_spec, [{['_', {done, '_', '$1'}], [], [{message, '$1'}]}]} = erlang:trace_info(send, match_spec),
    1 = erlang:trace_pattern('receive', [{['_', Me, '_'], [], []}], []),
    17 = run(P, fun() -> Me ! other, 17 end),
    [{trace, P, 'receive', {run, Me, _}}, {trace, P, send, {done, P, 17}, Me, 17}] = traced(P),
    1 = erlang:trace_pattern('receive', false, []),
    1 = erlang:trace_pattern(send, true, []),
    18 = run(P, fun() -> 18 end),
    [{trace, P, send, {done, P, 18}, Me}] = traced(P),
    1 = erlang:trace_pattern('receive', true, []),
    {match_spec, true} = erlang:trace_info('receive', match_spec),
    1 = erlang:trace(P, false, [send]),
    {flags, ['receive']} = erlang:trace_info(P, flags),
    %% Time stamps.
    1 = erlang:trace(P, true, [strict_monotonic_timestamp]),
    P ! a_message,
    run(P, fun() -> ok end),
    [{trace_ts, P, 'receive', a_message, {T, U}} | _] = flush(),
    true = is_integer(T) andalso is_integer(U),
    stop(P).

inherited() ->
    P = server(),
    1 = erlang:trace(P, true, [procs, set_on_spawn]),
    Q = run(P, fun() -> spawn(fun loop/0) end),
    {flags, Flags} = erlang:trace_info(Q, flags),
    [procs, set_on_spawn] = lists:sort(Flags),
    stop(Q),
    1 = erlang:trace(P, false, [set_on_spawn]),
    1 = erlang:trace(P, true, [set_on_first_spawn]),
    Q1 = run(P, fun() -> spawn(fun loop/0) end),
    Q2 = run(P, fun() -> spawn(fun loop/0) end),
    {flags, [procs]} = erlang:trace_info(Q1, flags),
    {flags, []} = erlang:trace_info(Q2, flags),
    {flags, [procs]} = erlang:trace_info(P, flags),
    1 = erlang:trace(P, true, [set_on_link]),
    Q3 = run(P, fun() -> spawn(fun loop/0) end),
    Q4 = run(P, fun() -> spawn_link(fun loop/0) end),
    {flags, []} = erlang:trace_info(Q3, flags),
    {flags, [_, _]} = erlang:trace_info(Q4, flags),
    run(P, fun() -> link(Q3) end),
    run(Q3, fun() -> ok end),
    {flags, ByLink} = erlang:trace_info(Q3, flags),
    %% OTP 25 says that links pass flags on, but they do not.
    true = (erlang:system_info(otp_release) =< "25") =:= (ByLink =:= []),
    %% Processes to come.
    0 = erlang:trace(new_processes, true, [procs]),
    {flags, [procs]} = erlang:trace_info(new_processes, flags),
    Q5 = server(),
    {flags, [procs]} = erlang:trace_info(Q5, flags),
    0 = erlang:trace(new_processes, false, [all]),
    Q6 = server(),
    {flags, []} = erlang:trace_info(Q6, flags),
    lists:foreach(fun stop/1, [Q1, Q2, Q3, Q4, Q5, Q6]).

tracers() ->
    P = server(),
    T = server(),
    1 = erlang:trace(P, true, [procs, {tracer, T}]),
    {tracer, T} = erlang:trace_info(P, tracer),
    %% One tracer at a time.
    {'EXIT', {badarg, _}} = (catch erlang:trace(P, true, [send])),
    {'EXIT', {badarg, _}} = (catch erlang:trace(P, true, [nonsense])),
    {'EXIT', {badarg, _}} = (catch erlang:trace(nonsense, true, [send])),
    stop(T),
    {flags, []} = erlang:trace_info(P, flags),
    {tracer, []} = erlang:trace_info(P, tracer),
    1 = erlang:trace(P, true, [send]),
    {flags, [send]} = erlang:trace_info(P, flags),
    1 = erlang:trace(P, false, [all]),
    {flags, []} = erlang:trace_info(P, flags),
    stop(P).

scheduled() ->
    P = server(),
    1 = erlang:trace(P, true, [running, garbage_collection, exiting]),
    run(P, fun() -> erlang:garbage_collect() end),
    stop(P),
    All = [element(3, M) || M <- traced(P)],
    true = lists:member(gc_major_start, All),
    true = lists:member(gc_major_end, All),
    in = hd(All),
    out_exited = lists:last(All),
    %% In and out take turns.
    turns([T || T <- All, T =:= in orelse T =:= out]).

turns([in, out | T]) -> turns(T);
turns([in]) -> ok;
turns([]) -> ok.
