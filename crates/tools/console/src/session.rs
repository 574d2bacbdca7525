//! A session on standard input and output: the start file, then lines until the end of input.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use crate::console::{Console, Next};
use crate::input::{Input, Woken};
use crate::library::{Found, Library};

/// The prompt for a line.
const PROMPT: &str = "pvm> ";
/// A file in the user's home whose lines are executed first.
const START_FILE: &str = ".pvmrc";

/// Runs a console until the end of input, or of the machine.
pub fn run(arguments: &[String]) -> ExitCode {
    match begin(arguments).and_then(|console| talk(console).map_err(|error| error.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            let _ = writeln!(io::stderr(), "Console: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn begin(arguments: &[String]) -> Result<Console<Library>, String> {
    let (calls, found) = Library::start(arguments)?;
    let library = Library::join(calls)?;
    if found == Found::Running {
        let _ = writeln!(io::stdout(), "pvmd already running.");
    }
    Ok(Console::new(library))
}

fn talk(mut console: Console<Library>) -> io::Result<()> {
    let next = match start_file(&mut console)? {
        Next::Line => lines(&mut console)?,
        next => next,
    };
    if next == Next::Quit {
        let mut out = io::stdout().lock();
        writeln!(out, "\nConsole: exit handler called\npvmd still running.")?;
        out.flush()?;
        console.into_machine().leave();
    }
    Ok(())
}

fn start_file(console: &mut Console<Library>) -> io::Result<Next> {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    let Some(text) = home.and_then(|home| std::fs::read_to_string(home.join(START_FILE)).ok())
    else {
        return Ok(Next::Line);
    };
    for line in text.lines() {
        console.print(line);
        let next = console.line(line);
        console.flush_to(&mut io::stdout())?;
        if next != Next::Line {
            return Ok(next);
        }
    }
    Ok(Next::Line)
}

fn lines(console: &mut Console<Library>) -> io::Result<Next> {
    let (mut input, mut out) = (Input::default(), io::stdout());
    // On a terminal the user sees what is typed. Otherwise lines are echoed, so that a log is readable.
    let repeats = !io::stdin().is_terminal();
    let mut prompted = false;
    loop {
        let next = console.read_news();
        console.flush_to(&mut out)?;
        if next != Next::Line {
            return Ok(next);
        }
        if !prompted {
            write!(out, "{PROMPT}")?;
            out.flush()?;
            prompted = true;
        }
        let line = match input.wait(&console.machine().descriptors())? {
            Woken::Notice => continue,
            Woken::Line(line) => line,
            Woken::End => {
                writeln!(out, "quit")?;
                return Ok(Next::Quit);
            }
        };
        if repeats {
            console.print(&line);
        }
        let next = console.line(&line);
        console.flush_to(&mut out)?;
        prompted = false;
        if next != Next::Line {
            return Ok(next);
        }
    }
}
