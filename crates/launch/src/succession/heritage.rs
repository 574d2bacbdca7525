//! What an agent keeps in case its launcher's host is lost, and how it finds out that it is.
//!
//! The daemons know: a launcher that is silent for two beats is asked for (`regatta hosts --watch --json`), until it is heard
//! again. Silence alone decides nothing.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use regatta_job::registry::{ACKNOWLEDGE_BYTES, ACKNOWLEDGE_MESSAGES, is_resent};
use regatta_job::{Change, Registry};
use regatta_transport::job::Cause;
use regatta_transport::world::World;
use regatta_wire::Malformed;
use regatta_wire::control::{Ask, Tell};
use regatta_wire::fields::Message;
use rustix::event::PollFd;
use rustix::process::{Pid, WaitStatus};

use super::{Heir, Line, OWN, Will};
use crate::news::{News, Report};
use crate::remote::BEAT;
use crate::signals::Signals;
use crate::tasks::Ended;

/// For so long an orphan waits for the host that comes next, whose daemon may have to wait for a verdict itself.
const PATIENCE: Duration = Duration::from_secs(30);
/// So many times as long as other launchers may one be silent whose host lives.
const STANDSTILL: u32 = 3;
/// A command that tells of hosts and has ended is started again after this time at the earliest.
const AGAIN: Duration = Duration::from_secs(1);

/// An agent whose launcher's host is lost.
#[derive(Debug)]
struct Orphan {
    /// The run of that host: when the next launcher's host is lost too, the agent is an orphan once more.
    of: String,
    /// The run of the host whose turn it is to lead, and since when it is.
    next: Option<String>,
    since: Instant,
}

/// What one task has been told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    /// How often.
    pub count: u32,
    /// All tasks it has started and been told of have numbers below this.
    pub spawned: u32,
    /// Words and bytes that the launcher does not know to have come.
    unsaid: (usize, usize),
}

impl Heard {
    /// One more word that is kept, of so many bytes. The count, when it is time to say it.
    fn note(&mut self, bytes: usize) -> Option<u32> {
        self.count = self.count.wrapping_add(1);
        self.unsaid.0 += 1;
        self.unsaid.1 += bytes;
        let due = self.unsaid.0 >= ACKNOWLEDGE_MESSAGES || self.unsaid.1 >= ACKNOWLEDGE_BYTES;
        due.then(|| {
            self.unsaid = (0, 0);
            self.count
        })
    }
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
    copy: Option<Registry>,
    pieces: Vec<u8>,
    news: Option<News>,
    opened: Option<Instant>,
    told: Option<Report>,
    orphan: Option<Orphan>,
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
            opened: None,
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

