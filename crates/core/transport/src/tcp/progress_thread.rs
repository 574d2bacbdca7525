//! A thread that gets out what a task has said and left behind.
//!
//! A call may be over while its words are still here: the connection they are for is being made, or its socket takes no more
//! just now. The task's next call goes on with that. When none comes within [`TAKEOVER_DELAY`], because the task computes or waits
//! for something else than messages, this thread does it in its place; otherwise whoever waits for those words would wait
//! as long as the task stays away.
//!
//! It also has the tick of the watch over what may not be acknowledged (see `stall`): while something is watched, the next look
//! at the sockets after each [`TICK`] is told so, and is made here if the task makes none.
//!
//! And it has the shorter tick of bypasses (see `bypass`): while something that has gone by one is not known to have come.
//!
//! It is made when something is left behind or watched for the first time, and sleeps while nothing is.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use regatta_connection::library_thread;

/// Time a task that makes calls has for the next one before this thread acts in its place.
const TAKEOVER_DELAY: Duration = Duration::from_millis(20);
/// Interval at which the thread makes progress in the task's place.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(5);
/// Number of such rounds after which the other side counts as away, too.
const MAX_FREQUENT_PROGRESS: u32 = 40;
/// Interval between rounds from then on.
const RARE_PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between two ticks of the watch.
const TICK: Duration = Duration::from_millis(250);
/// Between two ticks of bypasses.
const BYPASS_TICK: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
struct Shared {
    stop: Mutex<bool>,
    changed: Condvar,
    /// Something has been left behind.
    owing: AtomicBool,
    /// Something may not be acknowledged; and it is time to look.
    watching: AtomicBool,
    due: AtomicBool,
    /// Something that has gone by a bypass may not have come; and it is time to look.
    ticking: AtomicBool,
    ticked: AtomicBool,
    /// The thread sleeps until something is.
    asleep: AtomicBool,
    /// How often the sockets have been looked at.
    turns: AtomicU32,
}

/// A thread that sends what a task has left behind.
#[derive(Debug)]
pub(crate) struct ProgressThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// As the thread has been told.
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

    /// There is something to do: behind the store that says so. A task on its way to sleep sees that, or this call sees the sleeper.
    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            drop(self.stop());
            self.changed.notify_one();
        }
    }

    /// Sleep until something is left behind. True: stop.
    fn await_work(&self) -> bool {
        let is_idle = |stop: &mut bool| !*stop && !self.has_work();
        let stop = self.stop();
        self.asleep.store(true, Ordering::SeqCst);
        let stop = self.changed.wait_while(stop, is_idle);
        self.asleep.store(false, Ordering::SeqCst);
        *stop.unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleep for so long, or until there are to be ticks of bypasses. True: stop.
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
    /// `go_on` looks at the sockets as a call of the task's would.
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

    /// Somebody looks at the sockets. True: it is time to look what has not been acknowledged.
    pub(crate) fn turn(&self) -> bool {
        self.shared.turns.fetch_add(1, Ordering::Relaxed);
        self.shared.due.load(Ordering::Relaxed) && self.shared.due.swap(false, Ordering::Relaxed)
    }

    /// Somebody looks at the sockets. True: it is time to look what has not come by bypasses.
    pub(crate) fn bypass_turn(&self) -> bool {
        self.shared.ticked.load(Ordering::Relaxed)
            && self.shared.ticked.swap(false, Ordering::Relaxed)
    }

    /// Something may not have come by a bypass, or nothing any more.
    pub(crate) fn tick(&mut self, ticking: bool) {
        if self.ticking == ticking {
            return;
        }
        self.ticking = ticking;
        self.shared.ticking.store(ticking, Ordering::SeqCst);
        if ticking {
            // It may sleep until a tick of the watch, which is long.
            drop(self.shared.stop());
            self.shared.changed.notify_one();
        }
    }

    /// Something may not be acknowledged, or nothing any more.
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

    /// Something has been left behind, or nothing any more.
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
                // The task is there.
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
    /// Not under the lock that `go_on` takes.
    fn drop(&mut self) {
        *self.shared.stop() = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
