//! Standard input, output and error. Expected values are what `erl -noshell` prints, but for the encoding at the start.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::{Ran, beams, otp_root, run, run_with};

#[test]
fn input_in_turn_and_its_end() {
    let r = run_with(
        &["e2e_io:input"],
        "one\ntwo \u{e5}\nthree \u{2264}\nabcdef\n{a, [1,2],\n \"x\"}. foo bar.\n 12 abc\n x 99\nfoo(X) , \"s\".\nrest\nlast".as_bytes(),
    );
    assert_eq!(
        (r.status, r.out.as_str(), r.err.as_str()),
        (
            0,
            "p> [[111,110,101,10],[116,119,111,32,229,10]]\n\
             q> x> [<<116,104,114,101,101,32,226,137,164,10>>,<<97,98,99>>,<<100,101,102,10>>]\n\
             [{ok,{a,[1,2],[120]}},{error,{1,erl_parse,[[115,121,110,116,97,120,32,101,114,114,111,114,32,98,101,102,111,114,101,58,32],[98,97,114]]}},[32,49,50,32,97,98,99,10]]\n\
             [{error,{fread,integer}},{error,{fread,integer}},[114,101,115,116,10]]\n\
             [{error,{1,erl_parse,[[115,121,110,116,97,120,32,101,114,114,111,114,32,98,101,102,111,114,101,58,32],[]]},1},eof,eof]\n\
             [eof,eof,eof,eof,eof]\n",
            ""
        )
    );
}

#[test]
fn encodings() {
    let r = run_with(
        &["e2e_io:latin1"],
        b"raw \xff\nlatin \xe5\nuni \xe2\x89\xa4\n\xe2\x89\xa4\n\xff\nend\n",
    );
    assert_eq!(r.status, 0, "{}", r.err);
    let mut expected =
        b"raw \xff\nlatin \xe5\n\xe5\\x{2264}\n[117,110,105,32,8804,10] uni ".to_vec();
    expected.extend("\u{2264}\n".as_bytes());
    expected.extend(
        b"[{error,{no_translation,unicode,latin1}},{error,collect_line},[101,110,100,10]]\n",
    );
    assert_eq!(
        String::from_utf8_lossy(&r.bytes),
        String::from_utf8_lossy(&expected)
    );
}

#[test]
fn old_requests_and_bad_functions() {
    let r = run_with(&["e2e_io:old"], b"line\nab");
    assert_eq!((r.status, r.out.as_str()), (0, "> \"line\\n\"\n> \"ab\"\n"));
    let r = run_with(&["e2e_io:until"], b"line\nnext\n");
    assert_eq!(
        (r.status, r.out.as_str(), r.err.as_str()),
        (0, "[{error,no_such_function},\"next\\n\"]\n", "")
    );
}

#[test]
fn others_write_while_one_waits_for_input() {
    let mut child = start("e2e_io:meanwhile");
    let mut out = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    assert_eq!(line, "prompt go on\n");
    use std::io::Write;
    let mut input = child.stdin.take().expect("its input");
    input.write_all(b"text\n").expect("written");
    line.clear();
    out.read_to_string(&mut line).expect("the rest");
    assert_eq!(line, "got text\n");
    assert!(child.wait().expect("its end").success());
}

#[test]
fn long_lines() {
    let mut line = vec![b'y'; 1_000_000];
    line.push(b'\n');
    let r = run_with(&["e2e_io:big"], &line);
    assert_eq!(r.status, 0, "{}", r.err);
    let rest = r.out.strip_prefix("1000001 eof\n").expect("its length");
    assert_eq!(rest.len(), 300_001);
}

#[test]
fn errors_of_io() {
    let r = run(&["e2e_io:errors"]);
    assert_eq!((r.status, r.err.as_str()), (0, ""));
    let bad = "{error,badarg}";
    let expected = format!(
        "a b\nold\n[{bad},\n {bad},\n {bad},\n {bad},\n {bad},\n {bad},\n true,error,error,ok,ok,\n {{error,enotsup}},\n {{error,enotsup}},\n \
         {{error,enotsup}},\n {{error,{{request,{{get_line,unicode,[]}}}}}},\n true]\n"
    );
    let flat = |t: &str| t.replace(['\n', ' '], "");
    assert_eq!(flat(&r.out), flat(&expected));
}

#[test]
fn options() {
    let r = run(&["e2e_io:options"]);
    assert_eq!(
        r.out.replace(['\n', ' '], ""),
        "[[{binary,false},{encoding,unicode}],ok,[{binary,true},{encoding,latin1}],ok,[{binary,false},{encoding,unicode}]]"
    );
}

fn start(target: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_beamr"))
        .args(["run", "-pa"])
        .arg(beams())
        .arg(target)
        .env("BEAMR_OTP_ROOT", otp_root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program")
}

/// Reads a line, lets `then` do something, and waits for the end. The line is not in the result.
fn after_a_line(target: &str, then: impl FnOnce(&mut Child)) -> Ran {
    let mut child = start(target);
    let mut line = Vec::new();
    // By bytes, so that nothing more is taken.
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        let out = child.stdout.as_mut().expect("its output");
        out.read_exact(&mut byte).expect("a line");
        line.push(byte[0]);
    }
    then(&mut child);
    child.wait_with_output().expect("its end").into()
}

#[test]
fn a_closed_output_ends_the_device() {
    let r = after_a_line("e2e_io:endless", |c| drop(c.stdout.take()));
    assert_eq!(r.status, 1);
    assert!(r.err.contains("{terminated,"), "{}", r.err);
}

fn signal(child: &Child, name: &str) {
    let done = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status();
    assert!(done.expect("kill").success());
}

#[test]
fn sigterm_ends_in_order() {
    let r = after_a_line("e2e_io:wait", |c| signal(c, "TERM"));
    assert_eq!((r.status, r.err.as_str()), (0, ""));
    let (head, text) = r.out.split_once(" ===\n").expect("a report");
    assert!(head.starts_with("=INFO REPORT==== "), "{}", r.out);
    assert_eq!(text.trim_end(), "SIGTERM received - shutting down");
}

#[cfg(unix)]
#[test]
fn sigint_ends_at_once() {
    use std::os::unix::process::ExitStatusExt;
    let mut child = start("e2e_io:wait");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("its output"));
    out.read_line(&mut line).expect("a line");
    signal(&child, "INT");
    assert_eq!(child.wait().expect("its end").signal(), Some(2));
}

#[test]
fn init_stop_has_a_status() {
    let r = run(&["e2e_io:stop"]);
    assert_eq!((r.status, r.out.as_str()), (5, "stopping\n"), "{}", r.err);
}
