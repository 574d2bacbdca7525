//! The announcements among members of groups, on a channel of their own.

use std::ffi::c_int;

use super::{Group, Groups};
use crate::message::codes;
use crate::rg;

/// The channel; those of contexts begin behind it.
const CHANNEL: rg::Group = rg::channel((1 << 28) - 2);

/// The kind of an announcement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Word {
    /// Somebody has joined or left.
    Changed = 1,
    /// From the leader: we are a team, under this number.
    Team,
    /// To the leader: I am at the barrier.
    Arrived,
    /// From the leader: all are.
    Go,
    /// To the leader: I am no longer in the team.
    Without,
    /// From the leader: there is no team any more.
    Over,
}

/// A piece of news.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct News {
    word: u32,
    /// The number of a team, as its leader counts.
    pub team: u32,
    /// The group's name.
    pub group: u64,
}

const LENGTH: usize = size_of::<News>();

impl News {
    /// The kind; `None`: no task of this version sends it.
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

/// Tell a task. One that is gone needs no news.
pub fn notify(task: i32, word: Word, group: u64, team: u32) {
    let news = News {
        word: word as u32,
        team,
        group,
    };
    // SAFETY: the news are so long.
    unsafe { rg::rg_bsend((&raw const news).cast(), LENGTH, task, 0, CHANNEL) };
}

/// Hear what has been told, or wait so long for it (negative: as long as it takes). From whom, and what.
fn receive(seconds: f64) -> Result<Option<(i32, News)>, i32> {
    let mut news = News {
        word: 0,
        team: 0,
        group: 0,
    };
    let mut status = rg::Status::default();
    let code: c_int = {
        // SAFETY: there is room for so much.
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

/// Hear all that has been told.
#[inline]
pub fn receive_all(groups: &mut Groups) -> Result<(), i32> {
    while let Some((from, news)) = receive(0.0)? {
        take(&mut groups.all, from, news);
    }
    Ok(())
}

/// Number of yields before the task sleeps: those who are still to come must run first, and each of them would wake it.
const YIELDS_BEFORE_SLEEP: u32 = 64;
/// Maximum sleep, in seconds, before it is checked whether those still live from whom news must come.
const LIVENESS_CHECK_SECONDS: f64 = 1.0;

/// Wait for news. Whether there were any, in a moment.
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
