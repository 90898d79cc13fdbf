//! `std.io`: buffered standard output, standard error, lines of standard input.
//!
//! Output to a terminal appears at once, output to a pipe or file in blocks. It is flushed before
//! the process ends (however it ends in order), before something is written to standard error,
//! before a line is read and before a sleep.

use crate::decimal::{self, Digits};
use crate::object::MpRtHeader;
use crate::panic::{die, guarded};
use crate::string::{self, as_str};
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes gathered before a write.
const BLOCK: usize = 64 * 1024;

/// Exit code when the reader of standard output is gone: that of a process ended by SIGPIPE.
const BROKEN_PIPE_EXIT_CODE: i32 = 128 + 13;

/// Output not yet written.
static PENDING: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn pending() -> MutexGuard<'static, Vec<u8>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_pending(pending: &mut Vec<u8>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let result = out.write_all(pending).and_then(|()| out.flush());
    pending.clear();
    result
}

/// Reports a failed write; the lock of the pending output must not be held.
fn check(result: io::Result<()>) {
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            std::process::exit(BROKEN_PIPE_EXIT_CODE)
        }
        Err(error) => die(format_args!("cannot write to standard output: {error}")),
    }
}

/// Writes out what was printed so far. Ends the program if that fails.
pub fn flush_stdout() {
    let result = write_pending(&mut pending());
    check(result);
}

/// Like [`flush_stdout`], for a program that is dying anyway.
pub(crate) fn flush_before_death() {
    let _ = write_pending(&mut pending());
}

/// Flushes at the end of the process, for hosts that return from `main` or call `exit`.
extern "C" fn flush_at_exit() {
    // Whoever holds the lock is in the middle of a write and will not come back.
    if let Ok(mut pending) = PENDING.try_lock() {
        let _ = write_pending(&mut pending);
    }
}

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> i32;
}

/// Adds texts to the output.
fn print(parts: &[&str]) {
    static INTERACTIVE: OnceLock<bool> = OnceLock::new();
    let mut pending = pending();
    let interactive = *INTERACTIVE.get_or_init(|| {
        pending.reserve(BLOCK);
        // SAFETY: the function needs nothing but static data. If there is no room to register it,
        // flushing is up to those who end the process.
        unsafe { atexit(flush_at_exit) };
        io::stdout().is_terminal()
    });
    let mut result = Ok(());
    for part in parts {
        for block in part.as_bytes().chunks(BLOCK) {
            if pending.len() + block.len() > BLOCK {
                result = result.and(write_pending(&mut pending));
            }
            pending.extend_from_slice(block);
        }
    }
    if interactive {
        result = result.and(write_pending(&mut pending));
    }
    drop(pending);
    check(result);
}

/// See [`magpie_types::abi::RtFn::Print`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_print(s: *const MpRtHeader) {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { print(&[as_str(s)]) })
}

/// See [`magpie_types::abi::RtFn::Println`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_println(s: *const MpRtHeader) {
    // SAFETY: forwarded from the caller.
    guarded(|| unsafe { print(&[as_str(s), "\n"]) })
}

/// See [`magpie_types::abi::RtFn::Eprintln`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_eprintln(s: *const MpRtHeader) {
    guarded(|| {
        flush_stdout();
        // SAFETY: forwarded from the caller.
        let line = format!("{}\n", unsafe { as_str(s) });
        // A program goes on when nobody reads its messages.
        let _ = io::stderr().write_all(line.as_bytes());
    })
}

/// See [`magpie_types::abi::RtFn::PrintlnI64`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_println_i64(v: i64) {
    guarded(|| print(&[decimal::i64_text(v, &mut Digits::default()), "\n"]))
}

/// See [`magpie_types::abi::RtFn::PrintlnU64`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_println_u64(v: u64) {
    guarded(|| print(&[decimal::u64_text(v, &mut Digits::default()), "\n"]))
}

/// See [`magpie_types::abi::RtFn::PrintlnF64`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_println_f64(v: f64) {
    guarded(|| print(&[&v.to_string(), "\n"]))
}

/// See [`magpie_types::abi::RtFn::PrintlnBool`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_println_bool(v: bool) {
    guarded(|| print(&[if v { "true\n" } else { "false\n" }]))
}

/// See [`magpie_types::abi::RtFn::Readln`]. The end of a line is `\n` or `\r\n`.
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_readln() -> *mut MpRtHeader {
    guarded(|| {
        flush_stdout();
        let line = match read_line(&mut io::stdin().lock()) {
            Ok(line) => line,
            Err(error) => die(format_args!("cannot read standard input: {error}")),
        };
        match str::from_utf8(&line) {
            Ok(text) => string::new_str(text),
            Err(_) => die(format_args!("cannot read standard input: a line is not valid UTF-8")),
        }
    })
}

/// One line without its end; empty at the end of input.
fn read_line(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = available.iter().position(|&b| b == b'\n');
        let taken = &available[..end.unwrap_or(available.len())];
        line.try_reserve(taken.len()).map_err(|_| ErrorKind::OutOfMemory)?;
        line.extend_from_slice(taken);
        let used = taken.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() || used == 0 {
            break;
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(line)
}
