//! Compiles the programs of the race, from the same text for every environment.
//!
//! The texts are compiled into the command, so that an installed `regatta` can race without its sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::discover::Competitor;
use crate::network::Network;
use crate::operations::{self, Application};
use crate::process::Supervisor;

/// Time limit for a compiler.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(120);

/// Compiler arguments that make the time of a loop independent of the length of the code before it, which differs
/// between libraries. Unaligned, a loop that spanned two lines of the instruction cache took a quarter longer (Gaussian
/// elimination, one task, Zen 4).
const ALIGNED: [&str; 2] = ["-falign-functions=64", "-falign-loops=64"];

/// All texts below `programs`: each path relative to that folder, and the text.
const TEXTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/texts.rs"));

const REGATTA_H: &str = include_str!("../../../interfaces/c/include/regatta.h");

/// The programs' sources, written out below a working folder.
pub struct Sources {
    folder: PathBuf,
    network: Network,
}

impl Sources {
    /// Writes the texts below `work`.
    pub fn write(work: &Path, network: Network) -> Result<Sources> {
        let folder = work.join("programs");
        for (path, text) in TEXTS {
            let file = folder.join(path);
            let parent = file.parent().expect("every path has a folder");
            fs::create_dir_all(parent)?;
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        fs::write(folder.join("regatta.h"), REGATTA_H)?;
        fs::write(folder.join("primitives/operations.h"), includes())?;
        Ok(Sources { folder, network })
    }

    /// Compiles the primitives for one environment. Returns the path of the program.
    pub fn compile(&self, supervisor: &Supervisor, competitor: &Competitor) -> Result<PathBuf> {
        let adapter = competitor.peer.adapter(self.network);
        let defined = format!("-DADAPTER=\"adapters/{adapter}.c\"");
        let text = Path::new("primitives/main.c");
        self.compile_text(supervisor, competitor, "primitives", text, &[&defined])
    }

    /// Compiles an application for one environment. Returns the path of the program.
    pub fn compile_application(
        &self,
        supervisor: &Supervisor,
        competitor: &Competitor,
        application: &Application,
    ) -> Result<PathBuf> {
        let interface = competitor.peer.adapter(self.network);
        let text = application.text(interface);
        let text = text.with_context(|| format!("it is not written for {interface}"))?;
        let name = application.file.replace("{}", "").replace(['/', '.'], "-");
        let arguments = [&ALIGNED[..], &["-lm"]].concat();
        self.compile_text(supervisor, competitor, &name, Path::new(&text), &arguments)
    }

    /// Compiles one text below `programs`. `arguments` are added after the text's path.
    fn compile_text(
        &self,
        supervisor: &Supervisor,
        competitor: &Competitor,
        name: &str,
        text: &Path,
        arguments: &[&str],
    ) -> Result<PathBuf> {
        let flags = competitor.peer.flags(&self.folder, competitor)?;
        let environment = competitor.peer.program(competitor);
        let program = self.folder.join(format!("{name}-{environment}"));
        if program.exists() {
            // The program belongs to another environment and runs on this one's libraries.
            return Ok(program);
        }
        let mut command = Command::new(&competitor.compiler);
        let variables = competitor.variables.iter();
        command
            .args(["-std=gnu11", "-O3"])
            .arg(self.folder.join(text))
            .arg("-o")
            .arg(&program)
            .args(flags)
            .args(arguments)
            .envs(variables.map(|(name, value)| (name, value)));
        let compiler = competitor.compiler.display();
        let finished = supervisor
            .run(&mut command, COMPILE_TIMEOUT)
            .with_context(|| format!("cannot run {compiler}"))?;
        if finished.timed_out {
            let seconds = COMPILE_TIMEOUT.as_secs_f64();
            bail!("{compiler} did not end within {seconds:.0} s");
        }
        if !finished.success {
            let (name, errors) = (&competitor.name, finished.stderr.trim_end());
            bail!("{compiler} could not compile the programs for {name}:\n{errors}");
        }
        Ok(program)
    }

    /// Returns the folder of the programs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Returns the text with this path below `programs`.
pub fn text(path: &str) -> Option<&'static str> {
    let found = TEXTS.iter().find(|(one, _)| *one == path);
    found.map(|(_, text)| *text)
}

/// Returns the list by which the program includes the text of each operation.
fn includes() -> String {
    let files = operations::programs().into_iter();
    files.map(|file| format!("#include \"{file}\"\n")).collect()
}

/// Returns the library file that a program was linked with, as the loader finds it.
pub fn library_of(supervisor: &Supervisor, program: &Path, competitor: &Competitor) -> String {
    if competitor.peer.facts().libraries.is_empty() {
        return "none".to_owned();
    }
    let mut command = Command::new("ldd");
    command.arg(program).envs(
        competitor
            .variables
            .iter()
            .map(|(name, value)| (name, value)),
    );
    let text = supervisor
        .run(&mut command, COMPILE_TIMEOUT)
        .map(|finished| finished.stdout)
        .unwrap_or_default();
    let wanted = competitor.peer.facts().libraries;
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| wanted.iter().any(|name| line.starts_with(name)));
    let path = line
        .and_then(|line| line.split("=> ").nth(1))
        .and_then(|rest| rest.split(" (").next());
    let real = path.map(|path| fs::canonicalize(path).unwrap_or_else(|_| path.into()));
    real.map_or_else(
        || "linked into the program".to_owned(),
        |path| path.display().to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::tests::competitor;
    use crate::stop::Stop;

    /// The limit cannot write to the memory of other tasks. A launch that asks for that must still measure the rest.
    #[test]
    fn a_program_says_what_it_cannot_run_and_runs_the_rest() {
        let work = std::env::temp_dir().join(format!("regatta-refusals-{}", std::process::id()));
        let supervisor = Supervisor::new(&Stop::new().unwrap());
        let limit = competitor("limit", &crate::peers::limit::Limit);
        let sources = Sources::write(&work, Network::Local).unwrap();
        let program = sources.compile(&supervisor, &limit).unwrap();
        let mut command = Command::new(program);
        command.args(["--budget", "1", "put-flush=8", "barrier=0", "one-to-one=8"]);
        command.env("RACE_TASKS", "3");
        let finished = supervisor.run(&mut command, COMPILE_TIMEOUT).unwrap();
        fs::remove_dir_all(&work).unwrap();
        let output = crate::output::parse(&finished.stdout);
        let cannot = output
            .cannot
            .iter()
            .map(|(operation, _)| operation.as_str());
        assert_eq!(cannot.collect::<Vec<_>>(), ["put-flush", "one-to-one"]);
        let points = output.points.iter().map(|point| point.operation.as_str());
        assert_eq!(points.collect::<Vec<_>>(), ["barrier"]);
        assert!(finished.success && output.done, "{}", finished.stderr);
    }
}
