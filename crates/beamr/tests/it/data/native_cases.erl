%% Natives of the system, code, funs, identifiers and formats; go(N) ends with what case N gives.
%% native_cases.otp25.txt holds what OTP 25 gives (main/0 prints it).
-module(native_cases).
-export([go/1, main/0, id/1]).

go(N) ->
    exit(try case_of(N) catch C:R:S -> {C, R, frame(S)} end).

main() ->
    all(1).

all(N) ->
    {P, M} = spawn_monitor(fun() -> go(N) end),
    receive
        {'DOWN', M, process, P, {error, no_more, _}} -> ok;
        {'DOWN', M, process, P, R} -> erlang:display(R), all(N + 1)
    end.

%% The frame of the native, and what it says of the error.
frame([{?MODULE, F, A, _} | _]) -> {F, A};
frame([{M, F, A, I} | _]) -> {M, F, A, lists_error_info(I)}.

lists_error_info([{error_info, X} | _]) -> X;
lists_error_info([_ | T]) -> lists_error_info(T);
lists_error_info([]) -> none.

id(X) -> X.

try_each(_, []) -> [];
try_each(F, [H | T]) ->
    R = try F(H) catch C:E -> {C, E} end,
    [R | try_each(F, T)].

case_of(1) -> erlang:binary_to_term(erlang:term_to_binary({a, [1, 2.5, <<"x">>], #{k => 1 bsl 70}}));
case_of(2) -> erlang:term_to_binary([a, "abc", 1.5, {1, -1}, 300], [{minor_version, 1}]);
case_of(3) -> erlang:external_size({1, 2, "abc", 1.5});
case_of(4) -> try_each(fun erlang:binary_to_term/1, [<<>>, <<131>>, <<131, 97>>, <<130, 97, 1>>, <<131, 97, 1, 2>>, x]);
case_of(5) -> erlang:binary_to_term(<<131, 97, 1, 2, 3>>, [used]);
case_of(6) -> erlang:binary_to_term(<<131, 119, 17, "an_atom_not_known">>, [safe]);
case_of(7) -> erlang:term_to_binary(a, [bad]);
case_of(8) -> [erlang:phash2(T) || T <- [a, 1, -1, 1.5, "abc", <<"abc">>, {}, #{a => 1}, 1 bsl 100]];
case_of(9) -> [erlang:phash2({a, b}, N) || N <- [1, 2, 1000, 1 bsl 32]];
case_of(10) -> [erlang:phash({a, "b", <<1, 2>>}, N) || N <- [1, 2, 1000, 1 bsl 32]];
case_of(11) -> erlang:phash2(a, 0);
case_of(12) ->
    F = fun ?MODULE:id/1,
    [erlang:fun_info(F, K) || K <- [type, module, name, arity, env, pid, index, uniq, new_index, new_uniq, refc]];
case_of(13) ->
    X = id(17),
    F = fun(A, B) -> {A, B, X} end,
    [erlang:fun_info(F, K) || K <- [type, module, arity, env]];
case_of(14) -> erlang:fun_info(fun ?MODULE:id/1, bad);
case_of(15) -> erlang:fun_info_mfa(fun ?MODULE:id/1);
case_of(16) -> {erlang:fun_to_list(fun ?MODULE:id/1), erlang:fun_to_list(erlang:make_fun('A b', 'X', 3))};
case_of(17) -> try_each(fun({M, F, A}) -> erlang:make_fun(M, F, A) end, [{a, b, 255}, {a, b, 256}, {a, b, -1}, {a, "b", 1}]);
case_of(18) -> [erlang:is_builtin(erlang, F, A) || {F, A} <- [{abs, 1}, {apply, 3}, {apply, 2}, {halt, 0}, {nope, 1}]];
case_of(19) -> [erlang:function_exported(M, F, A) || {M, F, A} <- [{?MODULE, id, 1}, {?MODULE, id, 2}, {erlang, abs, 1}, {nope, x, 1}]];
case_of(20) -> try_each(fun erlang:list_to_pid/1, ["<0.1.0", "<0.1>", "<0.1.2.3>", "<0.99999999999.0>", abc, "<77777777.1.0>"]);
case_of(21) -> erlang:list_to_pid(erlang:pid_to_list(self())) =:= self();
case_of(22) -> R = make_ref(), erlang:list_to_ref(erlang:ref_to_list(R)) =:= R;
case_of(23) -> try_each(fun erlang:list_to_ref/1, ["#Ref<0.1", "#Ref<>", "Ref<0.1.2.3>", abc]);
case_of(24) -> {erlang:list_to_port("#Port<0.17>"), try_each(fun erlang:list_to_port/1, ["#Port<0>", abc])};
case_of(25) -> erlang:posixtime_to_universaltime(1700000000);
case_of(26) -> [erlang:universaltime_to_posixtime(T) || T <- [{{1970, 1, 1}, {0, 0, 0}}, {{2024, 2, 29}, {12, 30, 1}}, {{1600, 1, 1}, {0, 0, 0}}]];
case_of(27) -> try_each(fun erlang:universaltime_to_posixtime/1, [{{2023, 2, 29}, {0, 0, 0}}, {{1599, 1, 1}, {0, 0, 0}}, {{2023, 1, 1}, {24, 0, 0}}, x]);
case_of(28) -> erlang:decode_packet(http, <<"GET /a?b HTTP/1.1\r\nrest">>, []);
case_of(29) -> erlang:decode_packet(httph_bin, <<"content-tYpe: text\r\nX: y\r\n\r\n">>, []);
case_of(30) -> [erlang:decode_packet(T, <<0, 3, 1, 2, 3, 4>>, []) || T <- [0, 1, 2, 4, raw, sunrm, fcgi, tpkt, ssl_tls, cdr, asn1]];
case_of(31) -> erlang:decode_packet(line, <<"one\ntwo\n">>, [{line_length, 2}]);
case_of(32) -> erlang:decode_packet(nope, <<>>, []);
case_of(33) -> erlang:decode_packet(http, <<"HTTP/1.0 404 Not Found\n">>, []);
case_of(34) -> erlang:decode_packet(http_bin, <<"POST https://h:81/p HTTP/1.0\r\n">>, []);
case_of(35) -> persistent_term:put(?MODULE, {v, [1]}), {persistent_term:get(?MODULE), persistent_term:erase(?MODULE), persistent_term:erase(?MODULE)};
case_of(36) -> persistent_term:get(no_such_key);
case_of(37) -> persistent_term:get(no_such_key, default);
case_of(38) -> true = os:putenv("BEAMR_CASE", "x"), A = os:getenv("BEAMR_CASE"), true = os:unsetenv("BEAMR_CASE"), {A, os:getenv("BEAMR_CASE")};
case_of(39) -> try_each(fun({K, V}) -> os:putenv(K, V) end, [{"", "x"}, {"a=b", "x"}, {"a", [0]}, {a, "x"}]);
case_of(40) -> [erts_debug:flat_size(T) || T <- [a, [1], {1, 2}, #{}, #{a => 1}, 1.5, <<1>>, <<0:8000>>, 1 bsl 70, {[], "ab"}, self()]];
case_of(41) -> X = id({1, 2}), {erts_debug:same(X, X), erts_debug:same(X, {1, 2}), erts_debug:size_shared([X, X])};
case_of(42) -> [erts_internal:cmp_term(A, B) || {A, B} <- [{1, 1}, {a, b}, {"b", "a"}]];
case_of(43) -> erlang:error(reason, [a, b], [{error_info, #{cause => c}}]);
case_of(44) -> try erlang:error(reason, none, [{error_info, not_a_map}]) catch _:R:S -> {R, frame(S)} end;
case_of(45) -> erlang:system_info(bad_item);
case_of(46) -> [erlang:system_info(I) || I <- [wordsize, {wordsize, external}, otp_release, machine, endian, threads, smp_support, heap_type, compat_rel, context_reductions, min_heap_size, fullsweep_after, max_heap_size, debug_compiled]];
case_of(47) -> erlang:system_flag(bad_flag, 1);
case_of(48) -> A = erlang:system_flag(fullsweep_after, 5), B = erlang:system_flag(fullsweep_after, A), {A, B};
case_of(49) -> erlang:statistics(bad_item);
case_of(50) -> {erlang:nodes(), erlang:nodes(this), erlang:nodes([this], #{node_type => true})};
case_of(51) -> try_each(fun({N, B}) -> erlang:monitor_node(N, B) end, [{nonode@nohost, true}, {a@b, true}, {x, y}, {1, true}]);
case_of(52) -> erlang:trace_info(self(), flags);
case_of(53) -> erlang:seq_trace_info(send);
case_of(54) -> erlang:halt(id(bad), []);
case_of(55) -> erlang:halt(0, [bad]);
case_of(56) -> ?MODULE:module_info(functions);
case_of(57) -> erlang:get_module_info(no_such_module);
case_of(58) -> {erlang:module_loaded(?MODULE), erlang:module_loaded(no_such_module), erlang:check_old_code(?MODULE)};
case_of(59) -> C = erts_internal:counters_new(3), erts_internal:counters_add(C, 2, 5), erts_internal:counters_add(C, 2, -7), {erts_internal:counters_get(C, 2), erts_internal:counters_get(C, 1)};
case_of(60) -> C = erts_internal:counters_new(2), erts_internal:counters_put(C, 1, 9), erts_internal:counters_add(C, 1, -2), {erts_internal:counters_get(C, 1), maps:get(size, erts_internal:counters_info(C))};
case_of(61) -> A = erts_internal:atomics_new(1, 1), ok = atomics:add(A, 1, (1 bsl 64) - 1), atomics:get(A, 1);
case_of(62) -> erts_internal:atomics_new(1 bsl 64, 0);
case_of(63) -> erlang:md5_final(erlang:md5_update(erlang:md5_init(), "abc"));
case_of(64) -> erlang:md5_update(<<"abc">>, "abc");
case_of(65) -> #{a => 1}#{id(b) := 2};
case_of(66) -> maps:take(a, #{a => 1, b => 2});
case_of(67) -> <<(id(a)):8>>;
case_of(68) -> process_info(self(), current_function);
case_of(69) -> receive after id(bad) -> ok end;
case_of(70) -> erlang:raise(error, id(r), [{m, f, 1, []} || _ <- [1, 2]]);
case_of(71) -> [erts_internal:term_type(T) || T <- [a, 1, 1.5, 1 bsl 70, [], [1], {1}, #{}, self(), fun ?MODULE:id/1]];
case_of(72) -> erlang:localtime_to_universaltime({{2022, 13, 1}, {0, 0, 0}}, undefined);
case_of(73) -> erlang:system_info({bad, item});
case_of(74) -> L = many(100000, []), try id(L ++ [z]) ++ x of R -> {length(L), hd(R), many_last(R)} catch error:badarg -> bad end;
case_of(75) -> L = many(100000, end_of), try L ++ [x] catch error:badarg:S -> [{erlang, '++', [A, B], _} | _] = S, {A =:= L, B} end;
case_of(76) -> {ac, R} = binary:compile_pattern([<<1>>, <<2>>]), try binary:match(<<1>>, {bm, R}) catch error:E -> E end;
case_of(77) -> {bm, R} = binary:compile_pattern(<<1>>), try binary:matches(<<1>>, {ac, R}) catch error:E -> E end;
case_of(_) -> erlang:error(no_more).

many(0, L) -> L;
many(N, L) -> many(N - 1, [N | L]).

many_last([_ | T]) -> many_last(T);
many_last(T) -> T.
