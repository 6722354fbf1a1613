//! Signals of the operating system. Only the program handles them, never the library.
//!
//! A handler writes the signal's number into a pipe; a thread reads it and tells the system, as OTP's emulator tells
//! `erl_signal_server`. SIGTERM is handled from the start and ends the program in order; a second one ends it at once. The program
//! asks for others with `os:set_signal/2`. SIGINT keeps its default: Ctrl-C ends the program at once.

use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use beamr::system::System;

/// Where handlers write.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Names as `os:set_signal/2` has them.
const NAMES: &[(&str, i32)] = &[
    ("sigterm", libc::SIGTERM),
    ("sighup", libc::SIGHUP),
    ("sigquit", libc::SIGQUIT),
    ("sigusr1", libc::SIGUSR1),
    ("sigusr2", libc::SIGUSR2),
    ("sigalrm", libc::SIGALRM),
    ("sigabrt", libc::SIGABRT),
    ("sigchld", libc::SIGCHLD),
    ("sigstop", libc::SIGSTOP),
    ("sigtstp", libc::SIGTSTP),
    ("sigcont", libc::SIGCONT),
    ("sigwinch", libc::SIGWINCH),
    ("sigint", libc::SIGINT),
];

extern "C" fn arrived(signal: libc::c_int) {
    let byte = signal as u8;
    // SAFETY: `write` is async-signal-safe, the buffer is one byte; errno is put back for whom the signal interrupts.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(PIPE.load(Ordering::Acquire), (&raw const byte).cast(), 1);
        *errno = before;
    }
}

/// Sets what a signal does: `handle`, `ignore` or `default`. False when it is not known or cannot be set.
pub fn set(name: &str, disposition: &str) -> bool {
    let Some((_, signal)) = NAMES.iter().find(|n| n.0 == name) else {
        return false;
    };
    let handler = match disposition {
        "handle" => arrived as *const () as libc::sighandler_t,
        "ignore" => libc::SIG_IGN,
        _ => libc::SIG_DFL,
    };
    // SAFETY: an all-zero `sigaction` is valid; the handler only does what signal handlers may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(*signal, &raw const action, std::ptr::null_mut()) == 0
    }
}

/// Handles SIGTERM, and others when the program asks for them.
pub fn install(system: &Arc<System>) {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return;
    }
    // SAFETY: a fresh descriptor that nobody else has.
    let read = unsafe { OwnedFd::from_raw_fd(ends[0]) };
    PIPE.store(ends[1], Ordering::Release);
    let told = system.clone();
    let thread = std::thread::Builder::new()
        .name("beamr-signals".into())
        .stack_size(256 * 1024)
        .spawn(move || listen(std::fs::File::from(read), &told));
    if thread.is_ok() {
        set("sigterm", "handle");
    }
    let hook = |name: &str, disposition: &str| set(name, disposition);
    // A fresh VM has no hook yet.
    let _ = system.vm.hooks.set_signal.set(Box::new(hook));
}

fn listen(mut pipe: std::fs::File, system: &System) {
    let mut terminated = false;
    let mut byte = [0];
    while matches!(pipe.read(&mut byte), Ok(1)) {
        let Some((name, signal)) = NAMES.iter().find(|n| n.1 == i32::from(byte[0])) else {
            continue;
        };
        if *signal == libc::SIGTERM && std::mem::replace(&mut terminated, true) {
            std::process::exit(128 + libc::SIGTERM);
        }
        system.signal(name);
    }
}
