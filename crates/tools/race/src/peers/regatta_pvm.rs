//! The environment `regatta-pvm`: the same program that was compiled for PVM, on Regatta's libraries with the names of
//! PVM's.
//!
//! Where PVM 3.4 is not installed, the program is compiled with Regatta's header. Its virtual machine is a job with a
//! name of its own, started before a launch and ended after it. It also ends when the race ends for any reason.

use std::fs::{self, File};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

use super::regatta::{self, Library};
use super::{Facts, Job, Look, Peer, Surroundings, lacks_of_others, pvm};
use crate::discover::Competitor;
use crate::network::hosts::Hosts;
use crate::process::Supervisor;
use crate::results::OURS;
use crate::stop::Woken;
use crate::tree::{self, Tree};

/// Its name in results.
pub const NAME: &str = "regatta-pvm";
/// As [`NAME`], without the call for the direct route.
pub const DAEMON: &str = "regatta-pvm-daemon";
/// The library is installed in a folder of its own, since an installed PVM has the same file names.
const LIBRARY: Library = Library {
    file: "libpvm3.so",
    installed: (NAME, "libpvm3.so"),
    package: NAME,
};
/// The file names by which programs find the library. The functions of groups are in the same file.
const NAMES: [&str; 4] = ["libpvm3.so", "libpvm3.so.3", "libgpvm3.so", "libgpvm3.so.3"];
/// Name of the folder of links through which the loader finds Regatta's libraries instead of PVM's.
const LINKS: &str = "pvm-lib";
const HEADER: &str = include_str!("../../../../interfaces/pvm/include/pvm3.h");
/// Time limit for the start of the machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for the machine to end its tasks.
const TASKS_END_TIMEOUT: Duration = Duration::from_secs(10);

/// PVM's program on Regatta.
#[derive(Debug)]
pub struct RegattaPvm;

static FACTS: Facts = Facts {
    looks: &[
        Look::interface(NAME, "Regatta as PVM", "#6f7de8"),
        Look::interface(DAEMON, "Regatta as PVM, no route asked for", "#9aa5f0").of_a_suite(),
    ],
    adapter: pvm::ADAPTER,
    // One file has both names. The loader lists the first.
    libraries: &["libpvm3", "libgpvm3"],
    lacks: lacks_of_others,
    misses: regatta::misses,
    takes_turns: false,
    starts_tasks: true,
    note: Some(pvm::NOTE),
    tunings: &[pvm::direct(
        "the same program as on PVM; Regatta has one route only",
    )],
    ..Facts::USUAL
};

impl Peer for RegattaPvm {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    /// Finds Regatta's libraries of PVM beside its own library, and PVM's program if PVM is installed.
    fn find(&'static self, machine: &super::Machine) -> Vec<Result<Competitor, String>> {
        let with = |regatta| match competitor(regatta, pvm::find().as_ref()) {
            Ok(own) => vec![Ok(own.clone()), Ok(pvm::by_daemon(&own, DAEMON))],
            Err(why) => vec![Err(why)],
        };
        machine.named(OURS).map(with).unwrap_or_default()
    }

    /// Returns the name of PVM's own program if PVM is installed.
    fn program<'a>(&self, competitor: &'a Competitor) -> &'a str {
        match competitor.flags.len() {
            0 | 1 if competitor.name == DAEMON => NAME,
            0 | 1 => &competitor.name,
            _ => pvm::NAME,
        }
    }

    /// Returns PVM's flags, or Regatta's header and libraries.
    fn flags(&self, programs: &Path, competitor: &Competitor) -> Result<Vec<String>> {
        let (folder, of_pvm) = competitor.flags.split_first().context("no library")?;
        let links = programs.join(LINKS);
        let own = Path::new(folder).join(regatta::LIBRARY);
        regatta::link(&links, &NAMES, &LIBRARY.get(competitor)?)?;
        regatta::link(&links, &[regatta::LIBRARY, "libregatta.so.0"], &own)?;
        if !of_pvm.is_empty() {
            return Ok(of_pvm.to_vec());
        }
        let include = programs.join("pvm-include");
        fs::create_dir_all(&include)?;
        fs::write(include.join("pvm3.h"), HEADER)?;
        Ok(vec![
            format!("-I{}", include.display()),
            format!("-L{}", links.display()),
            format!("-Wl,-rpath-link,{}", links.display()),
            "-lgpvm3".to_owned(),
            "-lpvm3".to_owned(),
        ])
    }

    fn loader(&self, programs: &Path) -> Option<(String, String)> {
        let links = programs.join(LINKS).display().to_string();
        Some(("LD_LIBRARY_PATH".to_owned(), links))
    }

    fn launch(&self, job: &Job) -> Command {
        job.by_itself()
    }

    fn surround(
        &self,
        supervisor: &Supervisor,
        competitor: &Competitor,
        work: &Path,
        _hosts: Option<&Hosts>,
    ) -> Result<Option<Box<dyn Surroundings>>> {
        let machine = Machine::start(supervisor, competitor, work)?;
        Ok(Some(Box::new(machine)))
    }
}

