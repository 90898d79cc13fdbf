//! The file-test runner: a source file says in its first comments what is to happen to it, and one
//! harness makes it happen, one test a file (and a device), in parallel.
//!
//! What a test can ask for:
//!
//! | first comment | happens | expectation |
//! | --- | --- | --- |
//! | `; test: run` | runs on every device of [`Device::MATRIX`] | `NAME.expected`, or `exit:` and `stdout:` |
//! | `; test: error` | is refused | `NAME.error`, or `;~ SEVERITY CODE` comments on the lines meant |
//! | `; test: check` | is checked and accepted | the same; nothing expected means silence |
//! | `; test: pass NAME, NAME` | the passes run over the `.mpir` text | the text below the line `; after:` |
//! | `; test: emit TARGET` | is emitted as text | `check:` `next:` `not:` patterns, or `NAME.TARGET.snapshot` |
//! | `; test: support` | nothing: another test uses the file | |
//!
//! Where comments begin with `//`, so do these. A file without `test:` is a `run` when `NAME.expected` stands beside it and a `check` when
//! `NAME.error` does. Further comments: `; wait: REASON` (ignored, with the reason), `; devices: cpu
//! vulkan`, `; args: one two`. `waiting.txt` in the root folder makes files wait that carry no
//! comments of their own (`NAME: REASON`). `MAGPIE_UPDATE=1` rewrites the expectations of `pass` and
//! snapshot tests. The examples of `magpie explain` are tests too, named `explain/CODE`.
//!
//! The law: nothing is skipped silently. A file that says nothing about itself fails, and so do an
//! expectation without a source, an unknown comment key, and, when `CI` is set, a missing device.
//!
//! The harness knows no compiler: it drives whatever implements [`Toolchain`].

mod case;
mod compare;
mod directive;
mod discover;
mod example;
mod expectation;
mod pattern;
mod process;
mod runner;
mod toolchain;

pub use case::Case;
pub use discover::{Discovered, discover};
pub use example::example_cases;
pub use expectation::{ExpectedFinding, ExpectedRun};
pub use process::{Limits, ProcessOutput, run_process};
pub use runner::{Outcome, Settings, execute, main, trials};
pub use toolchain::{Device, Finding, RunRequest, RunResult, Toolchain};
