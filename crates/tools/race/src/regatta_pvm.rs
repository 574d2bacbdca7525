//! The environment `regatta-pvm`: the very program that was compiled for PVM, on Regatta's libraries of those names.
//!
//! Where PVM 3.4 is not installed the program is compiled with Regatta's header. Its virtual machine is a job under a name of
//! its own, begun before a launch and ended after it; it ends with the race too, however that ends.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

use crate::discover::Competitor;
use crate::process::Supervisor;
use crate::settings::Family;
use crate::stop::Woken;
use crate::tree::{self, Tree};

/// The library as it is built and installed.
const LIBRARY: &str = "libpvm3.so";
/// The names by which programs look for it; the functions of groups are in the same file.
const NAMES: [&str; 4] = ["libpvm3.so", "libpvm3.so.3", "libgpvm3.so", "libgpvm3.so.3"];
/// Below the folder of libregatta.so: an original PVM keeps its names.
const INSTALLED: &str = "regatta-pvm";
const HEADER: &str = include_str!("../../../interfaces/pvm/include/pvm3.h");
/// How long the machine may take to begin,
const BEGIN: Duration = Duration::from_secs(30);
/// and to end its tasks.
const GRACE: Duration = Duration::from_secs(10);

/// Regatta's libraries of PVM beside its own, and PVM's program if that is here.
pub fn competitor(regatta: &Competitor, pvm: Option<&Competitor>) -> Result<Competitor, String> {
    let folder = Path::new(&regatta.flags[0]);
    if library(folder).is_none() {
        return Err(format!(
            "regatta-pvm: {LIBRARY} is neither beside libregatta.so in {} nor in {INSTALLED} there; build it with `cargo build --release -p regatta-pvm`",
            folder.display()
        ));
    }
    let of_pvm = pvm.map(|pvm| pvm.flags.clone()).unwrap_or_default();
    let mut flags = regatta.flags.clone();
    flags.extend(of_pvm);
    Ok(Competitor {
        name: "regatta-pvm".to_owned(),
        family: Family::RegattaPvm,
        flags,
        // Spawned tasks get the machine's variables, and of their parent's only those named here.
        variables: vec![("PVM_EXPORT".to_owned(), "RACE_HOLD".to_owned())],
        ..regatta.clone()
    })
}

/// The library beside libregatta.so, as it is built, or in the folder where it is installed.
fn library(folder: &Path) -> Option<PathBuf> {
    let files = [folder.join(LIBRARY), folder.join(INSTALLED).join(LIBRARY)];
    files.into_iter().find(|file| file.exists())
}

/// Whose program runs: PVM's own if there is one.
pub fn program(competitor: &Competitor) -> &str {
    match competitor.flags.len() {
        0 | 1 => &competitor.name,
        _ => "pvm",
    }
}

/// The compiler's arguments: PVM's flags, or Regatta's header and libraries. `programs` gets the links by which the loader
/// finds the libraries.
pub fn flags(programs: &Path, competitor: &Competitor) -> Result<Vec<String>> {
    let (folder, of_pvm) = competitor.flags.split_first().context("no library")?;
    let (folder, links) = (Path::new(folder), links(programs));
    let of_regatta = folder.join("libregatta.so");
    let as_pvm = library(folder).with_context(|| format!("{LIBRARY} has gone"))?;
    fs::create_dir_all(&links)?;
    let named = NAMES.map(|name| (name, &as_pvm));
    let more = ["libregatta.so", "libregatta.so.0"].map(|name| (name, &of_regatta));
    for (name, file) in named.into_iter().chain(more) {
        let link = links.join(name);
        let _ = fs::remove_file(&link);
        symlink(fs::canonicalize(file)?, &link)?;
    }
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

fn links(programs: &Path) -> PathBuf {
    programs.join("pvm-lib")
}

/// The variable by which the loader takes Regatta's libraries, not PVM's.
pub fn loader(programs: &Path) -> (String, String) {
    let folder = links(programs).display().to_string();
    ("LD_LIBRARY_PATH".to_owned(), folder)
}

/// A virtual machine; dropping it ends it and all its tasks.
pub struct Machine {
    /// Its job ends when this is closed, so also when the race is killed.
    leash: Option<ChildStdin>,
    /// The command that has started it, with all that came of it.
    tree: Tree,
    job: Pid,
    id: String,
}

impl Machine {
    /// Begin it and wait until it takes tasks. The caller adopts orphans.
    pub fn start(supervisor: &Supervisor, competitor: &Competitor, work: &Path) -> Result<Machine> {
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
        // It returns when the machine can be entered, which then is ours: an orphan.
        match starter.await_end(Instant::now() + BEGIN)? {
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
                "the virtual machine of regatta-pvm has ended at once: {}",
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

    /// The variable that tells tasks which machine is theirs.
    pub fn variable(&self) -> (&'static str, &str) {
        ("PVM_VMID", &self.id)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let tasks = tree::descendants(self.job.as_raw_nonzero().get());
        drop(self.leash.take());
        tree::end_adopted(self.job, GRACE, self.tree.stop());
        tree::end_all(&tasks);
        self.tree.end_rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::c_compiler;

    fn regatta(folder: &Path) -> Competitor {
        Competitor {
            name: "regatta".to_owned(),
            family: Family::Regatta,
            tuned: true,
            compiler: c_compiler(),
            flags: vec![folder.display().to_string()],
            launcher: PathBuf::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
            on_request: false,
        }
    }

    #[test]
    fn the_library_is_found_where_it_is_built_and_where_it_is_installed() {
        let top = std::env::temp_dir().join(format!("regatta-pvm-found-{}", std::process::id()));
        fs::create_dir_all(top.join(INSTALLED)).unwrap();
        let missing = competitor(&regatta(&top), None);
        fs::write(top.join(INSTALLED).join(LIBRARY), "").unwrap();
        fs::write(top.join("libregatta.so"), "").unwrap();
        let own = competitor(&regatta(&top), None).unwrap();
        let flags = flags(&top, &own).unwrap();
        let link = fs::read_link(links(&top).join("libgpvm3.so.3")).unwrap();
        fs::remove_dir_all(&top).unwrap();
        assert!(missing.unwrap_err().contains("-p regatta-pvm"));
        assert!(link.ends_with(Path::new(INSTALLED).join(LIBRARY)));
        assert_eq!(program(&own), "regatta-pvm");
        assert!(flags.iter().any(|flag| flag.starts_with("-I")), "{flags:?}");
    }

    #[test]
    fn where_pvm_is_its_own_program_runs() {
        let of_pvm = Competitor {
            flags: vec!["-lgpvm3".to_owned(), "-lpvm3".to_owned()],
            ..regatta(Path::new("/nowhere"))
        };
        let mut both = of_pvm.flags.clone();
        both.insert(0, "/nowhere".to_owned());
        let competitor = Competitor {
            flags: both,
            ..of_pvm
        };
        assert_eq!(program(&competitor), "pvm");
    }
}
