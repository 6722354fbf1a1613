%% Evaluates one-line expressions and prints what each gives.
%%
%%   expressions:main([File])       one line of output for each line of File
%%   expressions:main(["generate"]) prints a call of every native of the modules below with arguments that are wrong in
%%                                  some way (generated.txt holds them)
%%
%% natives.txt and generated.txt are the expressions, expected.NN.txt what OTP NN gives; `record.sh` makes the latter.
-module(expressions).
-export([main/1]).

main(["generate"]) ->
    io:setopts([{encoding, unicode}]),
    [io:format("~ts~n", [L]) || L <- generated()],
    ok;
main(Files) ->
    io:setopts([{encoding, unicode}]),
    Lines = lists:append([read(F) || F <- Files]),
    [io:format("~ts => ~ts~n", [L, same(result(L))]) || L <- Lines],
    ok.

read(File) ->
    {ok, Bin} = file:read_file(File),
    [L || L <- string:split(unicode:characters_to_list(Bin), "\n", all), L =/= "", hd(L) =/= $%].

%% Each expression has a process of its own: dictionary, tables and messages are gone afterwards.
result(Line) ->
    Me = self(),
    {Pid, Ref} = spawn_monitor(fun() -> Me ! {self(), eval(Line)}, ok end),
    receive
        {Pid, R} ->
            receive {'DOWN', Ref, _, _, _} -> R end;
        {'DOWN', Ref, _, _, R} ->
            io_lib:format("died: ~0tp", [R])
    after 20000 ->
        exit(Pid, kill),
        "timeout"
    end.

eval(Line) ->
    {ok, Tokens, _} = erl_scan:string(Line ++ "."),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    try
        {value, V, _} = erl_eval:exprs(Exprs, erl_eval:new_bindings()),
        io_lib:format(ordered(), [V])
    catch
        C:R:S0 ->
            S = frames(S0),
            Text = erl_error:format_exception(C, R, S),
            io_lib:format("~0tp", [{C, R, S, without_lines(unicode:characters_to_list(Text))}])
    end.

%% Maps with atoms for keys are printed in any order since OTP 26.
ordered() ->
    case list_to_integer(erlang:system_info(otp_release)) of
        N when N >= 26 -> "~0ktp";
        _ -> "~0tp"
    end.

%% What no two runs have in common.
same(Text0) ->
    Text = lists:flatten(Text0),
    lists:foldl(fun({From, To}, T) -> re:replace(T, From, To, [global, {return, list}, unicode]) end, Text,
                [{"#Ref<[0-9.]+>", "#Ref<>"}, {"<0\\.[0-9]+\\.0>", "<pid>"}, {"#Fun<[^>]*>", "#Fun<>"},
                 {"(re_pattern,[0-9],[0-9],[0-9]),<<[^>]*>>", "\\1,#Ref<>"}]).

%% The frames down to erl_eval, without places in files, which differ from one patch of OTP to the next.
frames([{?MODULE, _, _, _} | _]) -> [];
frames([{erl_eval, _, _, _} | _]) -> [];
frames([{M, F, A, Info} | T]) -> [{M, F, A, [I || {K, _} = I <- Info, K =:= error_info]} | frames(T)];
frames([]) -> [].

%% Where it breaks lines depends on how long a reference is printed.
without_lines(Text) ->
    T = re:replace(Text, " \\([a-z_0-9]+\\.erl, line [0-9]+\\)", "", [global, {return, list}, unicode]),
    re:replace(T, "\\s+", "", [global, {return, list}, unicode]).

generated() ->
    {ok, Bin} = file:read_file("../../../beamr-natives/natives.tsv"),
    Rows = [string:split(L, "\t", all) || L <- string:split(binary_to_list(Bin), "\n", all), L =/= "", hd(L) =/= $#],
    lists:append([calls(M, F, list_to_integer(A)) || [M, F, A, Kind | _] <- Rows, Kind =/= "static-nif",
                                                     wanted(M, F, list_to_integer(A))]).

wanted(_, _, 0) -> false;
wanted("erlang", F, _) ->
    not lists:any(fun(P) -> lists:prefix(P, F) end,
                  ["display", "dist_", "port_", "seq_trace", "trace", "halt", "setnode", "load_nif", "monitor_node", "make_",
                   "system_profile", "system_monitor", "finish_", "call_on_load", "hibernate", "disconnect", "check_process",
                   "purge_module", "prepare_", "has_prepared", "apply", "delay_trap", "nif_error"]);
wanted(M, F, _) ->
    lists:member(M, ["lists", "maps", "binary", "math", "unicode", "string", "ets", "atomics", "persistent_term", "os", "re"])
        %% asinh differs from one C library to the next.
        andalso not lists:member(F, ["internal_run", "asinh"]).

calls(M, F, A) ->
    Pool = ["[]", "foo", "-1", "<<1:3>>", "{}", "1.5", "[a|b]", "#{a=>1}", "1 bsl 70", "\"str\""],
    H = erlang:phash2({M, F, A}, length(Pool)),
    Pick = fun(K) -> lists:nth((H + K) rem length(Pool) + 1, Pool) end,
    [io_lib:format("~ts:~ts(~ts)", [M, quoted(F), lists:join(", ", [Pick(Step * N + Step) || N <- lists:seq(1, A)])])
     || Step <- steps(M, A)].

%% A second call where the first argument alone decides little.
steps("erlang", 1) -> [1];
steps(_, 1) -> [1, 3];
steps(_, _) -> [1].

quoted(F) -> io_lib:format("~tp", [list_to_atom(F)]).
