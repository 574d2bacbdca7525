//! What an agent keeps in case its launcher's host is lost, and how it finds out that it is.
//!
//! The daemons know: a launcher that is silent for two beats is asked for (`regatta hosts --watch --json`), until it is heard
//! again. Silence alone decides nothing.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use regatta_transport::job::Cause;
use regatta_transport::world::World;
use regatta_wire::Malformed;
use regatta_wire::control::{Ask, Tell};
use regatta_wire::fields::Message;
use rustix::event::PollFd;
use rustix::process::Pid;

use super::{Line, OWN, Will};
use crate::desk::original::Change;
use crate::desk::{Desk, is_kept};
use crate::news::{News, Report};
use crate::remote::BEAT;
use crate::signals::Signals;
use crate::tasks::Ended;

/// For so long an orphan waits for the next launcher, which may have to wait for a verdict itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// What one task has been told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    /// How often.
    pub count: u32,
    /// All tasks it has started and been told of have numbers below this.
    pub spawned: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Heritage {
    pub will: Will,
    /// When the job is to be ended.
    until: Option<Instant>,
    pub line: Option<Line>,
    /// Where the first tasks listen.
    pub addresses: Vec<SocketAddr>,
    /// The worlds in the table, and who of other hosts is gone.
    pub worlds: Vec<World>,
    pub gone: Vec<(u32, Option<Cause>)>,
    /// Own tasks that have ended, and what each has been told and has asked.
    pub ended: Vec<Ended>,
    pub heard: HashMap<u32, Heard>,
    pub asked: BTreeMap<(u32, u32), Vec<u8>>,
    copy: Option<Desk>,
    pieces: Vec<u8>,
    news: Option<News>,
    told: Option<Report>,
    orphan: Option<Instant>,
}

impl Heritage {
    pub(crate) fn new(will: Will) -> Self {
        let limit = will.timeout.map(Duration::from_millis);
        Self {
            until: limit.and_then(|limit| Instant::now().checked_add(limit)),
            will,
            line: None,
            addresses: Vec::new(),
            worlds: Vec::new(),
            gone: Vec::new(),
            ended: Vec::new(),
            heard: HashMap::new(),
            asked: BTreeMap::new(),
            copy: None,
            pieces: Vec::new(),
            news: None,
            told: None,
            orphan: None,
        }
    }

    /// A task of this host asks something.
    pub(crate) fn note_asked(&mut self, task: u32, bytes: &[u8]) {
        if let Some(id) = Ask::decode(bytes).ok().and_then(|ask| ask.id()) {
            self.asked.insert((task, id), bytes.to_vec());
        }
    }

    /// It is told something.
    pub(crate) fn note_told(&mut self, task: u32, bytes: &[u8]) {
        let Ok(tell) = Tell::decode(bytes) else {
            return;
        };
        let heard = self.heard.entry(task).or_default();
        heard.count = heard.count.wrapping_add(u32::from(is_kept(&tell)));
        if let Some(id) = tell.id() {
            self.asked.remove(&(task, id));
        }
        if let Tell::Spawned { tasks, .. } = tell {
            let last = tasks.into_iter().flatten().max();
            heard.spawned = heard.spawned.max(last.map_or(0, |task| task + 1));
        }
    }

    pub(crate) fn note_ended(&mut self, ended: Ended) {
        let of = |task: u32| (task, 0)..=(task, u32::MAX);
        let asked: Vec<_> = self
            .asked
            .range(of(ended.rank))
            .map(|(key, _)| *key)
            .collect();
        asked.iter().for_each(|key| drop(self.asked.remove(key)));
        self.ended.push(ended);
    }

    /// A piece of a copy of the desk, or of a change to it.
    pub(crate) fn take_copy(
        &mut self,
        change: bool,
        bytes: &[u8],
        last: bool,
    ) -> Result<(), Malformed> {
        self.pieces.extend_from_slice(bytes);
        if !last {
            return Ok(());
        }
        let whole = std::mem::take(&mut self.pieces);
        match (change, &mut self.copy) {
            (false, _) => self.copy = Some(Desk::from_bytes(&whole)?),
            (true, Some(desk)) => desk.follow(Change::decode(&whole)?)?,
            (true, None) => return Err(Malformed),
        }
        Ok(())
    }

