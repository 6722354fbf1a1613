-module(reloaded).
-export([version/0, f/0]).
version() -> 1.
f() -> fun() -> one end.
