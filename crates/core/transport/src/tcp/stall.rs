//! Unreachable peers: detecting them soon, reporting them, and reconnecting soon after the network is back.
//!
//! *Detection.* A watch (a tick of the progress thread, see [`super::progress_thread`]) runs only while something
//! that was written may be unacknowledged, or a connection is being made; for this a send checks one flag. At each
//! tick the kernel is asked how far the peer's *kernel* has acknowledged. A peer that computes or is stopped still
//! acknowledges, so only the network's state counts. After [`UNREACHABLE_TIMEOUT`] without progress, with at least
//! one retransmission, the peer is unreachable.
//!
//! On a connection that is being made, the kernel sends keepalive probes each second
//! ([`regatta_connection::dial::set_keepalive`]). They distinguish a call that waits in the queue of a task that
//! computes from one to a host that has been cut off. Once a probe is left unanswered, each tick makes the kernel
//! send another one, so that a single lost packet does not count as silence.
//!
//! *Reporting.* An unreachable peer is reported as a [`Reach`](regatta_engine::Reach), and so is the end of that
//! state. The process passes them on to its launcher, which tells the user.
//!
//! *Reconnecting.* The kernel's own next attempt may be far off (Linux before 6.15 doubles the time between
//! attempts). So every [`CALL_INTERVAL`] a new connection to the peer is tried, the link's *spare*, while the old one
//! stays as it is. The spare replaces the old connection as soon as both ends are authenticated on it, exactly as
//! after a broken connection: nothing is lost or duplicated. If both ends call at the same time, the lower rank's
//! call is kept, provided that the other kernel has accepted it.
//!
//! *Giving up.* The launcher decides how long to wait (`--unreachable`). [`give_up`](super::Tcp::give_up) makes a
//! peer dead for this task.

mod watch;

use std::time::{Duration, Instant};

use regatta_connection::handshake::Handshake;

/// Time without acknowledgement after which a peer is unreachable. That is three ticks after the first that finds no
/// progress, or four if the kernel need not have retransmitted anything. It is slightly less than that many ticks,
/// since the first tick may have been late.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_millis(900);
/// Minimum time between the last acknowledgement and the kernel's first retransmission. A tick that finds a
/// retransmission is at least that much later than the acknowledgement.
const MIN_RETRANSMISSION_DELAY: Duration = Duration::from_millis(200);
/// Minimum silence of a peer when a tick first finds a keepalive probe unanswered on a connection that is being made:
/// the kernel sends probes only after a second without packets. Such a peer is unreachable two ticks and two probes
/// later.
const MIN_UNANSWERED_TIME: Duration = Duration::from_millis(450);
/// Time that a call has to get through before another one is made, slightly less than two ticks.
const CALL_INTERVAL: Duration = Duration::from_millis(450);
/// The same time for a first call, slightly less than four ticks: no connection has shown the round-trip time to the
/// peer yet.
const FIRST_CALL_INTERVAL: Duration = Duration::from_millis(950);
/// Time by which the timeout exceeds a round trip on a slow network, so that an answer to the second probe still
/// counts.
const ROUND_TRIP_ALLOWANCE: Duration = Duration::from_millis(700);
/// Interval at which a peer that stays unreachable is reported again, slightly less than four ticks. Another process
/// may be the launcher by then, and a launcher gives up a peer only after a recent report.
const REPORT_INTERVAL: Duration = Duration::from_millis(900);
/// Base of the tokens of spare connections, to which the peer's number is added.
pub(super) const FIRST_SPARE_TOKEN: u64 = 1 << 31;

/// The silence of a link, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    /// Whether something was written since the last tick that found everything acknowledged.
    watched: bool,
    /// Start of the present silence, if there is one; `acknowledged` is the position that was acknowledged then.
    since: Option<Instant>,
    acknowledged: u64,
    /// Time of the last tick for this link.
    looked: Option<Instant>,
    /// Time of the last report that the peer is unreachable.
    told: Option<Instant>,
    /// Time of the last new call to the peer.
    called: Option<Instant>,
    /// Time that the peer's kernel takes to answer, once a connection has shown it.
    round_trip: Option<Duration>,
    /// Time since when this host has lacked a resource for a connection to the peer, such as a descriptor.
    short: Option<Instant>,
    /// Whether this task gives the peer up because it has no descriptor for it; `refused` says that the peer has
    /// given this task up for that reason.
    refuses: bool,
    refused: bool,
    /// A second connection, being made while the first one is silent.
    spare: Option<Handshake>,
}

