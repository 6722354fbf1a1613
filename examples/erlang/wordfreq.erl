%% Counts words: one process per file reads and counts, the first merges and prints.
%%
%%   beamr run -pa DIR wordfreq FILE...
-module(wordfreq).
-export([main/1]).

main(Files) ->
    Self = self(),
    Workers = [spawn_monitor(fun() -> Self ! {counted, self(), count(F)} end) || F <- Files],
    {Total, Lines} = lists:foldl(fun collect/2, {#{}, 0}, Workers),
    Words = maps:fold(fun(_, N, Sum) -> N + Sum end, 0, Total),
    io:format("~b files, ~b lines, ~b words, ~b different~n", [length(Files), Lines, Words, map_size(Total)]),
    Top = lists:sublist(lists:sort(fun({A, N}, {B, M}) -> {-N, A} =< {-M, B} end, maps:to_list(Total)), 10),
    [io:format("~6b  ~ts~n", [N, W]) || {W, N} <- Top],
    ok.

collect({Pid, Ref}, {Total, Lines}) ->
    receive
        {counted, Pid, {Counts, L}} ->
            receive {'DOWN', Ref, process, Pid, normal} -> ok end,
            {maps:merge_with(fun(_, A, B) -> A + B end, Total, Counts), Lines + L};
        {'DOWN', Ref, process, Pid, Reason} ->
            io:format(standard_error, "a worker failed: ~p~n", [Reason]),
            halt(1)
    end.

count(File) ->
    {ok, Bin} = file:read_file(File),
    Lines = binary:split(Bin, <<"\n">>, [global]),
    {lists:foldl(fun words/2, #{}, Lines), length(Lines)}.

words(Line, Counts) ->
    lists:foldl(
      fun(W, C) -> maps:update_with(W, fun(N) -> N + 1 end, 1, C) end,
      Counts,
      string:lexemes(string:lowercase(Line), " \t\r.,;:()[]{}\"'`|*#/<>-")).