fn competitor(regatta: &Competitor, pvm: Option<&Competitor>) -> Result<Competitor, String> {
    let own = LIBRARY.competitor(NAME, &RegattaPvm, regatta)?;
    let of_pvm = pvm.map(|pvm| pvm.flags.clone()).unwrap_or_default();
    Ok(Competitor {
        flags: [own.flags.clone(), of_pvm].concat(),
        // Spawned tasks get the machine's variables, and those of their parent's variables that are named here.
        variables: vec![("PVM_EXPORT".to_owned(), pvm::EXPORTED.to_owned())],
        on_request: false,
        ..own
    })
}

/// A virtual machine. Dropping it ends the machine and all its tasks.
pub struct Machine {
    /// Pipe whose end ends the machine's job, so the job also ends when the race is killed.
    leash: Option<ChildStdin>,
    /// The command that has started the machine, with all its processes.
    tree: Tree,
    job: Pid,
    id: String,
}

impl Machine {
    /// Starts a machine and waits until it can spawn tasks. The caller adopts orphans.
    fn start(supervisor: &Supervisor, competitor: &Competitor, work: &Path) -> Result<Machine> {
        let id = format!("race-{}", std::process::id());
        let log = work.join("regatta-pvm.log");
        let before = tree::children();
        let mut command = Command::new(&competitor.launcher);
        command
            .args(["resident", "--leash", &format!("pvm.{id}")])
            .envs(
                competitor
                    .variables
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?);
        let mut starter = supervisor.spawn(&mut command)?;
        let leash = starter.child().stdin.take();
        let said = || fs::read_to_string(&log).unwrap_or_default();
        // The command returns when the machine can be entered. The machine is then an orphan, which this process
        // adopts.
        match starter.await_end(Instant::now() + START_TIMEOUT)? {
            Woken::Ready(_) => {}
            woken => {
                drop(leash);
                starter.end();
                bail!(
                    "the virtual machine of regatta-pvm did not start ({woken:?}): {}",
                    said().trim()
                );
            }
        }
        let status = starter.child().wait()?;
        if !status.success() {
            bail!(
                "the virtual machine of regatta-pvm did not start ({status}): {}",
                said().trim()
            );
        }
        let fresh = tree::children();
        let job = fresh
            .difference(&before)
            .find_map(|pid| Pid::from_raw(*pid));
        let job = job.with_context(|| {
            format!(
                "the virtual machine of regatta-pvm ended immediately: {}",
                said().trim()
            )
        })?;
        Ok(Machine {
            leash,
            tree: starter,
            job,
            id,
        })
    }
}

impl Surroundings for Machine {
    /// Returns the variable by which tasks find this machine.
    fn variable(&self) -> (&'static str, String) {
        ("PVM_VMID", self.id.clone())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let tasks = tree::descendants(self.job.as_raw_nonzero().get());
        drop(self.leash.take());
        tree::end_adopted(self.job, TASKS_END_TIMEOUT, self.tree.stop());
        tree::end_all(&tasks);
        self.tree.end_rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::tests::competitor as environment;

    fn regatta(folder: &Path) -> Competitor {
        Competitor {
            flags: vec![folder.display().to_string()],
            ..environment(OURS, &regatta::Regatta)
        }
    }

    #[test]
    fn the_library_is_found_where_it_is_built_and_where_it_is_installed() {
        let top = std::env::temp_dir().join(format!("regatta-pvm-found-{}", std::process::id()));
        fs::create_dir_all(top.join(NAME)).unwrap();
        let missing = competitor(&regatta(&top), None);
        fs::write(top.join(NAME).join(LIBRARY.file), "").unwrap();
        fs::write(top.join(regatta::LIBRARY), "").unwrap();
        let own = competitor(&regatta(&top), None).unwrap();
        let flags = RegattaPvm.flags(&top, &own).unwrap();
        let link = fs::read_link(top.join(LINKS).join("libgpvm3.so.3")).unwrap();
        fs::remove_dir_all(&top).unwrap();
        assert!(missing.unwrap_err().contains("-p regatta-pvm"));
        assert!(link.ends_with(Path::new(NAME).join(LIBRARY.file)));
        assert_eq!(RegattaPvm.program(&own), NAME);
        assert!(flags.iter().any(|flag| flag.starts_with("-I")), "{flags:?}");
    }

    #[test]
    fn where_pvm_is_its_own_program_runs() {
        let mut both = regatta(Path::new("/nowhere"));
        both.flags.extend(["-lgpvm3", "-lpvm3"].map(str::to_owned));
        assert_eq!(RegattaPvm.program(&both), "pvm");
    }
}
