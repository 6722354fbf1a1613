%% Natives that OTP 29 has and OTP 25 has not; see native_cases.erl.
-module(native_cases_29).
-export([go/1, main/0]).

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

frame([{M, F, A, _} | _]) when is_list(A) -> {M, F, length(A)};
frame([{M, F, A, _} | _]) -> {M, F, A}.

r() -> records:create(test, a, [{x, 1}, {z, 3}], #{is_exported => true}).

case_of(1) -> r();
case_of(2) -> records:create(1, a, [], #{is_exported => true});
case_of(3) -> records:create(t, a, [], x);
case_of(4) -> records:create(t, a, [], #{});
case_of(5) -> records:create(t, a, [], #{is_exported => 1});
case_of(6) -> records:create(t, a, [{1, 2}], #{is_exported => true});
case_of(7) -> records:create(t, a, [x], #{is_exported => true});
case_of(8) -> records:create(t, a, [{x, 1} | y], #{is_exported => true});
case_of(9) -> records:create(t, a, [{x, 1}, {x, 2}], #{is_exported => true});
case_of(10) -> records:update(r(), test, a, #{x => 9});
case_of(11) -> records:update(r(), test, b, #{x => 9});
case_of(12) -> records:update(r(), other, a, #{x => 9});
case_of(13) -> records:update(r(), test, a, #{q => 9});
case_of(14) -> records:update(r(), test, a, x);
case_of(15) -> records:update(x, test, a, #{});
case_of(16) -> {records:get(x, r()), records:get(z, r())};
case_of(17) -> records:get(q, r());
case_of(18) -> records:get(x, y);
case_of(19) -> [records:get_module(r()), records:get_name(r()), records:get_field_names(records:create(t, a, [{z, 1}, {x, 2}], #{is_exported => true})), records:is_exported(r())];
case_of(20) -> records:get_module(x);
case_of(21) -> records:get_field_names(x);
case_of(22) -> records:get_definition(test, a);
case_of(23) -> [X < Y || X <- [{1}, r(), #{}], Y <- [{1}, r(), #{}]];
case_of(24) -> {is_tuple(r()), r() =:= r(), binary_to_term(term_to_binary(r())) =:= r()};
case_of(25) -> erts_internal:term_to_string({a, "b"}, undefined);
case_of(26) -> erts_internal:term_to_string({a, "b", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}, 10);
case_of(27) -> erts_internal:term_to_string(a, 0);
case_of(28) -> erlang:exit(self(), normal, [x]);
case_of(29) -> erlang:exit(self(), normal, [priority]);
case_of(30) -> {erlang:link(self(), [priority]), erl_debugger:supported(), code:get_debug_info(?MODULE)};
case_of(31) -> persistent_term:put_new(k29, v), persistent_term:put_new(k29, v), persistent_term:put_new(k29, w);
case_of(32) -> erts_debug:flat_size(r());
case_of(33) -> [erts_debug:flat_size(T) || T <- [a, [1], {1, 2}, #{}, #{a => 1}, 1.5, <<1>>, <<0:8000>>, 1 bsl 70, {[], "ab"}, self(), make_ref()]];
case_of(34) -> X = self(), [erts_debug:flat_size(T) || T <- [fun lists:map/2, fun() -> X end]];
case_of(35) -> [erlang:phash2(T) || T <- [0.0, -0.0, r()]];
case_of(36) -> {0.0 =:= -0.0, 0.0 == -0.0, #{0.0 => a} =:= #{-0.0 => a}};
case_of(37) -> M = #{a => 1, b => 2}, [try erts_internal:map_next(P, Map, K) catch error:R -> R end || {P, Map, K} <- [{[b, a], M, iterator}, {[b], M, []}, {[a, z], M, iterator}, {[], M, iterator}, {[], M, []}, {[a | q], M, iterator}, {[a], [], iterator}, {[a, a], M, iterator}, {[a], M, foo}]];
case_of(_) -> erlang:error(no_more).
