//! A headless Chromium: its compiler for WGSL, which is tint, and its WebGPU.

use magpie_kernel_tests::skip;
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
        "/" => ("text/html", include_str!("../browser/index.html")),
        "/run.js" => ("text/javascript", include_str!("../browser/run.js")),
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

/// Opens a page that runs the kernels, or compiles those that have no grid; gives what it posts. `None` without a browser.
pub(crate) fn browse(kernels: &Value) -> Option<Value> {
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

/// Panics with tint's message when it refuses one of the modules, given with what they are. Those that
/// want what the browser's device lacks are left out, but some are checked.
pub(crate) fn accepts(modules: &[(String, String)]) {
    let kernel = |(_, code): &(String, String)| {
        let wants = [("enable f16;", "shader-f16"), ("enable subgroups;", "subgroups")];
        let features = wants.iter().filter(|(line, _)| code.contains(line)).map(|(_, f)| f);
        json!({ "code": code, "features": features.collect::<Vec<_>>() })
    };
    let kernels: Vec<Value> = modules.iter().map(kernel).collect();
    let Some(outcome) = browse(&Value::from(kernels)) else { return };
    assert!(outcome["error"].is_null(), "{}", outcome["error"]);
    let results = outcome["results"].as_array().unwrap();
    assert_eq!(results.len(), modules.len());
    for (result, (what, code)) in results.iter().zip(modules) {
        assert!(result["error"].is_null(), "{what}: {}\n{code}", result["error"]);
    }
    assert!(results.iter().any(|result| result["skipped"] != true), "no module was checked");
}
