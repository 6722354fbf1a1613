%% What schedulers, dirty threads and memory do, as far as programs can see it. Every function prints what it found; the
%% expected text is that of OTP 25.
-module(e2e_sched).
-compile([export_all, nowarn_export_all]).

main() ->
    [io:format("~s ~p~n", [F, ?MODULE:F()])
     || F <- [collected, collected_by_others, killed_while_collected, hibernates_large, calls, blocks, online, off_heap,
              dirty, timers_of_the_dead, yields, binaries, clocks, largest]],
    ok.

large(N) -> [{I, [I]} || I <- lists:seq(1, N)].

%% A heap that is collected by another thread: messages that were looked at stay what they are, in order.
collected() ->
    Me = self(),
    P = spawn(fun() ->
                      receive {go, L0} -> ok end,
                      receive last -> ok end,
                      L = large(200000),
                      true = garbage_collect(),
                      Sum = lists:sum([X || {X, [X]} <- L]),
                      Me ! {self(), Sum, length(L0), flush()}
              end),
    P ! {go, lists:seq(1, 1000)},
    [P ! {waits, I, lists:duplicate(I, x), list_to_binary(lists:duplicate(100, I))} || I <- lists:seq(1, 5)],
    P ! last,
    P ! {waits, 6, [], <<>>},
    receive {P, S, N, Ms} -> {S, N, [{I, length(L), byte_size(B)} || {waits, I, L, B} <- Ms]} end.

flush() -> receive M -> [M | flush()] after 0 -> [] end.

%% Waiting processes are collected for others and go on waiting.
collected_by_others() ->
    Me = self(),
    P = spawn(fun() -> L = large(200000), Me ! ready, wait_for(stop), Me ! {self(), length(L), flush()} end),
    receive ready -> ok end,
    P ! {noise, 1},
    true = garbage_collect(P),
    P ! {noise, 2},
    true = garbage_collect(P),
    waiting = status(P, 1000),
    P ! stop,
    receive {P, N, Ms} -> {N, Ms, garbage_collect(P)} end.
wait_for(X) -> receive X -> ok end.
status(P, 0) -> element(2, process_info(P, status));
status(P, N) ->
    case process_info(P, status) of
        {status, waiting} -> waiting;
        _ -> erlang:yield(), status(P, N - 1)
    end.

killed_while_collected() ->
    Me = self(),
    {P, M} = spawn_monitor(fun() -> L = large(200000), Me ! ready, again(L) end),
    receive ready -> ok end,
    exit(P, kill),
    receive {'DOWN', M, process, P, R} -> {R, is_process_alive(P)} end.
again(L) -> garbage_collect(), again(L).

hibernates_large() ->
    Me = self(),
    P = spawn(fun() -> L = large(200000), Me ! ready, erlang:hibernate(?MODULE, woken, [Me, L]) end),
    receive ready -> ok end,
    true = garbage_collect(P),
    P ! wake,
    receive {P, N, M} -> {N, M} end.
woken(Me, L) -> receive M -> Me ! {self(), length(L), M} end.

calls() ->
    Me = self(),
    0 = process_flag(save_calls, 10),
    %% In OTP it begins with the next slice.
    erlang:yield(),
    ?MODULE:a(),
    Me ! x,
    receive x -> ok end,
    receive never -> ok after 0 -> ok end,
    ?MODULE:b(1),
    {last_calls, L} = process_info(self(), last_calls),
    10 = process_flag(save_calls, 0),
    {last_calls, F} = process_info(self(), last_calls),
    {[C || C <- L, case C of {M, _, _} -> M =:= ?MODULE; _ -> true end], F}.
a() -> ok.
b(_) -> ok.

blocks() ->
    A = erlang:system_flag(multi_scheduling, block),
    B = [P || P <- erlang:system_info(multi_scheduling_blockers), P =:= self()],
    C = erlang:system_info(schedulers_active),
    D = erlang:system_flag(multi_scheduling, unblock),
    {P, M} = spawn_monitor(fun() -> blocked_normal = erlang:system_flag(multi_scheduling, block_normal) end),
    receive {'DOWN', M, process, P, R} -> ok end,
    {A, length(B), C, D, R, unblocked(100)}.
%% The dead block nothing, soon.
unblocked(0) -> erlang:system_info(multi_scheduling);
unblocked(N) ->
    case erlang:system_info(multi_scheduling) of
        enabled -> enabled;
        _ -> timer:sleep(10), unblocked(N - 1)
    end.

online() ->
    2 = erlang:system_flag(schedulers_online, 1),
    Me = self(),
    Ps = [spawn(fun() -> Me ! {self(), ok} end) || _ <- lists:seq(1, 100)],
    N = length([receive {P, ok} -> ok end || P <- Ps]),
    1 = erlang:system_flag(schedulers_online, 2),
    {N, erlang:system_info(schedulers_online), try erlang:system_flag(schedulers_online, 0) catch error:R -> R end}.

off_heap() ->
    F = fun F() -> receive P when is_pid(P) -> P ! ok, F() end end,
    [begin
         P = spawn_opt(F, [{message_queue_data, How}, link]),
         {_, A} = process_info(P, total_heap_size),
         [P ! lists:duplicate(N, N) || N <- lists:seq(1, 100)],
         P ! self(),
         receive ok -> ok end,
         {_, B} = process_info(P, total_heap_size),
         {_, L} = process_info(P, message_queue_len),
         unlink(P), exit(P, kill),
         {How, B > A, L}
     end || How <- [on_heap, off_heap]].

dirty() ->
    erts_debug:set_internal_state(available_internal_state, true),
    [erts_debug:dirty_cpu(scheduler, type), erts_debug:dirty_io(scheduler, type)
     | [erts_debug:dirty(W, scheduler, type) || W <- [normal, dirty_cpu, dirty_io]]]
        ++ [try erts_debug:dirty(W, error, E) catch error:R:S -> {R, element(2, hd(S)), element(3, hd(S))} end
            || W <- [normal, dirty_cpu], E <- [noproc, {not_an, atom}]].

timers_of_the_dead() ->
    {P, M} = spawn_monitor(fun() -> [erlang:send_after(1000000, self(), x) || _ <- lists:seq(1, 1000)] end),
    receive {'DOWN', M, process, P, R} -> R end.

yields() ->
    {reductions, A} = process_info(self(), reductions),
    [true, true, true] = [erlang:yield() || _ <- [1, 2, 3]],
    {reductions, B} = process_info(self(), reductions),
    B - A < 500.

binaries() ->
    A = erlang:memory(binary),
    B = binary:copy(<<0>>, 5000000),
    C = erlang:memory(binary),
    {C - A >= byte_size(B), erlang:memory(total) >= erlang:memory(processes) + C}.

clocks() ->
    O = erlang:time_offset(),
    A = erlang:monotonic_time() + O, B = erlang:system_time(), C = erlang:monotonic_time() + O,
    {O =:= erlang:time_offset(native), A =< B, B =< C, abs(erlang:system_time(second) - os:system_time(second)) < 5}.

largest() ->
    {P, M} = spawn_opt(fun() -> L = large(1000000), length(L) end,
                       [monitor, {max_heap_size, #{size => 1000000, kill => true, error_logger => false}}]),
    receive {'DOWN', M, process, P, R} -> R end.
