%% Calls the functions of a mutant over and over, whatever they do. See stage.rs.
-module(hostile_driver).
-export([run/3]).

%% Calls each {Function, Arguments} of Calls, Rounds times; how many calls returned.
run(Module, Calls, Rounds) ->
    run(Module, Calls, Calls, Rounds, 0).

run(Module, [{F, Args} | Rest], All, Rounds, Returned) ->
    try apply(Module, F, Args) of
        _ -> run(Module, Rest, All, Rounds, Returned + 1)
    catch
        _:_ -> run(Module, Rest, All, Rounds, Returned)
    end;
run(_, [], _, 1, Returned) ->
    Returned;
run(Module, [], All, Rounds, Returned) ->
    run(Module, All, All, Rounds - 1, Returned).
