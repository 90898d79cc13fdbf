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

// ----- what the tests ask -----

#[unsafe(no_mangle)]
pub extern "C" fn fake_reset() {
    *lock() = None;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_fail(name: *const c_char, nth: u32, code: c_int) {
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    with(|state| state.failures.push((name, nth, code)));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_calls(name: *const c_char) -> u32 {
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    with(|state| state.calls.get(&*name).copied().unwrap_or(0))
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_devices(count: c_int) {
    with(|state| state.devices = count);
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_without_pools() {
    with(|state| state.no_pools = true);
}

/// What was done wrong, one line each, and what was not given back; gives the length of the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_violations(out: *mut u8, room: usize) -> usize {
    let text = with(|state| {
        if state.lost == 0 {
            state.run_all();
        }
        let mut lines = state.violations.clone();
        // Nothing can be given back to a lost device.
        if state.lost == 0 {
            lines.extend(state.leaks());
        }
        lines.join("\n")
    });
    let bytes = text.len().min(room);
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), out, bytes) };
    text.len()
}

// ----- the interfaces -----

/// A function of both interfaces. Calls are counted by CUDA's name.
macro_rules! twin {
    ($cuda:ident $hip:ident $context:literal ($($arg:ident: $ty:ty),*) |$state:ident| $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $cuda($($arg: $ty),*) -> c_int {
            with(|$state| {
                if let Some(code) = $state.begin(stringify!($cuda), $context) {
                    return code;
                }
                $body
            })
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $hip($($arg: $ty),*) -> c_int {
            unsafe { $cuda($($arg),*) }
        }
    };
}

twin!(cuInit hipInit false (flags: c_uint) |state| {
    state.is_initialised = true;
    if flags == 0 { 0 } else { INVALID_VALUE }
});

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(out: *mut c_int) -> c_int {
    unsafe { *out = 12090 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDriverGetVersion(out: *mut c_int) -> c_int {
    unsafe { *out = 60_032_830 };
    0
}

twin!(cuDeviceGetCount hipGetDeviceCount false (out: *mut c_int) |state| {
    unsafe { *out = state.devices };
    if state.devices == 0 { 100 } else { 0 }
});

twin!(cuDeviceGet hipDeviceGet false (out: *mut c_int, number: c_int) |state| {
    unsafe { *out = number };
    if number < state.devices { 0 } else { 101 }
});

twin!(cuDeviceGetName hipDeviceGetName false (out: *mut c_char, room: c_int, _d: c_int) |_state| {
    let name = c"Fake GPU".to_bytes_with_nul();
    assert!(room as usize >= name.len());
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), out.cast(), name.len()) };
    0
});

twin!(cuDeviceTotalMem_v2 hipDeviceTotalMem false (out: *mut usize, _d: c_int) |_state| {
    unsafe { *out = MEMORY };
    0
});

