-module(e2e_files).
-export([read/1, errors/0, write/1, raw/1, tree/1, code/0, missing/0, lines/1, servers/0]).

-include_lib("kernel/include/file.hrl").

%% A file of the caller, whole.
read([F]) ->
    {ok, B} = file:read_file(F),
    io:format("~p ~p~n", [byte_size(B), erlang:md5(B)]).

errors() ->
    D = "/nonexistent/dir",
    io:format("~p~n", [[file:read_file(D), file:open(D, [read]), file:list_dir(D), file:read_file_info(D),
                        file:write_file(D, <<>>), file:delete(D), file:make_dir(D), file:read_file("/"),
                        file:open("/", [read]), file:read_link("/"), file:rename(D, D), file:set_cwd(D)]]),
    io:format("~p~n", [[file:read_file("a\0b"), file:read_file(17), file:open("x", [bad]),
                        file:read_file_info(""), prim_file:read_file([a])]]).

%% An I/O server.
write([Dir]) ->
    F = filename:join(Dir, "written"),
    {ok, D} = file:open(F, [write, {encoding, utf8}]),
    ok = io:format(D, "line ~p~n~ts~n", [1, [229, 8804]]),
    ok = file:close(D),
    {ok, <<"line 1\n", 195, 165, 226, 137, 164, $\n>>} = file:read_file(F),
    {ok, R} = file:open(F, [read, {encoding, utf8}]),
    io:format("~p ~tp ~p~n", [io:get_line(R, ""), io:get_line(R, ""), io:get_line(R, "")]),
    {ok, 0} = file:position(R, bof),
    io:format("~p~n", [io:fread(R, "", "~s ~d")]),
    ok = file:close(R),
    ok = file:write_file(F, [["a", <<"b">>], $c]),
    ok = file:write_file(F, "d", [append]),
    {error, eexist} = file:open(F, [write, exclusive]),
    {ok, B} = file:read_file(F),
    io:format("~s ~p~n", [B, file:consult(F)]),
    ok = file:write_file(F, "{a, 1}.\n[b].\n"),
    io:format("~p~n", [file:consult(F)]),
    %% A file ends with its owner.
    {_, Ref} = spawn_monitor(fun() -> {ok, _} = file:open(F, [read]), exit(bye) end),
    receive {'DOWN', Ref, _, _, bye} -> ok end.

