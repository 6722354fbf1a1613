%% Tracing, as OTP does it: every function ends with `ok` on a real node too.
-module(tracing_test).
-include_lib("stdlib/include/ms_transform.hrl").
-export([events/0, send_receive/0, inherited/0, tracers/0, scheduled/0]).
-export([calls/0, returns/0, entries/0, natives/0, counts/0, meta/0, loaded/0, seq/0, sessions/0, dbg/0, profilers/0]).
-export([id/1, f/1, g/1, tail/1, deep/1, waits/1, grows/1]).

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

%% Functions to be traced.
id(X) -> X.
f(X) -> Y = g(X), {f, Y}.
g(X) -> [X | h(X)].
h(X) -> {h, X}.
tail(X) -> f(X).
deep(0) -> throw(zero);
deep(N) -> 1 + deep(N - 1).
waits(S) -> receive {add, N} -> waits(S + N); {get, P} -> P ! {sum, S}, waits(S) end.
grows(N) -> [N || _ <- lists:seq(1, N)].

traced_server() ->
    P = server(),
    1 = erlang:trace(P, true, [call]),
    P.

calls() ->
    P = traced_server(),
    1 = erlang:trace_pattern({?MODULE, h, 1}, true, [local]),
    {traced, local} = erlang:trace_info({?MODULE, h, 1}, traced),
    run(P, fun() -> f(1) end),
    [{trace, P, call, {?MODULE, h, [1]}}] = traced(P),
    1 = erlang:trace(P, true, [arity]),
    run(P, fun() -> f(1) end),
    [{trace, P, call, {?MODULE, h, 1}}] = traced(P),
    1 = erlang:trace(P, false, [arity]),
    %% Calls by export only.
    1 = erlang:trace_pattern({?MODULE, g, 1}, true, [global]),
    {traced, global} = erlang:trace_info({?MODULE, g, 1}, traced),
    0 = erlang:trace_pattern({?MODULE, h, 1}, false, [global]),
    1 = erlang:trace_pattern({?MODULE, h, 1}, false, [local]),
    run(P, fun() -> f(2), ?MODULE:g(3), apply(?MODULE, g, [4]), (fun ?MODULE:g/1)(5) end),
    [{trace, P, call, {?MODULE, g, [3]}}, {trace, P, call, {?MODULE, g, [4]}},
     {trace, P, call, {?MODULE, g, [5]}}] = traced(P),
    1 = erlang:trace_pattern({?MODULE, g, 1}, [{[6], [], [{message, {caller}}]}, {[7], [], [{silent, true}]}], [global]),
    run(P, fun() -> ?MODULE:g(5), ?MODULE:g(6), ?MODULE:g(7), ?MODULE:g(6) end),
    [{trace, P, call, {?MODULE, g, [6]}, {?MODULE, _, 0}}] = traced(P),
    1 = erlang:trace(P, false, [silent]),
    1 = erlang:trace_pattern({?MODULE, g, 1}, false, [global]),
    run(P, fun() -> ?MODULE:g(6) end),
    [] = traced(P),
    {all, false} = erlang:trace_info({?MODULE, g, 1}, all),
    {all, undefined} = erlang:trace_info({?MODULE, nonsense, 1}, all),
    {'EXIT', {badarg, _}} = (catch erlang:trace_pattern({?MODULE, '_', 1}, true, [local])),
    {'EXIT', {badarg, _}} = (catch erlang:trace_pattern({?MODULE, g, 1}, [nonsense], [local])),
    {'EXIT', {badarg, _}} = (catch erlang:trace_pattern({?MODULE, g, 1}, true, [local, global])),
    stop(P).

