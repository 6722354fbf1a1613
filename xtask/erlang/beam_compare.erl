%% Compares two folders of beams: chunks that are code byte for byte, literals after inflating, the rest as terms.
-module(beam_compare).
-export([main/1]).

%% Prints a line for each chunk that differs and ends with how many modules are equal.
main([A, B]) ->
    Names = lists:sort(filelib:wildcard("*.beam", A)),
    Extra = filelib:wildcard("*.beam", B) -- Names,
    [io:format("~ts: only in ~ts~n", [N, B]) || N <- Extra],
    Bad = [N || N <- Names, not same(N, filename:join(A, N), filename:join(B, N))],
    Good = length(Names) - length(Bad),
    io:format("equal: ~w of ~w~n", [Good, length(Names)]),
    halt(case Bad =:= [] andalso Extra =:= [] of true -> 0; false -> 1 end).

same(Name, A, B) ->
    case {chunks(A), chunks(B)} of
        {none, _} -> say(Name, "not in the first folder");
        {_, none} -> say(Name, "not in the second folder");
        {Cs, Ds} ->
            Ids = [Id || {Id, _} <- Cs],
            case [Id || {Id, _} <- Ds] of
                Ids ->
                    Differ = [Id || {{Id, C}, {_, D}} <- lists:zip(Cs, Ds), not equal(Id, C, D)],
                    Differ =:= [] orelse say(Name, io_lib:format("~p", [Differ]));
                Others ->
                    say(Name, io_lib:format("chunks ~p and ~p", [Ids, Others]))
            end
    end.

say(Name, What) ->
    io:format("~ts: ~ts~n", [Name, What]),
    false.

chunks(File) ->
    case file:read_file(File) of
        {ok, <<"FOR1", _:32, "BEAM", Rest/binary>>} -> split(Rest);
        _ -> none
    end.

split(<<Id:4/binary, Size:32, Data:Size/binary, Rest/binary>>) ->
    Padding = min((4 - Size rem 4) rem 4, byte_size(Rest)),
    <<_:Padding/binary, More/binary>> = Rest,
    [{binary_to_list(Id), Data} | split(More)];
split(_) ->
    [].

equal(_, C, C) -> true;
equal("LitT", C, D) -> inflated(C) =:= inflated(D);
equal(Id, C, D) ->
    case lists:member(Id, ["Attr", "CInf", "Dbgi", "Docs", "Meta", "ExCk"]) of
        true -> binary_to_term(C) =:= binary_to_term(D);
        false -> false
    end.

inflated(<<0:32, Data/binary>>) -> Data;
inflated(<<Size:32, Data/binary>>) ->
    Plain = zlib:uncompress(Data),
    Size = byte_size(Plain),
    Plain.