raw([Dir]) ->
    F = filename:join(Dir, "raw"),
    {ok, D} = file:open(F, [raw, read, write, binary]),
    ok = file:write(D, lists:duplicate(10, <<"0123456789">>)),
    {ok, 10} = file:position(D, 10),
    {ok, <<"012">>} = file:read(D, 3),
    {ok, 100} = file:position(D, eof),
    eof = file:read(D, 1),
    ok = file:pwrite(D, [{1, "AB"}, {98, <<"YZ">>}]),
    {ok, [<<"0AB3">>, <<"YZ">>, eof]} = file:pread(D, [{0, 4}, {98, 10}, {100, 1}]),
    {error, einval} = file:position(D, -1),
    {ok, 50} = file:position(D, {bof, 50}),
    ok = file:truncate(D),
    ok = file:sync(D),
    ok = file:datasync(D),
    ok = file:advise(D, 0, 10, sequential),
    {error, einval} = file:advise(D, 0, 10, nonsense),
    {ok, #file_info{size = 50, type = regular, access = read_write}} = file:read_file_info(F),
    ok = file:close(D),
    {error, einval} = file:close(D),
    {ok, A} = file:open(F, [raw, read, binary, {read_ahead, 16}]),
    {ok, <<"0AB">>} = file:read(A, 3),
    {ok, <<"3456789012345678901234">>} = file:read(A, 22),
    {ok, 25} = file:position(A, cur),
    {error, ebadf} = file:write(A, "x"),
    ok = file:close(A),
    {ok, L} = file:open(F, [raw, write, {delayed_write, 1000, 1000}]),
    [ok = file:write(L, ["line ", integer_to_list(N), $\n]) || N <- lists:seq(1, 100)],
    ok = file:close(L),
    {ok, M} = file:open(F, [raw, read, read_ahead]),
    Lines = fun Go(N) -> case file:read_line(M) of {ok, _} -> Go(N + 1); eof -> N end end,
    io:format("~p lines~n", [Lines(0)]),
    {ok, 101} = file:copy(F, F ++ ".copy", 101),
    io:format("~p~n", [filelib:file_size(F ++ ".copy")]).

tree([Dir]) ->
    ok = file:set_cwd(Dir),
    {ok, Dir} = file:get_cwd(),
    ok = filelib:ensure_dir("a/b/c"),
    ok = file:write_file("a/b/c", "x"),
    ok = file:make_symlink("c", "a/b/l"),
    ok = file:make_link("a/b/c", "a/h"),
    {ok, "c"} = file:read_link("a/b/l"),
    {ok, #file_info{type = symlink}} = file:read_link_info("a/b/l"),
    {ok, #file_info{links = 2, type = regular}} = file:read_file_info("a/b/l"),
    ok = file:change_mode("a/h", 8#600),
    T = {{2020, 2, 29}, {12, 0, 0}},
    ok = file:change_time("a/h", T),
    {ok, #file_info{mode = 8#100600, mtime = T}} = file:read_file_info("a/b/c"),
    {error, eexist} = file:make_dir("a"),
    {error, eexist} = file:del_dir("a"),
    {error, eperm} = file:delete("a"),
    {error, enotdir} = file:list_dir("a/h"),
    {ok, Names} = file:list_dir("a"),
    io:format("~p ~p~n", [lists:sort(Names), lists:sort(filelib:wildcard("a/*/*"))]),
    ok = file:rename("a/h", "a/h2"),
    io:format("~p ~p~n", [filelib:is_dir("a/b"), filelib:is_regular("a/h2")]),
    ok = file:del_dir_r("a"),
    io:format("~p~n", [file:list_dir(".")]),
    ok = file:write_file([229, 8804], "u"),
    {ok, [[229, 8804]]} = file:list_dir("."),
    ok = file:write_file(<<"raw", 255>>, "u"),
    {ok, All} = file:list_dir_all("."),
    io:format("~p~n", [lists:sort(All)]).

lines([F]) ->
    {ok, D} = file:open(F, [read]),
    io:format("~p~n", [count(D, 0)]).

count(D, N) ->
    case file:read_line(D) of
        {ok, _} -> count(D, N + 1);
        eof -> N
    end.

code() ->
    Which = fun(M) -> filename:basename(code:which(M)) end,
    io:format("~p ~p ~p~n", [Which(lists), Which(?MODULE), code:which(no_such_module)]),
    io:format("~p ~p~n", [code:ensure_loaded(queue), code:ensure_loaded(no_such_module)]),
    io:format("~p~n", [filename:basename(code:priv_dir(crypto))]),
    "kernel" ++ _ = filename:basename(code:lib_dir(kernel)),
    {error, bad_name} = code:lib_dir(no_such_app),
    io:format("~p ~p~n", [code:load_file(?MODULE), code:load_file(no_such_module)]),
    {ok, {?MODULE, _}} = beam_lib:md5(code:which(?MODULE)),
    io:format("~p~n", [catch no_such_module:f()]).

%% Servers that did not run answer from the first call on, to many at once.
servers() ->
    Self = self(),
    [spawn_link(fun() -> Self ! {N, file:get_cwd(), erl_prim_loader:get_cwd()} end) || N <- lists:seq(1, 20)],
    {ok, Cwd} = file:get_cwd(),
    [receive {N, {ok, Cwd}, {ok, Cwd}} -> ok end || N <- lists:seq(1, 20)],
    [true = is_pid(whereis(S)) || S <- [file_server_2, erl_prim_loader, code_server]],
    undefined = whereis(no_such_server),
    {'EXIT', {noproc, _}} = (catch gen_server:call(no_such_server, x)),
    %% One that dies is started anew.
    Old = whereis(file_server_2),
    exit(Old, kill),
    {ok, Cwd} = again(fun file:get_cwd/0, 100),
    true = is_pid(whereis(file_server_2)) andalso whereis(file_server_2) =/= Old,
    %% Libraries add children to supervisors of kernel.
    [] = supervisor:which_children(kernel_sup),
    {ok, C} = supervisor:start_child(kernel_safe_sup, #{id => c, start => {gen_event, start_link, []}}),
    [{c, C, worker, _}] = supervisor:which_children(kernel_safe_sup),
    io:format("ok~n").

again(F, N) ->
    case catch F() of
        {ok, _} = R -> R;
        _ when N > 0 -> timer:sleep(1), again(F, N - 1);
        Other -> Other
    end.

missing() ->
    {ok, B} = file:read_file("/nonexistent"),
    B.
