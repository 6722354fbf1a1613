-module(reloaded).
-export([version/0, f/0]).
version() -> 2.
f() -> fun() -> two end.