    /// Looks into what the daemons say. The launcher has been silent for so long.
    pub(crate) fn look(&mut self, silent: Duration, signals: &Signals) {
        let wanted = self.line.is_some() && (silent > 2 * BEAT || self.orphan.is_some());
        match (wanted, &mut self.news) {
            (true, None) => {
                let words = std::iter::once(OWN.to_owned()).chain(self.will.tell.iter().cloned());
                self.news = News::open(&words.collect::<Vec<_>>(), signals).ok();
                self.told = None;
            }
            (true, Some(news)) => {
                if let Some(report) = news.next() {
                    self.told = Some(report);
                }
            }
            (false, Some(news)) => {
                news.close();
                if news.teller().is_none() {
                    (self.news, self.told) = (None, None);
                }
            }
            (false, None) => {}
        }
    }

    /// The last report, if it is one of a host that may go on.
    fn report(&self) -> Option<(&Report, &Line)> {
        let report = self.told.as_ref()?;
        let line = self.line.as_ref()?;
        report.hindrance.is_none().then_some((report, line))
    }

    /// Whether the launcher's host has been lost since this was last asked: from then on this agent is an orphan.
    pub(crate) fn has_been_orphaned(&mut self) -> bool {
        let lost = |(report, line): (&Report, &Line)| !report.living.contains_key(&line.launcher);
        let newly = self.orphan.is_none() && self.report().is_some_and(lost);
        if newly {
            self.orphan = Some(Instant::now());
        }
        newly
    }

    pub(crate) fn is_orphan(&self) -> bool {
        self.orphan.is_some()
    }

    /// Another launcher has come, and will say who is to come after it.
    pub(crate) fn adopt(&mut self) {
        (self.orphan, self.line) = (None, None);
        self.pieces.clear();
    }

    /// Whether it is for this host to go on with the job.
    pub(crate) fn leads(&self) -> bool {
        let (Some((report, line)), true) = (self.report(), self.is_orphan()) else {
            return false;
        };
        let mut heirs = line.heirs.iter();
        let first = heirs.find(|heir| report.living.contains_key(&heir.run));
        self.copy.is_some() && first.is_some_and(|heir| Some(&heir.run) == report.own.as_ref())
    }

    /// Whether a silent launcher is no reason to end the job yet: who knows more is about to say it, or to come.
    pub(crate) fn is_patient(&self) -> bool {
        let Some((report, line)) = self.report() else {
            return false;
        };
        match self.orphan {
            Some(since) => since.elapsed() < PATIENCE,
            None => report
                .living
                .get(&line.launcher)
                .is_some_and(|state| state == "suspected"),
        }
    }

    /// The desk, as far as it is known here.
    pub(crate) fn take_desk(&mut self) -> Option<Desk> {
        self.copy.take()
    }

    /// The copy of the desk as bytes, if it has seen more than so many changes.
    pub(crate) fn later_copy(&self, changes: u64) -> Option<Vec<u8>> {
        let later = self.copy.as_ref().filter(|copy| copy.changes() > changes);
        later.map(Desk::to_bytes)
    }

    /// What the daemons say, for somebody else to listen to.
    pub(crate) fn take_news(&mut self) -> (Option<News>, Option<Report>) {
        (self.news.take(), self.told.take())
    }

    /// For how long the job may still run.
    pub(crate) fn left(&self) -> Option<Duration> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.until.map(left)
    }

    /// The process that tells: no signal of the job is its.
    pub(crate) fn helper(&self) -> Option<Pid> {
        self.news.as_ref().and_then(News::teller)
    }

    pub(crate) fn reaped(&mut self, pid: Pid) {
        self.news.iter_mut().for_each(|news| news.reaped(pid));
    }

    /// What to wait for.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.news.iter().flat_map(News::polls)
    }
}
