-module(e2e_log).
-behaviour(gen_server).
-behaviour(application).
-export([crashes/0, events/0, servers/0, applications/0, quick/0, start/2, stop/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, child/0]).
-include_lib("kernel/include/logger.hrl").

down(F) ->
    {_, R} = spawn_monitor(F),
    receive {'DOWN', R, _, _, _} -> ok end.

crashes() ->
    down(fun() -> error(oops) end),
    down(fun() -> throw(ball) end),
    down(fun() -> exit(quiet) end),
    {P, R} = proc_lib:spawn_opt(fun() -> error(in_proc_lib) end, [monitor]),
    receive {'DOWN', R, process, P, _} -> ok end.

events() ->
    logger:error("an error ~p", [x]),
    logger:notice("a notice"),
    logger:info("hidden"),
    logger:warning(#{a => 1}),
    ?LOG_ERROR("macro ~ts", ["text"]),
    error_logger:error_msg("old ~p~n", [style]),
    error_logger:info_msg("old info~n"),
    error_logger:error_report([{k, v}, {x, "y"}]),
    logger:set_primary_config(level, debug),
    logger:debug("now ~p", [debug]),
    [default] = [maps:get(id, C) || C <- logger:get_handler_config()].

servers() ->
    process_flag(trap_exit, true),
    {ok, G} = gen_server:start({local, e2e_server}, ?MODULE, server, []),
    R = monitor(process, G),
    gen_server:cast(G, crash),
    receive {'DOWN', R, process, G, _} -> ok end,
    {ok, S} = supervisor:start_link(?MODULE, sup),
    exit(whereis(e2e_child), kill),
    receive {'EXIT', S, shutdown} -> ok end.

child() ->
    {ok, spawn_link(fun() -> register(e2e_child, self()), receive stop -> ok end end)}.

init(server) -> {ok, state};
init(sup) ->
    {ok, {#{intensity => 0}, [#{id => c, start => {?MODULE, child, []}, modules => []}]}}.
handle_call(_, _, S) -> {reply, ok, S}.
handle_cast(crash, _) -> error(crashed).
handle_info(_, S) -> {noreply, S}.

%% As an application: stops in order when the system does.
start(_, _) -> {ok, spawn_link(fun() -> receive never -> ok end end)}.
stop(_) -> io:format(user, "application stopped~n", []).

applications() ->
    ok = application:load({application, e2e_log, [{vsn, "1"}, {modules, []}, {registered, []}, {applications, [kernel, stdlib]}, {mod, {?MODULE, []}}]}),
    io:format("~p~n", [application:ensure_all_started(e2e_log)]),
    io:format("~p~n", [lists:sort([A || {A, _, _} <- application:which_applications()])]),
    init:stop(),
    receive never -> ok end.

%% Crashes of the last moment are printed, too.
quick() ->
    spawn(fun() -> error(last_moment) end),
    erlang:yield(),
    timer:sleep(5).