twin!(cuDeviceGetUuid hipDeviceGetUuid false (out: *mut [u8; 16], device: c_int) |_state| {
    unsafe { *out = [7; 16] };
    unsafe { (*out)[15] = device as u8 };
    0
});

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(out: *mut c_int, attribute: c_int, d: c_int) -> c_int {
    with(|state| {
        if let Some(code) = state.begin("cuDeviceGetAttribute", false) {
            return code;
        }
        let value = match attribute {
            1 | 2 | 3 => 1024,
            4 => 64,
            5 => c_int::MAX,
            6 | 7 => 65535,
            8 => 48 << 10,
            97 => SHARED_OPT_IN,
            10 => 32,
            18 => 0,
            50 => 1,
            33 => 0x2a + d,
            34 => 3,
            75 => 9,
            76 => 0,
            115 => c_int::from(!state.no_pools),
            _ => return INVALID_VALUE,
        };
        unsafe { *out = value };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetAttribute(out: *mut c_int, attribute: c_int, d: c_int) -> c_int {
    let same = match attribute {
        56 => 1,
        26 => 2,
        27 => 3,
        28 => 4,
        29 => 5,
        30 => 6,
        31 => 7,
        74 => 8,
        87 => 10,
        16 => 18,
        69 => 50,
        67 => 33,
        68 => 34,
        23 => 75,
        61 => 76,
        88 => 115,
        _ => return INVALID_VALUE,
    };
    unsafe { cuDeviceGetAttribute(out, same, d) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDevicePropertiesR0600(out: *mut u8, _d: c_int) -> c_int {
    let name = b"gfx90a:sramecc+:xnack-\0";
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), out.add(1160), name.len()) };
    0
}

twin!(cuDevicePrimaryCtxRetain fakeUnused1 false (out: *mut usize, device: c_int) |state| {
    state.retained += 1;
    unsafe { *out = 0x100 + device as usize };
    0
});

twin!(cuDevicePrimaryCtxRelease_v2 fakeUnused2 false (_d: c_int) |state| {
    state.retained -= 1;
    if state.retained < 0 {
        state.violation("a context was released more often than retained");
    }
    if state.retained == 0 && state.lost == 0 {
        state.run_all();
        for leak in state.leaks() {
            state.violation(format!("{leak} when the context was released"));
        }
    }
    0
});

twin!(cuCtxSetCurrent fakeUnused3 false (context: usize) |state| {
    if context < 0x100 || state.retained == 0 {
        state.violation("a context that is not retained");
        return INVALID_CONTEXT;
    }
    CURRENT.set(context);
    0
});

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipSetDevice(device: c_int) -> c_int {
    with(|state| {
        if let Some(code) = state.begin("cuCtxSetCurrent", false) {
            return code;
        }
        CURRENT.set(device as usize + 1);
        0
    })
}

twin!(cuMemGetInfo_v2 hipMemGetInfo true (free: *mut usize, total: *mut usize) |state| {
    unsafe {
        *free = MEMORY - state.used;
        *total = MEMORY;
    }
    0
});

fn give(state: &mut State, out: *mut u64, bytes: usize) -> c_int {
    match state.alloc(bytes) {
        Ok(at) => {
            unsafe { *out = at };
            0
        }
        Err(code) => code,
    }
}

twin!(cuMemAlloc_v2 hipMalloc true (out: *mut u64, bytes: usize) |state| {
    give(state, out, bytes)
});

twin!(cuMemFree_v2 hipFree true (at: u64) |state| {
    state.run_all();
    match state.memory.remove(&at) {
        Some(block) if !block.is_leaving => {
            state.used -= block.bytes;
            0
        }
        _ => {
            state.violation("memory that was not allocated is freed");
            INVALID_VALUE
        }
    }
});

twin!(cuMemAllocAsync hipMallocAsync true (out: *mut u64, bytes: usize, stream: usize) |state| {
    if !state.streams.contains_key(&stream) {
        state.violation("memory for a stream that does not exist");
    }
    give(state, out, bytes)
});

twin!(cuMemFreeAsync hipFreeAsync true (at: u64, stream: usize) |state| {
    match state.memory.get_mut(&at) {
        Some(block) if !block.is_leaving => block.is_leaving = true,
        _ => {
            state.violation("memory that was not allocated is freed");
            return INVALID_VALUE;
        }
    }
    state.queue(stream, Work::Free(at))
});

twin!(cuDeviceGetDefaultMemPool fakeUnused4 false (out: *mut usize, _d: c_int) |_state| {
    unsafe { *out = 0x200 };
    0
});

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetDefaultMemPool(out: *mut usize, d: c_int) -> c_int {
    unsafe { cuDeviceGetDefaultMemPool(out, d) }
}

twin!(cuMemPoolGetAttribute hipMemPoolGetAttribute false (pool: usize, attribute: c_int, out: *mut u64) |state| {
    if pool != 0x200 || !matches!(attribute, 5 | 7) {
        state.violation("a pool or an attribute that does not exist");
        return INVALID_VALUE;
    }
    unsafe { *out = state.used as u64 };
    0
});

twin!(cuMemPoolSetAttribute hipMemPoolSetAttribute false (pool: usize, attribute: c_int, value: *mut u64) |state| {
    if pool != 0x200 || attribute != 4 || unsafe { *value } != u64::MAX {
        state.violation("a pool is told something else than to keep its memory");
    }
    0
});

twin!(cuMemHostAlloc hipHostMalloc true (out: *mut *mut c_void, bytes: usize, _flags: c_uint) |state| {
    let storage = storage(bytes);
    let at = storage.as_ptr() as u64;
    state.pinned.insert(at, storage);
    unsafe { *out = at as *mut c_void };
    0
});

twin!(cuMemFreeHost hipHostFree true (at: *mut c_void) |state| {
    // Unlike the freeing of memory of the device it does not wait.
    match state.pinned.remove(&(at as u64)) {
        Some(_) => 0,
        None => {
            state.violation("pinned memory that was not allocated is freed");
            INVALID_VALUE
        }
    }
});

twin!(cuMemHostGetDevicePointer_v2 hipHostGetDevicePointer true (out: *mut u64, at: *mut c_void, flags: c_uint) |state| {
    if !state.is_pinned(at as u64) || flags != 0 {
        state.violation("memory that is not pinned has no address on the device");
        return INVALID_VALUE;
    }
    unsafe { *out = at as u64 };
    0
});

twin!(cuMemcpyHtoDAsync_v2 hipMemcpyHtoDAsync true (to: u64, from: *const c_void, bytes: usize, stream: usize) |state| {
    state.check_range("a write", to, bytes);
    if state.is_pinned(from as u64) {
        state.check_range("the source of a write", from as u64, bytes);
        return state.queue(stream, Work::Copy { to, from: from as u64, bytes });
    }
    let data = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) }.to_vec();
    state.queue(stream, Work::Write { to, data })
});

