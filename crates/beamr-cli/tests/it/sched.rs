//! Schedulers, dirty threads and memory as programs see them; the text is that of OTP 25.

use crate::run;

#[test]
fn as_programs_see_them() {
    let r = run(&["-S", "2", "e2e_sched"]);
    let expected = "\
collected {20000100000,1000,
           [{1,1,100},{2,2,100},{3,3,100},{4,4,100},{5,5,100},{6,0,0}]}
collected_by_others {200000,[{noise,1},{noise,2}],false}
killed_while_collected {killed,false}
hibernates_large {200000,wake}
calls {[{e2e_sched,a,0},send,'receive',timeout,{e2e_sched,b,1}],false}
blocks {blocked,1,1,enabled,normal,enabled}
online {100,2,badarg}
off_heap [{on_heap,true,100},{off_heap,false,100}]
dirty [dirty_cpu,dirty_io,normal,dirty_cpu,dirty_io,
       {noproc,dirty,[normal,error,noproc]},
       {badarg,dirty,[normal,error,{not_an,atom}]},
       {noproc,dirty,[dirty_cpu,error,noproc]},
       {badarg,dirty,[dirty_cpu,error,{not_an,atom}]}]
timers_of_the_dead normal
yields true
binaries {true,true}
clocks {true,true,true,true}
largest killed
";
    assert_eq!((r.status, r.out.as_str()), (0, expected), "{}", r.err);
}
