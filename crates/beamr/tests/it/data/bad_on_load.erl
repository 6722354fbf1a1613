-module(bad_on_load).
-on_load(init/0).
-export([value/0]).
init() -> nope.
value() -> 42.
