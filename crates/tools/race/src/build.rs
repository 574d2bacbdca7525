//! Compiling the programs of the race, the same text for every environment.
//!
//! The texts are part of the command, so that an installed `regatta` can race without its sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::discover::Competitor;
use crate::network::Network;
use crate::process::Supervisor;
use crate::settings::Family;
use crate::{interface, regatta_pvm, same_program};

/// How long a compiler may take.
const LIMIT: Duration = Duration::from_secs(120);

macro_rules! texts {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../programs/", $path)))),*]
    };
}

const TEXTS: &[(&str, &str)] = texts![
    "adapter.h",
    "adapters/express.c",
    "adapters/limit.c",
    "adapters/limit/board.h",
    "adapters/limit/crowd.h",
    "adapters/limit/distance.h",
    "adapters/limit/layout.h",
    "adapters/limit/rings.h",
    "adapters/limit/trials.h",
    "adapters/mpi.c",
    "adapters/nx.c",
    "adapters/processes.h",
    "adapters/pvm.c",
    "adapters/regatta.c",
    "adapters/sockets.c",
    "primitives/barrier.c",
    "primitives/blocks.c",
    "primitives/broadcast.c",
    "primitives/complete-exchange.c",
    "primitives/concatenation.c",
    "primitives/copy.c",
    "primitives/duet.h",
    "primitives/exchange.c",
    "primitives/global.c",
    "primitives/host.c",
    "primitives/hosted.h",
    "primitives/idle.c",
    "primitives/main.c",
    "primitives/measure.h",
    "primitives/message-rate.c",
    "primitives/one-to-one.c",
    "primitives/ping-pong.c",
    "primitives/payload.h",
    "primitives/ring.c",
    "primitives/spawn.c",
    "primitives/threads.c",
    "primitives/vector.c",
    "primitives/window.c",
];

const REGATTA_H: &str = include_str!("../../../interfaces/c/include/regatta.h");

/// The programs' sources, written out below a working folder.
pub struct Sources {
    folder: PathBuf,
    network: Network,
}

impl Sources {
    /// Write the texts below `work`.
    pub fn write(work: &Path, network: Network) -> Result<Sources> {
        let folder = work.join("programs");
        for (path, text) in TEXTS {
            let file = folder.join(path);
            let parent = file.parent().expect("every path has a folder");
            fs::create_dir_all(parent)?;
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        fs::write(folder.join("regatta.h"), REGATTA_H)?;
        Ok(Sources { folder, network })
    }

    /// Compile the primitives for one environment; the path of the program.
    pub fn compile(&self, supervisor: &Supervisor, competitor: &Competitor) -> Result<PathBuf> {
        let name = match competitor.family {
            Family::RegattaPvm => regatta_pvm::program(competitor),
            _ => same_program::source(competitor),
        };
        let flags = self.library_flags(competitor)?;
        let program = self.folder.join(format!("primitives-{name}"));
        if program.exists() {
            // Another environment's, on the libraries of this one.
            return Ok(program);
        }
        let mut command = Command::new(&competitor.compiler);
        command
            .args(["-std=gnu11", "-O3"])
            .arg(format!(
                "-DADAPTER=\"adapters/{}.c\"",
                adapter(competitor.family, self.network)
            ))
            .arg(self.folder.join("primitives/main.c"))
            .arg("-o")
            .arg(&program)
            .args(flags)
            .envs(
                competitor
                    .variables
                    .iter()
                    .map(|(name, value)| (name, value)),
            );
        let finished = supervisor
            .run(&mut command, LIMIT)
            .with_context(|| format!("cannot run {}", competitor.compiler.display()))?;
        if finished.timed_out {
            bail!(
                "{} did not end within {:.0} s",
                competitor.compiler.display(),
                LIMIT.as_secs_f64()
            );
        }
        if !finished.success {
            bail!(
                "{} could not compile the programs for {}:\n{}",
                competitor.compiler.display(),
                competitor.name,
                finished.stderr.trim_end()
            );
        }
        Ok(program)
    }

    /// Where the programs are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn library_flags(&self, competitor: &Competitor) -> Result<Vec<String>> {
        if competitor.name == same_program::REGATTA_MPICH {
            same_program::provide(&self.folder, competitor)?;
            return Ok(Vec::new());
        }
        match competitor.family {
            family if family.is_started_by_regatta() => self.regatta_flags(competitor),
            Family::RegattaPvm => regatta_pvm::flags(&self.folder, competitor),
            _ => Ok(competitor.flags.clone()),
        }
    }

