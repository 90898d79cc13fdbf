// Modules, launches and kernels. Part of one crate with `state.rs`.

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
