//! Peers that cannot be reached: noticing it soon, saying it, and getting through again soon after the network is back.
//!
//! *When.* A watch (a tick of the progress thread, see [`super::progress_thread`]) runs only while something that was written is
//! perhaps not acknowledged, or a connection is being made; a send pays one look at a flag for it. At each tick the
//! kernel is asked how far the peer's *kernel* has acknowledged. A peer that computes, or is stopped, still acknowledges: what
//! is noticed is the network. After [`UNREACHABLE_TIMEOUT`] without progress, with at least one attempt repeated, the peer is out of reach.
//!
//! A connection that is being made is asked for by the kernel each second ([`regatta_connection::dial::set_keepalive`]), so that a call which
//! waits in the queue of a task that computes is told from one to a host that has been cut off. Once a question is left without an
//! answer, each tick has the kernel ask again, so that one lost packet is no silence.
//!
//! *Saying it.* That is a [`Reach`](regatta_engine::Reach), and so is the end of it. The process passes them on to its launcher, who tells the user.
//!
//! *Getting through.* The kernel's own next attempt may be long in coming (Linux before 6.15 doubles the time between them). So
//! the peer is called on a fresh connection every [`CALL_INTERVAL`], the link's *spare*, while the old one stays as it is. The spare takes the old
//! one's place as soon as both ends have met on it, exactly as after a broken connection: nothing is lost or doubled. If both
//! ends call at once, the lower rank's call stands, once it has reached the other kernel.
//!
//! *Giving up.* Whether to wait is for the launcher to decide (`--unreachable`). [`give_up`](super::Tcp::give_up) makes a peer dead for this task.

mod watch;

use std::time::{Duration, Instant};

use regatta_connection::handshake::Handshake;

/// Time without acknowledgement after which a peer is out of reach: three ticks after the first that finds it so, or four where the
/// kernel need not have repeated anything; the last may seem a little early, because the first was late.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_millis(900);
/// Minimum time between the last acknowledgement and the kernel's first retransmission, so that the tick that finds one is later.
const MIN_RETRANSMISSION_DELAY: Duration = Duration::from_millis(200);
/// Minimum silence of a peer that a tick finds without an answer on a connection that is being made: the kernel asks only when nothing
/// has come for a second. Such a peer is out of reach two ticks and two more questions later.
const MIN_UNANSWERED_TIME: Duration = Duration::from_millis(450);
/// Time a call has to get through before another one is made, a little less than two ticks.
const CALL_INTERVAL: Duration = Duration::from_millis(450);
/// The same for a first call, a little less than four ticks: no connection has shown yet how far away the peer is.
const FIRST_CALL_INTERVAL: Duration = Duration::from_millis(950);
/// Time by which, on a slow network, the timeout is longer than a round trip: an answer to the second question still counts.
const ROUND_TRIP_ALLOWANCE: Duration = Duration::from_millis(700);
/// Interval at which a peer that stays out of reach is reported again, a little less than four ticks: somebody else may be the launcher
/// by then, and a launcher gives nobody up without a report that is new.
const REPORT_INTERVAL: Duration = Duration::from_millis(900);
/// Tokens of spare connections: this and the peer's number.
pub(super) const FIRST_SPARE_TOKEN: u64 = 1 << 31;

/// The silence of a link, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    /// Something was written since the last tick that found all acknowledged.
    watched: bool,
    /// Nothing has been acknowledged since, and the position that was acknowledged then.
    since: Option<Instant>,
    acknowledged: u64,
    /// When this was last looked at.
    looked: Option<Instant>,
    /// When the process was last told that the peer is out of reach.
    told: Option<Instant>,
    /// When the peer was last called anew.
    called: Option<Instant>,
    /// How long the peer's kernel takes to answer, once a connection has shown it.
    round_trip: Option<Duration>,
    /// Since when this host lacks something for a connection to the peer, such as a descriptor.
    short: Option<Instant>,
    /// This task has no descriptor for the peer, and gives it up; and the other way round.
    refuses: bool,
    refused: bool,
    /// A second connection, under way while the first one says nothing.
    spare: Option<Handshake>,
}

