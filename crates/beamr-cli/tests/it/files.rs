//! Files, and the servers of OTP that a bare start makes when they are looked for. Expected values are what `erl` prints.

use crate::{beams, run, scratch};

/// The output of a run that must go well.
fn out(args: &[&str]) -> String {
    let r = run(args);
    assert_eq!(r.status, 0, "{args:?}: {}{}", r.out, r.err);
    r.out
}

#[test]
fn whole_files() {
    let file = scratch("read").join("f");
    std::fs::write(&file, b"hello\n").unwrap();
    assert_eq!(
        out(&["e2e_files:read", &file.to_string_lossy()]),
        "6 <<177,148,106,201,36,146,210,52,124,98,53,180,210,97,17,132>>\n"
    );
    let big: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(&file, big).unwrap();
    let text = out(&["e2e_files:read", &file.to_string_lossy()]);
    assert!(text.starts_with("1200000 <<"), "{text}");
}

#[test]
fn errors_are_the_codes_of_posix() {
    let text = out(&["e2e_files:errors"]).replace(['\n', ' '], "");
    let enoent = "{error,enoent}";
    let first: Vec<&str> = [enoent; 7]
        .into_iter()
        .chain(["{error,eisdir}", "{error,eisdir}", "{error,einval}"])
        .chain([enoent; 2])
        .collect();
    let (a, b) = text.split_once("][").expect("two lists");
    assert_eq!(a, format!("[{}", first.join(",")));
    assert!(
        b.starts_with("{error,badarg},{error,badarg},")
            && b.ends_with(",{error,enoent},{error,badarg}]"),
        "{b}"
    );
    let r = run(&["e2e_files:missing"]);
    assert_eq!(r.status, 1);
    assert!(r.err.contains("{{badmatch,{error,enoent}},"), "{}", r.err);
}

#[test]
fn io_servers_of_files() {
    let dir = scratch("write");
    assert_eq!(
        out(&["e2e_files:write", &dir.to_string_lossy()]),
        "\"line 1\\n\" [229,8804,10] eof\n{ok,[\"line\",1]}\nabcd {error,{1,erl_parse,[\"syntax error before: \",[]]}}\n\
         {ok,[{a,1},[b]]}\n"
    );
    assert_eq!(
        std::fs::read(dir.join("written")).unwrap(),
        b"{a, 1}.\n[b].\n"
    );
}

#[test]
fn raw_files() {
    let dir = scratch("raw");
    assert_eq!(
        out(&["e2e_files:raw", &dir.to_string_lossy()]),
        "100 lines\n101\n"
    );
}

#[test]
fn directories_links_and_names() {
    let dir = scratch("tree");
    assert_eq!(
        out(&["e2e_files:tree", &dir.to_string_lossy()]),
        "[\"b\",\"h\"] [\"a/b/c\",\"a/b/l\"]\ntrue true\n{ok,[]}\n[[229,8804],<<\"raw\u{ff}\">>]\n"
    );
}

#[test]
fn lines_of_a_file() {
    let file = scratch("lines").join("f");
    std::fs::write(&file, "a line of some length\n".repeat(1000)).unwrap();
    assert_eq!(out(&["e2e_files:lines", &file.to_string_lossy()]), "1000\n");
}

#[test]
fn the_code_server_answers() {
    let text = out(&["e2e_files:code"]);
    assert!(
        text.starts_with(
            "\"lists.beam\" \"e2e_files.beam\" non_existing\n{module,queue} {error,nofile}\n\"priv\"\n\
             {module,e2e_files} {error,nofile}\n{'EXIT',{undef,[{no_such_module,f,[],[]},"
        ),
        "{text}"
    );
}

#[test]
fn servers_start_when_they_are_looked_for() {
    assert_eq!(out(&["e2e_files:servers"]), "ok\n");
    let dir = beams().to_string_lossy().into_owned();
    let r = crate::beamr(&["run", "-S", "4", "-pa", &dir, "e2e_files:servers"]);
    assert_eq!((r.status, r.out.as_str()), (0, "ok\n"), "{}", r.err);
}

#[test]
fn modules_are_replaced_and_purged() {
    let text = out(&["e2e_code:reload"]);
    assert!(
        text.starts_with("[1,2,3] [false,true,false]\n{'EXIT',{undef,[{e2e_made,f,[],[]},"),
        "{text}"
    );
}

#[test]
fn folders_join_the_path() {
    let dir = scratch("path");
    std::fs::copy(beams().join("e2e_code.beam"), dir.join("e2e_code.beam")).expect("a copy");
    let start = dir.to_string_lossy().into_owned();
    let r = crate::beamr(&[
        "run",
        "-pa",
        &start,
        "e2e_code:path",
        &beams().to_string_lossy(),
    ]);
    assert_eq!((r.status, r.err.as_str()), (0, ""));
    assert!(
        r.out
            .starts_with("{'EXIT',{undef,[{e2e_args,main,[[]],[]},"),
        "{}",
        r.out
    );
    assert!(r.out.ends_with(" true\n[\"found\"]\n"), "{}", r.out);
}

#[test]
fn news_of_nodes_may_be_asked_for() {
    let text = out(&["e2e_code:nodes"]);
    assert!(
        text.replace(['\n', ' '], "")
            .starts_with("[ok,ok,ok,0,1,{'EXIT',{badarg,[{erlang,process_flag,"),
        "{text}"
    );
}
