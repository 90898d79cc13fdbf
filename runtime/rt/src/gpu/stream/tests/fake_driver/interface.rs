// The functions of CUDA and HIP, and what the tests ask. Part of one crate with `state.rs`.

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