impl Stall {
    /// Whether something was written since the last tick that found all acknowledged.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Whether a call on a second connection has got through to the peer's host.
    pub(super) fn has_called_anew(&self) -> bool {
        self.spare.as_ref().is_some_and(Handshake::has_sent_hello)
    }

    /// Returns since when this host lacks something for a connection to the peer: since now, if it did not before.
    pub(super) fn short_since(&mut self) -> Instant {
        *self.short.get_or_insert_with(Instant::now)
    }

    /// There is all that a call to the peer takes.
    pub(super) fn end_shortage(&mut self) {
        self.short = None;
    }

    /// Whether this task gives the peer up because it has no descriptor for it.
    pub(super) fn refuses(&self) -> bool {
        self.refuses
    }

    pub(super) fn refuse(&mut self) {
        self.refuses = true;
    }

    /// The peer gives this task up so.
    pub(super) fn hear_refusal(&mut self) {
        self.refused = true;
    }

    /// Whether it has just said so.
    pub(super) fn take_refusal(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    #[cfg(test)]
    pub(super) fn spare_mut(&mut self) -> Option<&mut Handshake> {
        self.spare.as_mut()
    }

    /// A connection stands: what was noticed of the one before does not count.
    pub(super) fn begin_again(&mut self) {
        self.since = None;
        self.short = None;
        self.spare = None;
    }

    /// Takes note of the state in which a tick finds the link; how long it has been silent.
    fn note(&mut self, found: &Liveness, now: Instant) -> Duration {
        // A process that was stopped has tried nothing meanwhile, and its kernel may have tried last long ago. It reports only what
        // it finds after attempts of its own.
        let away = self
            .looked
            .is_some_and(|looked| now - looked >= REPORT_INTERVAL * 2);
        self.looked = Some(now);
        if away && self.told.is_some() {
            self.told = Some(now);
        }
        self.watched = !matches!(found, Liveness::Quiet);
        match *found {
            Liveness::Silent(position) if self.acknowledged == position => {
                now - *self.since.get_or_insert(now)
            }
            Liveness::Unanswered => {
                let began = now.checked_sub(MIN_UNANSWERED_TIME).unwrap_or(now);
                now - *self.since.get_or_insert(began)
            }
            Liveness::Silent(position) => {
                self.acknowledged = position;
                // A call that has had no answer yet need not have been repeated.
                let before = if position == 0 {
                    Duration::ZERO
                } else {
                    MIN_RETRANSMISSION_DELAY
                };
                let began = now.checked_sub(before).unwrap_or(now);
                self.since = Some(began);
                now - began
            }
            Liveness::Quiet | Liveness::Moving => {
                self.since = None;
                Duration::ZERO
            }
        }
    }

    /// Whether the peer is to be called anew now.
    fn may_call(&mut self, now: Instant) -> bool {
        // A call that is given up before its answer can be there never gets through.
        let rest = self.round_trip.map_or(FIRST_CALL_INTERVAL, |trip| {
            CALL_INTERVAL.max(trip + trip / 4)
        });
        let may = self.called.is_none_or(|called| now - called >= rest);
        if may {
            self.called = Some(now);
        }
        may
    }

    /// So long nothing is acknowledged when the peer is out of reach.
    fn silence(&self) -> Duration {
        UNREACHABLE_TIMEOUT.max(ROUND_TRIP_ALLOWANCE + self.round_trip.unwrap_or_default())
    }

    /// Whether a silence of this length is to be reported now.
    fn is_due(&mut self, silent: Duration, now: Instant) -> bool {
        let due =
            silent >= self.silence() && self.told.is_none_or(|told| now - told >= REPORT_INTERVAL);
        if due {
            self.told = Some(now);
        }
        due
    }
}

/// The state in which a tick finds a link.
enum Liveness {
    /// All is acknowledged, or nothing has to be said.
    Quiet,
    /// The peer's kernel answers.
    Moving,
    /// Nothing is acknowledged beyond this position, which the kernel has tried again.
    Silent(u64),
    /// A connection is being made on which the peer's kernel has answered, and answers no more.
    Unanswered,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(250);

