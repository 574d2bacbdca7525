//! A thread that sends what a task has left behind.
//!
//! A call may return before its parcels are written: their connection is being made, or its socket has no room. The
//! task's next call continues that work. If no call comes within [`TAKEOVER_DELAY`], because the task computes or
//! waits for something other than messages, this thread does it in the task's place. Without it, the receivers would
//! wait for as long as the task makes no calls.
//!
//! The thread also ticks for the watch over unacknowledged parcels (see `stall`): while something is watched, it
//! requests a check at each [`TICK`]. The task's next poll makes the check, or this thread if the task does not poll.
//!
//! The thread has a shorter tick for bypasses (see `bypass`), while something that was sent by one is not known to
//! have arrived.
//!
//! The thread is started when something is left behind or watched for the first time, and sleeps while there is
//! nothing to do.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use regatta_connection::library_thread;

/// Time that a task has for its next call before this thread acts in its place.
const TAKEOVER_DELAY: Duration = Duration::from_millis(20);
/// Interval at which the thread makes progress in the task's place.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(5);
/// Number of such rounds after which the peer is assumed to make no progress either.
const MAX_FREQUENT_PROGRESS: u32 = 40;
/// Interval between rounds from then on.
const RARE_PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between two ticks of the watch.
const TICK: Duration = Duration::from_millis(250);
/// Interval between two ticks of bypasses.
const BYPASS_TICK: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
struct Shared {
    stop: Mutex<bool>,
    changed: Condvar,
    /// Whether something has been left behind.
    owing: AtomicBool,
    /// Whether something may be unacknowledged; `due` says that it is time to check.
    watching: AtomicBool,
    due: AtomicBool,
    /// Whether something sent by a bypass may not have arrived; `ticked` says that it is time to check.
    ticking: AtomicBool,
    ticked: AtomicBool,
    /// Whether the thread sleeps until there is work.
    asleep: AtomicBool,
    /// Number of times that the sockets have been polled.
    turns: AtomicU32,
}

/// Handle of the thread that sends what a task has left behind.
#[derive(Debug)]
pub(crate) struct ProgressThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The values last passed to the thread.
    owing: bool,
    watching: bool,
    ticking: bool,
}

impl Shared {
    fn stop(&self) -> MutexGuard<'_, bool> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_work(&self) -> bool {
        let works = [&self.owing, &self.watching, &self.ticking];
        works.iter().any(|work| work.load(Ordering::SeqCst))
    }

    /// Wakes the thread if it sleeps. Called after the store that creates work: a thread that is about to sleep sees
    /// that store, or this call sees the sleeper.
    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            drop(self.stop());
            self.changed.notify_one();
        }
    }

    /// Sleeps until there is work. Returns true if the thread must stop.
    fn await_work(&self) -> bool {
        let is_idle = |stop: &mut bool| !*stop && !self.has_work();
        let stop = self.stop();
        self.asleep.store(true, Ordering::SeqCst);
        let stop = self.changed.wait_while(stop, is_idle);
        self.asleep.store(false, Ordering::SeqCst);
        *stop.unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps for `limit`, or until the ticks of bypasses begin. Returns true if the thread must stop.
    fn rest(&self, limit: Duration) -> bool {
        let ticks = || self.ticking.load(Ordering::SeqCst);
        let stop = self.stop();
        let ticked = ticks();
        let goes_on = |stop: &mut bool| !*stop && (ticked || !ticks());
        let waited = self.changed.wait_timeout_while(stop, limit, goes_on);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl ProgressThread {
    /// Starts the thread. `go_on` polls the sockets as a call of the task would.
    pub(crate) fn new(go_on: fn()) -> io::Result<ProgressThread> {
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        let thread = library_thread::spawn("regatta/progress", move || finish(&own, go_on))?;
        Ok(ProgressThread {
            shared,
            thread: Some(thread),
            owing: false,
            watching: false,
            ticking: false,
        })
    }

    /// Counts a poll of the sockets. Returns whether it is time to check for unacknowledged parcels.
    pub(crate) fn turn(&self) -> bool {
        self.shared.turns.fetch_add(1, Ordering::Relaxed);
        self.shared.due.load(Ordering::Relaxed) && self.shared.due.swap(false, Ordering::Relaxed)
    }

    /// Returns whether it is time to check what has not arrived by bypasses. Called at each poll of the sockets.
    pub(crate) fn bypass_turn(&self) -> bool {
        self.shared.ticked.load(Ordering::Relaxed)
            && self.shared.ticked.swap(false, Ordering::Relaxed)
    }

    /// Starts or stops the ticks of bypasses.
    pub(crate) fn tick(&mut self, ticking: bool) {
        if self.ticking == ticking {
            return;
        }
        self.ticking = ticking;
        self.shared.ticking.store(ticking, Ordering::SeqCst);
        if ticking {
            // The thread may be sleeping until a tick of the watch, which is long.
            drop(self.shared.stop());
            self.shared.changed.notify_one();
        }
    }

    /// Starts or stops the ticks of the watch.
    pub(crate) fn watch(&mut self, watching: bool) {
        if self.watching == watching {
            return;
        }
        self.watching = watching;
        self.shared.watching.store(watching, Ordering::SeqCst);
        if watching {
            self.shared.wake();
        }
    }

    /// Sets whether something has been left behind.
    pub(crate) fn owe(&mut self, owing: bool) {
        if self.owing == owing {
            return;
        }
        self.owing = owing;
        self.shared.owing.store(owing, Ordering::SeqCst);
        if owing {
            self.shared.wake();
        }
    }
}

fn finish(shared: &Shared, go_on: fn()) {
    while !shared.await_work() {
        let mut seen = shared.turns.load(Ordering::Relaxed);
        let (mut patience, mut looks, mut calm) = (TAKEOVER_DELAY, 0, seen);
        let mut tick = Instant::now() + TICK;
        while shared.has_work() {
            let left = tick.saturating_duration_since(Instant::now());
            let owing = shared.owing.load(Ordering::SeqCst);
            if shared.ticking.load(Ordering::SeqCst) {
                if shared.rest(BYPASS_TICK.min(left)) {
                    return;
                }
                let turns = shared.turns.load(Ordering::Relaxed);
                shared.ticked.store(true, Ordering::Relaxed);
                if std::mem::replace(&mut calm, turns) == turns {
                    go_on();
                    calm = shared.turns.load(Ordering::Relaxed);
                }
            } else if shared.rest(if owing { patience.min(left) } else { left }) {
                return;
            }
            if Instant::now() >= tick {
                tick = Instant::now() + TICK;
                shared.due.store(true, Ordering::Relaxed);
                if shared.watching.load(Ordering::SeqCst) {
                    go_on();
                }
            }
            if !owing {
                continue;
            }
            let turns = shared.turns.load(Ordering::Relaxed);
            if turns != seen {
                // The task makes calls.
                (seen, patience, looks) = (turns, TAKEOVER_DELAY, 0);
                continue;
            }
            go_on();
            seen = shared.turns.load(Ordering::Relaxed);
            looks += 1;
            patience = if looks < MAX_FREQUENT_PROGRESS {
                PROGRESS_INTERVAL
            } else {
                RARE_PROGRESS_INTERVAL
            };
        }
    }
}

impl Drop for ProgressThread {
    /// Stops the thread and waits for its end. Must not be called under the lock that `go_on` takes.
    fn drop(&mut self) {
        *self.shared.stop() = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
