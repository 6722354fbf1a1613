-module(with_on_load).
-on_load(init/0).
-export([value/0]).
init() -> put(with_on_load, yes), erlang:yield(), ok.
value() -> 42.
