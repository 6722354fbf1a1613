%% Ports: programs, files and descriptors, compared with OTP line by line.
-module(e2e_ports).
-export([main/0]).

main() ->
    process_flag(trap_exit, true),
    lists:foreach(fun({Name, F}) ->
                          R = try F() catch C:E -> {C, strip(E)} end,
                          io:format("~p: ~p~n", [Name, R])
                  end, tests()),
    ok.

strip(E) -> E.

tests() ->
    [{stream, fun() -> run("echo hello", [exit_status]) end},
     {binary, fun() -> run("echo hello", [exit_status, binary]) end},
     {status, fun() -> run("exit 7", [exit_status]) end},
     {shell_status, fun() -> run("sh -c 'exit 7'", [exit_status]) end},
     {killed, fun() -> run("sh -c 'kill -9 $$'", [exit_status]) end},
     {no_such, fun() -> run("/no/such/program 2>/dev/null", [exit_status]) end},
     {eof, fun() -> run("echo x", [eof]) end},
     {eof_status, fun() -> lists:sort(run("echo x", [eof, exit_status])) end},
     {normal, fun() -> run("echo x", []) end},
     {line, fun() -> run("printf 'one\\ntwo\\n\\nlast'", [{line, 100}, exit_status]) end},
     {line_short, fun() -> run("printf 'abcdefgh\\nij\\n'", [{line, 3}, exit_status]) end},
     {stderr, fun() -> run("echo err 1>&2", [stderr_to_stdout, exit_status]) end},
     {args, fun() -> exe("/bin/echo", [{args, ["a b", <<"c">>, "d"]}, exit_status]) end},
     {arg0, fun() -> exe("/bin/sh", [{arg0, "mysh"}, {args, ["-c", "echo $0"]}, exit_status]) end},
     {cd, fun() -> exe("/bin/pwd", [{cd, "/usr"}, exit_status]) end},
     {env, fun() -> exe("/bin/sh", [{args, ["-c", "echo $E2E_A:$E2E_B:${HOME+x}"]}, exit_status,
                                    {env, [{"E2E_A", "1"}, {"E2E_B", "2"}, {"HOME", false}]}]) end},
     {missing, fun() -> exe("/no/such/file", []) end},
     {not_executable, fun() -> exe("/etc/passwd", []) end},
     {cat_stream, fun() -> cat([stream], ["some ", [<<"data">>, $!]]) end},
     {cat_packet1, fun() -> cat([{packet, 1}], lists:duplicate(255, $x)) end},
     {cat_packet2, fun() -> cat([{packet, 2}], "abc") end},
     {cat_packet4, fun() -> cat([{packet, 4}, binary], <<"abc">>) end},
     {cat_big, fun() -> big() end},
     {too_long, fun() -> P = open_port({spawn, "cat"}, [{packet, 1}]),
                         R = port_command(P, lists:duplicate(256, $x)),
                         {R, wait(P)} end},
     {close_message, fun() -> P = open_port({spawn, "cat"}, []), P ! {self(), close}, all(P) end},
     {port_close, fun() -> P = open_port({spawn, "cat"}, []), true = port_close(P),
                           R = (catch port_close(P)),
                           {all(P), element(1, R), erlang:port_info(P)} end},
     {command_message, fun() -> P = open_port({spawn, "cat"}, []), P ! {self(), {command, "hi"}},
                                R = receive {P, {data, D}} -> D end, port_close(P), R end},
     {badsig, fun() -> P = open_port({spawn, "cat"}, []), P ! nonsense,
                       R = receive {'EXIT', P, Why} -> Why after 1000 -> none end,
                       port_close(P), R end},
     {badsig_owner, fun() -> P = open_port({spawn, "cat"}, []),
                       Me = self(),
                       {Q, M} = spawn_monitor(fun() -> P ! {self(), {command, "x"}}, receive after 2000 -> ok end end),
                       R = receive {'DOWN', M, process, Q, Why} -> Why end,
                       Me = self(), port_close(P), R end},
     {connect, fun() -> P = open_port({spawn, "cat"}, []), Me = self(),
                        Q = spawn_link(fun() -> receive {go, O} -> P ! {self(), {command, "to q"}}, O ! {q, receive M -> element(2, M) end} end end),
                        P ! {self(), {connect, Q}},
                        R1 = receive {P, connected} -> connected end,
                        Q ! {go, Me}, R2 = receive {q, X} -> X end,
                        R3 = {erlang:port_info(P, connected) =:= {connected, Q}},
                        receive {'EXIT', Q, normal} -> ok end,
                        R4 = receive {'EXIT', P, Why} -> Why after 1000 -> none end,
                        {R1, R2, R3, R4} end},
     {port_connect, fun() -> P = open_port({spawn, "cat"}, []), R = port_connect(P, self()),
                        R2 = (catch port_connect(P, list_to_pid("<0.99999.0>"))),
                        port_close(P), {R, element(1, R2)} end},
     {owner_dies, fun() -> Me = self(),
                        spawn(fun() -> P = open_port({spawn, "cat"}, []), Me ! P end),
                        P = receive X when is_port(X) -> X end,
                        M = monitor(port, P),
                        receive {'DOWN', M, port, P, R} -> lists:member(R, [normal, noproc]) end end},
     {exit_port, fun() -> P = open_port({spawn, "cat"}, []), exit(P, normal), exit(P, reason), all(P) end},
     {kill_port, fun() -> P = open_port({spawn, "cat"}, []), M = monitor(port, P), exit(P, kill),
                          R = receive {'DOWN', M, port, P, W} -> W end, {R, all(P)} end},
     {monitor_dead, fun() -> P = open_port({spawn, "cat"}, []), port_close(P), all(P),
                        M = monitor(port, P), receive {'DOWN', M, port, P, W} -> W end end},
     {unlinked, fun() -> P = open_port({spawn, "cat"}, []), unlink(P), port_close(P), all(P) end},
     {links, fun() -> P = open_port({spawn, "cat"}, []),
                      {links, L} = process_info(self(), links), {links, L2} = erlang:port_info(P, links),
                      R = {lists:member(P, L), L2 =:= [self()], lists:member(P, erlang:ports())},
                      port_close(P),
                      {R, lists:member(P, erlang:ports()), process_info(self(), links) =:= {links, L -- [P]}} end},
     {registered, fun() -> P = open_port({spawn, "cat"}, []), true = register(e2e_port, P),
                      e2e_port ! {self(), {command, "by name"}},
                      R = receive {P, {data, D}} -> D end,
                      {registered_name, N} = erlang:port_info(P, registered_name),
                      W = whereis(e2e_port) =:= P, L = lists:member(e2e_port, registered()),
                      true = port_command(e2e_port, "again"),
                      R2 = receive {P, {data, D2}} -> D2 end,
                      port_close(e2e_port), {R, N, W, L, R2, whereis(e2e_port)} end},
     {info, fun() -> P = open_port({spawn, "cat"}, []), port_command(P, "12345"),
                      receive {P, {data, "12345"}} -> ok end,
                      I = [{K, V} || {K, V} <- erlang:port_info(P), lists:member(K, [name, input, output])],
                      {os_pid, O} = erlang:port_info(P, os_pid),
                      Keys = [K || {K, _} <- erlang:port_info(P)],
                      R = {I, Keys, is_integer(O), erlang:port_info(P, queue_size), erlang:port_info(P, monitors),
                           erlang:port_info(P, parallelism), erlang:port_info(P, registered_name)},
                      port_close(P), {R, erlang:port_info(P, name)} end},
     {data, fun() -> P = open_port({spawn, "cat"}, []), U = erlang:port_get_data(P), true = erlang:port_set_data(P, {a, [1]}),
                      R = erlang:port_get_data(P), port_close(P), {U, R, element(1, catch erlang:port_get_data(P))} end},
     {bad_names, fun() -> [reason(fun() -> open_port(N, []) end) || N <- [{spawn, 1}, {foo, "x"}, {spawn_driver, "nosuch"}, 17, {fd, -1, 0}, {fd, a, b}, {spawn, "a\0b"}]] end},
     {bad_options, fun() -> [reason(fun() -> open_port({spawn, "cat"}, O) end) || O <- [[foo], [{packet, 3}], foo, [{line, 0}], [{args, ["x"]}], [{env, [a]}], [{cd, 1}], [{parallelism, x}]]] end},
     {bad_command, fun() -> P = open_port({spawn, "cat"}, []),
                      R = [reason(fun() -> port_command(P, D) end) || D <- [a, [1000], [a], 1]] ++
                          [reason(fun() -> port_command(P, "x", [zz]) end), reason(fun() -> port_control(P, 1, "x") end),
                           reason(fun() -> erlang:port_call(P, 1, x) end), reason(fun() -> erlang:port_info(P, foo) end),
                           reason(fun() -> erlang:port_info(self()) end), reason(fun() -> port_close(self()) end),
                           reason(fun() -> erlang:port_info(no_such_name) end)],
                      port_close(P), R end},
     {file_out_in, fun() -> F = filename:join(dir(), "e2e_ports.tmp"),
                      P = open_port(F, [out]), true = port_command(P, "kept\nhere"), port_close(P), all(P),
                      until(fun() -> file:read_file(F) =:= {ok, <<"kept\nhere">>} end),
                      Q = open_port(F, [in, {line, 80}, eof]),
                      R = take(Q, []), catch port_close(Q), file:delete(F), R end},
     {file_missing, fun() -> reason(fun() -> open_port("/no/such/dir/file", [in]) end) end},
     {nouse_stdio, fun() -> exe("/bin/sh", [nouse_stdio, exit_status, {args, ["-c", "read x <&3; echo got $x >&4"]}], "word\n") end},
     {os_cmd, fun() -> [os:cmd("echo hi"), os:cmd("cat /etc/hostname >/dev/null; printf x"), os:cmd("exit 3")] end},
     {epipe, fun() -> P = open_port({spawn, "true"}, []),
                      R = receive {'EXIT', P, W} -> W after 3000 -> none end, R end},
     {to_list, fun() -> P = open_port({spawn, "cat"}, []), L = erlang:port_to_list(P),
                      R = list_to_port(L) =:= P, port_close(P), {R, is_port(P), lists:prefix("#Port<0.", L)} end},
     {send_closed, fun() -> P = open_port({spawn, "cat"}, []), port_close(P), all(P), P ! {self(), close}, P ! x, all(P) end},
     {unlink_dead, fun() -> P = open_port({spawn, "cat"}, []), port_close(P), all(P), reason(fun() -> link(P) end) end}
    ].

