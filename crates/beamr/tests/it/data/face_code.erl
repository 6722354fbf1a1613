%% Two versions of a module, for replacing code: compiled with and without -Dv2.
-module(face_code).
-export([version/0, stay/0, leave/0]).

-ifdef(v2).
version() -> 2.
-else.
version() -> 1.
-endif.

%% Stays in this version until it is told to stop.
stay() -> receive stop -> version(); _ -> stay() end.

%% Goes to the newest version with each message.
leave() -> receive stop -> version(); _ -> ?MODULE:leave() end.