    /// A library that was built but not installed lacks the file its soname asks for. A link of each
    /// name, in a folder of ours, serves both cases.
    fn regatta_flags(&self, competitor: &Competitor) -> Result<Vec<String>> {
        let library = Path::new(&competitor.flags[0]);
        let links = self.folder.join("lib");
        fs::create_dir_all(&links)?;
        for name in ["libregatta.so", "libregatta.so.0"] {
            let link = links.join(name);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(fs::canonicalize(library.join("libregatta.so"))?, &link)?;
        }
        let mut flags = vec![
            format!("-I{}", self.folder.display()),
            format!("-L{}", links.display()),
            format!("-Wl,-rpath,{}", links.display()),
        ];
        flags.extend(interface::provide(competitor, &links, &self.folder)?);
        // The delay of a twin, if it has one.
        flags.extend(competitor.flags[1..].iter().cloned());
        // A program of another interface needs it only by way of that.
        flags.extend(["-Wl,--as-needed", "-lregatta"].map(str::to_owned));
        Ok(flags)
    }
}

fn adapter(family: Family, network: Network) -> &'static str {
    match family {
        Family::Regatta => "regatta",
        Family::RegattaNx => "nx",
        Family::RegattaExpress => "express",
        Family::OpenMpi | Family::Mpich | Family::Mpich4 | Family::RegattaMpi => "mpi",
        Family::Pvm | Family::RegattaPvm => "pvm",
        Family::Limit if network.is_local() => "limit",
        Family::Limit => "sockets",
    }
}

/// The library file a program was linked with, as the loader will find it.
pub fn library_of(supervisor: &Supervisor, program: &Path, competitor: &Competitor) -> String {
    let mut command = Command::new("ldd");
    command.arg(program).envs(
        competitor
            .variables
            .iter()
            .map(|(name, value)| (name, value)),
    );
    let text = supervisor
        .run(&mut command, LIMIT)
        .map(|finished| finished.stdout)
        .unwrap_or_default();
    let wanted: &[&str] = match competitor.family {
        Family::Regatta => &["libregatta"],
        Family::RegattaNx => &["libnx."],
        Family::RegattaExpress => &["libexpress."],
        Family::RegattaMpi => &["libmpi_abi.", "libmpi."],
        Family::OpenMpi | Family::Mpich | Family::Mpich4 => {
            &["libmpi.", "libmpich.", "libmpi_abi."]
        }
        Family::Pvm => &["libpvm3"],
        // One file by both names: the loader tells the first.
        Family::RegattaPvm => &["libpvm3", "libgpvm3"],
        Family::Limit => return "none".to_owned(),
    };
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

    /// A new program file must be written out too, or races break where there are no sources.
    #[test]
    fn every_text_of_the_programs_is_compiled_in() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../programs");
        let mut seen = 0;
        for folder in ["", "adapters", "adapters/limit", "primitives"] {
            for entry in fs::read_dir(top.join(folder)).unwrap().flatten() {
                let name = entry.file_name().into_string().unwrap();
                if name.ends_with(".c") || name.ends_with(".h") {
                    let path = Path::new(folder).join(&name);
                    assert!(
                        TEXTS.iter().any(|(text, _)| Path::new(text) == path),
                        "{} is left out",
                        path.display()
                    );
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, TEXTS.len());
    }
}
