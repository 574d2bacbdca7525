//! Small blocking collectives: everybody posts a few bytes in a hall all can read.
//!
//! A hall has a place for each member, with room for the posts of [`HALL_DEPTH`] rounds. In round
//! `r` a member writes its bytes and then `r` into part `r mod HALL_DEPTH` of its place; the others
//! wait until they see `r` there. Writing in round `r` destroys the post of round
//! `r - HALL_DEPTH`, so it must be known that nobody still reads that: everybody who has posted a
//! later round has finished with it. After a round in which this task waited for all posts it
//! knows; in a run of rounds with one giver it looks, every `HALL_DEPTH` rounds (`Phase::Clearing`).
//!
//! One line transfer per member and round; no messages, no matching, no allocation.

use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::{Group, GroupId};
use crate::transport::{Fault, Part, Peer, Presence, Transport};

/// Whose posts a round must wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All members'.
    All,
    /// All members', and every member needs that: a barrier, or an exchange. In a large group one member leads.
    Everyone,
    /// All members', before this task posts, which leads such a round.
    Lead,
    /// One member's, by rank.
    From(u32),
    /// That of one member which posts when it has seen all others' posts.
    Last(u32),
    /// Nobody's: this task only gives.
    Nobody,
}

/// In larger groups a round that every member needs whole has a leader: the member of rank 0 waits for all, and the others
/// wait for its post alone. If each looked at each, tasks that arrive one after the other would wake all who had come
/// before: n times n wakes, and as many lines read. In smaller groups the second step costs more than it saves.
pub const LED_FROM: u32 = 64;

/// Rounds whose posts a hall keeps.
pub const HALL_DEPTH: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Until all have posted this round, which is later than the one to be overwritten.
    Clearing(u32),
    /// Until the needed posts are there.
    Waiting,
}

/// A round on its way.
#[derive(Debug)]
pub struct Gathering {
    pub(crate) group: GroupId,
    /// The number of a collective across hosts, for which only the members on this one meet.
    pub(crate) crossing: Option<i32>,
    round: u32,
    need: Need,
    /// Every member must post in this round, and rank 0 posts last.
    led: bool,
    phase: Phase,
    /// The member looked at next.
    at: u32,
    /// What this task posts at the start; readers post nothing, at the end.
    pub(crate) gives: Option<Views>,
}

impl Gathering {
    /// Is it part of a collective across hosts?
    pub fn crosses(&self) -> bool {
        self.crossing.is_some()
    }

    /// A round of those in `room`.
    #[inline(always)]
    pub(crate) fn begin<T: Transport>(
        group: GroupId,
        room: &mut Group<T>,
        crossing: Option<i32>,
        need: Need,
        gives: Option<Views>,
    ) -> Gathering {
        room.round = room.round.wrapping_add(1);
        let led = need == Need::Everyone && room.size() > LED_FROM;
        let need = match need {
            Need::Everyone if !led => Need::All,
            Need::Everyone if room.rank == 0 => Need::Lead,
            Need::Everyone => Need::Last(0),
            need => need,
        };
        let known = room.round.wrapping_sub(room.cleared) < HALL_DEPTH;
        Gathering {
            group,
            crossing,
            round: room.round,
            need,
            led,
            // A leader posts when all others have, so nobody can still read what its post destroys.
            phase: match gives.is_none() || known || need == Need::Lead {
                true => Phase::Waiting,
                // Not the oldest that would do, or every round would have to look again.
                false => Phase::Clearing(room.round.wrapping_sub(HALL_DEPTH / 2)),
            },
            at: 0,
            gives,
        }
    }
}

impl<T: Transport> Engine<T> {
    /// Can this group meet, with posts of up to `bytes` bytes?
    #[inline(always)]
    pub fn can_meet(&self, group: GroupId, bytes: usize) -> bool {
        self.groups.at(group).is_some_and(|group| {
            group
                .hall
                .as_ref()
                .is_some_and(|hall| bytes <= self.transport.hall_capacity(hall))
        })
    }

    /// Begin a round. `gives` is posted; `None` is for those that only read.
    #[inline(always)]
    pub fn meet(&mut self, id: GroupId, need: Need, gives: Option<Views>) -> Result<Gathering> {
        let group = self.groups.at_mut(id).ok_or(Error::Handle("group"))?;
        group.usable()?;
        let gathering = Gathering::begin(id, group, None, need, gives);
        self.post_at_once(&gathering);
        Ok(gathering)
    }

