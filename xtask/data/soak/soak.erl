%% A soak whose checker counts: every message, exit, monitor, timer and ets row is accounted for, or the run fails.
%%
%% main([Seconds | Activities]) runs rounds (of all activities when none is named) until the time is over. A round is one turn of every activity below, all at once, each in
%% a process of its own, which returns what it counted; a mismatch ends the run. What a round starts it ends, so
%% that memory after many rounds is memory after few.
-module(soak).
-export([main/1]).

main([Seconds | Names]) ->
    process_flag(trap_exit, true),
    put(names, Names),
    End = now_ms() + list_to_integer(Seconds) * 1000,
    T = rounds(End, 1, #{}),
    io:format("soak ok ~p~n", [T]),
    ok.

now_ms() -> erlang:monotonic_time(millisecond).

rounds(End, N, Totals) ->
    case now_ms() >= End of
        true -> Totals#{rounds => N - 1};
        false ->
            Alive = erlang:system_info(process_count),
            T = round(N, Totals),
            settle(Alive, 500),
            N rem 50 =:= 0 andalso io:format("soak round ~w ~p~n", [N, T]),
            rounds(End, N + 1, T)
    end.

%% As many processes as before the round.
settle(Alive, 0) -> error({left_over, Alive, erlang:system_info(process_count)});
settle(Alive, N) ->
    case erlang:system_info(process_count) =< Alive of
        true -> ok;
        false -> timer:sleep(10), settle(Alive, N - 1)
    end.

round(N, Totals) ->
    Me = self(),
    As = [{messages, fun messages/1}, {calls, fun calls/1}, {exits, fun exits/1}, {chain, fun chain/1},
          {monitors, fun monitors/1}, {timers, fun timers/1}, {receive_timeouts, fun timeouts/1},
          {rows, fun rows/1}, {heirs, fun heirs/1}, {counters, fun counters/1}, {binaries, fun binaries/1},
          {killed, fun killed/1}, {aliases, fun aliases/1}, {heaps, fun heaps/1}, {asked, fun asked/1}],
    Ps = [begin
              P = spawn_link(fun() -> Me ! {self(), K, F(N)} end),
              {P, K}
          end || {K, F} <- As, get(names) =:= [] orelse lists:member(atom_to_list(K), get(names))],
    lists:foldl(fun({P, K}, T) ->
                        C = receive
                                {P, K, X} -> X;
                                {'EXIT', P, R} when R =/= normal -> error({K, N, R})
                            after 120000 -> error({K, N, hangs, [{Q, process_info(Q)} || {Q, _} <- Ps]})
                            end,
                        receive {'EXIT', P, normal} -> ok after 10000 -> error({K, N, no_exit}) end,
                        T#{K => maps:get(K, T, 0) + C}
                end, Totals, Ps).

%% Four senders to two receivers: nothing is lost or doubled, and the messages of a pair keep their order.
messages(Seed) ->
    K = 2000, Me = self(),
    Rs = [spawn_link(fun() -> collect(K * 4, #{}, 0, Me) end) || _ <- [1, 2]],
    _ = [spawn_link(fun() -> [[R ! {S, I, payload(I + Seed)} || R <- Rs] || I <- lists:seq(1, K)] end) || S <- [a, b, c, d]],
    lists:sum([receive {R, done, C} -> C end || R <- Rs]).
payload(I) when I rem 7 =:= 0 -> lists:seq(1, I rem 50);
payload(I) when I rem 5 =:= 0 -> list_to_binary(lists:duplicate(100 + I rem 100, I rem 256));
payload(I) -> {I, [I]}.
collect(0, _, C, Me) -> Me ! {self(), done, C};
collect(N, Last, C, Me) ->
    receive
        {S, I, _} ->
            I = maps:get(S, Last, 0) + 1,
            collect(N - 1, Last#{S => I}, C + 1, Me)
    end.

%% Calls with a monitor, among other messages.
calls(_) ->
    S = spawn_link(fun server/0),
    [self() ! {noise, I} || I <- lists:seq(1, 200)],
    C = length([call(S, I) || I <- lists:seq(1, 2000)]),
    [receive {noise, I} -> ok end || I <- lists:seq(1, 200)],
    S ! stop, C.
call(S, I) ->
    R = monitor(process, S),
    S ! {call, self(), R, I},
    receive
        {R, X} when X =:= I + 1 -> demonitor(R, [flush]);
        {'DOWN', R, _, _, Why} -> error(Why)
    end.
server() -> receive {call, P, R, I} -> P ! {R, I + 1}, server(); stop -> ok end.

%% Linked children die with a reason each.
exits(_) ->
    process_flag(trap_exit, true),
    K = 500,
    Ps = [{spawn_link(fun() -> receive go -> exit({out, I}) end end), I} || I <- lists:seq(1, K)],
    [P ! go || {P, _} <- Ps],
    length([receive {'EXIT', P, {out, I}} -> ok end || {P, I} <- Ps]).

%% A chain of links falls from one end.
chain(_) ->
    process_flag(trap_exit, true),
    Me = self(), K = 300,
    First = spawn_link(fun() -> link_on(K, Me) end),
    Ps = chained(K + 1, []),
    Ms = [monitor(process, P) || P <- Ps],
    hd(Ps) ! fall,
    C = length([receive {'DOWN', M, process, _, fallen} -> ok end || M <- Ms]),
    receive {'EXIT', First, fallen} -> C end.
chained(0, Ps) -> Ps;
chained(N, Ps) -> receive {link, P} -> chained(N - 1, [P | Ps]) end.
link_on(K, Me) ->
    K > 0 andalso spawn_link(fun() -> link_on(K - 1, Me) end),
    Me ! {link, self()},
    receive fall -> exit(fallen) end.

%% Monitors by pid and name, on the living and the dead; half of them taken back.
monitors(N) ->
    K = 200,
    Ps = [spawn(fun() -> receive {die, R} -> exit(R) end end) || _ <- lists:seq(1, K)],
    Named = hd(Ps),
    register(soak_named, Named),
    ByName = monitor(process, soak_named),
    Node = node(),
    Ms = [{P, monitor(process, P)} || P <- Ps],
    Gone = [monitor(process, P) || P <- Ps],
    [true = demonitor(M, [flush]) || M <- Gone],
    [P ! {die, N} || P <- Ps],
    C1 = length([receive {'DOWN', M, process, P, N} -> ok end || {P, M} <- Ms]),
    receive {'DOWN', ByName, process, {soak_named, Node}, N} -> ok end,
    C2 = length([begin M = monitor(process, P), receive {'DOWN', M, process, P, noproc} -> ok end end || P <- Ps]),
    receive {'DOWN', _, _, _, _} = X -> error({doubled, X}) after 0 -> ok end,
    undefined = whereis(soak_named),
    C1 + C2 + 1.

%% Each timer either fires once or was cancelled in time.
timers(N) ->
    K = 1000,
    Ts = [{erlang:start_timer((I * 7919 + N) rem 40, self(), I), I} || I <- lists:seq(1, K)],
    Left = lists:foldl(
             fun({R, I}, L) when I rem 2 =:= 0 ->
                     case erlang:cancel_timer(R) of
                         false -> [{R, I} | L];
                         Ms when Ms >= 0 -> L
                     end;
                (T, L) -> [T | L]
             end, [], Ts),
    [receive {timeout, R, I} -> ok after 10000 -> error({lost_timer, I}) end || {R, I} <- Left],
    receive {timeout, _, _} = X -> error({doubled, X}) after 0 -> ok end,
    %% Timers of a process that dies before they are due.
    {P, M} = spawn_monitor(fun() -> [erlang:send_after(86400000, self(), I) || I <- lists:seq(1, 100)] end),
    receive {'DOWN', M, process, P, normal} -> K end.

timeouts(_) ->
    Me = self(),
    Ps = [spawn_link(fun() -> receive never -> error(never) after I rem 20 -> Me ! {self(), over} end end) || I <- lists:seq(1, 300)],
    length([receive {P, over} -> ok end || P <- Ps]).

%% Writers of two tables beside a reader that walks them.
rows(N) ->
    Me = self(),
    lists:sum([begin
                   T = ets:new(soak, [Type, public | O]),
                   K = 1000,
                   Ws = [spawn_link(fun() ->
                                            [true = ets:insert(T, {{W, I}, I, lists:duplicate(I rem 10, N)}) || I <- lists:seq(1, K)],
                                            [true = ets:delete(T, {W, I}) || I <- lists:seq(1, K), I rem 2 =:= 0],
                                            Me ! {self(), written}
                                    end) || W <- [1, 2]],
                   R = spawn_link(fun() -> walk(T, 3), Me ! {self(), walked} end),
                   [receive {P, written} -> ok end || P <- Ws],
                   receive {R, walked} -> ok end,
                   Half = K,
                   Half = ets:info(T, size),
                   Half = ets:select_count(T, [{{'_', '_', '_'}, [], [true]}]),
                   Half = lists:sum([1 || {{_, I}, I, L} <- ets:tab2list(T), I rem 2 =:= 1, length(L) =:= I rem 10]),
                   true = ets:delete(T),
                   2 * K
               end || {Type, O} <- [{set, []}, {set, [{write_concurrency, true}]}, {ordered_set, []}, {bag, [compressed]}]]).
walk(_, 0) -> ok;
walk(T, N) ->
    true = ets:safe_fixtable(T, true),
    _ = step(T, ets:first(T), 0),
    true = ets:safe_fixtable(T, false),
    _ = ets:foldl(fun(_, A) -> A + 1 end, 0, T),
    walk(T, N - 1).
step(_, '$end_of_table', A) -> A;
step(T, K, A) -> step(T, ets:next(T, K), A + 1).

%% A table goes to its heir, and by hand.
heirs(N) ->
    Me = self(),
    {P, M} = spawn_monitor(fun() ->
                                   T = ets:new(soak, [{heir, Me, {to, N}}, public]),
                                   ets:insert(T, [{I} || I <- lists:seq(1, 100)]),
                                   U = ets:new(soak, []),
                                   ets:insert(U, {N}),
                                   ets:give_away(U, Me, given)
                           end),
    receive {'DOWN', M, process, P, normal} -> ok end,
    T = receive {'ETS-TRANSFER', T0, P, {to, N}} -> T0 end,
    U = receive {'ETS-TRANSFER', U0, P, given} -> U0 end,
    100 = ets:info(T, size),
    [{N}] = ets:lookup(U, N),
    ets:delete(T), ets:delete(U),
    2.

counters(_) ->
    T = ets:new(soak, [public, {write_concurrency, true}, {decentralized_counters, true}]),
    A = atomics:new(1, []),
    Me = self(), K = 1000,
    Ps = [spawn_link(fun() ->
                             [begin ets:update_counter(T, c, 1, {c, 0}), atomics:add(A, 1, 1) end || _ <- lists:seq(1, K)],
                             Me ! {self(), ok}
                     end) || _ <- [1, 2, 3]],
    [receive {P, ok} -> ok end || P <- Ps],
    C = 3 * K,
    [{c, C}] = ets:lookup(T, c),
    C = atomics:get(A, 1),
    ets:delete(T),
    C.

%% Binaries travel round a ring and keep their bytes.
binaries(N) ->
    Me = self(),
    B = crypt(N, 100000),
    Sum = erlang:adler32(B),
    Last = lists:foldl(fun(_, Next) -> spawn_link(fun() -> pass(Next) end) end, Me, lists:seq(1, 10)),
    Parts = [binary:part(B, I * 1000, 1000) || I <- lists:seq(0, 99)],
    [Last ! P || P <- Parts],
    Back = [receive P when is_binary(P) -> P end || _ <- Parts],
    Sum = erlang:adler32(iolist_to_binary(Back)),
    Grown = lists:foldl(fun(P, A) -> <<A/binary, P/binary>> end, <<>>, Back),
    B = Grown,
    Last ! stop,
    receive stop -> 100 end.
crypt(N, K) -> << <<((I * 31 + N) rem 256)>> || I <- lists:seq(1, K) >>.
pass(Next) -> receive stop -> Next ! stop; X -> Next ! X, pass(Next) end.

%% Processes killed with full mailboxes.
killed(_) ->
    Ps = [spawn(fun() -> receive never -> ok end end) || _ <- lists:seq(1, 20)],
    [[P ! {I, lists:seq(1, 20)} || I <- lists:seq(1, 200)] || P <- Ps],
    Ms = [monitor(process, P) || P <- Ps],
    [exit(P, kill) || P <- Ps],
    length([receive {'DOWN', M, process, _, killed} -> ok end || M <- Ms]).

%% The second answer to an alias that takes one does not come.
aliases(_) ->
    S = spawn_link(fun twice/0),
    C = length([begin
                    A = alias([reply]),
                    S ! {A, I},
                    receive {A, I} -> ok end
                end || I <- lists:seq(1, 500)]),
    S ! stop,
    receive {A, _} when is_reference(A) -> error(doubled) after 5 -> C end.
twice() -> receive {A, I} -> A ! {A, I}, A ! {A, I}, twice(); stop -> ok end.

%% Heaps that are large enough to be collected by another thread, while messages come in.
heaps(N) ->
    Me = self(),
    K = 200000,
    P = spawn_link(fun() ->
                           L = lists:seq(N, N + K),
                           S = lists:sum(L),
                           true = garbage_collect(),
                           T = {L, [X || {m, X} <- looked()]},
                           true = garbage_collect(),
                           S = lists:sum(element(1, T)),
                           Xs = element(2, T) ++ [receive {m, X} -> X end || _ <- lists:seq(length(element(2, T)) + 1, 100)],
                           Me ! {self(), length(Xs), lists:sum(Xs)}
                   end),
    [P ! {m, I} || I <- lists:seq(1, 100)],
    true = garbage_collect(P) orelse not is_process_alive(P),
    receive {P, 100, 5050} -> 100 end.
looked() -> receive {m, 50} -> [{m, 50}] after 0 -> [] end.

%% Questions to processes that run, wait, are suspended.
asked(_) ->
    P = spawn_link(fun() -> spin(0) end),
    Q = spawn_link(fun() -> receive stop -> ok end end),
    C = length([begin
                    {message_queue_len, _} = process_info(X, message_queue_len),
                    true = is_process_alive(X),
                    true = erlang:suspend_process(X),
                    {status, suspended} = process_info(X, status),
                    true = erlang:resume_process(X)
                end || _ <- lists:seq(1, 50), X <- [P, Q]]),
    P ! stop, Q ! stop,
    C.
spin(N) -> receive stop -> N after 0 -> spin(N + 1) end.
