//! Kernels become code objects: kernels in text form, every op on every type, random kernels and
//! graphs. Each is linked, read back and compared with its layout.

mod support;

use magpie_diag::SourceMap;
use magpie_gpu::compile::BodyCompiler;
use magpie_gpu_hip::{HipEmitter, HipTarget, read_code_object};
use magpie_kernel_tests::files::{KernelFile, read_folder};
use magpie_kernel_tests::{bytes, graphs, ops, random};
use magpie_mpir::testing::{GraphShape, KernelConfig};
use magpie_mpir::{FnId, parse_with_own_places};
use object::{Object, ObjectSection};
use support::{PROCESSORS, Toolchain, subject};

/// The files of the SPIR-V back end, which say what any target must do, and those of PTX, which
/// has a stack too.
fn files() -> Vec<KernelFile> {
    let mut files = read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../spirv/tests/kernels"));
    files.extend(read_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../ptx/tests/kernels")));
    files
}

#[test]
fn kernels_become_code_objects() {
    let Some(tools) = Toolchain::find() else { return };
    for processor in PROCESSORS {
        let target = HipTarget::new(processor).unwrap();
        files().iter().for_each(|file| file.check(&subject(&tools, &target)));
    }
}

#[test]
fn every_op_on_every_type() {
    let Some(tools) = Toolchain::find() else { return };
    for processor in ["gfx90a", "gfx1100"] {
        let target = HipTarget::new(processor).unwrap();
        ops::check_all(&subject(&tools, &target), |_, _, _| true);
    }
}

#[test]
fn random_kernels() {
    let Some(tools) = Toolchain::find() else { return };
    let subgroups = KernelConfig { subgroups: true, ..KernelConfig::portable() };
    for (n, processor) in PROCESSORS.into_iter().enumerate() {
        let target = HipTarget::new(processor).unwrap();
        let subject = subject(&tools, &target);
        let first = 100 * n as u64;
        (first..first + 5).for_each(|seed| random::check(&subject, seed, &KernelConfig::all()));
        (first..first + 3).for_each(|seed| random::check(&subject, seed, &subgroups));
    }
}

#[test]
fn random_graphs() {
    let Some(tools) = Toolchain::find() else { return };
    let target = HipTarget::default();
    let subject = subject(&tools, &target);
    for (seed, nodes) in (0..8).map(|n| (n, 4 + 3 * n as usize)) {
        graphs::check(&subject, seed, GraphShape::Reducible, nodes);
        graphs::check(&subject, seed, GraphShape::Any, nodes);
    }
}

/// What the driver reads, and what the disassembly shows.
#[test]
fn a_code_object_says_what_it_is() {
    let Some(tools) = Toolchain::find() else { return };
    let mut reduction = files().into_iter().find(|f| f.path.ends_with("reduction.mpir")).unwrap();
    // A workgroup of one wavefront needs no barrier, and gets none.
    reduction.module.fns[0].gpu_meta.as_mut().unwrap().workgroup = [256, 1, 1];
    for processor in PROCESSORS {
        let target = HipTarget::new(processor).unwrap();
        let emitter = subject(&tools, &target).compiler;
        let blob = emitter.emit(&reduction.module, FnId(0)).unwrap();
        let layout = &blob.layout;
        let facts = read_code_object(bytes(&blob.code), &layout.entry).unwrap();
        let lanes = if processor.starts_with("gfx9") { 64 } else { 32 };
        assert_eq!(facts.wavefront, lanes, "{processor}");
        assert_eq!(facts.shared_bytes, u64::from(layout.shared_bytes), "{processor}");
        let invocations: u32 = layout.workgroup.iter().product();
        assert_eq!(facts.max_workgroup, u64::from(invocations), "{processor}");
        assert_eq!(facts.spills, 0, "{processor}");
        let explicit: Vec<_> = facts.args.iter().filter(|a| !a.is_hidden()).collect();
        assert_eq!(explicit.len(), layout.params.len() + layout.hidden.len());
        assert!(explicit.iter().all(|a| a.offset % a.size == 0), "{explicit:?}");

        let Some(text) = tools.disassemble(bytes(&blob.code), processor) else { return };
        assert!(text.contains(&format!("<{}>:", layout.entry)), "{text}");
        for wanted in ["ds_", "s_barrier", "s_waitcnt", "s_endpgm"] {
            assert!(text.contains(wanted), "{processor}: no `{wanted}` in\n{text}");
        }
        // Everything is written before the barrier lets anybody go on.
        let lines: Vec<&str> = text.lines().collect();
        let barrier = lines.iter().position(|l| l.contains("s_barrier")).unwrap();
        assert!(lines[..barrier].iter().rev().take(2).any(|l| l.contains("s_waitcnt")), "{text}");
    }
}

/// The line table of the code object leads from its code to the source.
#[test]
fn code_objects_have_line_tables() {
    let Some(tools) = Toolchain::find() else { return };
    let text = "gpu fn m.@k(%x: gpu.TBuffer<f32>) -> unit {
entry:
  %v: f32 = gpu.buffer_load [unchecked] %x, u32 0
  %s: f32 = f.add %v, %v
  gpu.buffer_store [unchecked] %x, u32 1, %s
  ret
}
";
    let mut sources = SourceMap::default();
    let file = sources.add("folder/kernel.mpir", text.to_string());
    let module = parse_with_own_places(text, file).unwrap();
    for processor in PROCESSORS {
        let target = HipTarget::new(processor).unwrap();
        let emitter = HipEmitter { sources: Some(&sources), ..subject(&tools, &target).compiler };
        let blob = emitter.emit(&module, FnId(0)).unwrap();
        let dump = |what| tools.show("llvm-dwarfdump", &[what], bytes(&blob.code));
        let Some(lines) = dump("--debug-line") else { return };
        assert!(lines.contains("\"folder\"") && lines.contains("\"kernel.mpir\""), "{lines}");
        let code = object::File::parse(bytes(&blob.code)).unwrap();
        let text = code.section_by_name(".text").unwrap();
        // Rows: an address in the code, a line of the source.
        let rows = lines.lines().filter_map(|l| l.strip_prefix("0x")).map(|row| {
            let mut words = row.split_whitespace();
            let address = u64::from_str_radix(words.next().unwrap(), 16).unwrap();
            (address, words.next().unwrap().parse::<u32>().unwrap())
        });
        let rows: Vec<(u64, u32)> = rows.collect();
        let range = text.address()..=text.address() + text.size();
        assert!(rows.iter().all(|(address, _)| range.contains(address)), "{rows:?}");
        assert!((3..=5).all(|line| rows.iter().any(|row| row.1 == line)), "{rows:?}");
        assert!(dump("--verify").unwrap().contains("No errors"));
    }
}
