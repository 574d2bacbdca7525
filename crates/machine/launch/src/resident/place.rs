//! The location of a machine's daemon on its host, and of a resident job's join socket: a socket in a directory that
//! only its user can enter.
//!
//! The directory must belong to the user and be closed to all others. Otherwise it is not used
//! (`regatta_connection::private_directory`). Each machine has its socket there, named after it. A socket that does not
//! answer was left by a daemon that was killed, and is replaced.
//!
//! Sockets and the directory are created and removed under one lock, on the directory itself. A process that gets the
//! lock of a directory that has been removed meanwhile starts again with a new one.

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

/// The default name of a machine.
pub const DEFAULT: &str = "default";
/// Suffix of the names of resident jobs.
const JOB: &str = ".job";
/// Time limit for the lock, which each process needs for a moment. It is shorter than the silence allowed to a host
/// that is asked for a job's join socket.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a machine's name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The location of one machine's daemon on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachinePlace {
    directory: PathBuf,
    machine: String,
}

impl MachinePlace {
    /// Returns the location for the machine of this name, for this user and in this environment. Fails if the name is
    /// invalid.
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

    /// Returns the location of a resident job's join socket, for this user and in this environment: beside the
    /// machines' daemons.
    pub fn of_job(name: &str) -> Result<MachinePlace, Refusal> {
        MachinePlace::of(&format!("{name}{JOB}"))
    }

    /// Returns a location for one test.
    #[cfg(test)]
    pub(crate) fn scratch(name: &str) -> MachinePlace {
        let name = format!("regatta-place-{}-{name}", std::process::id());
        MachinePlace {
            directory: std::env::temp_dir().join(name),
            machine: "m".to_owned(),
        }
    }

    /// Returns the path of the log that the tasks of a resident job write to, for sentences.
    pub fn log(&self) -> PathBuf {
        self.directory.join(self.log_name())
    }

    /// Returns the machine's name.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Returns the name of the machine's socket in the directory.
    fn socket(&self) -> String {
        format!("{}.socket", self.machine)
    }

    /// Connects to the daemon, which must belong to this user. Returns `None` if there is no daemon.
    pub fn connect(&self) -> Result<Option<UnixStream>, Refusal> {
        self.connect_with(SocketFlags::empty())
    }

    /// Like [`MachinePlace::connect`], but neither this call nor the connection ever blocks. Fails if the daemon has no
    /// room for another connection.
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
                "the daemon of the virtual machine {} cannot be contacted at {}: {refused}",
                self.machine,
                self.directory.join(&socket).display()
            ))
        })
    }

    /// Opens the directory, if it exists. Fails if other users could have put something into it.
    fn open(&self) -> Result<Option<PrivateDirectory>, Refusal> {
        PrivateDirectory::open(&self.directory).map_err(|why| {
            Refusal::of_regatta(format!(
                "the directory {} cannot be used for the daemon's socket, because {why}: remove it, or name another one in XDG_RUNTIME_DIR",
                self.directory.display()
            ))
        })
    }

    /// Opens a file in the directory for appending, such as the log of a resident job. Returns `None` if the directory
    /// does not exist or the file cannot be opened.
    pub(crate) fn append_to_log(&self) -> Option<OwnedFd> {
        self.open().ok()??.append_to(&self.log_name()).ok()
    }

    fn log_name(&self) -> String {
        format!("{}.log", self.machine)
    }

    /// Makes this process the machine's daemon on this host. Fails if there is another one.
    pub fn claim(&self) -> Result<Claimed, Refusal> {
        let refused = |what: &str, error: std::io::Error| {
            Refusal::of_regatta(format!(
                "{what} {} for the daemon's socket: {error}. Set XDG_RUNTIME_DIR to a directory where this is possible",
                self.directory.display()
            ))
        };
        let directory = loop {
            match DirBuilder::new().mode(0o700).create(&self.directory) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(refused("cannot create the directory", error));
                }
                _ => {}
            }
            let Some(directory) = self.open()? else {
                continue;
            };
            let taken = lock::take(directory.as_fd(), LOCK_TIMEOUT);
            if !taken.map_err(|error| refused("cannot lock the directory", error))? {
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
        // Under the lock, so that of two that start at once neither mistakes the other's new socket for a leftover.
        let there = self.connect_in(&directory, SocketFlags::empty())?;
        if there.is_some() {
            return Err(Refusal::of_regatta(format!(
                "a daemon of a virtual machine {} of the same user already runs: `regatta down` there ends it, `--vm` gives this machine another name",
                self.machine
            )));
        }
        let name = self.socket();
        let _ = directory.remove(&name);
        let listener = directory
            .listen(&name)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| refused("cannot create a socket in", error))?;
        let socket = directory
            .file(&name)
            .map_err(|error| refused("cannot read the directory", error))?;
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

/// The daemon's socket. It is removed on drop.
pub struct Claimed {
    /// The listener, which accepts connections already. Callers may have to wait for a moment.
    pub listener: UnixListener,
    name: String,
    /// Device and inode of the socket's file.
    socket: (u64, u64),
    log: String,
    directory: PrivateDirectory,
}

impl Claimed {
    /// Opens the log of a resident job's tasks, emptied. The output of the last such job is lost, like that in the log
    /// of PVM's daemon.
    pub(crate) fn begin_log(&self) -> std::io::Result<File> {
        let log = File::from(self.directory.append_to(&self.log)?);
        log.set_len(0)?;
        Ok(log)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        // Another process that creates a socket there now needs the directory until its socket exists. Dropping the
        // directory releases the lock. If another process keeps the lock, the socket stays, and the next daemon
        // replaces it.
        let locked = lock::take(self.directory.as_fd(), LOCK_TIMEOUT).unwrap_or_default();
        if !locked || !self.directory.is_at_its_path() {
            return;
        }
        if self.directory.file(&self.name).ok() == Some(self.socket) {
            let _ = self.directory.remove(&self.name);
        }
        // Fails if another machine has its socket there.
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
        // A closed listener leaves the file, but does not answer.
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
        assert!(said.sentence.contains("it is not a directory"), "{said}");
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
