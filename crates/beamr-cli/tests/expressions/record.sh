#!/bin/sh
# Records what the `erl` on PATH gives for the expressions, as expected.NN.txt beside this file.
set -e
cd "$(dirname "$0")"
out=$(mktemp -d)
erlc +deterministic -o "$out" expressions.erl
n=$(erl -noshell -eval 'io:format("~s", [erlang:system_info(otp_release)]), halt().')
erl -noinput -kernel logger_level none -pa "$out" -eval 'expressions:main(["natives.txt", "generated.txt"]), halt().' > "expected.$n.txt"
rm -r "$out"
