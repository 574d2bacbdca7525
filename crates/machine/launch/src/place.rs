//! Where the daemon of a machine is found on its host, and the join socket of a job that stays: a socket in a directory that only its user can enter.
//!
//! `$XDG_RUNTIME_DIR/regatta`, or `/tmp/regatta-UID` where there is no such variable. The directory must belong to the
//! user and be closed to everybody else, or it is not used: another user may have made it. Each machine has its socket there, named
//! after it. A socket that nobody answers at was left by a daemon that was killed, and is replaced.
//!
//! Sockets and the directory come and go under one lock, on the directory itself. A process that gets the lock of a directory that has been
//! removed meanwhile begins again with a new one.

use std::fs::{DirBuilder, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::refusal::Refusal;

mod lock;

/// The machine that is meant when none is named.
pub const DEFAULT: &str = "default";
/// Behind the names of jobs that stay.
const JOB: &str = ".job";
/// How long another process may keep the lock, which each needs for a moment. A host that is asked for a job's join socket may be silent for longer.
const LOCKED: Duration = Duration::from_secs(5);
/// Longest name of a machine.
const LONGEST: usize = 64;

/// The place of one machine's daemon on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    directory: PathBuf,
    machine: String,
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Place {
    /// Where the machine of this name is, for this user and in this environment.
    pub fn of(machine: &str) -> Result<Place, Refusal> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let sound = !machine.is_empty() && machine.len() <= LONGEST && !machine.starts_with('.');
        if !sound || !machine.chars().all(plain) {
            return Err(Refusal::usage(format!(
                "`{machine}` is not the name of a virtual machine: use up to {LONGEST} letters, digits, `.`, `-` and `_`"
            )));
        }
        let directory = match std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path).join("regatta"),
            None => PathBuf::from(format!("/tmp/regatta-{}", own_uid())),
        };
        Ok(Place {
            directory,
            machine: machine.to_owned(),
        })
    }

    /// Where a job that stays is entered, for this user and in this environment: beside the machines' daemons.
    pub fn of_job(name: &str) -> Result<Place, Refusal> {
        Place::of(&format!("{name}{JOB}"))
    }

    /// A place of a test's own.
    #[cfg(test)]
    pub(crate) fn scratch(name: &str) -> Place {
        let name = format!("regatta-place-{}-{name}", std::process::id());
        Place {
            directory: std::env::temp_dir().join(name),
            machine: "m".to_owned(),
        }
    }

    /// Where the tasks of a job that stays write.
    pub fn log(&self) -> PathBuf {
        self.directory.join(format!("{}.log", self.machine))
    }

    /// The machine's name.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    fn socket(&self) -> PathBuf {
        self.directory.join(format!("{}.socket", self.machine))
    }

    /// A connection to the daemon; `None` if there is none.
    pub fn connect(&self) -> Result<Option<UnixStream>, Refusal> {
        self.connect_with(SocketFlags::empty())
    }

    /// As [`Place::connect`], but neither this nor the connection ever waits: a daemon that has no room for one more is an error.
    pub(crate) fn connect_now(&self) -> Result<Option<UnixStream>, Refusal> {
        self.connect_with(SocketFlags::NONBLOCK)
    }

    fn connect_with(&self, flags: SocketFlags) -> Result<Option<UnixStream>, Refusal> {
        if !is_private(&self.directory)? {
            return Ok(None);
        }
        match connect(&self.socket(), flags) {
            Ok(stream) => {
                check_user(&stream)?;
                Ok(Some(stream))
            }
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(Refusal::of_regatta(format!(
                "the daemon of the virtual machine {} cannot be spoken to at {}: {error}",
                self.machine,
                self.socket().display()
            ))),
        }
    }

    /// Makes this process the machine's daemon on this host, if there is no other.
    pub fn claim(&self) -> Result<Claimed, Refusal> {
        let refused = |what: &str, error: std::io::Error| {
            Refusal::of_regatta(format!(
                "{what} {} for the daemon's socket: {error}. XDG_RUNTIME_DIR names a directory where that is possible",
                self.directory.display()
            ))
        };
        let lock = loop {
            match DirBuilder::new().mode(0o700).create(&self.directory) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(refused("there can be no directory", error));
                }
                _ => {}
            }
            if !is_private(&self.directory)? {
                continue;
            }
            let lock = match File::open(&self.directory) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.map_err(|error| refused("nobody can read", error))?,
            };
            let taken = lock::take(&lock, LOCKED);
            if !taken.map_err(|error| refused("nobody can lock", error))? {
                return Err(Refusal::of_regatta(format!(
                    "the directory {} for the daemon's socket has been locked for {} s by {}, and try again",
                    self.directory.display(),
                    LOCKED.as_secs(),
                    lock::holder(&lock)
                )));
            }
            let own = lock.metadata();
            if own.is_ok_and(|own| is_at(&own, &self.directory)) {
                break lock;
            }
        };
        // Two that start at once do not take each other's fresh socket for a left one.
        if self.connect()?.is_some() {
            return Err(Refusal::of_regatta(format!(
                "there is a daemon of a virtual machine {} already, of the same user: `regatta down` there ends it, `--vm` gives this machine another name",
                self.machine
            )));
        }
        let path = self.socket();
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| refused("no socket can be made in", error))?;
        let socket = std::fs::symlink_metadata(&path).map_err(|e| refused("nobody can read", e))?;
        let _ = rustix::fs::flock(&lock, FlockOperation::Unlock);
        Ok(Claimed {
            listener,
            path,
            socket,
            directory: self.directory.clone(),
            lock,
        })
    }
}

