-module(purged).
-export([version/0, value/0, loop/0, make/0]).
version() -> v1.
value() -> {v1, [1, 2, 3], "a literal", {nested, {tuple, 1.5}}}.
loop() -> receive tell -> version() end.
make() -> fun() -> version() end.
