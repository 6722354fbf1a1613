//! What `beamr run` takes: sources, escripts, files, folders.

use std::path::{Path, PathBuf};

use crate::{Ran, beamr, beams, scratch};

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

fn at(dir: &Path, name: &str) -> String {
    dir.join(name).to_string_lossy().into_owned()
}

fn run(dir: &Path, target: &str, args: &[&str]) -> Ran {
    let target = at(dir, target);
    let mut all = vec!["run", &target];
    all.extend_from_slice(args);
    beamr(&all)
}

const MAIN: &str = "-module(prog).
-behaviour(shape).
-compile({parse_transform, twice}).
-include(\"defs.hrl\").
-include_lib(\"kernel/include/file.hrl\").
-export([main/1, go/0, area/1]).
main(Args) -> io:format(\"~p ~p ~p ~p~n\", [Args, beside:double(?NUMBER), area(2), #file_info{size = 1}#file_info.size]).
go() -> io:format(\"went~n\").
area(X) -> X * marker.
";
const TWICE: &str = "-module(twice).
-export([parse_transform/2]).
parse_transform(Forms, _) -> [walk(F) || F <- Forms].
walk({atom, L, marker}) -> {integer, L, 21};
walk(T) when is_tuple(T) -> list_to_tuple(walk(tuple_to_list(T)));
walk([H | T]) -> [walk(H) | walk(T)];
walk(T) -> T.
";

#[test]
fn sources_with_what_lies_beside_them() {
    let dir = scratch("sources");
    write(
        &dir,
        &[
            ("prog.erl", MAIN),
            ("twice.erl", TWICE),
            (
                "shape.erl",
                "-module(shape).\n-callback area(term()) -> term().\n",
            ),
            (
                "beside.erl",
                "-module(beside).\n-export([double/1]).\ndouble(X) -> deeper:id(X) * 2.\n",
            ),
            (
                "deeper.erl",
                "-module(deeper).\n-export([id/1]).\nid(X) -> X.\n",
            ),
            ("unrelated.erl", "this is no Erlang"),
            // A module of OTP is not replaced.
            ("lists.erl", "this is no Erlang either, lists mentions it"),
            ("defs.hrl", "-define(NUMBER, 4).\n"),
        ],
    );
    let r = run(&dir, "prog.erl", &["a", "b"]);
    assert_eq!(
        (r.status, r.out.as_str(), r.err.as_str()),
        (0, "[\"a\",\"b\"] 8 42 1\n", "")
    );
    let r = run(&dir, "prog.erl:go", &[]);
    assert_eq!((r.status, r.out.as_str()), (0, "went\n"), "{}", r.err);
    assert!(!dir.join("prog.beam").exists());
}

#[test]
fn include_folders() {
    let dir = scratch("include");
    write(
        &dir,
        &[
            (
                "src/inc.erl",
                "-module(inc).\n-include(\"far.hrl\").\n-export([main/0]).\nmain() -> io:format(\"~p~n\", [?FAR]).\n",
            ),
            ("headers/far.hrl", "-define(FAR, far).\n"),
        ],
    );
    let (source, headers) = (at(&dir, "src/inc.erl"), at(&dir, "headers"));
    let r = beamr(&["run", "-I", &headers, &source]);
    assert_eq!((r.status, r.out.as_str()), (0, "far\n"), "{}", r.err);
    let r = beamr(&["run", &source]);
    assert_eq!(r.status, 1);
    assert!(
        r.err
            .contains("inc.erl:2:10: can't find include file \"far.hrl\""),
        "{}",
        r.err
    );
}

#[test]
fn errors_and_warnings_of_the_compiler() {
    let dir = scratch("diagnostics");
    write(
        &dir,
        &[
            (
                "warns.erl",
                "-module(warns).\n-export([main/0]).\nmain() ->\n    X = 1,\n    io:format(\"ran~n\").\n",
            ),
            (
                "fails.erl",
                "-module(fails).\n-export([main/0]).\nmain() ->\n    no_such(1).\n",
            ),
        ],
    );
    let r = run(&dir, "warns.erl", &[]);
    assert_eq!((r.status, r.out.as_str()), (0, "ran\n"));
    assert!(
        r.err
            .contains("warns.erl:4:5: Warning: variable 'X' is unused"),
        "{}",
        r.err
    );
    let r = run(&dir, "fails.erl", &[]);
    assert_eq!((r.status, r.out.as_str()), (1, ""));
    assert!(
        r.err
            .contains("fails.erl:4:5: function no_such/1 undefined"),
        "{}",
        r.err
    );
}

const SCRIPT: &str = "#!/usr/bin/env escript
%% A comment.
%%! -pa lib -some flag +K true
main([\"name\"]) -> io:format(\"~s ~p~n\", [filename:basename(escript:script_name()), init:get_argument(some)]);
main([\"halt\"]) -> io:put_chars(\"before\"), halt(3);
main([\"value\"]) -> 7;
main([\"exit\"]) -> exit(reason);
main([\"error\"]) -> hd(id(x));
main([\"bytes\"]) -> io:format(\"~ts~n\", [[229, 8804]]);
main(Args) -> io:format(\"~p~n\", [Args]).
id(X) -> X.
";

#[test]
fn escripts() {
    let dir = scratch("escripts");
    let compiled = SCRIPT.replace("main([\"name\"])", "-mode(compile).\nmain([\"name\"])");
    write(
        &dir,
        &[
            ("interpreted", SCRIPT),
            ("compiled", &compiled),
            ("broken", "#!/usr/bin/env escript\nmain(_) -> X = , 1.\n"),
        ],
    );
    for script in ["interpreted", "compiled"] {
        let r = run(&dir, script, &["a", "-b", "+c"]);
        assert_eq!(
            (r.status, r.out.as_str(), r.err.as_str()),
            (0, "[\"a\",\"-b\",\"+c\"]\n", ""),
            "{script}"
        );
        let r = run(&dir, script, &["name"]);
        assert_eq!(r.out, format!("{script} {{ok,[[\"flag\"]]}}\n"));
        let r = run(&dir, script, &["halt"]);
        assert_eq!((r.status, r.out.as_str()), (3, "before"));
        assert_eq!(run(&dir, script, &["value"]).status, 0);
        let r = run(&dir, script, &["exit"]);
        assert_eq!(r.status, 127);
        assert!(
            r.err.starts_with("escript: exception exit: reason\n"),
            "{}",
            r.err
        );
        let r = run(&dir, script, &["error"]);
        assert_eq!(r.status, 127);
        let start = "escript: exception error: bad argument\n  in function  hd/1\n     called as hd(x)\n     \
                     *** argument 1: not a nonempty list\n";
        assert!(r.err.starts_with(start), "{}", r.err);
        assert_eq!(run(&dir, script, &["bytes"]).bytes, b"\xe5\\x{2264}\n");
    }
    let r = run(&dir, "broken", &[]);
    assert_eq!(
        (r.status, r.err.replace(&at(&dir, ""), "").as_str()),
        (
            127,
            "broken:2:16: syntax error before: ','\nescript: There were compilation errors.\n"
        )
    );
}

/// `escript:create/2` makes the bodies.
#[test]
fn escripts_with_beams_and_archives() {
    let dir = scratch("bodies");
    write(
        &dir,
        &[(
            "make.erl",
            "-module(make).\n-export([main/1]).\n\
             main([Dir, Beams]) ->\n\
             {ok, Beam} = file:read_file(filename:join(Beams, \"e2e_args.beam\")),\n\
             {ok, Hello} = file:read_file(filename:join(Beams, \"e2e_hello.beam\")),\n\
             ok = escript:create(filename:join(Dir, \"beam\"), [shebang, {beam, Beam}]),\n\
             ok = escript:create(filename:join(Dir, \"archive\"), [shebang, {emu_args, \"-escript main e2e_args\"},\n\
             {archive, [{\"e2e_args.beam\", Beam}, {\"app/ebin/e2e_hello.beam\", Hello}], []}]).\n",
        )],
    );
    let beams = beams().to_string_lossy().into_owned();
    let r = run(&dir, "make.erl", &[&at(&dir, ""), &beams]);
    assert_eq!((r.status, r.err.as_str()), (0, ""), "{}", r.out);
    for body in ["beam", "archive"] {
        let r = run(&dir, body, &["one", "two"]);
        assert_eq!(
            (r.status, r.out.as_str(), r.err.as_str()),
            (0, "[\"one\",\"two\"]\n", ""),
            "{body}"
        );
    }
}

#[test]
fn folders() {
    let dir = scratch("folders");
    let copy = |name: &str, to: &str| {
        std::fs::create_dir_all(dir.join(to)).expect("a folder");
        let to: PathBuf = dir.join(to).join(name);
        std::fs::copy(beams().join(name), to).expect("a copy");
    };
    copy("e2e_args.beam", "tool/ebin");
    copy("e2e_log.beam", "service/ebin");
    write(
        &dir,
        &[
            ("tool/ebin/e2e_args.app", "{application, e2e_args, []}."),
            (
                "service/ebin/e2e_log.app",
                "{application, e2e_log, [{vsn, \"1\"}, {modules, [e2e_log]}, {registered, []}, {applications, [kernel, stdlib]}, \
                 {mod, {e2e_log, []}}]}.",
            ),
            (
                "broken/ebin/broken.app",
                "{application, broken, [{applications, [no_such_application]}]}.",
            ),
            ("empty/ebin/x", ""),
        ],
    );
    let r = run(&dir, "tool", &["x"]);
    assert_eq!((r.status, r.out.as_str()), (0, "[\"x\"]\n"), "{}", r.err);
    let r = run(&dir, "broken", &[]);
    assert_eq!(r.status, 1);
    assert!(
        r.err
            .starts_with("beamr: the application broken did not start: {error,"),
        "{}",
        r.err
    );
    let r = run(&dir, "empty", &[]);
    assert_eq!(r.status, 2);
    assert!(r.err.contains("no .app files"), "{}", r.err);
}
