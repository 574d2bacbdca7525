//! The failure detector: foca's SWIM, with our own timers and verdicts.
//!
//! Foca probes, asks others to probe, suspects, objects and spreads the updates. This module adds the following:
//!
//! - Time in which this process did not run does not count. A timer that fires much too late shifts all others by the
//!   same time, so a daemon that was stopped finishes its probes as usual, and does not blame others for its own
//!   absence.
//! - A suspicion that has expired becomes a verdict only if the rest of this host says [`Verdicts::Pass`]. While it
//!   says [`Verdicts::Hold`] the verdict waits, and afterwards the suspect has the whole time again.
//! - No verdict is passed sooner than [`Settings::verdict`] after the suspect last answered a probe of this host. So a
//!   link that was down for a second leaves the suspect time to object. An answer shows that both directions work;
//!   other messages of the suspect do not count, since it may be cut off in one direction.
//! - A verdict carries its cause instead of the incarnation, which means nothing for a dead host.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use foca::{Codec as _, Foca, Member, Message, State, Timer};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use regatta_wire::fields::bytes_of;

use crate::codec::Codec;
use crate::datagram::HEAD;
use crate::foca_output::{Note, Sink};
use crate::host::{Facts, HostId};
use crate::host_facts::Book;
use crate::pending::Pending;
use crate::roll::Roll;
use crate::settings::Settings;

/// The incarnation of a host that has left.
pub(crate) const LEFT: u16 = u16::MAX;
/// The incarnation of a host that answers while its daemon is gone.
pub(crate) const GONE: u16 = u16::MAX - 1;

/// Offset of the message kind in foca's bytes.
pub(crate) const KIND_AT: usize = 2 * HostId::BYTES + 2;

/// Minimum number of other members for detecting a cut-off host by random probes; with fewer members, suspecting them
/// one after the other is fast enough.
const MIN_MEMBERS_TO_SAMPLE: usize = 4;

/// What to do with a host whose suspicion has expired, as decided by the rest of this host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdicts {
    /// Hold the verdict back, because too few hosts answer.
    Hold,
    /// Delay the verdict a little, because so many hosts are suspected that this looks like a split, to see on which
    /// side this host is.
    PutOff,
    Pass,
}

pub(crate) struct Detector {
    foca: Foca<HostId, Codec, SmallRng, Book>,
    pub sink: Sink,
    settings: Settings,
    timers: BinaryHeap<Reverse<Pending>>,
    order: u64,
    /// Total time in which this process did not run.
    stopped: Duration,
    held: Vec<Timer<HostId>>,
    /// When each host last answered a probe of this host, in time that this process ran. Kept as long as it delays a
    /// verdict.
    answered_at: BTreeMap<HostId, Duration>,
    /// For each of the last periods, whether any host answered; the lowest bit is the newest.
    answers: u8,
    answered: bool,
    sized_for: usize,
    /// Whether this host is leaving. Then it ignores datagrams, so that it does not object to its own death.
    pub leaving: bool,
}

impl Detector {
    pub fn new(own: HostId, settings: &Settings, seed: u64, now: Duration, book: Book) -> Detector {
        let config = settings.foca(1, settings.datagram - HEAD);
        let foca =
            Foca::with_custom_broadcast(own, config, SmallRng::seed_from_u64(seed), Codec, book);
        let mut detector = Detector {
            foca,
            sink: Sink::default(),
            settings: settings.clone(),
            timers: BinaryHeap::new(),
            order: 0,
            stopped: Duration::ZERO,
            held: Vec::new(),
            answered_at: BTreeMap::new(),
            answers: u8::MAX,
            answered: false,
            sized_for: 1,
            leaving: false,
        };
        // Daemons that start together must not tick at the same time.
        let first = settings.period().mul_f64((seed % 97) as f64 / 97.0);
        detector.set(now + first, None);
        detector
    }

    pub fn own(&self) -> HostId {
        *self.foca.identity()
    }

    /// Returns when the next timer is due, in the caller's time.
    pub fn deadline(&self) -> Duration {
        self.timers
            .peek()
            .map_or(Duration::MAX, |Reverse(next)| next.due + self.stopped)
    }

    /// Detects whether this process did not run until now. Must be called before anything else with an input, since the
    /// effects of the input belong to the time after.
    pub fn notice_stop(&mut self, now: Duration) {
        let late = now.saturating_sub(self.deadline());
        if late > self.settings.stall() {
            self.stopped += late;
        }
    }

