//! Regatta's own C interface, started by `regatta run`, and the common parts of its other interfaces.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Mark;
use anyhow::{Context, Result, bail};

use super::{Facts, Job, Look, Machine, Peer, WAITS, lacks_of_others};
use crate::discover::{Competitor, c_compiler};
use crate::network::Network;
use crate::network::hosts::Hosts;
use crate::operations::Need;
use crate::results::OURS;
use crate::settings::{PINNED, Set, Tuning};

/// As [`OURS`], without encryption. Raced between hosts.
pub const TRUSTED: &str = "regatta-trusted";
/// As [`OURS`], over TCP alone, without the bypass for small messages. Raced between hosts.
pub const NO_BYPASS: &str = "regatta-no-bypass";
/// File name of its library.
pub const LIBRARY: &str = "libregatta.so";

/// Regatta's own interface.
#[derive(Debug)]
pub struct Regatta;

static FACTS: Facts = Facts {
    looks: &[
        Look::new(OURS, "Regatta", "#0d7fe0", Mark::Circle),
        Look::between_hosts(TRUSTED, "Regatta, trusted network", "#7a5fe0"),
        Look::between_hosts(NO_BYPASS, "Regatta, no bypass", "#2f7f9c"),
    ],
    adapter: "regatta",
    libraries: &["libregatta"],
    // It packs nothing, so messages of packed bytes are raced as plain bytes only, for comparison.
    lacks: |need| match need {
        Need::PackedTypes | Need::PackedDefault | Need::Types | Need::SendrecvTypes => {
            Some("its messages are bytes, and it converts no elements")
        }
        Need::Buffering => Some(WAITS),
        Need::Sendrecv | Need::MoreCollectives => None,
        need => lacks_of_others(need),
    },
    ours: true,
    profiles: true,
    loads_nodes: true,
    pinning: PINNING,
    dealt: DEALT,
    tunings: &[Tuning::all_networks(
        Set::Arguments(&["--bind", "none"]),
        PINNED,
    )],
    ..Facts::USUAL
};

impl Peer for Regatta {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    /// Finds the running command, and the library beside it or in ../lib.
    fn find(&'static self, _machine: &Machine) -> Vec<Result<Competitor, String>> {
        let own = match found() {
            Ok(own) => own,
            Err(why) => return vec![Err(why)],
        };
        let trusted = Competitor {
            name: TRUSTED.to_owned(),
            arguments: vec!["--trusted-network".to_owned()],
            ..own.clone()
        };
        let no_bypass = Competitor {
            name: NO_BYPASS.to_owned(),
            variables: vec![("REGATTA_BYPASS".to_owned(), "off".to_owned())],
            on_request: true,
            ..own.clone()
        };
        vec![Ok(own), Ok(trusted), Ok(no_bypass)]
    }

    fn flags(&self, programs: &Path, competitor: &Competitor) -> Result<Vec<String>> {
        flags(programs, competitor, |_| Ok(None))
    }

    fn launch(&self, job: &Job) -> Command {
        launch(job)
    }

    fn launch_profiled(&self, job: &Job) -> Option<Command> {
        Some(launch_profiled(job))
    }

    fn launch_between(&self, job: &Job, hosts: &Hosts) -> Command {
        let tasks = job.tasks.to_string();
        let reach = match hosts.network == Network::Loopback {
            true => hosts.file("pretend").display().to_string(),
            false => format!("{} {{host}}", hosts.file("enter").display()),
        };
        let slots = hosts.slots(job.tasks);
        let number = ["run", "-n", &tasks, "--host", &slots, "--rsh", &reach];
        job.under_launcher(&[&number[..], &["--connect-timeout", "30"]].concat())
    }
}

/// Fails if the library that would be raced was built without optimisation.
pub fn check_optimised() -> Result<()> {
    // The text of `rg_version` contains these bytes in such a library.
    const MARK: &[u8] = b"\0built without optimisation\0";
    let own = found().map_err(anyhow::Error::msg)?;
    let library = Path::new(&own.flags[0]).join(LIBRARY);
    let bytes = fs::read(&library).with_context(|| format!("cannot read {}", library.display()))?;
    if bytes.windows(MARK.len()).any(|some| some == MARK) {
        bail!(
            "{} was built without optimisation and can be ten times slower, so the race would be meaningless; build it with `cargo build --release`, or race it anyway with --unoptimised",
            library.display()
        );
    }
    Ok(())
}

fn found() -> Result<Competitor, String> {
    let launcher = regatta_command()
        .ok_or("regatta: this program is not the command `regatta`, which the race needs")?;
    let folder = launcher.parent().unwrap_or(Path::new("/")).to_owned();
    let library = [
        folder.clone(),
        folder.join("../lib"),
        folder.join("../lib64"),
        folder.join("deps"),
    ]
    .into_iter()
    .find(|folder| folder.join(LIBRARY).exists());
    let library = library.ok_or(format!(
        "regatta: libregatta.so is neither beside {} nor in ../lib; build it with `cargo build --release`",
        launcher.display()
    ))?;
    Ok(Competitor {
        name: OURS.to_owned(),
        peer: &Regatta,
        tuned: true,
        compiler: c_compiler(),
        // The folder of the library. The compiler gets links with the library's names.
        flags: vec![library.to_string_lossy().into_owned()],
        launcher,
        arguments: Vec::new(),
        variables: Vec::new(),
        on_request: false,
    })
}

