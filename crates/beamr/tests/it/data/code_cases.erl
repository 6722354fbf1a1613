%% Loading, reloading and deleting code from inside; every function exits with what it found.
-module(code_cases).
-export([on_load/0, on_load_twice/0, ask/1, on_load_fails/0, handled/0, reload/2, info/0, exported/0, load_nothing/1]).

on_load() -> exit({with_on_load:value(), get(with_on_load)}).

%% Two processes want the module at once.
on_load_twice() ->
    Ps = [spawn(code_cases, ask, [self()]), spawn(code_cases, ask, [self()])],
    exit([receive {P, V} -> V end || P <- Ps]).

ask(To) -> To ! {self(), with_on_load:value()}.

on_load_fails() ->
    exit(catch bad_on_load:value()).

handled() -> exit({handler:some(1, x), handler:known()}).

reload(V1, V2) ->
    R1 = load(V1),
    F1 = reloaded:f(),
    X = reloaded:version(),
    R2 = load(V2),
    Old = erlang:check_old_code(reloaded),
    Y = {F1(), reloaded:version()},
    R3 = load(V1),
    Uses = erts_internal:check_process_code(reloaded),
    true = erts_internal:purge_module(reloaded, prepare),
    true = erts_internal:purge_module(reloaded, complete),
    Gone = (catch F1()),
    R4 = load(V1),
    Z = reloaded:version(),
    Not = (catch erlang:delete_module(reloaded)),
    true = erts_internal:purge_module(reloaded, prepare),
    true = erts_internal:purge_module(reloaded, complete),
    Del = erlang:delete_module(reloaded),
    exit({R1, X, R2, Old, Y, R3, Uses, element(1, Gone), R4, Z, element(1, Not), Del, erlang:module_loaded(reloaded),
          erlang:function_exported(reloaded, version, 0)}).

load(Bin) ->
    case erts_internal:prepare_loading(reloaded, Bin) of
        {error, _} = E -> E;
        Prepared -> erlang:finish_loading([Prepared])
    end.

load_nothing(Bin) ->
    exit({erts_internal:prepare_loading(other, Bin), erts_internal:prepare_loading(reloaded, <<"FOR1">>)}).

info() ->
    M = handler,
    handler:known(),
    exit({M:module_info(module), M:module_info(exports), M:module_info(attributes), M:module_info(md5),
          erlang:get_module_info(M, functions), (catch erlang:get_module_info(nothing, md5)) =/= ok}).

exported() ->
    exit([erlang:function_exported(M, F, A) || {M, F, A} <- [{erlang, abs, 1}, {code_cases, info, 0}, {code_cases, info, 1}, {nothing, f, 0}]]).