    /// Fires due timers. Returns whether a tick was among them.
    pub fn fire(&mut self, now: Duration, verdicts: Verdicts) -> bool {
        let mut ticked = false;
        while let Some(Reverse(next)) = self.timers.peek()
            && next.due + self.stopped <= now
        {
            let Some(Reverse(next)) = self.timers.pop() else {
                break;
            };
            match next.what {
                None => ticked = true,
                Some(_) if self.leaving => {}
                Some(Timer::ChangeSuspectToDown {
                    member_id,
                    incarnation,
                    ..
                }) if !self.is_still_suspect(&member_id, incarnation) => {}
                Some(verdict @ Timer::ChangeSuspectToDown { .. }) if verdicts == Verdicts::Hold => {
                    if !self.held.contains(&verdict) {
                        self.held.push(verdict);
                    }
                }
                Some(verdict @ Timer::ChangeSuspectToDown { member_id, .. })
                    if self.earliest_verdict(&member_id) > now.saturating_sub(self.stopped) =>
                {
                    let due = self.earliest_verdict(&member_id);
                    self.push(due, Some(verdict), next.put_off);
                }
                Some(verdict @ Timer::ChangeSuspectToDown { .. })
                    if verdicts == Verdicts::PutOff && !next.put_off =>
                {
                    let due = next.due + self.settings.suspicion() / 2;
                    self.push(due, Some(verdict), true);
                }
                Some(timer) => {
                    // Foca reports timers that fire out of order and recovers from them by itself.
                    let _ = self.foca.handle_timer(timer, &mut self.sink);
                    self.arm(now);
                }
            }
        }
        if ticked {
            self.answers = self.answers << 1 | u8::from(std::mem::take(&mut self.answered));
            let local = now - self.stopped;
            self.set(local + self.settings.period(), None);
            let patience = self.settings.verdict();
            self.answered_at.retain(|_, at| *at + patience > local);
            if verdicts != Verdicts::Hold {
                self.release(now);
            }
        }
        ticked
    }

    /// Handles a datagram. A malformed one, or one for another host, changes nothing.
    pub fn datagram(&mut self, now: Duration, bytes: &[u8]) {
        if !self.leaving && !bytes.is_empty() {
            if let Some(host) = self.who_answers(bytes) {
                self.answered = true;
                self.answered_at
                    .insert(host, now.saturating_sub(self.stopped));
            }
            let _ = self.foca.handle_data(bytes, &mut self.sink);
            self.arm(now);
        }
    }

    /// Greets another daemon, which answers with some of the hosts it knows.
    pub fn announce(&mut self, now: Duration, to: HostId) {
        let _ = self.foca.announce(to, &mut self.sink);
        self.arm(now);
    }

    /// Spreads that `host` is dead, and the cause. If it is this host, this host goes on with the next session.
    pub fn condemn(&mut self, now: Duration, host: HostId, cause: u16) {
        self.learn(now, [Member::new(host, cause, State::Down)], true);
    }

    /// Adds hosts, unless newer information about them is known.
    pub fn introduce(
        &mut self,
        now: Duration,
        hosts: impl IntoIterator<Item = HostId>,
        tell: bool,
    ) {
        self.learn(now, hosts.into_iter().map(Member::alive), tell);
    }

    /// Makes foca probe again after a change of identity. Otherwise it would not probe until it receives a message, and
    /// the members that it knows may all be dead. An empty update has that effect.
    pub fn wake(&mut self, now: Duration) {
        self.learn(now, [], false);
    }

    /// Objects to a suspicion of this host: its messages from now on say that it is alive.
    pub fn object(&mut self, now: Duration, incarnation: u16) {
        self.learn(
            now,
            [Member::new(self.own(), incarnation, State::Suspect)],
            true,
        );
    }

    /// Changes the identity of this host.
    pub fn rename(&mut self, now: Duration, own: HostId) {
        if self.foca.change_identity(own, &mut self.sink).is_ok() {
            self.sink.notes.push(Note::Renewed(own));
        }
        self.arm(now);
    }

    pub fn send_facts(&mut self, host: &HostId, facts: &Facts) {
        let passenger = (*host, facts.clone());
        let _ = self.foca.add_broadcast(&bytes_of(&passenger));
    }

    /// Adopts the suspicions of another host.
    pub fn suspect(&mut self, now: Duration, hosts: impl IntoIterator<Item = (HostId, u16)>) {
        self.learn(
            now,
            hosts
                .into_iter()
                .map(|(host, at)| Member::new(host, at, State::Suspect)),
            true,
        );
    }

    /// Returns all hosts that are alive or suspected.
    pub fn active(&self) -> impl Iterator<Item = &Member<HostId>> {
        self.foca.iter_members()
    }

    /// Returns whether at most one of the last six probes, each of a random host, was answered: then most hosts are
    /// unreachable. A host cut off from thousands would otherwise need minutes to suspect half of them one by one.
    pub fn is_cut_off(&self) -> bool {
        self.foca.num_members() >= MIN_MEMBERS_TO_SAMPLE && (self.answers & 0x3f).count_ones() <= 1
    }

    pub fn is_alone(&self) -> bool {
        self.foca.num_members() == 0
    }

    /// Returns whether a host is known and not dead. Facts of hosts are sent separately, so they may be received before
    /// the host is known or after it is gone.
    pub fn is_there(&self, host: &HostId) -> bool {
        let known = self.known_at(host);
        known.is_some_and(|member| member.id() == host && member.state() != State::Down)
    }

