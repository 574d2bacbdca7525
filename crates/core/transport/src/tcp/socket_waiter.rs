//! A thread that waits for a task's sockets while the task sleeps on its doorbell, and rings the doorbell when one
//! becomes readable.
//!
//! It polls once per `arm`. Only the task reads the sockets, so without this limit unread data would wake the task in
//! a loop. The thread reads nothing from the sockets.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use regatta_engine::Peer;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};

use regatta_connection::{library_thread, ready};
use regatta_segment::job::Job;

#[derive(Debug, Default)]
struct State {
    armed: bool,
    stop: bool,
    /// Time after which to ring the doorbell even if no socket becomes readable.
    limit: Option<Duration>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Readable when `state` has changed.
    nudge: OwnedFd,
}

/// A thread that waits for sockets in place of a sleeping task.
#[derive(Debug)]
pub(crate) struct SocketWaiter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nudge(&self) {
        let _ = rustix::io::write(&self.nudge, &1u64.to_ne_bytes());
    }
}

impl SocketWaiter {
    /// Starts a waiter on all sockets that the epoll descriptor `sockets` watches.
    pub(crate) fn new(sockets: &OwnedFd, job: Arc<Job>, me: Peer) -> io::Result<SocketWaiter> {
        let sockets = sockets.as_fd().try_clone_to_owned()?;
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            nudge: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let own = shared.clone();
        let thread =
            library_thread::spawn("regatta/waiter", move || listen(&own, &sockets, &job, me))?;
        Ok(SocketWaiter {
            shared,
            thread: Some(thread),
        })
    }

    /// Rings the doorbell once when a socket becomes readable, or after `limit`.
    pub(crate) fn arm(&self, limit: Option<Duration>) {
        let mut state = self.shared.state();
        let sooner = limit.is_some() && state.limit != limit;
        state.limit = limit;
        if !state.armed {
            state.armed = true;
            self.shared.changed.notify_one();
        } else if sooner {
            self.shared.nudge();
        }
    }
}

fn listen(shared: &Shared, sockets: &OwnedFd, job: &Job, me: Peer) {
    loop {
        let limit = {
            let mut state = shared.state();
            while !state.armed && !state.stop {
                state = shared
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            if state.stop {
                return;
            }
            state.limit
        };
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut both = [
            PollFd::new(sockets, PollFlags::IN),
            PollFd::new(&shared.nudge, PollFlags::IN),
        ];
        let heard = ready::poll(&mut both, limit.as_ref());
        if heard.is_ok() && both[1].revents().contains(PollFlags::IN) {
            let mut count = [0; 8];
            let _ = rustix::io::read(&shared.nudge, &mut count);
            if both[0].revents().is_empty() {
                continue;
            }
        }
        shared.state().armed = false;
        job.bell(me).wake();
    }
}

impl Drop for SocketWaiter {
    fn drop(&mut self) {
        self.shared.state().stop = true;
        self.shared.changed.notify_one();
        self.shared.nudge();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
