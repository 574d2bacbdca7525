//! The socket of a connection, and the epoll instance that watches it.
//!
//! The kernel ends a connection, and its entries in epoll instances, when the last descriptor of the socket is closed. A child that a
//! task has forked holds descriptors of all its sockets as long as it lives. If the task only closed its own, the peer would not see the
//! end, and the epoll instance would go on reporting a connection that the task does not have any more. So a watched socket is
//! removed from its epoll instance and shut down before it is closed.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use rustix::net::{Shutdown, shutdown};

/// A socket that may be watched.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: ManuallyDrop<OwnedFd>,
    watcher: Option<Arc<OwnedFd>>,
}

impl Socket {
    /// Returns a socket that nobody watches.
    pub(crate) fn new(fd: OwnedFd) -> Socket {
        Socket {
            fd: ManuallyDrop::new(fd),
            watcher: None,
        }
    }

    /// Has `epoll` report these events, under this token.
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
            // A socket that is not connected yet, or any more, cannot be shut down, and need not be.
            let _ = epoll::delete(epoll, &*self.fd);
            let _ = shutdown(&*self.fd, Shutdown::Both);
        }
        // By the system call itself: the C library's function is a cancellation point, and the thread has the lock.
        // SAFETY: the descriptor is owned, and not used from here on.
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