returns() ->
    P = traced_server(),
    All = [{'_', [], [{exception_trace}]}],
    [1 = erlang:trace_pattern({?MODULE, F, 1}, All, [local]) || F <- [f, g, h, tail, deep]],
    run(P, fun() -> tail(1) end),
    R = {f, [1 | {h, 1}]},
    [{trace, P, call, {?MODULE, tail, [1]}}, {trace, P, call, {?MODULE, f, [1]}},
     {trace, P, call, {?MODULE, g, [1]}}, {trace, P, call, {?MODULE, h, [1]}},
     {trace, P, return_from, {?MODULE, h, 1}, {h, 1}}, {trace, P, return_from, {?MODULE, g, 1}, [1 | {h, 1}]},
     {trace, P, return_from, {?MODULE, f, 1}, R}, {trace, P, return_from, {?MODULE, tail, 1}, R}] = traced(P),
    zero = run(P, fun() -> erlang:garbage_collect(), catch deep(2) end),
    [{trace, P, call, {?MODULE, deep, [2]}}, {trace, P, call, {?MODULE, deep, [1]}},
     {trace, P, call, {?MODULE, deep, [0]}} | Left] = traced(P),
    [{trace, P, exception_from, {?MODULE, deep, 1}, {throw, zero}}] = lists:usort(Left),
    3 = length(Left),
    %% Traces of exceptions are as without.
    Trace = fun() -> try deep(2) catch _:_:S -> [{M, F, A} || {M, F, A, _} <- S] end end,
    S1 = lists:sublist(run(P, Trace), 2),
    S1 = lists:sublist(Trace(), 2),
    traced(P),
    [1 = erlang:trace_pattern({?MODULE, F, 1}, true, [local]) || F <- [f, g, h, tail, deep]],
    1 = erlang:trace(P, true, [return_to]),
    run(P, fun() -> f(1), ok end),
    [{trace, P, call, {?MODULE, f, [1]}}, {trace, P, call, {?MODULE, g, [1]}},
     {trace, P, call, {?MODULE, h, [1]}}, {trace, P, return_to, {?MODULE, g, 1}},
     {trace, P, return_to, {?MODULE, f, 1}}, {trace, P, return_to, {?MODULE, _, 0}}] = traced(P),
    %% Many frames, and collections between.
    L = lists:seq(1, 5000),
    L = run(P, fun() -> [begin {f, _} = f(X), X end || X <- L] end),
    true = length(traced(P)) =:= 6 * 5000,
    erlang:trace_pattern({?MODULE, '_', '_'}, false, [local]),
    stop(P).

%% A function that begins with a receive, or with an instruction that collects, is seen once for each call.
entries() ->
    P = spawn(?MODULE, waits, [0]),
    1 = erlang:trace(P, true, [call]),
    1 = erlang:trace_pattern({?MODULE, waits, 1}, true, [local]),
    1 = erlang:trace_pattern({?MODULE, grows, 1}, true, [local]),
    P ! unexpected, P ! {add, 1}, P ! {add, 2}, P ! {get, self()},
    receive {sum, 3} -> ok end,
    erlang:garbage_collect(P),
    P ! {get, self()},
    receive {sum, 3} -> ok end,
    %% (Whether the first call was before the trace began is open.)
    [{trace, P, call, {?MODULE, waits, [1]}}, {trace, P, call, {?MODULE, waits, [3]}},
     {trace, P, call, {?MODULE, waits, [3]}} | Last] = [M || M <- traced(P), element(4, M) =/= {?MODULE, waits, [0]}],
    true = length(Last) =< 1,
    exit(P, kill),
    Q = traced_server(),
    run(Q, fun() -> [grows(N) || N <- lists:seq(1, 300)], ok end),
    300 = length(traced(Q)),
    erlang:trace_pattern({?MODULE, '_', '_'}, false, [local]),
    stop(Q).

natives() ->
    P = traced_server(),
    1 = erlang:trace_pattern({erlang, atom_to_list, 1}, [{'_', [], [{return_trace}]}], []),
    1 = erlang:trace_pattern({lists, reverse, 2}, true, [local]),
    run(P, fun() -> X = atom_to_list(?MODULE:id(a)), Y = apply(erlang, atom_to_list, [?MODULE:id(b)]), lists:reverse(X ++ Y) end),
    [{trace, P, call, {erlang, atom_to_list, [a]}}, {trace, P, return_from, {erlang, atom_to_list, 1}, "a"},
     {trace, P, call, {erlang, atom_to_list, [b]}}, {trace, P, return_from, {erlang, atom_to_list, 1}, "b"}] = traced(P),
    run(P, fun() -> lists:reverse(lists:seq(1, 4)) end),
    [{trace, P, call, {lists, reverse, [[3, 4], [2, 1]]}}] = traced(P),
    {badarg, [{erlang, atom_to_list, [0], _}, {?MODULE, _, _, _} | _]} =
        run(P, fun() -> {'EXIT', E} = (catch atom_to_list(?MODULE:id(0))), E end),
    traced(P),
    1 = erlang:trace_pattern({erlang, atom_to_list, 1}, false, []),
    1 = erlang:trace_pattern({lists, reverse, 2}, false, [local]),
    run(P, fun() -> lists:reverse(atom_to_list(?MODULE:id(abcd))) end),
    [] = traced(P),
    stop(P).