reason(F) ->
    try F() of R when is_port(R) -> port_close(R), opened; R -> R catch C:E -> {C, E} end.

dir() ->
    case os:getenv("TMPDIR") of false -> "/tmp"; D -> D end.

until(F) ->
    case F() of true -> ok; false -> receive after 5 -> until(F) end end.

run(Cmd, Opts) -> P = open_port({spawn, Cmd}, Opts), take(P, []).
exe(F, Opts) -> P = open_port({spawn_executable, F}, Opts), take(P, []).
exe(F, Opts, In) -> P = open_port({spawn_executable, F}, Opts), port_command(P, In), take(P, []).

%% All that comes, data joined, to the end of the port.
take(P, Acc) ->
    receive
        {P, {data, D}} when is_list(D), is_list(hd([Acc | []])), Acc =/= [], is_tuple(hd(Acc)), element(1, hd(Acc)) =:= chars ->
            take(P, [{chars, element(2, hd(Acc)) ++ D} | tl(Acc)]);
        {P, {data, D}} when is_list(D) -> take(P, [{chars, D} | Acc]);
        {P, {data, D}} -> take(P, [D | Acc]);
        {P, eof} -> port_close(P), take(P, [eof | Acc]);
        {P, X} -> take(P, [X | Acc]);
        {'EXIT', P, Why} -> lists:reverse([{exit, Why} | Acc])
    after 5000 -> lists:reverse([timeout | Acc])
    end.

wait(P) -> receive {'EXIT', P, Why} -> Why after 5000 -> timeout end.

%% What is there now and within a moment.
all(P) ->
    receive
        {P, X} -> [X | all(P)];
        {'EXIT', P, Why} -> [{exit, Why} | all(P)]
    after 50 -> []
    end.

cat(Opts, Data) ->
    P = open_port({spawn, "cat"}, Opts),
    true = port_command(P, Data),
    R = receive {P, {data, D}} -> D after 5000 -> timeout end,
    port_close(P),
    R.

big() ->
    P = open_port({spawn, "cat"}, [binary]),
    N = 3000000,
    spawn_link(fun() -> [port_command(P, binary:copy(<<"0123456789">>, 10000)) || _ <- lists:seq(1, 30)] end),
    R = count(P, 0, N),
    port_close(P),
    receive {'EXIT', _, normal} -> ok after 0 -> ok end,
    R.

count(_, N, N) -> N;
count(P, Have, N) -> receive {P, {data, D}} -> count(P, Have + byte_size(D), N) after 5000 -> {timeout, Have} end.
