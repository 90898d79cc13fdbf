//! A driver library for tests: CUDA's and HIP's functions over host memory. Not part of the crate;
//! the tests compile it to a library of its own.
//!
//! It keeps to what a device may do at its latest: work of a stream is done when somebody waits
//! for it, so memory that is reused or freed too early shows. Every call is counted and its
//! arguments are checked; what is wrong is noted and told by `fake_violations`. `fake_fail` makes a
//! call fail.
//!
//! Modules are texts. A line `kernel NAME` says that NAME is among the kernels at the end of this
//! file; `.maxntid X, Y, Z` bounds its launches; `does not assemble` is refused.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const INVALID_CONTEXT: c_int = 201;
const INVALID_IMAGE: c_int = 200;
const INVALID_PTX: c_int = 218;
const INVALID_HANDLE: c_int = 400;
const NOT_FOUND: c_int = 500;
const NOT_READY: c_int = 600;

/// Bytes of memory that the device says it has.
const MEMORY: usize = 256 << 20;
/// What kernels get when they ask for it.
const SHARED_OPT_IN: c_int = 227 << 10;

/// Memory with what earlier users have left, as on a device; large blocks are not touched.
fn storage(bytes: usize) -> Vec<u64> {
    let word = if bytes > 1 << 20 { 0 } else { 0xABAB_ABAB_ABAB_ABAB };
    vec![word; bytes.div_ceil(8).max(1)]
}

/// Work of a stream.
enum Work {
    Copy { to: u64, from: u64, bytes: usize },
    /// From pageable memory, which was read at once.
    Write { to: u64, data: Vec<u8> },
    Fill { at: u64, word: u32, words: usize },
    Kernel { name: String, arguments: Vec<u64>, invocations: u64 },
    Free(u64),
    Record { event: usize, ticket: u64 },
}

struct Block {
    storage: Vec<u64>,
    bytes: usize,
    /// Freed in the order of the stream, at some later time.
    is_leaving: bool,
}

#[derive(Default)]
struct Event {
    has_times: bool,
    /// The newest record, and the newest that the stream has come to.
    asked: u64,
    reached: u64,
    time: Option<Instant>,
}

struct Module {
    text: String,
}

struct Function {
    module: usize,
    name: String,
    dynamic_shared: u32,
}

#[derive(Default)]
struct State {
    calls: HashMap<&'static str, u32>,
    failures: Vec<(String, u32, c_int)>,
    violations: Vec<String>,
    /// After an error that a device does not recover from.
    lost: c_int,
    is_initialised: bool,
    devices: c_int,
    no_pools: bool,
    retained: i32,
    memory: BTreeMap<u64, Block>,
    used: usize,
    pinned: BTreeMap<u64, Vec<u64>>,
    streams: HashMap<usize, VecDeque<Work>>,
    events: HashMap<usize, Event>,
    modules: HashMap<usize, Module>,
    functions: HashMap<usize, Function>,
    links: HashMap<usize, Link>,
    next: usize,
}

struct Link {
    log: Option<(usize, usize)>,
    code: Vec<u8>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    /// The context, or device number + 1, that this thread uses.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<T>(f: impl FnOnce(&mut State) -> T) -> T {
    let mut guard = lock();
    f(guard.get_or_insert_with(|| State { devices: 1, ..State::default() }))
}

impl State {
    fn violation(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.violations.contains(&text) {
            self.violations.push(text);
        }
    }

    fn handle(&mut self) -> usize {
        self.next += 16;
        0x1000 + self.next
    }

    /// Counts a call; the code that it is to fail with.
    fn begin(&mut self, name: &'static str, needs_context: bool) -> Option<c_int> {
        let count = self.calls.entry(name).or_default();
        *count += 1;
        let failure = self.failures.iter_mut().find(|f| f.0 == name && f.1 > 0);
        if let Some(failure) = failure {
            failure.1 -= 1;
            if failure.1 == 0 {
                let code = failure.2;
                if matches!(code, 700 | 719) {
                    self.lost = code;
                }
                return Some(code);
            }
        }
        if !self.is_initialised && !matches!(name, "cuInit" | "cuGetErrorName") {
            self.violation(format!("{name} before the interface was initialised"));
            return Some(3);
        }
        if needs_context && CURRENT.get() == 0 {
            self.violation(format!("{name} on a thread that uses no device"));
            return Some(INVALID_CONTEXT);
        }
        (self.lost != 0 && needs_context).then_some(self.lost)
    }