twin!(cuMemcpyDtoHAsync_v2 hipMemcpyDtoHAsync true (to: *mut c_void, from: u64, bytes: usize, stream: usize) |state| {
    state.check_range("a read", from, bytes);
    state.check_range("the target of a read", to as u64, bytes);
    state.queue(stream, Work::Copy { to: to as u64, from, bytes })
});

twin!(cuMemcpyDtoDAsync_v2 hipMemcpyDtoDAsync true (to: u64, from: u64, bytes: usize, stream: usize) |state| {
    state.check_range("a copy", from, bytes);
    state.check_range("a copy", to, bytes);
    state.queue(stream, Work::Copy { to, from, bytes })
});

twin!(cuMemsetD32Async hipMemsetD32Async true (at: u64, word: c_uint, words: usize, stream: usize) |state| {
    state.check_range("a fill", at, words * 4);
    state.queue(stream, Work::Fill { at, word, words })
});

twin!(cuStreamCreate hipStreamCreateWithFlags true (out: *mut usize, flags: c_uint) |state| {
    if flags != 1 {
        state.violation("a stream that waits for the default one");
    }
    let stream = state.handle();
    state.streams.insert(stream, VecDeque::new());
    unsafe { *out = stream };
    0
});

twin!(cuStreamDestroy_v2 hipStreamDestroy true (stream: usize) |state| {
    while state.step(stream) {}
    if state.streams.remove(&stream).is_none() {
        state.violation("a stream is destroyed twice");
    }
    0
});

twin!(cuStreamSynchronize hipStreamSynchronize true (stream: usize) |state| {
    while state.step(stream) {}
    0
});

twin!(cuEventCreate hipEventCreateWithFlags true (out: *mut usize, flags: c_uint) |state| {
    let event = state.handle();
    state.events.insert(event, Event { has_times: flags & 2 == 0, ..Event::default() });
    unsafe { *out = event };
    0
});

twin!(cuEventDestroy_v2 hipEventDestroy true (event: usize) |state| {
    if state.events.remove(&event).is_none() {
        state.violation("an event is destroyed twice");
    }
    0
});

twin!(cuEventRecord hipEventRecord true (event: usize, stream: usize) |state| {
    let Some(known) = state.events.get_mut(&event) else {
        state.violation("an event that does not exist is recorded");
        return INVALID_HANDLE;
    };
    known.asked += 1;
    let ticket = known.asked;
    state.queue(stream, Work::Record { event, ticket })
});

/// Whether the stream has come to the newest record of an event.
fn is_reached(state: &mut State, event: usize) -> Option<bool> {
    let known = state.events.get(&event).map(|e| e.reached == e.asked);
    if known.is_none() {
        state.violation("an event that does not exist is waited for");
    }
    known
}

twin!(cuEventQuery hipEventQuery true (event: usize) |state| {
    // The device does a little each time that somebody looks.
    let streams: Vec<usize> = state.streams.keys().copied().collect();
    streams.into_iter().for_each(|stream| {
        state.step(stream);
    });
    match is_reached(state, event) {
        Some(true) => 0,
        Some(false) => NOT_READY,
        None => INVALID_HANDLE,
    }
});

twin!(cuEventSynchronize hipEventSynchronize true (event: usize) |state| {
    loop {
        match is_reached(state, event) {
            None => return INVALID_HANDLE,
            Some(true) => return 0,
            Some(false) => {}
        }
        let streams: Vec<usize> = state.streams.keys().copied().collect();
        streams.into_iter().for_each(|stream| {
            state.step(stream);
        });
    }
});

twin!(cuEventElapsedTime hipEventElapsedTime true (out: *mut f32, start: usize, end: usize) |state| {
    let time = |event: usize| {
        let event = state.events.get(&event)?;
        event.time.filter(|_| event.has_times && event.reached == event.asked)
    };
    let (Some(start), Some(end)) = (time(start), time(end)) else {
        state.violation("the time between events that have none");
        return INVALID_HANDLE;
    };
    let seconds = match end.checked_duration_since(start) {
        Some(later) => later.as_secs_f64(),
        None => -(start - end).as_secs_f64(),
    };
    unsafe { *out = (seconds * 1e3) as f32 };
    0
});