impl Stall {
    /// Returns whether something was written since the last tick that found everything acknowledged.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Returns whether the spare connection has been accepted by the peer's host.
    pub(super) fn has_called_anew(&self) -> bool {
        self.spare.as_ref().is_some_and(Handshake::has_sent_hello)
    }

    /// Returns since when this host has lacked a resource for a connection to the peer. Sets that to now if it had
    /// all resources before.
    pub(super) fn short_since(&mut self) -> Instant {
        *self.short.get_or_insert_with(Instant::now)
    }

    /// Records that this host has all resources for a call to the peer.
    pub(super) fn end_shortage(&mut self) {
        self.short = None;
    }

    /// Returns whether this task gives the peer up because it has no descriptor for it.
    pub(super) fn refuses(&self) -> bool {
        self.refuses
    }

    pub(super) fn refuse(&mut self) {
        self.refuses = true;
    }

    /// Records that the peer gives this task up because it has no descriptor for it.
    pub(super) fn hear_refusal(&mut self) {
        self.refused = true;
    }

    /// Returns whether such a refusal was received since the last call.
    pub(super) fn take_refusal(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    #[cfg(test)]
    pub(super) fn spare_mut(&mut self) -> Option<&mut Handshake> {
        self.spare.as_mut()
    }

    /// Resets the silence, the shortage and the spare, because a new connection has been adopted.
    pub(super) fn begin_again(&mut self) {
        self.since = None;
        self.short = None;
        self.spare = None;
    }

    /// Records the state in which a tick finds the link. Returns how long the link has been silent.
    fn note(&mut self, found: &Liveness, now: Instant) -> Duration {
        // A process that was stopped has tried nothing meanwhile, and its kernel's last attempt may have been long
        // ago. It reports a silence only after attempts of its own.
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
                // A call that has not been answered yet need not have been retransmitted.
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

    /// Returns whether to call the peer anew now, and records the call.
    fn may_call(&mut self, now: Instant) -> bool {
        // A call that is given up before its answer can arrive would never get through.
        let rest = self.round_trip.map_or(FIRST_CALL_INTERVAL, |trip| {
            CALL_INTERVAL.max(trip + trip / 4)
        });
        let may = self.called.is_none_or(|called| now - called >= rest);
        if may {
            self.called = Some(now);
        }
        may
    }

    /// Returns the length of silence after which the peer is unreachable.
    fn silence(&self) -> Duration {
        UNREACHABLE_TIMEOUT.max(ROUND_TRIP_ALLOWANCE + self.round_trip.unwrap_or_default())
    }

    /// Returns whether a silence of this length is to be reported now, and records the report.
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
    /// Everything is acknowledged, or there is nothing to send.
    Quiet,
    /// The peer's kernel answers.
    Moving,
    /// Nothing is acknowledged beyond this position, although the kernel has retransmitted.
    Silent(u64),
    /// On a connection that is being made, the peer's kernel has answered before and no longer does.
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
        // The first tick sees the position; the others see that nothing is acknowledged beyond it.
        let said: Vec<bool> = (0..13).map(|_| tick(TICK)).collect();
        let due: Vec<usize> = (0..13).filter(|&at| said[at]).collect();
        assert_eq!(due, [3, 7, 11]);
        // The process is stopped for a while: four ticks with attempts come before the next report.
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
        // An answer arrives, so the silence begins anew.
        assert!(
            !tick(Liveness::Moving) && !tick(Liveness::Unanswered) && !tick(Liveness::Unanswered)
        );
        assert!(tick(Liveness::Unanswered));
        // The call is given up for another, which is not accepted: it is the same silence.
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
        // Something was retransmitted on the connection, and acknowledged.
        assert!(!tick(Liveness::Silent(4096)) && !tick(Liveness::Moving));
        // The kernel retransmits the call after a second.
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
