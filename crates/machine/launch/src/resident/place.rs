//! Where the daemon of a machine is found on its host, and the join socket of a job that stays: a socket in a directory that only its user can enter.
//!
//! It must belong to the user and be closed to everybody else, or it is not used (`regatta_connection::private_directory`). Each machine
//! has its socket there, named after it. A socket that nobody answers at was left by a daemon that was killed, and is replaced.
//!
//! Sockets and the directory come and go under one lock, on the directory itself. A process that gets the lock of a directory that has been
//! removed meanwhile begins again with a new one.

use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use regatta_connection::private_directory::{self, PrivateDirectory};
use regatta_program::Refusal;
use rustix::fs::FlockOperation;
use rustix::net::SocketFlags;

mod lock;

/// The machine that is meant when none is named.
pub const DEFAULT: &str = "default";
/// Behind the names of jobs that stay.
const JOB: &str = ".job";
/// Time limit for the lock, which each process needs for a moment. A host that is asked for a job's join socket may be silent for
/// longer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a machine's name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The place of one machine's daemon on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachinePlace {
    directory: PathBuf,
    machine: String,
}

impl MachinePlace {
    /// Where the machine of this name is, for this user and in this environment.
    pub fn of(machine: &str) -> Result<MachinePlace, Refusal> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let sound =
            !machine.is_empty() && machine.len() <= MAX_NAME_BYTES && !machine.starts_with('.');
        if !sound || !machine.chars().all(plain) {
            return Err(Refusal::usage(format!(
                "`{machine}` is not the name of a virtual machine: use up to {MAX_NAME_BYTES} letters, digits, `.`, `-` and `_`"
            )));
        }
        Ok(MachinePlace {
            directory: private_directory::path(),
            machine: machine.to_owned(),
        })
    }

    /// Where a job that stays is entered, for this user and in this environment: beside the machines' daemons.
    pub fn of_job(name: &str) -> Result<MachinePlace, Refusal> {
        MachinePlace::of(&format!("{name}{JOB}"))
    }

    /// A place of a test's own.
    #[cfg(test)]
    pub(crate) fn scratch(name: &str) -> MachinePlace {
        let name = format!("regatta-place-{}-{name}", std::process::id());
        MachinePlace {
            directory: std::env::temp_dir().join(name),
            machine: "m".to_owned(),
        }
    }

    /// Where the tasks of a job that stays write, for sentences.
    pub fn log(&self) -> PathBuf {
        self.directory.join(self.log_name())
    }

    /// The machine's name.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// The name of its socket in the directory.
    fn socket(&self) -> String {
        format!("{}.socket", self.machine)
    }

    /// A connection to the daemon, which is this user's; `None` if there is none.
    pub fn connect(&self) -> Result<Option<UnixStream>, Refusal> {
        self.connect_with(SocketFlags::empty())
    }

    /// As [`MachinePlace::connect`], but neither this nor the connection ever waits: a daemon that has no room for one more is an error.
    pub(crate) fn connect_now(&self) -> Result<Option<UnixStream>, Refusal> {
        self.connect_with(SocketFlags::NONBLOCK)
    }

    fn connect_with(&self, flags: SocketFlags) -> Result<Option<UnixStream>, Refusal> {
        match self.open()? {
            None => Ok(None),
            Some(directory) => self.connect_in(&directory, flags),
        }
    }

    fn connect_in(
        &self,
        directory: &PrivateDirectory,
        flags: SocketFlags,
    ) -> Result<Option<UnixStream>, Refusal> {
        let socket = self.socket();
        directory.connect(&socket, flags).map_err(|refused| {
            Refusal::of_regatta(format!(
                "the daemon of the virtual machine {} cannot be spoken to at {}: {refused}",
                self.machine,
                self.directory.join(&socket).display()
            ))
        })
    }

    /// The directory, if it is there. One that somebody else could have put something into is refused.
    fn open(&self) -> Result<Option<PrivateDirectory>, Refusal> {
        PrivateDirectory::open(&self.directory).map_err(|why| {
            Refusal::of_regatta(format!(
                "the directory {} is not used for the daemon's socket, because {why}: remove it, or name another one by XDG_RUNTIME_DIR",
                self.directory.display()
            ))
        })
    }

    /// A file in the directory to write to the end of, such as what the tasks of a job that stays write. `None`: there is no such
    /// directory, or no such file can be had.
    pub(crate) fn append_to_log(&self) -> Option<OwnedFd> {
        self.open().ok()??.append_to(&self.log_name()).ok()
    }

    fn log_name(&self) -> String {
        format!("{}.log", self.machine)
    }

    /// Makes this process the machine's daemon on this host, if there is no other.
    pub fn claim(&self) -> Result<Claimed, Refusal> {
        let refused = |what: &str, error: std::io::Error| {
            Refusal::of_regatta(format!(
                "{what} {} for the daemon's socket: {error}. XDG_RUNTIME_DIR names a directory where that is possible",
                self.directory.display()
            ))
        };
        let directory = loop {
            match DirBuilder::new().mode(0o700).create(&self.directory) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(refused("there can be no directory", error));
                }
                _ => {}
            }
            let Some(directory) = self.open()? else {
                continue;
            };
            let taken = lock::take(directory.as_fd(), LOCK_TIMEOUT);
            if !taken.map_err(|error| refused("nobody can lock", error))? {
                return Err(Refusal::of_regatta(format!(
                    "the directory {} for the daemon's socket has been locked for {} s by {}, and try again",
                    self.directory.display(),
                    LOCK_TIMEOUT.as_secs(),
                    lock::holder(directory.as_fd())
                )));
            }
            if directory.is_at_its_path() {
                break directory;
            }
        };
        // Two that start at once do not take each other's fresh socket for a left one.
        let there = self.connect_in(&directory, SocketFlags::empty())?;
        if there.is_some() {
            return Err(Refusal::of_regatta(format!(
                "there is a daemon of a virtual machine {} already, of the same user: `regatta down` there ends it, `--vm` gives this machine another name",
                self.machine
            )));
        }
        let name = self.socket();
        let _ = directory.remove(&name);
        let listener = directory
            .listen(&name)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| refused("no socket can be made in", error))?;
        let socket = directory
            .file(&name)
            .map_err(|error| refused("nobody can read", error))?;
        let _ = rustix::fs::flock(&directory, FlockOperation::Unlock);
        Ok(Claimed {
            listener,
            log: self.log_name(),
            name,
            socket,
            directory,
        })
    }
}