// ----- modules -----

/// The text of an image, which ends with NUL.
unsafe fn text_of(image: *const c_void) -> String {
    let bytes = unsafe { CStr::from_ptr(image.cast()) }.to_bytes();
    let bytes = bytes.strip_prefix(b"\x7fELF").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

twin!(cuModuleLoadData hipModuleLoadData true (out: *mut usize, image: *const c_void) |state| {
    let text = unsafe { text_of(image) };
    if text.contains("of another device") {
        return 209;
    }
    if !text.contains("kernel ") {
        return INVALID_IMAGE;
    }
    let module = state.handle();
    state.modules.insert(module, Module { text });
    unsafe { *out = module };
    0
});

twin!(cuModuleUnload hipModuleUnload true (module: usize) |state| {
    let used: Vec<&String> = state
        .streams
        .values()
        .flatten()
        .filter_map(|w| match w {
            Work::Kernel { name, .. } => Some(name),
            _ => None,
        })
        .collect();
    let text = state.modules.get(&module).map(|m| m.text.clone()).unwrap_or_default();
    if used.iter().any(|name| text.contains(&format!("kernel {name}"))) {
        state.violation("a module is unloaded while its kernel is queued");
    }
    if state.modules.remove(&module).is_none() {
        state.violation("a module is unloaded twice");
    }
    state.functions.retain(|_, f| f.module != module);
    0
});

twin!(cuModuleGetFunction hipModuleGetFunction true (out: *mut usize, module: usize, name: *const c_char) |state| {
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    let Some(known) = state.modules.get(&module) else {
        state.violation("a function of a module that does not exist");
        return INVALID_HANDLE;
    };
    if !known.text.lines().any(|line| line == format!("kernel {name}")) {
        return NOT_FOUND;
    }
    let function = state.handle();
    state.functions.insert(function, Function { module, name, dynamic_shared: 48 << 10 });
    unsafe { *out = function };
    0
});

twin!(cuFuncSetAttribute fakeUnused5 true (function: usize, attribute: c_int, value: c_int) |state| {
    if attribute != 8 || value > SHARED_OPT_IN {
        return INVALID_VALUE;
    }
    match state.functions.get_mut(&function) {
        Some(function) => {
            function.dynamic_shared = value as u32;
            0
        }
        None => INVALID_HANDLE,
    }
});

/// The largest workgroup that a module allows.
fn budget(text: &str) -> u64 {
    let line = text.lines().find_map(|l| l.strip_prefix(".maxntid "));
    line.map_or(1024, |l| l.split(", ").map(|n| n.parse::<u64>().unwrap()).product())
}

unsafe fn launch(
    state: &mut State,
    function: usize,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: usize,
    arguments: *mut *mut c_void,
) -> c_int {
    let Some(known) = state.functions.get(&function) else {
        state.violation("a function that does not exist is launched");
        return INVALID_HANDLE;
    };
    let (name, limit) = (known.name.clone(), known.dynamic_shared);
    let text = state.modules[&known.module].text.clone();
    let product = |sizes: [c_uint; 3]| sizes.iter().map(|&n| u64::from(n)).product::<u64>();
    if product(grid) == 0 || product(block) == 0 || shared > limit {
        return INVALID_VALUE;
    }
    if product(block) > budget(&text) {
        return 701;
    }
    let Some(kernel) = kernel(&name) else { return NOT_FOUND };
    if text.contains("dynamic") && shared == 0 {
        state.violation("a kernel with dynamic shared memory gets none");
    }
    let mut values = Vec::new();
    for (n, &size) in kernel.sizes.iter().enumerate() {
        let at = unsafe { *arguments.add(n) };
        values.push(match size {
            4 => u64::from(unsafe { at.cast::<u32>().read_unaligned() }),
            _ => unsafe { at.cast::<u64>().read_unaligned() },
        });
    }
    for n in 0..kernel.buffers {
        let length = values[kernel.first_length() + n];
        state.check_range("a buffer of a kernel", values[n], length as usize * 4);
    }
    let invocations = product(grid) * product(block);
    state.queue(stream, Work::Kernel { name, arguments: values, invocations })
}

twin!(cuLaunchKernel hipModuleLaunchKernel true (
    function: usize,
    gx: c_uint,
    gy: c_uint,
    gz: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    shared: c_uint,
    stream: usize,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void
) |state| {
    if !extra.is_null() {
        state.violation("extra arguments");
    }
    unsafe { launch(state, function, [gx, gy, gz], [bx, by, bz], shared, stream, arguments) }
});

// ----- from text to machine code -----

twin!(cuLinkCreate_v2 fakeUnused6 true (
    count: c_uint,
    options: *mut c_int,
    values: *mut *mut c_void,
    out: *mut usize
) |state| {
    let mut log = [0usize; 2];
    for n in 0..count as usize {
        match unsafe { *options.add(n) } {
            5 => log[0] = unsafe { *values.add(n) } as usize,
            6 => log[1] = unsafe { *values.add(n) } as usize,
            _ => state.violation("an unknown option of the linker"),
        }
    }
    let link = state.handle();
    let log = (log[0] != 0).then_some((log[0], log[1]));
    state.links.insert(link, Link { log, code: Vec::new() });
    unsafe { *out = link };
    0
});

twin!(cuLinkAddData_v2 fakeUnused7 true (
    link: usize,
    kind: c_int,
    data: *mut c_void,
    bytes: usize,
    _name: *const c_char,
    _count: c_uint,
    _options: *mut c_int,
    _values: *mut *mut c_void
) |state| {
    let input = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
    if kind != 1 || input.last() != Some(&0) {
        state.violation("the linker gets no text");
    }
    let Some(known) = state.links.get_mut(&link) else { return INVALID_HANDLE };
    if input.windows(17).any(|w| w == b"does not assemble") {
        if let Some((at, room)) = known.log {
            let said = b"line 3: unexpected word\0";
            assert!(room >= said.len());
            unsafe { std::ptr::copy_nonoverlapping(said.as_ptr(), at as *mut u8, said.len()) };
        }
        return INVALID_PTX;
    }
    known.code.extend_from_slice(b"\x7fELF");
    known.code.extend_from_slice(input);
    0
});

twin!(cuLinkComplete fakeUnused8 true (link: usize, out: *mut *mut c_void, bytes: *mut usize) |state| {
    let Some(known) = state.links.get_mut(&link) else { return INVALID_HANDLE };
    unsafe {
        *out = known.code.as_mut_ptr().cast();
        *bytes = known.code.len();
    }
    0
});

twin!(cuLinkDestroy fakeUnused9 true (link: usize) |state| {
    if state.links.remove(&link).is_none() {
        state.violation("a link is destroyed twice");
    }
    0
});

fn name_of(code: c_int) -> *const c_char {
    match code {
        1 => c"FAKE_INVALID_VALUE",
        2 => c"FAKE_OUT_OF_MEMORY",
        209 => c"FAKE_NO_BINARY",
        218 => c"FAKE_INVALID_PTX",
        700 => c"FAKE_ILLEGAL_ADDRESS",
        999 => c"FAKE_UNKNOWN",
        _ => c"FAKE_OTHER",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: c_int, out: *mut *const c_char) -> c_int {
    unsafe { *out = name_of(code) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorName(code: c_int) -> *const c_char {
    name_of(code)
}

// ----- kernels -----

/// What a kernel takes: buffers first, then other words, then the lengths of the buffers.
struct Kernel {
    sizes: &'static [u32],
    buffers: usize,
}

impl Kernel {
    fn first_length(&self) -> usize {
        self.sizes.len() - self.buffers
    }
}

fn kernel(name: &str) -> Option<Kernel> {
    Some(match name {
        "scale" | "spin" => Kernel { sizes: &[8, 4, 8], buffers: 1 },
        "next" => Kernel { sizes: &[8, 8, 8, 8], buffers: 2 },
        "empty" => Kernel { sizes: &[], buffers: 0 },
        _ => return None,
    })
}

unsafe fn execute(name: &str, arguments: &[u64], invocations: u64) {
    unsafe {
        match name {
            "scale" | "spin" => {
                let data = arguments[0] as *mut u32;
                let word = arguments[1] as u32;
                for i in 0..invocations.min(arguments[2]) {
                    let element = data.add(i as usize);
                    let old = element.read();
                    element.write(match name {
                        "scale" => old.wrapping_mul(word).wrapping_add(1),
                        _ => (0..word).fold(old, u32::wrapping_add),
                    });
                }
            }
            "next" => {
                let (src, dst) = (arguments[0] as *const u32, arguments[1] as *mut u32);
                for i in 0..invocations.min(arguments[2]).min(arguments[3]) {
                    dst.add(i as usize).write(src.add(i as usize).read().wrapping_add(1));
                }
            }
            _ => {}
        }
    }
}