    /// It is told something. How many words it has heard, when it is time that the launcher knows.
    pub(crate) fn note_told(&mut self, task: u32, bytes: &[u8]) -> Option<u32> {
        let tell = Tell::decode(bytes).ok()?;
        let heard = self.heard.entry(task).or_default();
        let due = is_resent(&tell).then(|| heard.note(bytes.len())).flatten();
        if let Some(id) = tell.id() {
            self.asked.remove(&(task, id));
        }
        if let Tell::Spawned { tasks, .. } = tell {
            let last = tasks.into_iter().flatten().max();
            heard.spawned = heard.spawned.max(last.map_or(0, |task| task + 1));
        }
        due
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

    /// A piece of a copy of the registry, or of a change to it.
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
            (false, _) => self.copy = Some(Registry::from_snapshot(&whole)?),
            (true, Some(registry)) => registry.apply(Change::decode(&whole)?)?,
            (true, None) => return Err(Malformed),
        }
        Ok(())
    }

    /// Looks into what the daemons say. The launcher has been silent for so long.
    pub(crate) fn look(&mut self, silent: Duration, signals: &Signals) {
        let wanted = self.line.is_some() && (silent > 2 * BEAT || self.orphan.is_some());
        match (wanted, &mut self.news) {
            (true, None) if self.opened.is_none_or(|opened| opened.elapsed() >= AGAIN) => {
                let words = std::iter::once(OWN.to_owned()).chain(self.will.tell.iter().cloned());
                self.news = Some(News::open(&words.collect::<Vec<_>>(), signals));
                self.opened = Some(Instant::now());
                self.told = None;
            }
            (true, Some(news)) => {
                if let Some(report) = news.next() {
                    self.take_report(report);
                } else if news.is_over() && news.teller().is_none() {
                    // Closed when nobody needed it, or killed.
                    self.news = None;
                }
            }
            (false, Some(news)) => {
                news.close();
                if news.teller().is_none() {
                    (self.news, self.told) = (None, None);
                }
            }
            (_, None) => {}
        }
    }

    /// The daemons say this of the hosts.
    fn take_report(&mut self, report: Report) {
        self.told = Some(report);
        let next = self.next().map(|heir| heir.run.clone());
        if let Some(orphan) = self.orphan.as_mut().filter(|orphan| orphan.next != next) {
            (orphan.next, orphan.since) = (next, Instant::now());
        }
    }

    /// The host whose turn it is to lead if the launcher's is lost: the first of the line that is left.
    fn next(&self) -> Option<&Heir> {
        let (report, line) = self.report()?;
        let mut heirs = line.heirs.iter();
        heirs.find(|heir| report.living.contains_key(&heir.run))
    }

    /// The last report, if it is one of a host that may go on.
    fn report(&self) -> Option<(&Report, &Line)> {
        let report = self.told.as_ref()?;
        let line = self.line.as_ref()?;
        report.hindrance.is_none().then_some((report, line))
    }

    /// Whether the launcher's host has been lost since this was last asked: from then on this agent is an orphan. It is once
    /// more when the host is lost of who has said that it leads.
    pub(crate) fn has_been_orphaned(&mut self) -> bool {
        let lost = |(report, line): (&Report, &Line)| {
            let lives = report.living.contains_key(&line.launcher);
            (!lives).then(|| line.launcher.clone())
        };
        let Some(of) = self.report().and_then(lost) else {
            return false;
        };
        let newly = self.orphan.as_ref().is_none_or(|orphan| orphan.of != of);
        if newly {
            self.orphan = Some(Orphan {
                of,
                next: self.next().map(|heir| heir.run.clone()),
                since: Instant::now(),
            });
        }
        newly
    }

    pub(crate) fn is_orphan(&self) -> bool {
        self.orphan.is_some()
    }

    /// Another launcher speaks, on a host of this run. Until it says who comes after it, the old line does without it.
    pub(crate) fn be_led_by(&mut self, run: &str) {
        if let Some(line) = &mut self.line {
            run.clone_into(&mut line.launcher);
            if let Some(at) = line.heirs.iter().position(|heir| heir.run == run) {
                line.name = line.heirs.remove(at).name;
            }
        }
    }

    /// That launcher has asked for all that is known here.
    pub(crate) fn adopt(&mut self) {
        self.orphan = None;
        self.pieces.clear();
    }

    /// Whether it is for this host to go on with the job: nobody else leads it as far as is known here.
    pub(crate) fn leads(&self) -> bool {
        let (Some((report, line)), Some(orphan)) = (self.report(), &self.orphan) else {
            return false;
        };
        let next = self.next().map(|heir| &heir.run);
        let turn = next.is_some() && next == report.own.as_ref();
        turn && self.copy.is_some() && orphan.of == line.launcher
    }

    /// Whether a launcher that has been silent for so long, and may be for `limit`, is no reason to end the job yet: who knows
    /// more is about to say it, or to come. A launcher on a host that lives may be stopped, or have been given no processor,
    /// and its tasks need nothing of it meanwhile. Its channel may also be cut between these two hosts alone, so not for ever.
    pub(crate) fn is_patient(&self, silent: Duration, limit: Duration) -> bool {
        let Some((report, line)) = self.report() else {
            return false;
        };
        match (&self.orphan, report.living.get(&line.launcher)) {
            (Some(orphan), _) => orphan.since.elapsed() < PATIENCE,
            (None, Some(state)) => state == "suspected" || silent < STANDSTILL * limit,
            (None, None) => false,
        }
    }

    /// How many changes of the registry the copy has seen.
    pub(crate) fn changes(&self) -> Option<u64> {
        self.copy.as_ref().map(Registry::changes)
    }

    /// The registry, as far as it is known here.
    pub(crate) fn take_registry(&mut self) -> Option<Registry> {
        self.copy.take()
    }

    /// The copy of the registry as bytes, if it has seen more than so many changes.
    pub(crate) fn later_copy(&self, changes: u64) -> Option<Vec<u8>> {
        let later = self.copy.as_ref().filter(|copy| copy.changes() > changes);
        later.map(Registry::snapshot)
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

    pub(crate) fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        if let Some(news) = &mut self.news {
            news.reaped(pid, status);
        }
    }

    /// What to wait for.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.news.iter().flat_map(News::polls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);
    const SILENT: Duration = Duration::from_secs(1000);

    fn heir(number: u32) -> Heir {
        Heir {
            number,
            name: format!("h{number}"),
            run: format!("r{number}"),
        }
    }

    /// The agent of host 2, of hosts 0 to 3, led from host 0, with a copy of the registry.
    fn agent() -> Heritage {
        let mut heritage = Heritage::new(Will {
            job: "job".to_owned(),
            reach: Vec::new(),
            tell: Vec::new(),
            goes_on: true,
            grace: 0,
            timeout: None,
            form: 0,
            connect: 0,
            interface: None,
            verbose: false,
        });
        heritage.line = Some(Line {
            launcher: "r0".to_owned(),
            name: "h0".to_owned(),
            heirs: (1..4).map(heir).collect(),
        });
        let copy = Registry::new(Vec::new(), &[], b"program").snapshot();
        heritage.take_copy(false, &copy, true).expect("a copy");
        heritage
    }

    /// The daemon of host 2 says that these are left.
    fn report(left: &[u32]) -> Report {
        let living = left
            .iter()
            .map(|number| (heir(*number).run, "up".to_owned()));
        Report {
            hosts: Vec::new(),
            hindrance: None,
            ending: false,
            living: living.collect(),
            own: Some("r2".to_owned()),
            causes: HashMap::new(),
        }
    }

    #[test]
    fn the_first_that_is_left_leads_and_nobody_while_another_one_does() {
        let mut agent = agent();
        agent.take_report(report(&[0, 1, 2, 3]));
        assert!(!agent.has_been_orphaned() && !agent.leads());
        agent.take_report(report(&[1, 2, 3]));
        assert!(agent.has_been_orphaned() && !agent.has_been_orphaned());
        assert!(!agent.leads(), "it is for host 1");
        agent.be_led_by("r1");
        assert!(agent.is_orphan() && !agent.has_been_orphaned());
        assert!(!agent.leads(), "host 1 has called");
        agent.adopt();
        assert!(!agent.is_orphan() && !agent.leads());
    }

    #[test]
    fn the_host_of_the_next_launcher_is_lost_before_that_has_said_who_comes_after_it() {
        for asked in [false, true] {
            let mut agent = agent();
            agent.take_report(report(&[1, 2, 3]));
            assert!(agent.has_been_orphaned());
            agent.be_led_by("r1");
            if asked {
                agent.adopt();
            }
            agent.take_report(report(&[2, 3]));
            assert!(agent.has_been_orphaned(), "an orphan once more");
            assert!(agent.leads() && agent.is_patient(SILENT, LIMIT));
        }
    }

    #[test]
    fn a_silent_launcher_has_longer_on_a_host_that_lives() {
        let mut agent = agent();
        let (twice, long) = (2 * LIMIT, STANDSTILL * LIMIT);
        assert!(!agent.is_patient(twice, LIMIT), "nobody has said anything");
        agent.take_report(report(&[0, 1, 2, 3]));
        assert!(agent.is_patient(twice, LIMIT) && !agent.is_patient(long, LIMIT));
        let mut suspected = report(&[0, 1, 2, 3]);
        let launcher = suspected.living.get_mut("r0").expect("its host");
        "suspected".clone_into(launcher);
        agent.take_report(suspected);
        assert!(agent.is_patient(long, LIMIT), "the verdict is to come");
    }

    #[test]
    fn the_time_for_a_host_to_lead_begins_when_it_is_its_turn() {
        let mut agent = agent();
        agent.take_report(report(&[1, 3]));
        assert!(agent.has_been_orphaned() && agent.is_patient(SILENT, LIMIT));
        let long_ago = Instant::now().checked_sub(PATIENCE);
        agent.orphan.as_mut().expect("an orphan").since = long_ago.expect("a clock that runs");
        agent.take_report(report(&[1, 3]));
        assert!(!agent.is_patient(SILENT, LIMIT));
        agent.take_report(report(&[3]));
        assert!(agent.is_patient(SILENT, LIMIT));
    }
}
