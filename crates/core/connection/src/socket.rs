//! The socket of a connection, and the epoll instance that watches it.
//!
//! The kernel ends a connection, and removes it from epoll instances, when the last descriptor of the socket is closed.
//! A child that a task has forked holds descriptors of all the task's sockets as long as it lives. If the task only
//! closed its own, the peer would not see the end, and the epoll instance would go on reporting a connection that the
//! task no longer has. So a watched socket is removed from its epoll instance and shut down before it is closed.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use rustix::net::{Shutdown, shutdown};

/// A socket that may be registered with an epoll instance.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: ManuallyDrop<OwnedFd>,
    watcher: Option<Arc<OwnedFd>>,
}

impl Socket {
    /// Returns a socket that is not registered.
    pub(crate) fn new(fd: OwnedFd) -> Socket {
        Socket {
            fd: ManuallyDrop::new(fd),
            watcher: None,
        }
    }

    /// Registers the socket with `epoll` for these events under `token`.
    pub(crate) fn watch(
        &mut self,
        epoll: &Arc<OwnedFd>,
        token: u64,
        flags: epoll::EventFlags,
    ) -> rustix::io::Result<()> {
        epoll::add(epoll, &*self.fd, epoll::EventData::new_u64(token), flags)?;
        self.watcher = Some(epoll.clone());
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(epoll) = &self.watcher {
            // A socket that is not connected yet, or no longer, cannot be shut down, and does not have to be.
            let _ = epoll::delete(epoll, &*self.fd);
            let _ = shutdown(&*self.fd, Shutdown::Both);
        }
        // Use the system call itself: the C library's function is a cancellation point, and the thread holds the lock.
        // SAFETY: the descriptor is owned by this value, and not used after this.
        unsafe { rustix::io::close(ManuallyDrop::take(&mut self.fd).into_raw_fd()) };
    }
}

impl Deref for Socket {
    type Target = OwnedFd;
    #[inline]
    fn deref(&self) -> &OwnedFd {
        &self.fd
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
