//! A barrier that costs two messages per member, for members on several hosts. (On one host the launcher provides a
//! shared barrier, and `rg_meet_members` suffices.)
//!
//! When all members of a group have met at a barrier, every member knows this and the list of members: they are a team.
//! One of them leads the team (see [`view::leader`]). At the next barriers the others notify the leader when they
//! arrive, and wait until it releases them. Only the leader decides: until it has released the barrier, the team may be
//! dissolved, and then all members meet at the launcher again. When all have arrived, the leader requests the list of
//! members: it must not miss a task whose join any of the members may already know of.
//!
//! A team ends when a task joins or leaves the group, or when a member enters a barrier of another size. The leader
//! numbers its teams, so that announcements of an ended team are not taken for those of the next one.

use super::announcements::{Word, notify};
use super::{Group, announcements, groups, known, view};
use crate::message::codes;
use crate::rg;
use crate::state::library;

/// The members of a group that have met.
pub struct Team {
    /// The members, by instance number.
    tasks: Vec<i32>,
    leader: i32,
    /// The leader's number of this team; `None` until the leader has announced it.
    number: Option<u32>,
    /// Number of members that have reported their arrival to the leader.
    arrived: usize,
    /// The leader has released the barrier.
    go: bool,
}

impl Team {
    fn led_by_us(&self) -> bool {
        self.leader == library().task
    }

    fn others(&self) -> impl Iterator<Item = i32> {
        let me = library().task;
        self.tasks.iter().copied().filter(move |&task| task != me)
    }

    pub fn size(&self) -> usize {
        self.tasks.len()
    }
}

impl Group {
    /// Makes a team of the members that have met. `number` is the team's number if this task leads it.
    pub fn become_team(&mut self, members: &[Option<i32>], number: u32) {
        let tasks: Vec<i32> = members.iter().flatten().copied().collect();
        let Some(leader) = view::leader(tasks.iter().copied()) else {
            return;
        };
        let mut team = Team {
            tasks,
            leader,
            number: None,
            arrived: 0,
            go: false,
        };
        if team.led_by_us() {
            team.number = Some(number);
            for task in team.others() {
                notify(task, Word::Team, self.hash, number);
            }
        }
        self.team = Some(team);
    }

    /// Handles an announcement about this group.
    pub fn handle_word(&mut self, from: i32, word: Word, number: u32) {
        let Some(team) = &mut self.team else {
            return;
        };
        let ours = team.number == Some(number);
        match word {
            Word::Changed if team.led_by_us() => self.end_team(),
            // The leader receives this announcement, too, and decides.
            Word::Changed => {}
            Word::Team if from == team.leader => team.number = Some(number),
            Word::Arrived if ours => team.arrived += 1,
            Word::Go if ours && from == team.leader => team.go = true,
            Word::Without if ours && team.led_by_us() => self.end_team(),
            Word::Over if ours && from == team.leader => self.team = None,
            _ => {}
        }
    }

    /// Returns whether the team's members are the group's members. A frozen group cannot be joined, and a member that
    /// leaves it notifies the team.
    fn is_whole_team(&self) -> Result<bool, i32> {
        let Some(team) = &self.team else {
            return Ok(false);
        };
        Ok(self.frozen.is_some() || self.ask()?.iter().flatten().eq(&team.tasks))
    }

    /// Dissolves the team, which this task leads.
    fn end_team(&mut self) {
        if let Some(team) = self.team.take()
            && let Some(number) = team.number
        {
            team.others()
                .for_each(|task| notify(task, Word::Over, self.hash, number));
        }
    }
}

/// Leaves the team of a group, so that no member waits for this task at the team's barriers.
pub fn leave(hash: u64) -> Result<(), i32> {
    let Some(group) = await_number(hash)? else {
        return Ok(());
    };
    match &group.team {
        Some(team) if team.led_by_us() => group.end_team(),
        Some(team) => {
            if let Some(number) = team.number {
                notify(team.leader, Word::Without, hash, number);
            }
            group.team = None;
        }
        None => {}
    }
    Ok(())
}

/// Waits until the number of the group's team is known. Returns the group, or `None` if it has no team.
fn await_number(hash: u64) -> Result<Option<&'static mut Group>, i32> {
    loop {
        let group = known(hash)?;
        match &group.team {
            None => return Ok(None),
            Some(team) if team.number.is_some() => return Ok(Some(group)),
            Some(_) => receive_or_doubt(hash)?,
        }
    }
}

/// Handles the next announcement. If none arrives for a second and the leader is gone, drops the team.
fn receive_or_doubt(hash: u64) -> Result<(), i32> {
    if announcements::receive_next(&mut groups()?.all)? {
        return Ok(());
    }
    let group = known(hash)?;
    if let Some(team) = &group.team
        // SAFETY: the call takes plain values only.
        && unsafe { rg::rg_signal(team.leader, 0) } != rg::OK
    {
        group.team = None;
    }
    Ok(())
}

/// Waits at the team's barrier. Returns `false` if there is no team, or if the team ends before all members have
/// arrived.
pub fn meet(hash: u64) -> Result<bool, i32> {
    let Some(group) = await_number(hash)? else {
        return Ok(false);
    };
    let Some(team) = &mut group.team else {
        return Ok(false);
    };
    let number = team.number.ok_or(codes::SYS_ERR)?;
    if team.led_by_us() {
        return lead(hash, number);
    }
    team.go = false;
    notify(team.leader, Word::Arrived, hash, number);
    loop {
        match &known(hash)?.team {
            None => return Ok(false),
            Some(team) if team.go => return Ok(true),
            Some(_) => receive_or_doubt(hash)?,
        }
    }
}

/// Waits as the leader until all others have arrived, and releases them. Returns `false` if the team ended.
fn lead(hash: u64, number: u32) -> Result<bool, i32> {
    loop {
        let Some(team) = &known(hash)?.team else {
            return Ok(false);
        };
        if team.arrived + 1 == team.tasks.len() {
            break;
        }
        announcements::receive_next(&mut groups()?.all)?;
    }
    if !known(hash)?.is_whole_team()? {
        known(hash)?.end_team();
        return Ok(false);
    }
    let Some(team) = &mut known(hash)?.team else {
        return Ok(false);
    };
    team.arrived = 0;
    team.others()
        .for_each(|task| notify(task, Word::Go, hash, number));
    Ok(true)
}
