//! A barrier that costs two messages a member, for members on several hosts. (On one host the launcher lends them a shared
//! one, and `rg_meet_members` is all there is to it.)
//!
//! When all members of a group have met at a barrier, every one of them knows that, and who they are:
//! they are a team. One of them leads it (see [`view::leader`]). At the next barriers the others
//! tell the leader that they are there and wait until it says go. Only the leader decides: as long as
//! it has not said go, the team may be over, and then all of them meet at the launcher again. When all have come it asks
//! who is a member: a task that any of them may have heard to have joined must not be missed.
//!
//! A team is over when somebody joins or leaves the group, or when a member goes to a barrier of
//! another size. Its number, which the leader counts, tells news of a team that is over from the news
//! of the next one.

use super::announcements::{Word, notify};
use super::{Group, announcements, groups, known, view};
use crate::message::codes;
use crate::rg;
use crate::state::library;

/// The members of a group that have met.
pub struct Team {
    /// All of them, by instance number.
    tasks: Vec<i32>,
    leader: i32,
    /// The leader's number of this team; not known before it has announced it.
    number: Option<u32>,
    /// How many have told the leader that they are there.
    arrived: usize,
    /// The leader has said go.
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
    /// All members have met: these, by instance number. If we lead them, the team has this number.
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

    /// News of this group.
    pub fn handle_word(&mut self, from: i32, word: Word, number: u32) {
        let Some(team) = &mut self.team else {
            return;
        };
        let ours = team.number == Some(number);
        match word {
            Word::Changed if team.led_by_us() => self.end_team(),
            // The leader hears it, too, and decides.
            Word::Changed => {}
            Word::Team if from == team.leader => team.number = Some(number),
            Word::Arrived if ours => team.arrived += 1,
            Word::Go if ours && from == team.leader => team.go = true,
            Word::Without if ours && team.led_by_us() => self.end_team(),
            Word::Over if ours && from == team.leader => self.team = None,
            _ => {}
        }
    }

    /// Are the members of our team those of the group? Nobody joins one that is frozen, and who leaves it tells the team.
    fn is_whole_team(&self) -> Result<bool, i32> {
        let Some(team) = &self.team else {
            return Ok(false);
        };
        Ok(self.frozen.is_some() || self.ask()?.iter().flatten().eq(&team.tasks))
    }

    /// We lead it, and it is over.
    fn end_team(&mut self) {
        if let Some(team) = self.team.take()
            && let Some(number) = team.number
        {
            team.others()
                .for_each(|task| notify(task, Word::Over, self.hash, number));
        }
    }
}

/// Leave the team of a group, so that nobody waits for us at its barriers.
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

/// The group, if it has a team, whose number is known then.
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

/// Hear more; if for long there was nothing to hear, and the leader is gone, there is no team.
fn receive_or_doubt(hash: u64) -> Result<(), i32> {
    if announcements::receive_next(&mut groups()?.all)? {
        return Ok(());
    }
    let group = known(hash)?;
    if let Some(team) = &group.team
        // SAFETY: a plain question.
        && unsafe { rg::rg_signal(team.leader, 0) } != rg::OK
    {
        group.team = None;
    }
    Ok(())
}

/// Meet the team. False: there is none, or it is over before it has met.
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

/// Wait for all others, and say go.
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
