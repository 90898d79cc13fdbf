//! The magpie command: arguments in, a call of the driver, results out.

mod args;
mod commands;
mod output;
mod usage;

use args::CommandLine;
use clap::error::ErrorKind;
use clap::{ColorChoice, Parser};
use magpie_diag::Code;
use magpie_driver::{Options, Session, Stop};
use output::Output;
use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_bug));
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(attached) = magpie_driver::attached_program() {
        let code = commands::execute_attached(attached, arguments.drain(..).skip(1).collect());
        return ExitCode::from(code);
    }
    let code = match CommandLine::try_parse_from(&arguments) {
        Ok(line) => commands::execute(line),
        Err(error) => refuse(&error, &arguments),
    };
    ExitCode::from(code)
}

/// Help and version go to standard output; everything else is wrong usage, or asks for what this
/// build lacks.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> u8 {
    let text = Output { form: args::OutputForm::Text, color: ColorChoice::Auto };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            text.answer(&error.render().to_string());
            return 0;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            text.message(&error.render().to_string());
            return Stop::Usage.exit_code();
        }
        _ => {}
    }
    let mut session = Session::new(Options::new("magpie"));
    let diagnostic = usage::diagnostic(error, arguments, &mut session.sources);
    let stop = match diagnostic.code {
        Code::MPT2050 => Stop::Refused,
        _ => Stop::Usage,
    };
    session.report(diagnostic);
    let form = usage::output_form(arguments);
    Output { form, color: ColorChoice::Auto }.report(&mut session, false, None);
    stop.exit_code()
}

/// A panic of the command is never the program's fault.
fn report_bug(panic: &std::panic::PanicHookInfo<'_>) {
    use std::io::Write;
    let text = format!(
        "magpie: internal error: {panic}\n\
         this is a fault of the compiler: please report it with the program and the command line\n"
    );
    // There is nobody else to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