fn connect(path: &Path, flags: SocketFlags) -> std::io::Result<UnixStream> {
    let flags = flags | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

fn is_absence(error: &std::io::Error) -> bool {
    [ErrorKind::ConnectionRefused, ErrorKind::NotFound].contains(&error.kind())
}

/// Whether this file or directory, and no other one, is found at a path.
fn is_at(known: &Metadata, path: &Path) -> bool {
    let found = std::fs::symlink_metadata(path);
    found.is_ok_and(|found| (known.dev(), known.ino()) == (found.dev(), found.ino()))
}

/// Refuses a directory that somebody else could have put something into. False: there is none.
fn is_private(directory: &Path) -> Result<bool, Refusal> {
    let refused = |why: String| {
        Refusal::of_regatta(format!(
            "the directory {} is not used for the daemon's socket, because {why}: remove it, or name another one by XDG_RUNTIME_DIR",
            directory.display()
        ))
    };
    let found = match std::fs::symlink_metadata(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        found => found.map_err(|error| refused(error.to_string()))?,
    };
    match () {
        () if !found.is_dir() => Err(refused("it is no directory".to_owned())),
        () if found.uid() != own_uid() => {
            Err(refused(format!("it belongs to the user {}", found.uid())))
        }
        () if found.mode() & 0o077 != 0 => Err(refused("others can enter it".to_owned())),
        () => Ok(true),
    }
}

/// Refuses to speak with another user's process.
pub fn check_user(stream: &UnixStream) -> Result<(), Refusal> {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    match peer.map(|peer| peer.uid.as_raw()) {
        Ok(uid) if uid == own_uid() => Ok(()),
        _ => Err(Refusal::of_regatta(
            "the other end of the daemon's socket belongs to another user",
        )),
    }
}

/// The daemon's socket; gone with this.
pub struct Claimed {
    /// It is listened at already, and nobody waits for long there.
    pub listener: UnixListener,
    path: PathBuf,
    socket: Metadata,
    directory: PathBuf,
    lock: File,
}

impl Drop for Claimed {
    fn drop(&mut self) {
        // Another process that makes a socket there now must find the directory until it is there. Dropping the file ends the lock.
        // A socket that stays because somebody keeps the lock is replaced by the next daemon.
        let locked = lock::take(&self.lock, LOCKED).unwrap_or_default();
        let own = self.lock.metadata();
        if !locked || !own.is_ok_and(|own| is_at(&own, &self.directory)) {
            return;
        }
        if is_at(&self.socket, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
        // Stays if another machine has its socket there.
        let _ = std::fs::remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn place(name: &str) -> Place {
        Place::scratch(name)
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
        drop(UnixListener::bind(place.socket()).expect("a socket"));
        assert!(place.connect().expect("an answer").is_none());
        drop(place.claim().expect("the place"));
        assert!(!place.directory.exists());
    }

    #[test]
    fn places_that_come_and_go_at_once_in_one_directory_do_not_disturb_each_other() {
        std::thread::scope(|scope| {
            for machine in ["a", "b", "c"] {
                let place = Place {
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
        std::fs::remove_file(place.socket()).expect("a socket");
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
            assert!(Place::of(name).is_err(), "{name}");
        }
        assert!(Place::of("solver-2.b_c").is_ok());
    }
}