    #[test]
    fn a_silence_is_reported_again_while_it_lasts_and_not_as_soon_as_a_stopped_process_goes_on() {
        let mut stall = Stall::default();
        let mut now = Instant::now();
        let mut tick = |after: Duration| {
            now += after;
            let silent = stall.note(&Liveness::Silent(7), now);
            stall.is_due(silent, now)
        };
        // The first tick sees the position, the others that nothing is acknowledged beyond it.
        let said: Vec<bool> = (0..13).map(|_| tick(TICK)).collect();
        let due: Vec<usize> = (0..13).filter(|&at| said[at]).collect();
        assert_eq!(due, [3, 7, 11]);
        // Stopped for a while: four ticks of attempts come before the next report.
        let said: Vec<bool> = std::iter::once(tick(TICK * 40))
            .chain((0..4).map(|_| tick(TICK)))
            .collect();
        assert_eq!(said, [false, false, false, false, true]);
    }

    #[test]
    fn a_call_without_an_answer_is_a_silence_after_two_more_questions() {
        let (mut stall, mut now) = (Stall::default(), Instant::now());
        let mut tick = |found| {
            now += TICK;
            let silent = stall.note(&found, now);
            stall.is_due(silent, now)
        };
        assert!(!tick(Liveness::Unanswered) && !tick(Liveness::Unanswered));
        // An answer has come: the silence begins anew.
        assert!(
            !tick(Liveness::Moving) && !tick(Liveness::Unanswered) && !tick(Liveness::Unanswered)
        );
        assert!(tick(Liveness::Unanswered));
        // The call is given up for another, which nobody takes: it is the same silence.
        let said: Vec<bool> = (0..4).map(|_| tick(Liveness::Silent(0))).collect();
        assert_eq!(said, [false, false, false, true]);
    }

    #[test]
    fn a_call_after_a_connection_that_broke_has_as_long_for_its_answer_as_the_first_one() {
        let (mut stall, mut now) = (Stall::default(), Instant::now());
        let mut tick = |found| {
            now += TICK;
            let silent = stall.note(&found, now);
            stall.is_due(silent, now)
        };
        // Something was once repeated on the connection, and acknowledged.
        assert!(!tick(Liveness::Silent(4096)) && !tick(Liveness::Moving));
        // The kernel repeats the call after a second.
        let said: Vec<bool> = (0..5).map(|_| tick(Liveness::Silent(0))).collect();
        assert_eq!(said, [false, false, false, false, true]);
    }

    fn near() -> Stall {
        Stall {
            round_trip: Some(Duration::from_millis(1)),
            ..Stall::default()
        }
    }

    #[test]
    fn a_peer_far_away_has_the_time_of_a_round_trip_for_each_answer() {
        let (mut stall, begun) = (near(), Instant::now());
        stall.round_trip = Some(Duration::from_millis(600));
        let calls: Vec<bool> = (0..6).map(|at| stall.may_call(begun + TICK * at)).collect();
        assert_eq!(calls, [true, false, false, true, false, false]);
        let said: Vec<bool> = (0..6)
            .map(|at| {
                let now = begun + TICK * at;
                let silent = stall.note(&Liveness::Unanswered, now);
                stall.is_due(silent, now)
            })
            .collect();
        assert_eq!(said, [false, false, false, false, true, false]);
    }

    #[test]
    fn a_shortage_ends_with_the_connection_that_it_held_up() {
        let mut stall = near();
        stall.short = Some(Instant::now());
        stall.begin_again();
        assert_eq!(stall.short, None, "a later one has its own time");
    }

    #[test]
    fn a_peer_that_was_never_reached_is_called_once_in_four_ticks() {
        let (mut stall, now) = (Stall::default(), Instant::now());
        let calls: Vec<bool> = (0..6).map(|at| stall.may_call(now + TICK * at)).collect();
        assert_eq!(calls, [true, false, false, false, true, false]);
    }

    #[test]
    fn a_peer_is_called_anew_every_other_tick() {
        let now = Instant::now();
        let mut stall = near();
        let calls: Vec<bool> = (0..5).map(|at| stall.may_call(now + TICK * at)).collect();
        assert_eq!(calls, [true, false, true, false, true]);
    }
}
