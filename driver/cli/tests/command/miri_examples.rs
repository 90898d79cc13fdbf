//! The programs in `examples/miri`: what they print is the same on every device that is here.

use std::path::Path;

use crate::support::{Ended, Place, has_vulkan, program};

fn example(name: &str) -> String {
    format!("{}/../../examples/miri/{name}.mi", env!("CARGO_MANIFEST_DIR"))
}

/// Runs the command, with the library for WebGPU that the project's setup installs.
fn run(place: &Place, args: &[&str]) -> Ended {
    let mut command = place.command(args);
    if std::env::var_os("MAGPIE_WGPU_LIBRARY").is_none() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/wgpu-native");
        command.env("MAGPIE_WGPU_LIBRARY", folder.join("libwgpu_native.so"));
    }
    command.output().expect("the command starts").into()
}

/// The devices that are here.
fn devices() -> Vec<&'static str> {
    let mut devices = vec!["cpu"];
    if has_vulkan() {
        devices.push("vulkan");
    }
    match run(&Place::new(), &["run", "--device", "webgpu", &program("scale.mp")]).code {
        0 => devices.push("webgpu"),
        _ => eprintln!("skipped: needs a WebGPU device"),
    }
    devices
}

/// Runs an example everywhere and gives what it prints, which is one text.
#[track_caller]
fn prints(name: &str, args: &[&str]) -> String {
    let place = Place::new();
    let path = example(name);
    let mut printed: Option<String> = None;
    for device in devices() {
        let call = ["run", "--device", device, &path, "--"];
        let text = run(&place, &[&call, args].concat()).succeeds();
        let first = printed.get_or_insert_with(|| text.clone());
        assert_eq!(*first, text, "{name} on {device}");
    }
    printed.unwrap_or_default()
}

#[test]
fn arithmetic() {
    assert_eq!(prints("vector_add", &[]), "6.0 8.0 10.0 12.0\n");
    assert_eq!(prints("saxpy", &[]), "1.0 3.5 2498.5\n");
    assert_eq!(prints("matmul", &[]), "6.0 -6.0 3.0, 0 elements differ\n");
}

#[test]
fn counting() {
    let mut counts = [0u32; 256];
    for i in 0..1_000_000u32 {
        let mut h = i.wrapping_mul(374_761_393);
        h ^= h / 65536;
        h = h.wrapping_mul(2_246_822_519);
        h ^= h / 8192;
        h = h.wrapping_mul(3_266_489_917);
        h ^= h / 65536;
        counts[(h % 256) as usize] += 1;
    }
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    let mut expected = format!("1000000 numbers, {least} to {most} in a bucket\n");
    for (n, count) in counts.iter().take(4).enumerate() {
        expected += &format!("bucket {n}: {count}\n");
    }
    assert_eq!(prints("histogram", &[]), expected);
}

#[test]
fn simulation() {
    // A ring at half the speed of a circle contracts, and nothing pushes it away.
    assert_eq!(prints("nbody", &[]), "radius 0.849, momentum 0.0\n");
    let boards = ["0", "1", "4", "10"].map(|generations| prints("life", &[generations]));
    let alive = |board: &String| board.matches('#').count();
    // A glider of five cells, and what the R-pentomino becomes.
    assert_eq!(boards.each_ref().map(alive), [10, 11, 13, 16]);
    for board in &boards {
        let said = format!("\n{} cells alive after", alive(board));
        assert!(board.lines().count() == 21 && board.contains(&said), "{board}");
    }
    // The glider is one cell further down and to the right after four generations.
    let corner = |board: &String, from: usize| -> Vec<String> {
        board.lines().skip(from).take(3).map(|line| line[from..from + 3].to_string()).collect()
    };
    assert_eq!(corner(&boards[0], 0), corner(&boards[2], 1));
}

#[test]
fn learning() {
    assert_eq!(prints("regression", &[]), "slope 3.01, offset -1.0\n");
    let place = Place::new();
    for device in devices() {
        let printed = run(&place, &["run", "--device", device, &example("perceptron")]).succeeds();
        let losses: Vec<f64> =
            printed.lines().filter_map(|line| line.split_once("loss ")?.1.parse().ok()).collect();
        assert!(losses.len() == 6 && losses.is_sorted_by(|a, b| a >= b), "{device}: {printed}");
        assert!(losses[0] > 0.5 && losses[5] < 0.1, "{device}: {printed}");
        assert!(printed.ends_with("accuracy at least 95 %: true\n"), "{device}: {printed}");
    }
    // Too few steps are told, and end the program with a fault.
    let text = std::fs::read_to_string(example("perceptron")).unwrap();
    let hasty = place.write("hasty.mi", text.replace("STEPS = 300", "STEPS = 1"));
    let ended = run(&place, &["run", "--device", "cpu", &hasty]);
    assert!(ended.code == 101 && ended.stderr.contains("% are right"), "{ended:?}");
}

#[test]
fn pictures() {
    let place = Place::new();
    let photo = format!("{}/../../examples/data/photo.pgm", env!("CARGO_MANIFEST_DIR"));
    let original = std::fs::read(&photo).unwrap();
    let (width, height) = (640i32, 480i32);
    let pixels = &original[original.len() - (width * height) as usize..];
    let at = |x: i32, y: i32| {
        let (x, y) = (x.clamp(0, width - 1), y.clamp(0, height - 1));
        f32::from(pixels[(y * width + x) as usize])
    };
    let mean = |x: i32, y: i32| -> u8 {
        let around = (-2..=2).flat_map(|dy| (-2..=2).map(move |dx| (dx, dy)));
        let sum: f32 = around.map(|(dx, dy)| at(x + dx, y + dy)).sum();
        (sum / 25.0 + 0.5) as u8
    };
    let mut expected = b"P5\n640 480\n255\n".to_vec();
    expected
        .extend((0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| mean(x, y)));
    for device in devices() {
        let call = ["run", "--device", device, &example("blur"), "--", &photo, "blurred.pgm"];
        assert_eq!(run(&place, &call).succeeds(), "wrote blurred.pgm: 640 x 480\n");
        assert!(std::fs::read(place.path("blurred.pgm")).unwrap() == expected, "{device}");
        let call = ["run", "--device", device, &example("mandelbrot"), "--", "set.ppm"];
        assert_eq!(run(&place, &call).succeeds(), "wrote set.ppm\n");
        let set = std::fs::read(place.path("set.ppm")).unwrap();
        assert_eq!(set.len(), b"P6 640 480 255\n".len() + 640 * 480 * 3);
    }
    for (name, content) in [
        ("empty.pgm", &b""[..]),
        ("ppm.pgm", b"P6\n1 1\n255\nabc"),
        ("short.pgm", b"P5\n640 480\n255\nabc"),
        ("deep.pgm", b"P5\n1 1\n65535\n\0\0"),
        ("cut.pgm", b"P5\n640 4"),
    ] {
        place.write(name, content);
        let ended =
            run(&place, &["run", "--device", "cpu", &example("blur"), "--", name, "out.pgm"]);
        assert!(ended.code == 101 && ended.stderr.contains(name), "{name}: {ended:?}");
        assert!(!place.path("out.pgm").exists(), "{name}");
    }
}
