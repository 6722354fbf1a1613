-module(e2e_code).
-export([reload/0, path/1, nodes/0]).

%% A module is loaded, replaced, purged and deleted by OTP's code server.
reload() ->
    Forms = fun(N) ->
        [{attribute, 1, module, e2e_made}, {attribute, 1, export, [{f, 0}]},
         {function, 1, f, 0, [{clause, 1, [], [], [{integer, 1, N}]}]}]
    end,
    Load = fun(N) ->
        {ok, M, B} = compile:forms(Forms(N)),
        {module, M} = code:load_binary(M, "made", B),
        M:f()
    end,
    io:format("~w ~w~n", [[Load(N) || N <- [1, 2, 3]],
        [code:purge(e2e_made), code:delete(e2e_made), code:purge(e2e_made)]]),
    io:format("~p~n", [catch e2e_made:f()]).

%% Folders that join the path while the program runs are searched at a first call.
path([Dir]) ->
    io:format("~p ~p~n", [catch e2e_args:main([]), code:add_patha(Dir)]),
    e2e_args:main(["found"]).

nodes() ->
    io:format("~p~n", [[net_kernel:monitor_nodes(B) || B <- [true, true, false]] ++
        [process_flag(monitor_nodes, true), process_flag({monitor_nodes, [nodedown_reason]}, false),
         catch process_flag({monitor_nodes, [nonsense]}, true)]]).
