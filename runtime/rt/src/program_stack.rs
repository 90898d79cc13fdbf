//! The stack of a program: of a known size, and an end in order when calls nest too deep.

use crate::object;
use crate::panic::die;

/// Bytes of stack that a program has, whatever the limits of the process.
pub const STACK_SIZE: usize = 64 << 20;

/// Runs a program on a stack of its own. When its calls nest too deep, the process ends as by a
/// panic. No other thread may use an object that the program uses while it runs.
pub fn with_program_stack<R: Send>(program: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_SIZE);
        let spawned = thread.spawn_scoped(scope, || {
            overflow::watch();
            object::keep_to_this_thread();
            program()
        });
        match spawned {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => die(format_args!("there is no memory for the stack: {error}")),
        }
    })
}

#[cfg(unix)]
mod overflow {
    use super::STACK_SIZE;
    use crate::io;
    use crate::panic::PANIC_EXIT_CODE;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Bytes on each side of the end of the stack in which a fault counts as an overflow: the
    /// guard, and what the thread's start and the system took from either end.
    const MARGIN: usize = 256 << 10;

    const MESSAGE: &[u8] = b"panic: stack overflow: calls are nested too deep\n";

    /// An address near the start of the watched thread's stack.
    static STACK_START: AtomicUsize = AtomicUsize::new(0);

    /// Ends the process in order when the stack of this thread overflows. Threads of Rust have a
    /// stack for signal handlers.
    pub(super) fn watch() {
        let here = MaybeUninit::<u8>::uninit();
        STACK_START.store(here.as_ptr() as usize, Ordering::Relaxed);
        let handler: extern "C" fn(i32, *const libc::siginfo_t, *const libc::c_void) = on_fault;
        // SAFETY: all zeros are a valid `sigaction`, and every field that counts is set.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: the action is complete, and the handler does what handlers may. When it
            // cannot be set the process dies of an overflow without a message, as it did before.
            unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
        }
    }

    extern "C" fn on_fault(signal: i32, info: *const libc::siginfo_t, _: *const libc::c_void) {
        // SAFETY: the system passes the description of the fault.
        let address = unsafe { (*info).si_addr() } as usize;
        let end = STACK_START.load(Ordering::Relaxed).saturating_sub(STACK_SIZE);
        if (end.saturating_sub(MARGIN)..end.saturating_add(MARGIN)).contains(&address) {
            io::flush_if_idle();
            // SAFETY: the bytes are valid, and the process ends here.
            unsafe {
                libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
                libc::_exit(PANIC_EXIT_CODE)
            }
        }
        // Any other fault happens again when this returns, with what the system does by itself.
        // SAFETY: the default action is always valid.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

#[cfg(not(unix))]
mod overflow {
    pub(super) fn watch() {}
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::io;
    use crate::testing::outputs;
    use std::hint::black_box;

    fn deeper(n: u64) -> u64 {
        if black_box(n) == u64::MAX { n } else { black_box(deeper(n + 1)) + 1 }
    }

    #[test]
    fn results_come_back() {
        let words = [1, 2, 3];
        assert_eq!(with_program_stack(|| words.iter().sum::<i32>()), 6);
    }

    #[test]
    fn too_many_calls_are_a_panic() {
        let cases: [fn(); 2] = [
            || {
                io::mp_rt_println_i64(42);
                with_program_stack(|| deeper(0));
            },
            || {
                // 100,000 calls are not too many.
                fn count(n: u64) -> u64 {
                    if black_box(n) == 0 { 0 } else { black_box(count(n - 1)) + 1 }
                }
                io::mp_rt_println_u64(with_program_stack(|| count(100_000)));
            },
        ];
        let outputs = outputs("program_stack::tests::too_many_calls_are_a_panic", &cases);
        let (code, stdout, stderr) = &outputs[0];
        let message = "panic: stack overflow: calls are nested too deep\n";
        assert_eq!((*code, stderr.as_str()), (Some(101), message));
        assert!(stdout.ends_with("\n42\n"), "{stdout}");
        assert_eq!(outputs[1].0, Some(0));
        assert!(outputs[1].1.ends_with("\n100000\n"), "{}", outputs[1].1);
    }
}