counts() ->
    P = traced_server(),
    1 = erlang:trace_pattern({?MODULE, h, 1}, true, [call_count, call_time]),
    run(P, fun() -> [f(X) || X <- lists:seq(1, 100)], ok end),
    f(1),
    {call_count, 101} = erlang:trace_info({?MODULE, h, 1}, call_count),
    {call_time, [{P, 100, _, _}]} = erlang:trace_info({?MODULE, h, 1}, call_time),
    1 = erlang:trace_pattern({?MODULE, h, 1}, pause, [call_count]),
    f(1),
    {call_count, 101} = erlang:trace_info({?MODULE, h, 1}, call_count),
    1 = erlang:trace_pattern({?MODULE, h, 1}, restart, [call_count]),
    f(1),
    {call_count, 1} = erlang:trace_info({?MODULE, h, 1}, call_count),
    1 = erlang:trace_pattern({?MODULE, h, 1}, false, [call_count, call_time]),
    {call_count, false} = erlang:trace_info({?MODULE, h, 1}, call_count),
    stop(P).

meta() ->
    P = server(),
    1 = erlang:trace_pattern({?MODULE, f, 1}, [{'_', [], [{return_trace}]}], [meta]),
    run(P, fun() -> f(1) end),
    [{trace_ts, P, call, {?MODULE, f, [1]}, {_, _, _}},
     {trace_ts, P, return_from, {?MODULE, f, 1}, {f, [1 | {h, 1}]}, {_, _, _}}] = flush(),
    Me = self(),
    {meta, Me} = erlang:trace_info({?MODULE, f, 1}, meta),
    1 = erlang:trace_pattern({?MODULE, f, 1}, false, [meta]),
    run(P, fun() -> f(1) end),
    [] = flush(),
    %% Specifications that turn tracing on and off.
    1 = erlang:trace(P, true, [procs]),
    1 = erlang:trace_pattern({?MODULE, tail, 1}, [{'_', [], [{trace, [], [call]}, {message, false}]}], [meta]),
    1 = erlang:trace_pattern({?MODULE, h, 1}, true, [local]),
    run(P, fun() -> f(1), tail(2) end),
    [{trace, P, call, {?MODULE, h, [2]}}] = traced(P),
    erlang:trace_pattern({?MODULE, '_', '_'}, false, [local, meta]),
    stop(P).

%% Breakpoints of modules to come, and of modules that go.
loaded() ->
    P = traced_server(),
    Forms = fun(V) -> {ok, M, B} = compile:forms([{attribute, 1, module, tracing_test_m},
        {attribute, 1, export, [{v, 0}]},
        {function, 1, v, 0, [{clause, 1, [], [], [{integer, 1, V}]}]}]), {M, B} end,
    0 = erlang:trace_pattern(on_load, true, [local]),
    {traced, local} = erlang:trace_info(on_load, traced),
    {M, B1} = Forms(1),
    {module, M} = code:load_binary(M, "", B1),
    run(P, fun() -> M:v() end),
    [{trace, P, call, {M, v, []}}] = traced(P),
    0 = erlang:trace_pattern(on_load, false, [local]),
    {M, B2} = Forms(2),
    {module, M} = code:load_binary(M, "", B2),
    2 = run(P, fun() -> M:v() end),
    [] = traced(P),
    code:purge(M),
    code:delete(M),
    code:purge(M),
    stop(P).