    /// Checks that bytes lie in memory of the device or in pinned memory, at the time of a call.
    fn check_range(&mut self, what: &str, at: u64, bytes: usize) {
        let inside = |start: u64, size: usize| at >= start && at - start + bytes as u64 <= size as u64;
        let device = self.memory.range(..=at).next_back();
        let ok = match device {
            Some((&start, block)) if inside(start, block.bytes) => !block.is_leaving,
            _ => {
                let pinned = self.pinned.range(..=at).next_back();
                pinned.is_some_and(|(&start, storage)| inside(start, storage.len() * 8))
            }
        };
        if !ok {
            self.violation(format!("{what}: {bytes} bytes that are no memory"));
        }
    }

    fn is_pinned(&self, at: u64) -> bool {
        let found = self.pinned.range(..=at).next_back();
        found.is_some_and(|(&start, storage)| at - start < storage.len() as u64 * 8)
    }

    /// Whether bytes lie in memory now that the work is done.
    fn is_memory(&self, at: u64, bytes: usize) -> bool {
        let inside = |start: u64, size: usize| at >= start && at - start + bytes as u64 <= size as u64;
        let device = self.memory.range(..=at).next_back();
        let pinned = self.pinned.range(..=at).next_back();
        device.is_some_and(|(&start, block)| inside(start, block.bytes))
            || pinned.is_some_and(|(&start, storage)| inside(start, storage.len() * 8))
    }

    fn run(&mut self, work: Work) {
        match work {
            Work::Copy { to, from, bytes } => {
                if !self.is_memory(to, bytes) || !self.is_memory(from, bytes) {
                    return self.violation("memory of a copy was freed before it was done");
                }
                unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
            }
            Work::Write { to, data } => {
                if !self.is_memory(to, data.len()) {
                    return self.violation("memory of a write was freed before it was done");
                }
                unsafe { std::ptr::copy(data.as_ptr(), to as *mut u8, data.len()) };
            }
            Work::Fill { at, word, words } => {
                if !self.is_memory(at, words * 4) {
                    return self.violation("memory of a fill was freed before it was done");
                }
                for n in 0..words {
                    unsafe { (at as *mut u32).add(n).write_unaligned(word) };
                }
            }
            Work::Kernel { name, arguments, invocations } => {
                let buffers = kernel(&name).map_or(0, |k| k.buffers);
                for n in 0..buffers {
                    let length = arguments[kernel(&name).unwrap().first_length() + n];
                    if !self.is_memory(arguments[n], length as usize * 4) {
                        return self.violation("a buffer of a kernel was freed before it was done");
                    }
                }
                unsafe { execute(&name, &arguments, invocations) };
            }
            Work::Free(at) => {
                if let Some(block) = self.memory.remove(&at) {
                    self.used -= block.bytes;
                }
            }
            Work::Record { event, ticket } => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.reached = event.reached.max(ticket);
                    event.time = Some(Instant::now());
                }
            }
        }
    }

    fn step(&mut self, stream: usize) -> bool {
        match self.streams.get_mut(&stream).and_then(VecDeque::pop_front) {
            Some(work) => {
                self.run(work);
                true
            }
            None => false,
        }
    }

    fn run_all(&mut self) {
        let streams: Vec<usize> = self.streams.keys().copied().collect();
        for stream in streams {
            while self.step(stream) {}
        }
    }

    fn queue(&mut self, stream: usize, work: Work) -> c_int {
        match self.streams.get_mut(&stream) {
            Some(queue) => {
                queue.push_back(work);
                0
            }
            None => {
                self.violation("work for a stream that does not exist");
                INVALID_HANDLE
            }
        }
    }

    fn alloc(&mut self, bytes: usize) -> Result<u64, c_int> {
        if bytes == 0 {
            self.violation("an allocation of no bytes");
            return Err(INVALID_VALUE);
        }
        if bytes > MEMORY - self.used {
            return Err(OUT_OF_MEMORY);
        }
        let storage = storage(bytes);
        let at = storage.as_ptr() as u64;
        self.used += bytes;
        self.memory.insert(at, Block { storage, bytes, is_leaving: false });
        Ok(at)
    }

    fn leaks(&self) -> Vec<String> {
        let count = |name: &str, n: usize| (n > 0).then(|| format!("{n} {name} left"));
        let memory = self.memory.values().filter(|b| !b.is_leaving && !b.storage.is_empty()).count();
        [
            count("pieces of memory", memory),
            count("pieces of pinned memory", self.pinned.len()),
            count("streams", self.streams.len()),
            count("events", self.events.len()),
            count("modules", self.modules.len()),
            count("links", self.links.len()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