fn regatta_command() -> Option<PathBuf> {
    let named = env::var_os("REGATTA_COMMAND")
        .map(PathBuf::from)
        .filter(|p| p.exists());
    named.or_else(|| {
        env::current_exe()
            .ok()
            .filter(|exe| exe.file_name().is_some_and(|name| name == "regatta"))
    })
}

/// A core for each task. With more tasks than processors the launcher's default is used: blocks of neighbours on a
/// core.
pub const PINNING: [&[&str]; 2] = [&["--bind", "core"], &[]];

/// Neighbours on different cores: 8 tasks, 2 cores, elimination by scattered columns 17 ms against 25.
pub const DEALT: &[&str] = &["--bind", "core"];

/// Returns the command that starts a job with `regatta run`.
pub fn launch(job: &Job) -> Command {
    job.under_launcher(&["run", "-n", &job.tasks.to_string()])
}

/// Returns the command that starts a job with `regatta profile`. Its page is written to the race's folder, which is
/// removed in the end.
pub fn launch_profiled(job: &Job) -> Command {
    let tasks = job.tasks.to_string();
    job.under_launcher(&["profile", "--json", "--rate", "0", "-n", &tasks])
}

/// Returns the compiler's arguments. A library that was built but not installed lacks the file that its soname names.
/// Links of both names in a folder of the race work in either case. `provide` adds the library of an interface to that
/// folder, and returns the arguments that link it.
pub fn flags(
    programs: &Path,
    competitor: &Competitor,
    provide: impl FnOnce(&Path) -> Result<Option<String>>,
) -> Result<Vec<String>> {
    let links = programs.join("lib");
    let library = Path::new(&competitor.flags[0]).join(LIBRARY);
    link(&links, &[LIBRARY, "libregatta.so.0"], &library)?;
    let mut flags = vec![
        format!("-I{}", programs.display()),
        format!("-L{}", links.display()),
        format!("-Wl,-rpath,{}", links.display()),
    ];
    flags.extend(provide(&links)?);
    // The delay of the second environment in a race of one against itself, if it has one.
    flags.extend(competitor.flags[1..].iter().cloned());
    // A program of another interface needs libregatta only through that interface's library.
    flags.extend(["-Wl,--as-needed", "-lregatta"].map(str::to_owned));
    Ok(flags)
}

/// Creates links to a library with these names in the folder `links`, so that the loader finds it.
pub fn link(links: &Path, names: &[&str], library: &Path) -> Result<()> {
    fs::create_dir_all(links)?;
    let library = fs::canonicalize(library)
        .with_context(|| format!("the library {} does not exist any more", library.display()))?;
    for name in names {
        let link = links.join(name);
        let _ = fs::remove_file(&link);
        symlink(&library, &link)?;
    }
    Ok(())
}

/// A library of Regatta's that replaces another library. It is found where it is built, beside libregatta.so, or where
/// it is installed.
#[derive(Debug)]
pub struct Library {
    /// Name of the file as it is built.
    pub file: &'static str,
    /// Its folder where it is installed, and the file's name there.
    pub installed: (&'static str, &'static str),
    /// The package that builds it.
    pub package: &'static str,
}

impl Library {
    /// Returns the path of the file near libregatta.so.
    pub fn find(&self, regatta: &Competitor) -> Option<PathBuf> {
        let folder = Path::new(&regatta.flags[0]);
        let (installed, name) = self.installed;
        let files = [folder.join(self.file), folder.join(installed).join(name)];
        files.into_iter().find(|file| file.exists())
    }

    /// Returns the environment of this name if the library exists, else a sentence about what is missing.
    pub fn competitor(
        &self,
        name: &str,
        peer: &'static dyn Peer,
        regatta: &Competitor,
    ) -> Result<Competitor, String> {
        if self.find(regatta).is_none() {
            return Err(format!(
                "{name}: {} is neither beside libregatta.so in {} nor in {} there; build it with `cargo build --release -p {}`",
                self.file, regatta.flags[0], self.installed.0, self.package
            ));
        }
        Ok(Competitor {
            name: name.to_owned(),
            peer,
            on_request: true,
            ..regatta.clone()
        })
    }

    /// Returns the path of a library that was found before. Fails if the file has been removed.
    pub fn get(&self, regatta: &Competitor) -> Result<PathBuf> {
        self.find(regatta)
            .with_context(|| format!("{} has gone", self.file))
    }
}

/// Returns why an interface over Regatta's own is not raced between hosts, or `None` on one host.
pub fn misses(network: Network) -> Option<&'static str> {
    (!network.is_local()).then_some("is raced on one host only")
}
