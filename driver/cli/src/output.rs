//! What the command writes: results to standard output, messages to standard error.

use crate::args::OutputForm;
use clap::ColorChoice;
use magpie_diag::{Report, render_all};
use magpie_driver::{Findings, Session, TRIPLE};
use serde_json::Value;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Exit code when the reader is gone: that of a process ended by SIGPIPE.
const BROKEN_PIPE_EXIT_CODE: i32 = 128 + 13;

/// How to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) form: OutputForm,
    pub(crate) color: ColorChoice,
}

/// A result, as JSON under a key.
pub(crate) type Data = (&'static str, Value);

impl Output {
    /// Writes diagnostics as text, or in the JSON forms the whole report. The report of a program
    /// that is about to run goes to standard error: standard output is the program's.
    pub(crate) fn report(self, session: &mut Session, success: bool, data: Option<&Data>) {
        let findings = session.take_findings();
        if self.form == OutputForm::Text {
            write_to(io::stderr().lock(), &self.text(session, &findings));
            return;
        }
        let report = Report {
            command: session.options.command,
            target: TRIPLE,
            success,
            artifacts: &session.artifacts,
            diagnostics: &findings.shown,
            timing_ms: session.timings(),
            data: data.map(|(key, value)| (*key, value)),
        };
        let text = match self.form {
            OutputForm::Jsonl => report.json_lines(&session.sources),
            OutputForm::Json | OutputForm::Text => report.json(&session.sources) + "\n",
        };
        if session.options.command == "run" {
            write_to(io::stderr().lock(), &text);
        } else {
            write_to(io::stdout().lock(), &text);
        }
    }

    fn text(self, session: &Session, findings: &Findings) -> String {
        let color = self.colors_messages();
        let mut text = render_all(&findings.shown, &session.sources, color);
        match findings.hidden_errors {
            0 => {}
            1 => text.push_str("\n1 more error (--max-errors shows more)\n"),
            n => text.push_str(&format!("\n{n} more errors (--max-errors shows more)\n")),
        }
        if session.options.is_verbose() {
            for (stage, ms) in session.timings() {
                text.push_str(&format!("magpie: {stage}: {ms:.2} ms\n"));
            }
        }
        text
    }

    fn colors_messages(self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let plain = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                io::stderr().is_terminal() && !plain("NO_COLOR") && !dumb
            }
        }
    }

    /// Writes a result for people; nothing in the JSON forms, where [`Output::report`] has it.
    pub(crate) fn answer(self, text: &str) {
        if self.form == OutputForm::Text {
            write_to(io::stdout().lock(), text);
        }
    }

    /// Writes a message for people.
    pub(crate) fn message(self, text: &str) {
        if self.form == OutputForm::Text {
            write_to(io::stderr().lock(), text);
        }
    }
}

/// Writes everything. Ends the process quietly when the reader is gone.
fn write_to(mut stream: impl Write, text: &str) {
    let written = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            std::process::exit(BROKEN_PIPE_EXIT_CODE)
        }
        Err(error) => {
            // The other stream may still have a reader.
            let _ = writeln!(io::stderr(), "magpie: cannot write the result: {error}");
            std::process::exit(1)
        }
    }
}