    /// Returns the known member at the address of `host`, of whichever run.
    pub fn known_at(&self, host: &HostId) -> Option<&Member<HostId>> {
        self.foca
            .iter_membership_state()
            .find(|member| member.id().same_place(host))
    }

    /// Returns whether a host of `roll` is dead, as far as this host knows.
    pub fn has_buried(&self, roll: &Roll) -> bool {
        let mut known = self.foca.iter_membership_state();
        known.any(|member| member.state() == State::Down && roll.contains(member.id()))
    }

    /// Returns for how many hosts of `roll` neither the daemon on the roll nor a later one runs.
    pub fn without_daemon(&self, roll: &Roll) -> usize {
        let known = self.foca.iter_membership_state();
        known
            .filter(|member| member.state() == State::Down && member.incarnation() == GONE)
            .filter(|member| roll.contains(member.id()))
            .count()
    }

    /// Returns the hosts of `roll` that will never act again, because a later run is known or their daemon is gone.
    pub fn outlived(&self, roll: &Roll) -> Vec<HostId> {
        let own = Member::alive(self.own());
        let known = self.foca.iter_membership_state().chain([&own]);
        let runs = known.flat_map(|member| {
            let is_outlived = |host: &HostId| {
                let gone = member.state() == State::Down && member.incarnation() == GONE;
                member.id().succeeds(host) || (gone && member.id() == host)
            };
            roll.at_place_of(member.id())
                .filter(is_outlived)
                .collect::<Vec<_>>()
        });
        runs.collect()
    }

    /// Returns whether this host itself will declare `host` dead when the suspicion expires.
    pub fn accuses(&self, host: &HostId) -> bool {
        let names = |timer: &Timer<HostId>| matches!(timer, Timer::ChangeSuspectToDown { member_id, .. } if member_id == host);
        self.held.iter().any(names)
            || self
                .timers
                .iter()
                .any(|Reverse(next)| next.what.as_ref().is_some_and(names))
    }

    /// Adapts the number of times that an update is passed on to the number of hosts.
    pub fn size_for(&mut self, hosts: usize) {
        if hosts.abs_diff(self.sized_for) * 8 > self.sized_for {
            let config = self.settings.foca(hosts, self.settings.datagram - HEAD);
            if self.foca.set_config(config).is_ok() {
                self.sized_for = hosts;
            }
        }
    }

    /// Returns whether a timer belongs to a host that is still suspected; other timers are not passed to foca. Foca
    /// (2.0.0) does not declare a suspect dead that has objected in time, but still sends it a message that it is dead,
    /// on which the suspect would change its identity.
    fn is_still_suspect(&self, host: &HostId, incarnation: u16) -> bool {
        let is = |member: &Member<HostId>| {
            member.id() == host
                && member.incarnation() == incarnation
                && member.state() == State::Suspect
        };
        self.known_at(host).is_some_and(is)
    }

    /// Returns the host whose answer to a probe of this host this is, whether it was sent directly or through another
    /// host.
    fn who_answers(&self, bytes: &[u8]) -> Option<HostId> {
        let header = Codec.decode_header(bytes).ok()?;
        match header.message {
            _ if header.dst != self.own() => None,
            Message::Ack(_) => Some(header.src),
            Message::ForwardedAck { origin, .. } => Some(origin),
            _ => None,
        }
    }

    /// Returns the earliest time of a verdict on a host, in time that this process ran. A suspicion begins with a probe
    /// whose answer may only be late; the last answer limits how long the link can have failed.
    fn earliest_verdict(&self, host: &HostId) -> Duration {
        let answered = self.answered_at.get(host);
        answered.map_or(Duration::ZERO, |&at| at + self.settings.verdict())
    }

    /// Gives suspects whose verdict was held back the whole time again.
    fn release(&mut self, now: Duration) {
        let due = now - self.stopped + self.settings.suspicion();
        for verdict in std::mem::take(&mut self.held) {
            self.set(due, Some(verdict));
        }
    }

    fn learn(&mut self, now: Duration, news: impl IntoIterator<Item = Member<HostId>>, tell: bool) {
        let _ = self.foca.apply_many(news.into_iter(), tell, &mut self.sink);
        self.arm(now);
    }

    fn arm(&mut self, now: Duration) {
        for (after, timer) in std::mem::take(&mut self.sink.timers) {
            self.set(now.saturating_sub(self.stopped) + after, Some(timer));
        }
    }

    fn set(&mut self, due: Duration, what: Option<Timer<HostId>>) {
        self.push(due, what, false);
    }

    fn push(&mut self, due: Duration, what: Option<Timer<HostId>>, put_off: bool) {
        self.order += 1;
        self.timers.push(Reverse(Pending {
            due,
            order: self.order,
            what,
            put_off,
        }));
    }
}
