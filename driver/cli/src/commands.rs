//! One function a command.

use crate::args::{Command, CommandLine, MpirCommand, OutputForm};
use crate::output::{Data, Output};
use clap::{ColorChoice, Parser};
use magpie_diag::{Code, Diagnostic, Span, closest};
use magpie_driver::{AttachedProgram, Session, Stop};
use std::ffi::OsString;
use std::path::PathBuf;

/// How a command that did not stop early ends.
enum Done {
    /// There is nothing more to say.
    Silent,
    /// A result, for people and for programs.
    Answer(String, Data),
    /// A result that was given line by line.
    Streamed(Data),
    /// Not the command's fault, and yet no success.
    Negative,
    /// The exit code of a program; everything else was said before it ran.
    Exited(u8),
}

/// Runs a command; gives the exit code.
pub(crate) fn execute(line: CommandLine) -> u8 {
    let output = Output { form: line.global.output, color: line.global.color };
    let options = match line.options() {
        Ok(options) => options,
        Err(why) => {
            let mut session = Session::new(magpie_driver::Options::new(line.command.name()));
            let stop = session.refuse(Code::MPL0006, why, "correct or unset the variable");
            output.report(&mut session, false, None);
            return stop.exit_code();
        }
    };
    let mut session = Session::new(options);
    let emit = line.global.emit;
    if !emit.is_empty() && !matches!(line.command, Command::Build { .. }) {
        let stop = match line.command {
            Command::Parse { .. } if emit == ["ast"] => session.refuse(
                Code::MPT2050,
                "`parse --emit ast` is not supported by this build",
                "`magpie parse` reports what is wrong with a text, `magpie fmt` writes a Magpie module in \
                 canonical form, `magpie build --emit mpir` writes what a program means",
            ),
            _ => {
                let message = format!("`{}` writes no artifacts", line.command.name());
                session.refuse(Code::MPL0006, message, "`--emit` belongs to `magpie build`")
            }
        };
        output.report(&mut session, false, None);
        return stop.exit_code();
    }
    let result = match line.command {
        Command::New { name } => new(&mut session, output, &name),
        Command::Build { .. } => build(&mut session, output, &emit),
        Command::Check { .. } | Command::Lint { .. } => {
            magpie_driver::check(&mut session).map(|()| Done::Silent)
        }
        Command::Run { args, .. } => run(&mut session, output, args),
        Command::Test { filter, .. } => test(&mut session, output, filter.as_deref()),
        Command::RunTest { name, .. } => {
            magpie_driver::run_test(&mut session, &name).map(Done::Exited)
        }
        Command::Fmt { files, check, fix_meta } => {
            format(&mut session, output, &files, check, fix_meta)
        }
        Command::Cost { .. } => magpie_driver::cost(&mut session)
            .map(|costs| Done::Answer(costs.text(), ("costs", costs.json()))),
        Command::Devices => {
            let list = magpie_driver::devices(&mut session);
            Ok(Done::Answer(list.table(), ("devices", list.json())))
        }
        Command::Explain { code } => explain(&mut session, &code),
        Command::Doctor => {
            let checkup = magpie_driver::doctor(&mut session);
            Ok(Done::Answer(checkup.text(), ("checks", checkup.json())))
        }
        Command::Parse { file } => parse(&mut session, &file),
        Command::Mpir { command: MpirCommand::Verify { file } } => {
            magpie_driver::verify_mpir(&mut session, &file).map(|()| Done::Silent)
        }
    };
    finish(&mut session, output, result)
}

fn finish(session: &mut Session, output: Output, result: Result<Done, Stop>) -> u8 {
    match result {
        Ok(Done::Silent) => {
            let success = !session.has_errors();
            output.report(session, success, None);
            u8::from(!success)
        }
        Ok(Done::Answer(text, data)) => {
            output.answer(&text);
            output.report(session, true, Some(&data));
            0
        }
        Ok(Done::Streamed(data)) => {
            let success = data.1["failed"] == 0;
            output.report(session, success, Some(&data));
            u8::from(!success)
        }
        Ok(Done::Negative) => {
            output.report(session, false, None);
            1
        }
        Ok(Done::Exited(code)) => code,
        Err(stop) => {
            output.report(session, false, None);
            stop.exit_code()
        }
    }
}

