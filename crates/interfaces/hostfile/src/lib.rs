//! Parses PVM's host files: the hosts of a virtual machine, with their options. Pure.
//!
//! ```text
//! # a comment
//! *      sp=500 ep=$HOME/bin     defaults for the lines that follow, and for hosts added later
//! alpha  wd=/scratch             a host to start
//! & beta lo=guest                a host that is known, with its options, but not started
//! ```
//!
//! The console's `add` and `pvm_addhosts` take a single line of this form. Variables (`$NAME`) are not expanded here
//! but on each host, which has its own.

#![forbid(unsafe_code)]

mod fault;
mod line;

pub use fault::{Fault, Problem};
pub use line::{host, words};

/// How the process of the virtual machine on a host is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// By the remote shell, which asks for a password (`so=pw`).
    Password,
    /// By the user, who types a command there (`so=ms`).
    Manual,
}

/// The options of a host; `None` if not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `lo=`: the login name on the host.
    pub login: Option<String>,
    /// `dx=`: the program that is started on the host.
    pub daemon: Option<String>,
    /// `ep=`: where programs are searched for, separated by colons.
    pub programs: Option<String>,
    /// `wd=`: working directory of tasks.
    pub directory: Option<String>,
    /// `sp=`: relative speed, 1 to 1000000.
    pub speed: Option<u32>,
    /// `bx=`: the command that starts a debugger.
    pub debugger: Option<String>,
    /// `so=`: how the host is started.
    pub start: Option<Start>,
    /// `ip=`: the name or address by which it is reached.
    pub address: Option<String>,
    /// `id=`: to which of the user's virtual machines it belongs.
    pub machine: Option<String>,
}

impl Options {
    /// Returns these options, with the defaults for those that are not given.
    pub fn or(&self, defaults: &Options) -> Options {
        fn first<T: Clone>(own: &Option<T>, default: &Option<T>) -> Option<T> {
            own.clone().or_else(|| default.clone())
        }
        Options {
            login: first(&self.login, &defaults.login),
            daemon: first(&self.daemon, &defaults.daemon),
            programs: first(&self.programs, &defaults.programs),
            directory: first(&self.directory, &defaults.directory),
            speed: first(&self.speed, &defaults.speed),
            debugger: first(&self.debugger, &defaults.debugger),
            start: first(&self.start, &defaults.start),
            address: first(&self.address, &defaults.address),
            machine: first(&self.machine, &defaults.machine),
        }
    }
}

/// A host and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Whether to start another process of the machine on a host that has one (`$` in front of the name).
    pub overload: bool,
    /// Its own options, and the defaults for the others.
    pub options: Options,
}

/// A host file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Hosts to start, in the order of the file.
    pub hosts: Vec<Host>,
    /// Hosts that are not started (`&`): their options apply once they are added.
    pub known: Vec<Host>,
    /// The options of the last line of defaults (`*`).
    pub defaults: Options,
}

impl File {
    /// Parses a file. Fails with all faults.
    pub fn read(text: &str) -> Result<File, Vec<Problem>> {
        let (file, problems) = File::read_lines(text);
        if problems.is_empty() {
            Ok(file)
        } else {
            Err(problems)
        }
    }

    /// Parses the lines of a file that are valid, and returns the faults of the others.
    fn read_lines(text: &str) -> (File, Vec<Problem>) {
        let (mut file, mut problems) = (File::default(), Vec::new());
        for (number, line) in (1..).zip(text.lines()) {
            let read = words(line).and_then(|words| file.take(&words));
            problems.extend(read.err().map(|fault| Problem {
                line: number,
                fault,
            }));
        }
        (file, problems)
    }

    fn take(&mut self, words: &[String]) -> Result<(), Fault> {
        match words {
            [] => Ok(()),
            [star, options @ ..] if star == "*" => {
                self.defaults = line::options(options)?;
                Ok(())
            }
            [first, rest @ ..] if first.starts_with('&') => {
                // The `&` may touch the name or stand alone.
                let touching = Some(&first[1..]).filter(|name| !name.is_empty());
                let name = touching.map(str::to_owned).into_iter();
                let host = line::host_of(
                    &name.chain(rest.iter().cloned()).collect::<Vec<_>>(),
                    &self.defaults,
                )?;
                self.enter(host, false)
            }
            _ => {
                let host = line::host_of(words, &self.defaults)?;
                self.enter(host, true)
            }
        }
    }

    fn enter(&mut self, host: Host, start: bool) -> Result<(), Fault> {
        let named = |other: &&Host| other.name == host.name && !host.overload;
        if self
            .hosts
            .iter()
            .chain(&self.known)
            .any(|other| named(&other))
        {
            return Err(Fault::Twice(host.name));
        }
        if start {
            &mut self.hosts
        } else {
            &mut self.known
        }
        .push(host);
        Ok(())
    }

    /// Returns a host to be added. The options of its line take precedence over those in the file, and these over the
    /// defaults.
    pub fn added(&self, said: &str) -> Result<Host, Fault> {
        let mut host = host(said, &Options::default())?;
        let known = self
            .known
            .iter()
            .chain(&self.hosts)
            .find(|known| known.name == host.name);
        if let Some(known) = known {
            host.options = host.options.or(&known.options);
        }
        host.options = host.options.or(&self.defaults);
        Ok(host)
    }
}

/// Empties the faulty lines of a file, since PVM's daemon skips these. Returns a text that `File::read` accepts, and
/// the faults.
pub fn without_faults(text: &str) -> (String, Vec<Problem>) {
    let (_, problems) = File::read_lines(text);
    let is_at_fault = |number| problems.iter().any(|problem| problem.line == number);
    let lines = (1..).zip(text.lines());
    let left = lines.map(|(number, line)| if is_at_fault(number) { "" } else { line });
    (left.collect::<Vec<_>>().join("\n"), problems)
}

#[cfg(test)]
mod tests;
