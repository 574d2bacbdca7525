//! Peers that cannot be reached: noticing it soon, saying it, and getting through again soon after the network is back.
//!
//! *When.* A watch (a tick of the progress thread, see [`super::progress_thread`]) runs only while something that was written is
//! perhaps not acknowledged, or a connection is being made; a send pays one look at a flag for it. At each tick the
//! kernel is asked how far the peer's *kernel* has acknowledged. A peer that computes, or is stopped, still acknowledges: what
//! is noticed is the network. After [`UNREACHABLE_TIMEOUT`] without progress, with at least one attempt repeated, the peer is out of reach.
//!
//! A connection that is being made is asked for by the kernel each second ([`regatta_connection::dial::ask_now_and_then`]), so that a call which
//! waits in the queue of a task that computes is told from one to a host that has been cut off. Once a question is left without an
//! answer, each tick has the kernel ask again, so that one lost packet is no silence.
//!
//! *Saying it.* That is a [`Reach`], and so is the end of it. The process passes them on to its launcher, who tells the user.
//!
//! *Getting through.* The kernel's own next attempt may be long in coming (Linux before 6.15 doubles the time between them). So
//! the peer is called on a fresh connection every [`CALL_INTERVAL`], the link's *spare*, while the old one stays as it is. The spare takes the old
//! one's place as soon as both ends have met on it, exactly as after a broken connection: nothing is lost or doubled. If both
//! ends call at once, the lower rank's call stands, once it has reached the other kernel.
//!
//! *Giving up.* Whether to wait is for the launcher to decide (`--unreachable`). [`Tcp::give_up`] makes a peer dead for this task.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use regatta_engine::Peer;
use rustix::event::epoll;

use super::Tcp;
use super::link::{Link, Trouble};
use super::phase::Phase;
use regatta_connection::channel::Channel;
use regatta_connection::dial;
use regatta_connection::handshake::{End, Shake};

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
pub(super) const SPARE: u64 = 1 << 31;

/// A peer has come out of reach, or is reached again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The peer's number.
    pub peer: Peer,
    /// Where it listens.
    pub address: Option<SocketAddr>,
    /// So long it has not answered; `None`: it is reached again.
    pub silent: Option<Duration>,
}

/// The silence of a link, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    /// Something was written since the last tick that found all acknowledged.
    pub(super) watched: bool,
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
    pub(super) short: Option<Instant>,
    /// This task has no descriptor for the peer, and gives it up; and the other way round.
    pub(super) refuses: bool,
    pub(super) refused: bool,
    /// A second connection, under way while the first one says nothing.
    pub(super) spare: Option<Shake>,
}

impl Stall {
    /// A connection stands: what was noticed of the one before does not count.
    pub(super) fn begin_again(&mut self) {
        self.since = None;
        self.short = None;
        self.spare = None;
    }