seq() ->
    Me = self(),
    Tracer = spawn(fun() -> collect([]) end),
    false = seq_trace:set_system_tracer(Tracer),
    Tracer = seq_trace:get_system_tracer(),
    P = spawn(fun() -> receive {From, M} -> From ! {got, M, seq_trace:get_token(label)} end end),
    0 = seq_trace:set_token(label, {a, label}),
    [false = seq_trace:set_token(F, true) || F <- [send, 'receive', print]],
    {7, {a, label}, 0, Me, 0} = seq_trace:get_token(),
    P ! {Me, hello},
    receive {got, hello, {label, {a, label}}} -> ok end,
    ok = seq_trace:print(printed),
    ok = seq_trace:print(42, not_printed),
    {serial, {2, 3}} = seq_trace:get_token(serial),
    {7, {a, label}, 3, Me, 2} = seq_trace:set_token([]),
    [] = seq_trace:get_token(),
    Tracer ! {get, Me},
    receive {collected, All} -> ok end,
    [{seq_trace, {a, label}, {send, {0, 1}, Me, P, {Me, hello}}},
     {seq_trace, {a, label}, {'receive', {0, 1}, Me, P, {Me, hello}}},
     {seq_trace, {a, label}, {send, {1, 2}, P, Me, {got, hello, {label, {a, label}}}}},
     {seq_trace, {a, label}, {'receive', {1, 2}, P, Me, {got, hello, {label, {a, label}}}}},
     {seq_trace, {a, label}, {print, {2, 3}, Me, [], printed}}] = All,
    %% An ordinary message takes the token away.
    0 = seq_trace:set_token(label, 17),
    spawn(fun() -> seq_trace:set_token([]), Me ! ordinary end),
    receive ordinary -> ok end,
    [] = seq_trace:get_token(),
    0 = seq_trace:set_token(label, 18),
    seq_trace:reset_trace(),
    [] = seq_trace:get_token(),
    seq_trace:set_system_tracer(false),
    ok.

collect(L) -> receive {get, P} -> P ! {collected, lists:reverse(L)}; M -> collect([M | L]) end.

sessions() ->
    case erlang:function_exported(erts_internal, trace_session_create, 3) of
        true -> sessions(list_to_atom("trace"));
        false -> ok
    end.
sessions(Trace) ->
    Me = self(),
    P = server(),
    T = spawn(fun() -> collect([]) end),
    S1 = Trace:session_create(one, Me, []),
    S2 = Trace:session_create(two, T, []),
    1 = Trace:process(S1, P, true, [call]),
    1 = Trace:process(S2, P, true, [call, send]),
    1 = Trace:function(S1, {?MODULE, f, 1}, true, [local]),
    1 = Trace:function(S2, {?MODULE, h, 1}, true, [local]),
    {flags, [call]} = Trace:info(S1, P, flags),
    {all, false} = erlang:trace_info({?MODULE, f, 1}, all),
    run(P, fun() -> f(1) end),
    [{trace, P, call, {?MODULE, f, [1]}}] = traced(P),
    true = Trace:session_destroy(S1),
    false = Trace:session_destroy(S1),
    {'EXIT', {badarg, _}} = (catch Trace:info(S1, P, flags)),
    run(P, fun() -> f(2) end),
    [] = traced(P),
    T ! {get, Me},
    receive {collected, All} -> ok end,
    [{trace, P, call, {?MODULE, h, [1]}}, {trace, P, send, {done, P, _}, Me}, {trace, P, call, {?MODULE, h, [2]}}, _] = All,
    true = Trace:session_destroy(S2),
    stop(P).

dbg() ->
    Me = self(),
    {ok, _} = dbg:tracer(process, {fun(M, N) -> Me ! {dbg, M}, N + 1 end, 0}),
    P = server(),
    {ok, _} = dbg:p(P, [c, timestamp]),
    {ok, _} = dbg:tpl(?MODULE, h, '_', dbg:fun2ms(fun([X]) when X > 1 -> return_trace() end)),
    run(P, fun() -> f(1), f(2) end),
    receive {dbg, {trace_ts, P, call, {?MODULE, h, [2]}, _}} -> ok after 5000 -> exit(no_call) end,
    receive {dbg, {trace_ts, P, return_from, {?MODULE, h, 1}, {h, 2}, _}} -> ok after 5000 -> exit(no_return) end,
    {ok, _} = dbg:ctpl(?MODULE, h),
    run(P, fun() -> f(3) end),
    dbg:stop_clear(),
    [] = [M || {dbg, M} <- flush()],
    stop(P).

profilers() ->
    _ = cprof:start(?MODULE, h),
    [f(X) || X <- lists:seq(1, 10)],
    {?MODULE, 10, [{{?MODULE, h, 1}, 10}]} = cprof:analyse(?MODULE),
    cprof:stop(),
    {ok, _} = eprof:start(),
    {ok, done} = eprof:profile(fun() -> [f(X) || X <- lists:seq(1, 10)], done end),
    stopped = eprof:stop(),
    ok.