/// The daemon's socket; gone with this.
pub struct Claimed {
    /// It is listened at already, and nobody waits for long there.
    pub listener: UnixListener,
    name: String,
    /// Device and number of the socket's file.
    socket: (u64, u64),
    log: String,
    directory: PrivateDirectory,
}

impl Claimed {
    /// The file that the tasks of a job that stays write to, empty. The output of the last such job's tasks is gone, as PVM's daemon
    /// begins its log anew.
    pub(crate) fn begin_log(&self) -> std::io::Result<File> {
        let log = File::from(self.directory.append_to(&self.log)?);
        log.set_len(0)?;
        Ok(log)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        // Another process that makes a socket there now must find the directory until it is there. Dropping the directory ends the
        // lock. A socket that stays because somebody keeps the lock is replaced by the next daemon.
        let locked = lock::take(self.directory.as_fd(), LOCK_TIMEOUT).unwrap_or_default();
        if !locked || !self.directory.is_at_its_path() {
            return;
        }
        if self.directory.file(&self.name).ok() == Some(self.socket) {
            let _ = self.directory.remove(&self.name);
        }
        // Stays if another machine has its socket there.
        let _ = std::fs::remove_dir(self.directory.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn place(name: &str) -> MachinePlace {
        MachinePlace::scratch(name)
    }

    #[test]
    fn a_place_is_claimed_once_and_nothing_stays() {
        let place = place("once");
        assert!(place.connect().expect("an answer").is_none());
        let claimed = place.claim().expect("the place");
        assert!(place.connect().expect("an answer").is_some());
        let second = place.claim().map(|_| ()).expect_err("taken");
        assert!(second.sentence.contains("already"), "{second}");
        drop(claimed);
        assert!(!place.directory.exists());
    }

    #[test]
    fn a_socket_of_a_killed_daemon_is_replaced() {
        let place = place("left");
        // Nobody listens at a socket whose listener is closed; the file stays.
        DirBuilder::new()
            .mode(0o700)
            .create(&place.directory)
            .expect("a directory");
        let path = place.directory.join(place.socket());
        drop(UnixListener::bind(path).expect("a socket"));
        assert!(place.connect().expect("an answer").is_none());
        drop(place.claim().expect("the place"));
        assert!(!place.directory.exists());
    }

    #[test]
    fn a_log_begins_anew_and_goes_on_where_it_was_left() {
        let place = place("log");
        assert!(place.append_to_log().is_none());
        let claimed = place.claim().expect("the place");
        std::fs::write(place.log(), "of the last job").expect("a log");
        assert!(place.append_to_log().is_some());
        assert_eq!(std::fs::read(place.log()).expect("the log").len(), 15);
        claimed.begin_log().expect("a log");
        assert_eq!(std::fs::read(place.log()).expect("the log"), b"");
        std::fs::remove_file(place.log()).expect("the log");
    }

    #[test]
    fn places_that_come_and_go_at_once_in_one_directory_do_not_disturb_each_other() {
        std::thread::scope(|scope| {
            for machine in ["a", "b", "c"] {
                let place = MachinePlace {
                    machine: machine.to_owned(),
                    ..place("busy")
                };
                scope.spawn(move || {
                    for _ in 0..500 {
                        drop(place.claim().expect("the place"));
                    }
                });
            }
        });
        assert!(!place("busy").directory.exists());
    }

    #[test]
    fn a_socket_that_has_taken_the_place_of_another_one_stays_when_that_one_goes() {
        let place = place("taken");
        let first = place.claim().expect("the place");
        std::fs::remove_file(place.directory.join(place.socket())).expect("a socket");
        let second = place.claim().expect("the place");
        drop(first);
        assert!(place.connect().expect("an answer").is_some());
        // Now with another directory of that name.
        std::fs::remove_dir_all(&place.directory).expect("a directory");
        let third = place.claim().expect("the place");
        drop(second);
        assert!(place.connect().expect("an answer").is_some());
        drop(third);
        assert!(!place.directory.exists());
    }

    #[test]
    fn a_directory_that_others_can_enter_or_lead_astray_is_refused() {
        let open = place("open");
        std::fs::create_dir(&open.directory).expect("a directory");
        std::fs::set_permissions(&open.directory, std::fs::Permissions::from_mode(0o777))
            .expect("its mode");
        let said = open.claim().map(|_| ()).expect_err("open");
        assert!(said.sentence.contains("others can enter it"), "{said}");
        std::fs::remove_dir(&open.directory).expect("no directory");
        std::os::unix::fs::symlink("/tmp", &open.directory).expect("a link");
        let said = open.claim().map(|_| ()).expect_err("a link");
        assert!(said.sentence.contains("it is no directory"), "{said}");
        std::fs::remove_file(&open.directory).expect("no link");
    }

    #[test]
    fn names_that_are_paths_are_refused() {
        for name in ["", "..", ".x", "a/b", "a b", &"x".repeat(65)] {
            assert!(MachinePlace::of(name).is_err(), "{name}");
        }
        assert!(MachinePlace::of("solver-2.b_c").is_ok());
    }
}