fn new(session: &mut Session, output: Output, path: &std::path::Path) -> Result<Done, Stop> {
    magpie_driver::new_project(session, path)?;
    output.answer(&format!("made `{0}`; run it with: cd {0} && magpie run\n", path.display()));
    Ok(Done::Silent)
}

fn build(session: &mut Session, output: Output, emit: &[String]) -> Result<Done, Stop> {
    for name in magpie_driver::build(session, emit)? {
        output.answer(&format!("{name}\n"));
    }
    Ok(Done::Silent)
}

fn run(session: &mut Session, output: Output, args: Vec<OsString>) -> Result<Done, Stop> {
    let args = utf8_arguments(session, args)?;
    let program = magpie_driver::prepare_run(session)?;
    // What is to be said about the program is said before it speaks.
    output.report(session, true, None);
    Ok(Done::Exited(program.execute(args)))
}

/// Runs the program behind this command; gives the exit code.
pub(crate) fn execute_attached(
    attached: Result<AttachedProgram, String>,
    args: Vec<OsString>,
) -> u8 {
    let output = Output { form: OutputForm::Text, color: ColorChoice::Auto };
    let options = CommandLine::try_parse_from(["magpie", "run"]).map_err(|e| e.to_string());
    let (options, trouble) = match options.and_then(|line| line.options()) {
        Ok(options) => (options, None),
        Err(why) => (magpie_driver::Options::new("run"), Some(why)),
    };
    let mut session = Session::new(options);
    let result = match (trouble, attached) {
        (Some(why), _) => Err(session.refuse(Code::MPL0006, why, "correct or unset the variable")),
        (None, Err(why)) => Err(session.refuse(Code::MPL0004, why, "`magpie build` makes it anew")),
        (None, Ok(program)) => utf8_arguments(&mut session, args).and_then(|args| {
            let program = magpie_driver::prepare_attached(&mut session, &program)?;
            Ok(Done::Exited(program.execute(args)))
        }),
    };
    finish(&mut session, output, result)
}

/// Program arguments are `Str`.
fn utf8_arguments(session: &mut Session, args: Vec<OsString>) -> Result<Vec<String>, Stop> {
    let mut texts = Vec::with_capacity(args.len());
    for (n, arg) in args.into_iter().enumerate() {
        match arg.into_string() {
            Ok(text) => texts.push(text),
            Err(arg) => {
                let shown = arg.to_string_lossy().into_owned();
                let message =
                    format!("argument {} of the program is not valid UTF-8: {shown:?}", n + 1);
                let help = "programs take text; pass such a name through a file";
                return Err(session.refuse(Code::MPL0006, message, help));
            }
        }
    }
    Ok(texts)
}

fn test(session: &mut Session, output: Output, filter: Option<&str>) -> Result<Done, Stop> {
    let summary = magpie_driver::test(session, filter, &mut |result| {
        output.answer(&result.text());
    })?;
    output.answer(&summary.text());
    Ok(Done::Streamed(("tests", summary.json())))
}

fn format(
    session: &mut Session,
    output: Output,
    files: &[PathBuf],
    check: bool,
    fix_meta: bool,
) -> Result<Done, Stop> {
    let changed = magpie_driver::format(session, files, check, fix_meta)?;
    if check {
        for name in &changed {
            output.answer(&format!("{name} would change\n"));
        }
        if !changed.is_empty() {
            return Ok(Done::Negative);
        }
    }
    Ok(Done::Silent)
}

fn explain(session: &mut Session, word: &str) -> Result<Done, Stop> {
    let Some(code) = Code::parse(word) else {
        let help = match closest(&word.to_ascii_uppercase(), Code::all().map(Code::as_str)) {
            Some(code) => format!("did you mean `{code}`?"),
            None => "codes look like MPT2014 or MPG_CORE_1103".to_string(),
        };
        let message = format!("there is no diagnostic code `{word}`");
        session.report(Diagnostic::new(Code::MPL0006, Span::NONE, message).with_help(help));
        return Err(Stop::Refused);
    };
    let data = serde_json::json!({
        "code": code.as_str(),
        "explanation_md": code.explanation(),
        "severity": code.severity().name(),
        "title": code.title(),
    });
    Ok(Done::Answer(code.explanation().to_string(), ("explanation", data)))
}

fn parse(session: &mut Session, path: &std::path::Path) -> Result<Done, Stop> {
    magpie_driver::parse(session, path).map(|()| Done::Silent)
}
