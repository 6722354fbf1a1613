-module(handler).
-vsn(7).
-export(['$handle_undefined_function'/2, known/0]).
known() -> helper(known).
helper(X) -> X.
'$handle_undefined_function'(F, Args) -> {F, Args}.
