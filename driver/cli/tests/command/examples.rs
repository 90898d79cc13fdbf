//! The programs in `examples/` on real files.

use crate::support::{Place, has_vulkan};

fn example(path: &str) -> String {
    format!("{}/../../examples/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Width, height and pixels of a binary PGM file.
fn pixels(file: &[u8]) -> (usize, usize, &[u8]) {
    let mut fields = file.splitn(5, |b| b.is_ascii_whitespace());
    let mut number = || -> usize {
        let field = fields.next().expect("a header");
        std::str::from_utf8(field).expect("text").trim_start_matches("P5").parse().unwrap_or(0)
    };
    assert_eq!(number(), 0, "the magic word");
    let (width, height) = (number(), number());
    assert_eq!(number(), 255);
    (width, height, fields.next().expect("pixels"))
}

/// The same filter in plain Rust.
fn sobel(width: usize, height: usize, from: &[u8]) -> Vec<u8> {
    let at = |x: i64, y: i64| -> i32 {
        let x = x.clamp(0, width as i64 - 1) as usize;
        let y = y.clamp(0, height as i64 - 1) as usize;
        from[y * width + x].into()
    };
    let mut out = Vec::with_capacity(from.len());
    for y in 0..height as i64 {
        for x in 0..width as i64 {
            let row = |y| at(x + 1, y) - at(x - 1, y);
            let column = |x| at(x, y + 1) - at(x, y - 1);
            let dx = row(y - 1) + 2 * row(y) + row(y + 1);
            let dy = column(x - 1) + 2 * column(x) + column(x + 1);
            out.push(((dx * dx + dy * dy) as f32).sqrt().min(255.0) as u8);
        }
    }
    out
}

#[test]
fn sobel_finds_the_edges_of_a_photograph() {
    let place = Place::new();
    let (program, photo) = (example("magpie/sobel.mp"), example("data/photo.pgm"));
    let original = std::fs::read(&photo).unwrap();
    let (width, height, from) = pixels(&original);
    let expected = sobel(width, height, from);
    let devices: &[&str] = if has_vulkan() { &["cpu", "vulkan"] } else { &["cpu"] };
    for device in devices {
        let args = ["run", "--device", device, &program, "--", &photo, "edges.pgm"];
        assert_eq!(place.run(&args).succeeds(), "");
        let file = std::fs::read(place.path("edges.pgm")).unwrap();
        let (w, h, edges) = pixels(&file);
        assert_eq!((w, h), (width, height));
        assert!(edges == expected, "{device}");
    }
    // An odd size, smaller than a workgroup, with comments in the header.
    place.write("small.pgm", b"P5 # small\n# image\n3 2\n255\n\x00\x40\x80\xff\x20\x10");
    let args = ["run", "--device", "interp", &program, "--", "small.pgm", "edges.pgm"];
    assert_eq!(place.run(&args).succeeds(), "");
    let file = std::fs::read(place.path("edges.pgm")).unwrap();
    assert_eq!(pixels(&file).2, sobel(3, 2, &[0, 0x40, 0x80, 0xff, 0x20, 0x10]));
}

#[test]
fn sobel_refuses_what_it_cannot_read_or_write() {
    let place = Place::new();
    let (program, photo) = (example("magpie/sobel.mp"), example("data/photo.pgm"));
    let run = |from: &str, to: &str| {
        place.run(&["run", "--device", "cpu", &program, "--", from, to]).fails(1)
    };
    assert!(run("none.pgm", "out.pgm").contains("none.pgm"));
    for (name, content) in [
        ("empty.pgm", &b""[..]),
        ("text.pgm", b"hello"),
        ("ppm.pgm", b"P6\n1 1\n255\nabc"),
        ("head.pgm", b"P5\n640 4"),
        ("short.pgm", b"P5\n640 480\n255\nabc"),
        ("zero.pgm", b"P5\n0 10\n255\n"),
        ("deep.pgm", b"P5\n1 1\n65535\n\0\0"),
        ("huge.pgm", b"P5\n4294967295 4294967295\n255\n"),
        ("huger.pgm", b"P5\n99999999999999999999 1\n255\nx"),
    ] {
        place.write(name, content);
        let message = run(name, "out.pgm");
        assert!(message.contains(name) && message.lines().count() == 1, "{name}: {message}");
        assert!(!place.path("out.pgm").exists(), "{name}");
    }
    // An output that cannot be replaced stays as it was, and nothing is left beside it.
    place.write("out/kept.pgm", "kept");
    let path = place.path("out/kept.pgm");
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    assert!(run(&photo, "out/kept.pgm").contains("out/kept.pgm"));
    assert!(run(&photo, "out").contains("folder"));
    assert!(run(&photo, "none/out.pgm").contains("none"));
    assert_eq!((place.read("out/kept.pgm").as_str(), place.files("out").len()), ("kept", 1));
    assert!(place.run(&["run", "--device", "cpu", &program]).fails(1).starts_with("usage: "));
}
