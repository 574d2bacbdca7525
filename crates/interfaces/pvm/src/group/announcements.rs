//! Announcements between members of groups, on a channel of their own.

use std::ffi::c_int;

use super::{Group, Groups};
use crate::message::codes;
use crate::rg;

/// Channel of announcements. The channels of contexts begin after it.
const CHANNEL: rg::Group = rg::channel((1 << 28) - 2);

/// The kind of an announcement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Word {
    /// A member has joined or left.
    Changed = 1,
    /// From the leader: the receiver is now in the team with this number.
    Team,
    /// To the leader: the sender is at the barrier.
    Arrived,
    /// From the leader: all members are at the barrier.
    Go,
    /// To the leader: the sender has left the team.
    Without,
    /// From the leader: the team is dissolved.
    Over,
}

/// An announcement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct News {
    word: u32,
    /// The number of the team, assigned by its leader.
    pub team: u32,
    /// Hash of the group's name.
    pub group: u64,
}

const LENGTH: usize = size_of::<News>();

impl News {
    /// Returns the kind, or `None` if this version does not know it.
    pub fn word(self) -> Option<Word> {
        let all = [
            Word::Changed,
            Word::Team,
            Word::Arrived,
            Word::Go,
            Word::Without,
            Word::Over,
        ];
        all.into_iter().find(|&word| word as u32 == self.word)
    }
}

/// Sends an announcement to a task. A task that is gone is ignored.
pub fn notify(task: i32, word: Word, group: u64, team: u32) {
    let news = News {
        word: word as u32,
        team,
        group,
    };
    // SAFETY: `news` is `LENGTH` bytes long.
    unsafe { rg::rg_bsend((&raw const news).cast(), LENGTH, task, 0, CHANNEL) };
}

/// Receives an announcement and its sender. Waits at most `seconds` (negative: without a limit).
fn receive(seconds: f64) -> Result<Option<(i32, News)>, i32> {
    let mut news = News {
        word: 0,
        team: 0,
        group: 0,
    };
    let mut status = rg::Status::default();
    let code: c_int = {
        // SAFETY: `news` has room for `LENGTH` bytes.
        unsafe {
            rg::rg_recv_within(
                (&raw mut news).cast(),
                LENGTH,
                rg::ANY,
                rg::ANY,
                CHANNEL,
                seconds,
                &mut status,
            )
        }
    };
    match code {
        rg::OK if status.length == LENGTH => Ok(Some((status.source, news))),
        rg::OK => Ok(None),
        rg::ERR_NOTHING => Ok(None),
        _ => Err(codes::SYS_ERR),
    }
}

/// Handles all announcements that have arrived.
#[inline]
pub fn receive_all(groups: &mut Groups) -> Result<(), i32> {
    while let Some((from, news)) = receive(0.0)? {
        take(&mut groups.all, from, news);
    }
    Ok(())
}

/// Number of yields before the task sleeps: the members that have not arrived must run first, and each would wake it.
const YIELDS_BEFORE_SLEEP: u32 = 64;
/// Maximum sleep in seconds before the caller checks whether the tasks that it waits for still live.
const LIVENESS_CHECK_SECONDS: f64 = 1.0;

/// Waits up to a second for an announcement, handles it, and returns whether there was one.
pub fn receive_next(all: &mut [Group]) -> Result<bool, i32> {
    for _ in 0..YIELDS_BEFORE_SLEEP {
        if let Some((from, news)) = receive(0.0)? {
            take(all, from, news);
            return Ok(true);
        }
        std::thread::yield_now();
    }
    let heard = receive(LIVENESS_CHECK_SECONDS)?;
    if let Some((from, news)) = heard {
        take(all, from, news);
    }
    Ok(heard.is_some())
}

fn take(all: &mut [Group], from: i32, news: News) {
    let group = all.iter_mut().find(|group| group.hash == news.group);
    if let (Some(group), Some(word)) = (group, news.word()) {
        group.handle_word(from, word, news.team);
    }
}
