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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes gathered before a write.
const BLOCK: usize = 64 * 1024;

/// Exit code when the reader of standard output is gone: that of a process ended by SIGPIPE.
const BROKEN_PIPE_EXIT_CODE: i32 = 128 + 13;

/// Output not yet written.
static PENDING: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Whether the last line of the output has no end yet.
static LINE_IS_OPEN: AtomicBool = AtomicBool::new(false);

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
    flush_if_idle();
}

/// Flushes unless somebody is in the middle of a write: he will not come back.
pub(crate) fn flush_if_idle() {
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
    if let Some(last) = parts.iter().rev().find_map(|part| part.as_bytes().last()) {
        LINE_IS_OPEN.store(*last != b'\n', Ordering::Relaxed);
    }
    if interactive {
        result = result.and(write_pending(&mut pending));
    }
    drop(pending);
    check(result);
}

/// Prints a line, for hosts that print in the name of the program.
pub fn print_line(text: &str) {
    print(&[text, "\n"]);
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

/// See [`magpie_types::abi::RtFn::EndLine`].
#[unsafe(no_mangle)]
pub extern "C" fn mp_rt_end_line() {
    guarded(|| {
        if LINE_IS_OPEN.load(Ordering::Relaxed) {
            print(&["\n"]);
        }
    })
}

/// See [`magpie_types::abi::RtFn::Eprint`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_eprint(s: *const MpRtHeader) {
    guarded(|| {
        flush_stdout();
        // SAFETY: forwarded from the caller. A program goes on when nobody reads its messages.
        let _ = io::stderr().write_all(unsafe { as_str(s) }.as_bytes());
    })
}

/// Writes a line to standard error, behind what was printed.
pub(crate) fn eprint_line(text: &str) {
    flush_stdout();
    // A program goes on when nobody reads its messages.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// See [`magpie_types::abi::RtFn::Eprintln`].
///
/// # Safety
/// `s` is a live `Str`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_rt_eprintln(s: *const MpRtHeader) {
    guarded(|| {
        // SAFETY: forwarded from the caller.
        eprint_line(unsafe { as_str(s) })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::testing::{children, outputs};
    use std::io::Read;
    use std::process::Stdio;

    fn with_str(text: &str, function: unsafe extern "C" fn(*const MpRtHeader)) {
        let s = string::new_str(text);
        // SAFETY: the string is live during the call.
        unsafe {
            function(s);
            object::release(s);
        }
    }

    #[test]
    fn everything_printed_comes_out_in_order() {
        let cases: [fn(); 3] = [
            || {
                with_str("a", mp_rt_print);
                with_str("ß", mp_rt_println);
                mp_rt_println_i64(i64::MIN);
                mp_rt_println_u64(u64::MAX);
                mp_rt_println_f64(-0.0);
                mp_rt_println_f64(0.1);
                mp_rt_println_bool(true);
                mp_rt_println_bool(false);
            },
            || {
                for i in 0..50_000 {
                    mp_rt_println_u64(i);
                }
                with_str(&"x".repeat(3 * BLOCK + 1), mp_rt_println);
                with_str("end", mp_rt_print);
            },
            || {
                mp_rt_end_line();
                with_str("last", mp_rt_print);
                with_str("", mp_rt_print);
                mp_rt_end_line();
                mp_rt_end_line();
            },
        ];
        let outputs = outputs("io::tests::everything_printed_comes_out_in_order", &cases);
        let expected = "\naß\n-9223372036854775808\n18446744073709551615\n-0\n0.1\ntrue\nfalse\n";
        assert!(outputs[0].1.ends_with(expected), "{:?}", outputs[0]);
        let mut expected: String = (0..50_000).map(|i| format!("{i}\n")).collect();
        expected += &"x".repeat(3 * BLOCK + 1);
        expected += "\nend";
        assert!(outputs[1].1.ends_with(&expected));
        assert!(outputs[2].1.ends_with("\nlast\n"), "{:?}", outputs[2]);
        assert!(outputs.iter().all(|output| output.0 == Some(0) && output.2.is_empty()));
    }

    #[test]
    fn messages_come_after_what_was_printed() {
        let cases: [fn(); 1] = [|| {
            with_str("first", mp_rt_println);
            with_str("second", mp_rt_eprintln);
            with_str("third", mp_rt_println);
        }];
        let test = "io::tests::messages_come_after_what_was_printed";
        let mut command = children(test, &cases).remove(0);
        // Both go to one file, as on a terminal.
        let mut both = tempfile::tempfile().unwrap();
        command.stdout(both.try_clone().unwrap()).stderr(both.try_clone().unwrap());
        assert!(command.status().unwrap().success());
        let mut text = String::new();
        std::io::Seek::rewind(&mut both).unwrap();
        both.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("\nfirst\nsecond\nthird\n"), "{text}");
    }

    fn print_forever() {
        loop {
            mp_rt_println_u64(1);
        }
    }

    #[test]
    fn a_reader_that_leaves_ends_the_program_quietly() {
        let test = "io::tests::a_reader_that_leaves_ends_the_program_quietly";
        let mut child = children(test, &[print_forever]).remove(0).spawn().unwrap();
        // The test harness prints first, and complains when nobody reads.
        let mut stdout = child.stdout.take().unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"\n1\n1\n") {
            let mut byte = [0];
            stdout.read_exact(&mut byte).unwrap();
            seen.extend(byte);
        }
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(BROKEN_PIPE_EXIT_CODE));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_a_panic() {
        unsafe extern "C" {
            fn dup2(from: i32, to: i32) -> i32;
        }
        let cases: [fn(); 1] = [|| {
            let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
            // SAFETY: both are open file descriptors.
            assert_eq!(unsafe { dup2(std::os::fd::AsRawFd::as_raw_fd(&full), 1) }, 1);
            print_forever()
        }];
        let (code, _, stderr) = &outputs("io::tests::a_full_disk_is_a_panic", &cases)[0];
        assert_eq!(*code, Some(101));
        let message = "panic: cannot write to standard output: No space left on device";
        assert!(stderr.starts_with(message), "{stderr}");
    }

    #[test]
    fn lines_are_read_until_the_input_ends() {
        let cases: [fn(); 2] = [
            || {
                with_str("prompt", mp_rt_print);
                for _ in 0..5 {
                    let line = mp_rt_readln();
                    // SAFETY: the line is live until its release.
                    unsafe {
                        with_str(&format!("[{}]", as_str(line)), mp_rt_print);
                        object::release(line);
                    }
                }
            },
            || _ = mp_rt_readln(),
        ];
        let test = "io::tests::lines_are_read_until_the_input_ends";
        let mut commands = children(test, &cases);
        let mut run = |case: usize, input: &[u8]| {
            let mut child = commands[case].stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(input).unwrap();
            let output = child.wait_with_output().unwrap();
            let text = |bytes| String::from_utf8(bytes).unwrap();
            (output.status.code(), text(output.stdout), text(output.stderr))
        };
        let (code, stdout, _) = run(0, "eins\r\n\nä\nlast".as_bytes());
        assert_eq!(code, Some(0));
        assert!(stdout.ends_with("\nprompt[eins][][ä][last][]"), "{stdout}");
        let (code, _, stderr) = run(1, b"\xff\n");
        assert_eq!(code, Some(101));
        assert_eq!(stderr, "panic: cannot read standard input: a line is not valid UTF-8\n");
    }
}
