%% Exceptions of every kind; tests compare what it gives with what OTP 25 gives
%% (erlang:display/1 of the exit reason of trace_cases:go(N) for each N, one a line).
-module(trace_cases).
-export([go/1, run/1, plain/1, count/0, tail/1, id/1, nested/1, abs_of/1]).

%% The result is the exit reason, so that nothing else is on the stack.
go(N) -> exit(run(N)).

count() -> 41.

run(N) ->
    try {ok, c(N)}
    catch
        C:R:S -> {C, R, S}
    end.

id(X) -> X.

plain(a) -> 1;
plain(b) -> 2.

c(1) -> X = plain(c), {X};
c(2) -> {ok, X} = id(c), X;
c(3) -> erlang:error(foo);
c(4) -> erlang:error(foo, [a, b]);
c(5) -> erlang:error(foo, [a], [{error_info, #{cause => x}}]);
c(6) -> abs_of(id(a));
c(7) -> apply(id(erlang), abs, [a]);
c(8) -> {nomodule:f(1, 2)};
c(9) -> catch erlang:error(x);
c(10) -> (id(7))(1);
c(11) -> F = fun(X) -> X end, (id(F))(1, 2);
c(12) -> case id(3) of 4 -> 5 end;
c(13) -> X = id(1), if X > 2 -> 1 end;
c(14) -> try id(1) of 2 -> 3 catch error:_ -> 4 end;
c(15) -> id(a) + id(1);
c(16) -> {element(5, id({a}))};
c(17) -> {hd(id([]))};
c(18) -> try erlang:error(inner) catch error:R:S -> erlang:raise(throw, R, S) end;
c(19) -> try throw(ball) after id(1) end;
c(20) -> F = fun(ok) -> yes end, {F(id(no))};
c(21) -> {deep(20)};
c(22) -> tail(3);
c(23) -> M = id(#{}), M#{a := 1};
c(24) -> M = id([]), M#{a => 1};
c(25) -> try erlang:error(one) catch error:one -> erlang:error(two) end;
c(26) -> {trace_cases:nothing()};
c(27) -> exit(bye);
c(28) -> catch throw(thrown);
c(29) -> catch exit(gone);
c(30) -> {nested(5)};
c(31) -> X = id(a), {1 bsl X};
c(32) -> {recurse(12)};
c(33) -> [plain(E) || E <- id([a, b, c])];
c(34) -> M = id(trace_cases), F = id(plain), {M:F(z)};
c(35) -> F = fun trace_cases:plain/1, {F(y)};
c(36) -> F = fun trace_cases:nothing/1, {F(y)};
c(37) -> {apply(id(trace_cases), plain, id([a | b]))};
c(38) -> {apply(id(trace_cases), id(9), [])};
c(39) -> try id(1), erlang:error({really, bad}) catch throw:_ -> no end;
c(40) -> erlang:raise(error, given, [{a, b, 1, []}]);
c(41) -> {map_get(k, id(#{}))}.

abs_of(X) -> {abs(X)}.

deep(0) -> plain(id(zero));
deep(N) -> {deep1(N - 1)}.
deep1(0) -> plain(id(one));
deep1(N) -> [deep(N - 1)].

tail(0) -> plain(id(tail));
tail(N) -> tail2(N - 1).
tail2(0) -> plain(id(tail2));
tail2(N) -> tail(N - 1).

nested(0) -> throw(bottom);
nested(N) ->
    try nested(N - 1)
    catch error:_ -> never
    end.

recurse(0) -> plain(id(recurse));
recurse(N) -> 1 + recurse(N - 1).
