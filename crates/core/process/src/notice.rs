//! A file descriptor that becomes readable when a message may be waiting.
//!
//! Senders ring a doorbell, not a descriptor, so that programs that do not use a descriptor pay nothing. The first call of [`descriptor`] starts a
//! thread that sleeps on the doorbell. When it rings, the thread makes an eventfd readable; it then waits until the descriptor was cleared.
//!
//! *Messages received between two calls.* A program clears the descriptor and then polls for several messages, one call after the other. The second
//! call may receive the message for which the first has polled without success, and no further ring will happen for it. So the descriptor also
//! becomes readable when anything was received since it was cleared.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use regatta_engine::{Error, Frames, Peer, Result, Upkeep};
use regatta_memory::biased::Biased;
use regatta_memory::uncancelled::Uncancelled;
use regatta_segment::job::Job;

use crate::state::{SLEEPERS, enter, refused};
use crate::wait::MAX_SLEEP;

struct Notice {
    event: OwnedFd,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// The counter of arrivals when the descriptor was cleared.
    seen: AtomicU64,
    /// The descriptor is readable and was not cleared.
    raised: Mutex<bool>,
    cleared: Condvar,
}

/// A lock that refuses calls of signal handlers that interrupt its holder.
static NOTICE: Biased<Option<Notice>> = Biased::new(None);

fn system(what: &str) -> Error {
    Error::System(format!("{what}: {}", std::io::Error::last_os_error()))
}

/// Returns the descriptor. It belongs to Regatta and is closed by finalize.
pub fn descriptor() -> Result<RawFd> {
    let _whole = Uncancelled::begin();
    let held = enter()?;
    let (job, me) = (held.job.clone(), held.engine.me());
    let fencing = job.fencing();
    let seen = AtomicU64::new(held.moves());
    drop(held);
    let mut notice = NOTICE.lock().map_err(refused)?;
    if let Some(notice) = &*notice {
        return Ok(notice.event.as_raw_fd());
    }
    // SAFETY: eventfd takes no pointers. It returns a new descriptor or fails.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(system("no event descriptor can be created"));
    }
    // SAFETY: the descriptor was just created, so no other code owns it.
    let event = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd) };
    let shared = Arc::new(Shared {
        seen,
        ..Shared::default()
    });
    let own = event
        .as_fd()
        .try_clone_to_owned()
        .map_err(|_| system("no event descriptor can be created"))?;
    let theirs = shared.clone();
    let watch = move || {
        while !theirs.stop.load(Ordering::Acquire) {
            let mut found = false;
            SLEEPERS.fetch_add(1, Ordering::SeqCst);
            job.bell(me).sleep(fencing, Some(MAX_SLEEP), || {
                found = theirs.stop.load(Ordering::Acquire) || anything(&theirs);
                found
            });
            SLEEPERS.fetch_sub(1, Ordering::SeqCst);
            // Damage to the bell can lose a ring, and a launcher that was killed does not ring: also check without a ring from time to time.
            if found || anything(&theirs) || is_left_alone() {
                raise(&own, &theirs);
            }
        }
    };
    let thread =
        regatta_connection::library_thread::spawn("regatta/notice", watch).map_err(|error| {
            Error::System(format!(
                "no thread can be started to watch for messages: {error}"
            ))
        })?;
    *notice = Some(Notice {
        event,
        shared,
        thread: Some(thread),
    });
    Ok(fd)
}

/// Returns whether the thread of the descriptor is running.
pub(crate) fn is_watching() -> bool {
    NOTICE.lock().is_ok_and(|notice| notice.is_some())
}

/// Returns whether a call would find something.
fn anything(shared: &Shared) -> bool {
    let Ok(mut held) = enter() else {
        return true;
    };
    held.engine.transport_mut().look_everywhere();
    let mut cursor = 0;
    let found = held.moves() != shared.seen.load(Ordering::Relaxed)
        || held.handle_news()
        || held
            .engine
            .transport_mut()
            .next_ready(&mut cursor)
            .is_some()
        || held.engine.progress();
    if !found {
        held.engine.transport_mut().arm();
    }
    found
}

/// Returns whether the launcher has ended: a thread that waits for the descriptor must not wait for it.
fn is_left_alone() -> bool {
    enter().is_ok_and(|mut held| held.check_launcher(MAX_SLEEP).is_err())
}

fn raise(event: &OwnedFd, shared: &Shared) {
    let mut raised = shared.raised.lock().unwrap_or_else(|p| p.into_inner());
    *raised = true;
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
    while *raised && !shared.stop.load(Ordering::Acquire) {
        raised = shared
            .cleared
            .wait(raised)
            .unwrap_or_else(|p| p.into_inner());
    }
}

/// Makes the descriptor unreadable until something new arrives. Call this before polling for messages. If the launcher was killed, returns that
/// error after clearing: messages that have arrived can be received.
pub fn clear_descriptor() -> Result<()> {
    let held = enter()?;
    let (seen, launcher) = (held.moves(), held.launcher());
    drop(held);
    let notice = NOTICE.lock().map_err(refused)?;
    let Some(notice) = &*notice else {
        return Err(Error::State(c"no event descriptor has been requested"));
    };
    notice.shared.seen.store(seen, Ordering::Relaxed);
    let _ = rustix::io::read(&notice.event, &mut [0; 8]);
    let mut raised = notice
        .shared
        .raised
        .lock()
        .unwrap_or_else(|p| p.into_inner());
    *raised = false;
    notice.shared.cleared.notify_all();
    launcher
}

/// Makes the descriptor readable until it is cleared, for callers that have not polled for everything that may be waiting.
pub fn raise_descriptor() -> Result<()> {
    drop(enter()?);
    let notice = NOTICE.lock().map_err(refused)?;
    let Some(notice) = &*notice else {
        return Err(Error::State(c"no event descriptor has been requested"));
    };
    let _ = rustix::io::write(&notice.event, &1u64.to_ne_bytes());
    Ok(())
}

/// Ends the thread. Called by finalize, when no thread can enter any more.
pub(crate) fn stop(job: &Job, me: Peer) {
    let taken = NOTICE.lock().ok().and_then(|mut notice| notice.take());
    let Some(mut notice) = taken else { return };
    notice.shared.stop.store(true, Ordering::Release);
    {
        let _raised = notice
            .shared
            .raised
            .lock()
            .unwrap_or_else(|p| p.into_inner());
        notice.shared.cleared.notify_all();
    }
    job.bell(me).wake();
    if let Some(thread) = notice.thread.take() {
        let _ = thread.join();
    }
}