    #[inline(always)]
    pub(crate) fn post_at_once(&mut self, gathering: &Gathering) {
        if gathering.phase == Phase::Waiting && gathering.need != Need::Lead {
            self.post(gathering);
        }
    }

    /// Those who meet: the group, or its members on this host.
    #[inline(always)]
    pub(crate) fn room(&self, gathering: &Gathering) -> Option<&Group<T>> {
        let group = self.groups.at(gathering.group)?;
        match gathering.crossing {
            None => Some(group),
            Some(_) => group.here.as_deref(),
        }
    }

    /// All posts up to this round have been made.
    #[inline(always)]
    fn clear(&mut self, gathering: &Gathering, round: u32) {
        let Some(group) = self.groups.at_mut(gathering.group) else {
            return;
        };
        match (gathering.crossing, &mut group.here) {
            (None, _) => group.cleared = round,
            (Some(_), Some(here)) => here.cleared = round,
            (Some(_), None) => {}
        }
    }

    #[inline(always)]
    pub(crate) fn post(&mut self, gathering: &Gathering) {
        let (Some(group), Some(gives)) = (self.room(gathering), &gathering.gives) else {
            return;
        };
        if let Some(hall) = &group.hall {
            let peer = |rank| group.peer(rank).unwrap_or(self.me);
            let listeners = match gathering.led && group.rank != 0 {
                true => 0..1,
                false => 0..group.size(),
            };
            self.transport
                .post(hall, group.rank, gathering.round, gives, listeners, &peer);
        }
    }

    /// Is the round complete for this task?
    #[inline(always)]
    pub fn met(&mut self, gathering: &mut Gathering) -> bool {
        if let Phase::Clearing(round) = gathering.phase {
            if !self.all_past(gathering, round) {
                return false;
            }
            self.clear(gathering, round);
            gathering.phase = Phase::Waiting;
            gathering.at = 0;
            self.post(gathering);
        }
        match gathering.need {
            Need::Nobody => true,
            Need::From(rank) => {
                gathering.at = rank;
                self.has_posted(gathering, rank, gathering.round)
            }
            Need::Last(rank) => {
                gathering.at = rank;
                let posted = self.has_posted(gathering, rank, gathering.round);
                if posted {
                    self.clear(gathering, gathering.round);
                }
                posted
            }
            Need::All | Need::Everyone | Need::Lead => {
                let all = self.all_posted(gathering, gathering.round);
                if all {
                    self.clear(gathering, gathering.round);
                }
                if all && gathering.need == Need::Lead {
                    self.post(gathering);
                    gathering.need = Need::Nobody;
                }
                all
            }
        }
    }

    #[inline(always)]
    fn has_posted(&self, gathering: &Gathering, rank: u32, round: u32) -> bool {
        let group = self.room(gathering);
        let hall = group.and_then(|group| group.hall.as_ref());
        hall.is_some_and(|hall| self.transport.posted(hall, rank, round))
    }

    #[inline(always)]
    fn all_posted(&self, gathering: &mut Gathering, round: u32) -> bool {
        let Some(group) = self.room(gathering) else {
            return false;
        };
        let Some(hall) = &group.hall else {
            return false;
        };
        while gathering.at < group.size() {
            if gathering.at != group.rank && !self.transport.posted(hall, gathering.at, round) {
                return false;
            }
            gathering.at += 1;
        }
        true
    }

    /// Have all posted this round? A member that is ahead may have put a later post in its place.
    fn all_past(&self, gathering: &mut Gathering, round: u32) -> bool {
        let Some(group) = self.room(gathering) else {
            return false;
        };
        let Some(hall) = &group.hall else {
            return false;
        };
        while gathering.at < group.size() {
            let word = self.transport.posted_round(hall, gathering.at, round);
            let past = word == round || word == round.wrapping_add(HALL_DEPTH);
            if gathering.at != group.rank && !past {
                return false;
            }
            gathering.at += 1;
        }
        true
    }

