-module(e2e_hello).
-export([main/0]).

main() ->
    io:put_chars("hello\n"),
    io:format("~p~n", [#{a => [1, 2.5, "text"]}]),
    io:format("~ts ~tc~n", [<<"årö"/utf8>>, 16#2264]).
