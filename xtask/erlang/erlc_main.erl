%% What the program `erlc` starts, for a VM that is told a module: the arguments are those of erlc.
-module(erlc_main).
-export([main/1]).

main(_) ->
    erl_compile:compile_cmdline().
