//! Kernels in text form, run by a headless Chromium: its own compiler for WGSL, its own WebGPU.

mod support;

use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_wgsl::WgslEmitter;
use magpie_kernel_tests::files::{KernelFile, Launched, read_folder};
use magpie_kernel_tests::{bytes, narrow, skip, widen};
use magpie_mpir::FnId;
use magpie_types::kernel::{DeviceFeatures, KernelBlob, KernelLayout, ScalarTransport};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a run may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What a page is and says.
struct Page {
    kernels: String,
    results: Mutex<Option<String>>,
    posted: Condvar,
}

/// Answers one request.
fn answer(page: &Page, stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(&stream);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let (kind, body) = match request.split(' ').nth(1).unwrap_or_default() {
        "/" => ("text/html", include_str!("browser/index.html")),
        "/run.js" => ("text/javascript", include_str!("browser/run.js")),
        "/kernels.json" => ("application/json", page.kernels.as_str()),
        "/results" => {
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let text = String::from_utf8_lossy(&body).into_owned();
            *page.results.lock().unwrap() = Some(text);
            page.posted.notify_all();
            ("text/plain", "")
        }
        // The page waits with it for its own results.
        _ => {
            let results = page.results.lock().unwrap();
            let _ = page.posted.wait_timeout_while(results, LIMIT, |r| r.is_none()).unwrap();
            ("text/plain", "")
        }
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    (&stream).write_all(&[head.as_bytes(), body.as_bytes()].concat())
}

/// Opens a page that runs the kernels; gives what it posts. `None` without a browser.
fn browse(kernels: &Value) -> Option<Value> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let page = Arc::new(Page {
        kernels: kernels.to_string(),
        results: Mutex::new(None),
        posted: Condvar::new(),
    });
    let served = Arc::clone(&page);
    // Ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let page = Arc::clone(&served);
            std::thread::spawn(move || answer(&page, stream));
        }
    });
    let profile = tempfile::tempdir().unwrap();
    let browser = std::env::var_os("MAGPIE_CHROMIUM").unwrap_or_else(|| "chromium".into());
    let spawned = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--enable-unsafe-webgpu", "--dump-dom"])
        .args(["--disable-quic", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync", "--disable-default-apps"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("http://{address}/"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = spawned else {
        skip("chromium");
        return None;
    };
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() && start.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    let results = page.results.lock().unwrap().take();
    let results = results.unwrap_or_else(|| panic!("the page posted nothing"));
    Some(serde_json::from_str(&results).unwrap())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = |n: usize| u8::from_str_radix(&text[n..n + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

/// The launch of a blob as the page does it.
fn kernel(blob: &KernelBlob, launched: &Launched) -> Value {
    let layout = &blob.layout;
    let mut bindings = Vec::new();
    for (b, content) in layout.buffers().zip(&launched.buffers) {
        let mut content = match b.host_stride == b.device_stride {
            true => content.clone(),
            false => widen(content, b.host_stride as usize),
        };
        // An empty buffer has memory for one element.
        content.resize(content.len().max(b.device_stride as usize), 0);
        let kind = if b.writes { "storage" } else { "read-only-storage" };
        bindings.push(json!({ "binding": b.binding, "type": kind, "content": hex(&content) }));
    }
    if let ScalarTransport::Uniform { binding } = layout.transport {
        let block = scalar_block(layout, launched);
        bindings.push(json!({ "binding": binding, "type": "uniform", "content": hex(&block) }));
    }
    let mut features = Vec::new();
    if layout.features.contains(DeviceFeatures::SUBGROUP) {
        features.push("subgroups");
    }
    if layout.features.contains(DeviceFeatures::FLOAT16) {
        features.push("shader-f16");
    }
    let code = std::str::from_utf8(bytes(&blob.code)).unwrap();
    let (entry, grid) = (&layout.entry, launched.size.grid);
    json!({ "code": code, "entry": entry, "grid": grid, "bindings": bindings, "features": features })
}

/// The scalars with the hidden lengths behind them.
fn scalar_block(layout: &KernelLayout, launched: &Launched) -> Vec<u8> {
    let mut block = launched.scalars.clone();
    block.resize(layout.block_size as usize, 0);
    for hidden in &layout.hidden {
        let (index, at) = (hidden.buffer as usize, hidden.offset as usize);
        let stride = layout.buffers().nth(index).unwrap().host_stride as usize;
        let length = (launched.buffers[index].len() / stride) as u32;
        block[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
    block
}

#[test]
fn kernels_do_in_a_browser_what_the_interpreter_does() {
    let files: Vec<KernelFile> = read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels"));
    let mut blobs = Vec::new();
    for target in support::targets() {
        for file in files.iter().filter(|f| f.runs_on(&target.features.names())) {
            let blob = WgslEmitter { target }.emit(&file.module, FnId(0)).unwrap();
            blobs.push((file, file.arguments(&blob.layout), blob));
        }
    }
    let kernels: Vec<Value> = blobs.iter().map(|(_, l, blob)| kernel(blob, l)).collect();
    let Some(outcome) = browse(&Value::from(kernels)) else { return };
    assert!(outcome["error"].is_null(), "{}", outcome["error"]);
    let subgroup_size = outcome["subgroupSize"].as_u64().unwrap() as u32;
    let results = outcome["results"].as_array().unwrap();
    assert_eq!(results.len(), blobs.len());
    let mut ran = 0;
    for ((file, _, blob), result) in blobs.iter().zip(results) {
        if result["skipped"] == true {
            continue;
        }
        let what = format!("{} in a browser", file.path.display());
        assert!(result["error"].is_null(), "{what}: {}", result["error"]);
        let read = result["buffers"].as_array().unwrap().iter();
        let buffers: Vec<Vec<u8>> = read
            .zip(blob.layout.buffers())
            .zip(&file.arguments(&blob.layout).buffers)
            .map(|((text, b), before)| {
                let content = from_hex(text.as_str().unwrap());
                let mut content = match b.host_stride == b.device_stride {
                    true => content,
                    false => narrow(&content, b.host_stride as usize),
                };
                content.truncate(before.len());
                content
            })
            .collect();
        file.compare(&what, &blob.layout, subgroup_size, &buffers);
        ran += 1;
    }
    // Those of the target that every browser is.
    assert!(ran + 1 >= files.len(), "{ran} kernels ran");
}