    /// Takes note of the state in which a tick finds the link; how long it has been silent.
    fn note(&mut self, found: &Found, now: Instant) -> Duration {
        // A process that was stopped has tried nothing meanwhile, and its kernel may have tried last long ago. It reports only what
        // it finds after attempts of its own.
        let away = self
            .looked
            .is_some_and(|looked| now - looked >= REPORT_INTERVAL * 2);
        self.looked = Some(now);
        if away && self.told.is_some() {
            self.told = Some(now);
        }
        self.watched = !matches!(found, Found::Quiet);
        match *found {
            Found::Silent(position) if self.acknowledged == position => {
                now - *self.since.get_or_insert(now)
            }
            Found::Unanswered => {
                let began = now.checked_sub(MIN_UNANSWERED_TIME).unwrap_or(now);
                now - *self.since.get_or_insert(began)
            }
            Found::Silent(position) => {
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
            Found::Quiet | Found::Moving => {
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
enum Found {
    /// All is acknowledged, or nothing has to be said.
    Quiet,
    /// The peer's kernel answers.
    Moving,
    /// Nothing is acknowledged beyond this position, which the kernel has tried again.
    Silent(u64),
    /// A connection is being made on which the peer's kernel has answered, and answers no more.
    Unanswered,
}

impl Link {
    /// As the connection shows it, if there is one.
    fn round_trip(&self) -> Option<Duration> {
        let channel = match &self.phase {
            Phase::Open(channel) => channel,
            Phase::Calling(shake) => shake.channel(),
            Phase::Resuming(resuming) => &resuming.channel,
            _ => return None,
        };
        let trip = channel.progress()?.round_trip;
        (!trip.is_zero()).then_some(trip)
    }

    fn look_at_silence(&self) -> Found {
        match &self.phase {
            _ if self.is_cut_for_good() || self.fault.is_some() || self.gone => Found::Quiet,
            Phase::Open(channel) => match channel.progress() {
                // Parcels that may not have come by a bypass may have to go by the connection yet.
                Some(progress) if progress.idle && self.outbox.is_unsure() => Found::Moving,
                Some(progress) if progress.idle => Found::Quiet,
                Some(progress) if progress.repeated > 0 => Found::Silent(progress.acknowledged),
                _ => Found::Moving,
            },
            _ if !self.needs_connection() => Found::Quiet,
            // A peer whose host has taken the call, and that says nothing, is busy with something else: for hours, perhaps.
            Phase::Calling(shake) if shake.has_greeted() => found_asking(shake.channel()),
            Phase::Resuming(resuming) => found_asking(&resuming.channel),
            Phase::Idle | Phase::Resting(_) if self.refused || self.stall.short.is_some() => {
                Found::Moving
            }
            _ => Found::Silent(0),
        }
    }
}

/// On a connection on which the kernel asks now and then: it is to ask again soon what has had no answer.
fn found_asking(channel: &Channel) -> Found {
    match channel.progress() {
        Some(progress) if progress.repeated == 0 => Found::Moving,
        Some(progress) if progress.idle => {
            let _ = dial::ask_now_and_then(channel, true);
            Found::Unanswered
        }
        Some(_) => Found::Silent(0),
        None => Found::Moving,
    }
}

impl Tcp {
    /// Something has been written to a peer: look now and then whether it arrives.
    #[cold]
    pub(super) fn begin_watch(&mut self, peer: Peer) {
        self.make_progress_thread();
        let Some(progress) = &mut self.progress else {
            return;
        };
        progress.watch(true);
        if let Some(link) = self.link(peer) {
            link.stall.watched = true;
        }
    }

    /// A tick of the watch.
    #[cold]
    pub(super) fn watch_over(&mut self) {
        let now = Instant::now();
        let mut watched = false;
        for index in 0..self.known.len() {
            let peer = self.known[index];
            let lost = self.is_lost(peer);
            let address = self.job.address(peer);
            let Some(link) = self.link(peer).filter(|link| link.stall.watched) else {
                continue;
            };
            watched = true;
            link.try_bypass_again();
            let found = match lost {
                true => Found::Quiet,
                false => link.look_at_silence(),
            };
            if matches!(found, Found::Silent(_) | Found::Unanswered) {
                link.stall.round_trip = link.round_trip().or(link.stall.round_trip);
            }
            let stall = &mut link.stall;
            let silent = stall.note(&found, now);
            if silent >= stall.silence() {
                if stall.is_due(silent, now) {
                    let silent = Some(silent);
                    self.reaches.push(Reach {
                        peer,
                        address,
                        silent,
                    });
                }
                if self.link(peer).is_some_and(|link| link.stall.may_call(now)) {
                    self.call_anew(peer);
                }
            } else if stall.since.is_none() {
                // The peer stays on the old connection as long as this side does.
                stall.spare = None;
                let ended = lost || link.is_cut_for_good();
                if link.stall.told.take().is_some() && !ended {
                    let silent = None;
                    self.reaches.push(Reach {
                        peer,
                        address,
                        silent,
                    });
                }
            }
        }
        if let Some(progress) = self.progress.as_mut().filter(|_| !watched) {
            progress.watch(false);
        }
    }

    /// Tries a fresh connection to a peer that says nothing, unless one has got through to it.
    pub(super) fn call_anew(&mut self, peer: Peer) {
        let Some(link) = self.link(peer) else {
            return;
        };
        match &link.phase {
            Phase::Open(_) => {}
            _ => {
                // The call under way may have been lost with the network, and the kernel repeats it late.
                link.trouble(Trouble::Lost);
                let _ = self.reach(peer);
                return;
            }
        }
        let under_way = |spare: &Shake| spare.has_greeted() && !spare.is_silent();
        if link.stall.spare.as_ref().is_some_and(under_way) {
            return;
        }
        link.stall.spare = None;
        let Some(address) = self.job.address(peer) else {
            return;
        };
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT;
        let called = dial::dial(address).and_then(|socket| {
            dial::ask_now_and_then(&socket, true)?;
            let mut shake = Shake::caller(socket, peer).patient();
            shake.watch(&self.epoll, SPARE | peer as u64, flags)?;
            Ok(shake)
        });
        if let (Ok(shake), Some(link)) = (called, self.link(peer)) {
            link.stall.spare = Some(shake);
        }
    }

    /// Something has happened on a link's spare connection.
    #[cold]
    pub(super) fn stir_spare(&mut self, peer: Peer) {
        let own = &self.own;
        let link = self.links.get_mut(peer as usize);
        let Some(link) = link.and_then(Option::as_deref_mut) else {
            return;
        };
        let Some(shake) = &mut link.stall.spare else {
            return;
        };
        match shake.advance(own) {
            Some(End::Met(_)) => {
                if let Some(shake) = link.stall.spare.take() {
                    self.adopt(peer, shake.into_channel(), true);
                }
            }
            Some(_) => link.stall.spare = None,
            None if shake.has_greeted() => {
                // A socket that takes more would be an event without end.
                let data = epoll::EventData::new_u64(SPARE | peer as u64);
                let _ = epoll::modify(&self.epoll, shake.fd(), data, epoll::EventFlags::IN);
            }
            None => {}
        }
    }

    /// A peer that cannot be reached is dead for this task from now on.
    pub(crate) fn give_up(&mut self, peer: Peer) {
        if let Ok(link) = self.link_to(peer)
            && !link.gone
        {
            link.stall = Stall {
                refuses: link.stall.refuses,
                ..Stall::default()
            };
            link.read_out();
            link.trouble(Trouble::Disowned);
            self.restless = true;
        }
    }

    #[inline]
    pub(crate) fn has_reaches(&self) -> bool {
        !self.reaches.is_empty()
    }

    /// Peers on other hosts that have come out of reach, or back, since the last call.
    pub(crate) fn take_reaches(&mut self) -> Vec<Reach> {
        std::mem::take(&mut self.reaches)
    }
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
            let silent = stall.note(&Found::Silent(7), now);
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
        assert!(!tick(Found::Unanswered) && !tick(Found::Unanswered));
        // An answer has come: the silence begins anew.
        assert!(!tick(Found::Moving) && !tick(Found::Unanswered) && !tick(Found::Unanswered));
        assert!(tick(Found::Unanswered));
        // The call is given up for another, which nobody takes: it is the same silence.
        let said: Vec<bool> = (0..4).map(|_| tick(Found::Silent(0))).collect();
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
        assert!(!tick(Found::Silent(4096)) && !tick(Found::Moving));
        // The kernel repeats the call after a second.
        let said: Vec<bool> = (0..5).map(|_| tick(Found::Silent(0))).collect();
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
                let silent = stall.note(&Found::Unanswered, now);
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
