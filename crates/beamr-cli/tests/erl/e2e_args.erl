-module(e2e_args).
-export([main/1, count/1]).

main(Args) -> io:format("~tp~n", [Args]).
count(Args) -> io:format("~p~n", [length(Args)]).
