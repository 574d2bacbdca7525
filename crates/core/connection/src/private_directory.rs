//! The directory of a user's sockets on a host, which no other user can enter.
//!
//! It is `$XDG_RUNTIME_DIR/regatta`, or `/tmp/regatta-UID` if that variable is not set. The owner of the parent
//! directory can replace it at any moment, and that may be another user, for example if the variable was inherited
//! through `su`. So the directory is opened once, the opened directory is checked, and everything in it is reached
//! through that descriptor, never by the path again. A connection is returned only if the kernel says that the process
//! at its other end belongs to this user.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::local_socket::{self, OtherUser};

/// Permission bits for group and others.
const GROUP_AND_OTHERS_MODE: u32 = 0o077;

/// Returns the path of this user's socket directory in this environment.
pub fn path() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path).join("regatta"),
        None => PathBuf::from(format!(
            "/tmp/regatta-{}",
            rustix::process::geteuid().as_raw()
        )),
    }
}

/// An open directory that belongs to this user and that no other user can enter.
#[derive(Debug)]
pub struct PrivateDirectory {
    directory: OwnedFd,
    path: PathBuf,
}

/// Reason why a directory, or a socket in it, is not used.
#[derive(Debug)]
pub enum Refused {
    /// Another user could have put something into the directory. Carries the reason, as the end of a sentence.
    NotPrivate(String),
    /// The process at a socket in it belongs to another user.
    OtherUser(OtherUser),
    /// A system call failed.
    System(io::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NotPrivate(why) => f.write_str(why),
            Refused::OtherUser(other) => other.fmt(f),
            Refused::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl PrivateDirectory {
    /// Opens the directory at a path. Returns `None` if it does not exist.
    pub fn open(path: &Path) -> Result<Option<PrivateDirectory>, Refused> {
        let not_private = |why: String| Err(Refused::NotPrivate(why));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return not_private("it is not a directory".to_owned());
            }
            // The owner is another user, or has removed his own permissions.
            Err(Errno::ACCESS) => return not_private("it cannot be read".to_owned()),
            Err(errno) => return Err(Refused::System(errno.into())),
        };
        let found = rustix::fs::fstat(&directory).map_err(|errno| Refused::System(errno.into()))?;
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return not_private(format!("it belongs to the user {}", found.st_uid));
        }
        if found.st_mode & GROUP_AND_OTHERS_MODE != 0 {
            return not_private("others can enter it".to_owned());
        }
        Ok(Some(PrivateDirectory {
            directory,
            path: path.to_owned(),
        }))
    }

    /// Returns the path by which it was opened, for messages only.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the path still leads to this directory.
    pub fn is_at_its_path(&self) -> bool {
        let own = rustix::fs::fstat(&self.directory);
        let found = rustix::fs::lstat(&self.path);
        own.is_ok_and(|own| {
            found.is_ok_and(|found| (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino))
        })
    }

    /// Connects to the socket of this name, and checks that its process belongs to this user. Returns `None` if no
    /// process listens there. With a non-blocking socket it does not wait for the connection.
    pub fn connect(&self, name: &str, flags: SocketFlags) -> Result<Option<UnixStream>, Refused> {
        let flags = flags | SocketFlags::CLOEXEC;
        let connected = self.address(name).and_then(|address| {
            let kind = SocketType::STREAM;
            let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
            rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
            Ok(socket)
        });
        match connected {
            Ok(socket) => {
                local_socket::check_user(&socket).map_err(Refused::OtherUser)?;
                Ok(Some(UnixStream::from(socket)))
            }
            Err(Errno::CONNREFUSED) => Ok(None),
            Err(Errno::NOENT) if self.is_reached() => Ok(None),
            Err(errno) => Err(Refused::System(self.explained(errno))),
        }
    }

    /// Creates a socket of this name and listens on it.
    pub fn listen(&self, name: &str) -> io::Result<UnixListener> {
        let flags = SocketFlags::CLOEXEC;
        let kind = SocketType::STREAM;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
        self.address(name)
            .and_then(|address| rustix::net::bind(&socket, &address))
            .map_err(|errno| self.explained(errno))?;
        rustix::net::listen(&socket, libc::SOMAXCONN)?;
        Ok(UnixListener::from(socket))
    }

    /// Opens a file of this name for appending, and creates it if it does not exist. A new file is readable only by
    /// this user, and symbolic links are not followed.
    pub fn append_to(&self, name: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.directory, name, flags, mode)?;
        let found = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok(file),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Returns the device and inode number of the file of this name.
    pub fn file(&self, name: &str) -> io::Result<(u64, u64)> {
        let found = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((found.st_dev, found.st_ino))
    }

    /// Removes the file of this name.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            &self.directory,
            name,
            AtFlags::empty(),
        )?)
    }

    /// Returns the address of a socket in the directory, which stays valid if the directory is replaced at its path. It
    /// is short, however long the path is.
    fn address(&self, name: &str) -> rustix::io::Result<SocketAddrUnix> {
        SocketAddrUnix::new(self.by_descriptor().join(name))
    }

    fn by_descriptor(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()))
    }

    /// Returns whether the directory can be reached through /proc.
    fn is_reached(&self) -> bool {
        self.by_descriptor().exists()
    }

    fn explained(&self, errno: Errno) -> io::Error {
        match errno {
            Errno::NOENT if !self.is_reached() => io::Error::new(
                io::ErrorKind::NotFound,
                "/proc is not mounted, but connecting to sockets safely needs it: mount it",
            ),
            errno => errno.into(),
        }
    }
}

impl AsFd for PrivateDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

#[cfg(test)]
mod tests;
