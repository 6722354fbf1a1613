//! Ports: every line of `e2e_ports` is as OTP prints it (`e2e_ports.expected.txt` is its output on OTP 25).

use crate::run;

#[test]
fn programs_files_and_descriptors_as_otp() {
    let r = run(&["-S", "2", "e2e_ports"]);
    assert_eq!(r.status, 0, "{}", r.err);
    // Reports of bad output are checked by their number.
    let reports = r.out.matches("Bad value on output port 'cat'").count();
    assert_eq!(reports, 4);
    let report = |l: &&str| l.starts_with("=ERROR REPORT") || l.starts_with("Bad value");
    let lines = r.out.lines().filter(|l| !l.is_empty() && !report(l));
    let expected = include_str!("../erl/e2e_ports.expected.txt").lines();
    for (got, wanted) in lines.clone().zip(expected.clone()) {
        assert_eq!(got, wanted);
    }
    assert_eq!(lines.count(), expected.count());
}