    /// While a round is not complete: has a member gone, so that it never will be?
    pub fn check_gathering(&mut self, gathering: &mut Gathering) -> Result<()> {
        // Mostly the task was woken because it is: then nobody's loss matters, and there may be many.
        if self.met(gathering) {
            return Ok(());
        }
        if self.transport.losses() != self.losses_seen {
            self.note_losses();
        }
        self.read_notices(gathering.group);
        let usable = self.group(gathering.group)?.usable();
        let failed = match gathering.crossing {
            // Of members on other hosts one that waits here hears only so.
            Some(tag) => self.failed(gathering.group, tag),
            None => None,
        };
        if (self.gone.is_empty() && usable.is_ok() && failed.is_none()) || self.met(gathering) {
            return Ok(());
        }
        usable?;
        if let Some(error) = failed {
            return Err(error);
        }
        let group = self.room(gathering).ok_or(Error::Handle("group"))?;
        let last = gathering.round.wrapping_sub(1);
        let missed = |rank: u32| match &group.hall {
            Some(hall) => {
                let word = self.transport.posted_round(hall, rank, last);
                word != last && word != last.wrapping_add(HALL_DEPTH)
            }
            None => false,
        };
        // Where all must post and one has not, the leader goes no further either.
        let owes = |rank: u32| match &group.hall {
            Some(hall) if gathering.led => {
                let word = self.transport.posted_round(hall, rank, gathering.round);
                word != gathering.round && word != gathering.round.wrapping_add(HALL_DEPTH)
            }
            _ => false,
        };
        let lost = |peer: &Peer| match self.presence(*peer) {
            Presence::Here => false,
            Presence::Dead => true,
            // It may have left after it posted: then it is not the one we wait for. But if it
            // missed the round before, a member we wait for may have gone no further for its sake.
            Presence::Left => group
                .rank_of(*peer)
                .is_some_and(|rank| rank == gathering.at || missed(rank) || owes(rank)),
        };
        // A leader that has gone may have gone because another member had.
        let (peers, leader) = (group.peers(), usize::from(gathering.led));
        let (first, others) = peers.split_at(leader.min(peers.len()));
        match others.iter().chain(first).copied().find(lost) {
            Some(peer) => Err(self.loss(peer)),
            None => Ok(()),
        }
    }

    /// A round is not complete for long: does the word of a member show that it never will be,
    /// because it is one that no member writes?
    ///
    /// Whoever has come to round `r` knows that all have posted round `r - HALL_DEPTH`, or nobody
    /// could have posted what came since; and nobody is a whole depth ahead of one that has not
    /// posted. Members that a loss has made miss rounds are another matter.
    pub fn check_posts(&mut self, gathering: &Gathering) -> Result<()> {
        let whole = self.group(gathering.group)?.broken.is_none();
        let group = self.room(gathering).ok_or(Error::Handle("group"))?;
        let Some(hall) = group.hall.as_ref().filter(|_| whole) else {
            return Ok(());
        };
        let (round, ahead) = match gathering.phase {
            Phase::Waiting => (gathering.round, gathering.round),
            Phase::Clearing(round) => (round, round.wrapping_add(HALL_DEPTH)),
        };
        let senseless = |&rank: &u32| {
            let word = self.transport.posted_round(hall, rank, round);
            let first = round <= HALL_DEPTH && word == 0;
            let behind = word == round.wrapping_sub(HALL_DEPTH);
            rank != group.rank && word != round && word != ahead && !behind && !first
        };
        let culprit = (0..group.size()).find(senseless);
        let culprit = culprit.and_then(|rank| group.peer(rank));
        // Looked at after the words: a member that missed a round had heard of a loss.
        let Some(peer) = culprit.filter(|_| self.transport.losses() == self.losses_seen) else {
            return Ok(());
        };
        self.condemn(Fault::Corrupt {
            peer,
            what: "its word in a meeting is of no round that it could be in",
        });
        Err(self.loss(peer))
    }

    /// Copy bytes from what a member posted.
    #[inline(always)]
    pub fn collect(&self, gathering: &Gathering, rank: u32, part: Part, into: &Views) {
        let group = self.room(gathering);
        if let Some(hall) = group.and_then(|group| group.hall.as_ref()) {
            self.transport
                .collect(hall, rank, gathering.round, part, into);
        }
    }

    /// This task has read what it needed.
    #[inline(always)]
    pub fn end_meeting(&mut self, mut gathering: Gathering) {
        if gathering.gives.is_none() {
            gathering.gives = Some(Views::none());
            self.post(&gathering);
        }
    }

    /// About to sleep (or awake again): let the member waited for ring. False: another one had been asked to ring, so a look
    /// must come before the sleep.
    pub fn announce_wait(&self, gathering: &Gathering, sleeping: bool) -> bool {
        let group = self.room(gathering);
        let Some((group, hall)) = group.and_then(|group| Some((group, group.hall.as_ref()?)))
        else {
            return true;
        };
        let target = sleeping.then_some(gathering.at);
        self.transport.await_post(hall, group.rank, target)
    }
}
