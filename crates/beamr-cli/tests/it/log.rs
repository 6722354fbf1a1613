//! Reports: texts are those of `erl -noshell`, apart from times, pids and frames below the program.

use crate::run;

/// Without times, pids and figures of heaps.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        if let Some((head, _)) = line.split_once(" REPORT==== ") {
            line = format!("{head} REPORT");
        }
        for key in ["heap_size: ", "stack_size: ", "reductions: "] {
            if let Some((head, _)) = line.split_once(key) {
                line = format!("{head}{key}N");
            }
        }
        while let Some((head, tail)) = line.split_once("<0.") {
            let rest = tail.split_once('>').map_or("", |t| t.1);
            line = format!("{head}PID{rest}");
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

fn reports(target: &str) -> String {
    let r = run(&[target]);
    assert_eq!((r.status, r.err.as_str()), (0, ""), "{}", r.out);
    plain(&r.out)
}

#[test]
fn crashes_of_processes() {
    let text = reports("e2e_log:crashes");
    let flat = text.replace([' ', '\n'], "");
    for part in [
        "=ERRORREPORTErrorinprocessPIDwithexitvalue:{oops,[{e2e_log,'-crashes/0-fun-0-',0,[{file,\"",
        "=ERRORREPORTErrorinprocessPIDwithexitvalue:{{nocatch,ball},[{e2e_log,'-crashes/0-fun-1-',0,",
    ] {
        assert!(flat.contains(part), "{part}\nis missing in\n{flat}");
    }
    for part in [
        "=CRASH REPORT\n  crasher:\n    initial call: e2e_log:'-crashes/0-fun-3-'/0\n    pid: PID\n    registered_name: []\n    \
         exception error: in_proc_lib\n      in function  e2e_log:'-crashes/0-fun-3-'/0 (",
        "    message_queue_len: 0\n    messages: []\n    links: []\n    dictionary: []\n    trap_exit: false\n    status: running\n    \
         heap_size: N\n    stack_size: N\n    reductions: N\n  neighbours:\n\n",
    ] {
        assert!(text.contains(part), "{part}\nis missing in\n{text}");
    }
    assert!(!text.contains("quiet"));
}

#[test]
fn events_of_the_logger() {
    assert_eq!(
        reports("e2e_log:events"),
        "=ERROR REPORT\nan error x\n=NOTICE REPORT\na notice\n=WARNING REPORT\n    a: 1\n=ERROR REPORT\nmacro text\n\
         =ERROR REPORT\nold style\n\n=INFO REPORT\nold info\n\n=ERROR REPORT\n    k: v\n    x: y\n=DEBUG REPORT\nnow debug\n"
    );
}

#[test]
fn servers_and_supervisors() {
    let text = reports("e2e_log:servers");
    for part in [
        "=ERROR REPORT\n** Generic server e2e_server terminating \n** Last message in was {'$gen_cast',crash}\n** When Server state == state\n\
         ** Reason for termination ==\n** {crashed,",
        "=CRASH REPORT\n  crasher:\n    initial call: e2e_log:init/1\n",
        "=SUPERVISOR REPORT\n    supervisor: {PID,e2e_log}\n    errorContext: child_terminated\n    reason: killed\n    offender: [{pid,PID},\n",
        "=SUPERVISOR REPORT\n    supervisor: {PID,e2e_log}\n    errorContext: shutdown\n    reason: reached_max_restart_intensity\n",
    ] {
        assert!(text.contains(part), "{part}\nis missing in\n{text}");
    }
}

#[test]
fn applications_run_and_stop_in_order() {
    let r = run(&["e2e_log:applications"]);
    assert_eq!((r.status, r.err.as_str()), (0, ""), "{}", r.out);
    let lines: Vec<&str> = r.out.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "{ok,[e2e_log]}",
            "[e2e_log,kernel,stdlib]",
            "application stopped"
        ],
        "{}",
        r.out
    );
}

#[test]
fn the_last_crash_is_printed() {
    let text = reports("e2e_log:quick");
    assert!(text.contains("{last_moment,["), "{text}");
}
