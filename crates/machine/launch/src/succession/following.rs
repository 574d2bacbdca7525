//! A host of a job that another host leads, with its connections to this host's daemon.
//!
//! [`Follower`] decides. The membership's reports are read while it needs them. When the launcher's host is lost, the
//! daemon is told so, and which hosts may lead next. The daemon keeps this host's end of the channel for them, and
//! reports when one of them leads or will not.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use regatta_job::failover::{FailoverPlan, Follower};
use regatta_wire::session::{FromDaemon, FromJob};
use rustix::event::PollFd;

use crate::channel::membership_feed::{MembershipFeed, Report};
use crate::channel::remote::BEAT_INTERVAL;
use crate::channel::session::{SESSION, Session};

/// Minimum interval between two connections to the daemon.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// A follower, and its connections.
#[derive(Debug)]
pub(crate) struct Following {
    pub follower: Follower,
    /// The start of the follower's time.
    since: Instant,
    news: Option<MembershipFeed>,
    opened: Option<Instant>,
    report: Option<Report>,
    waiting: Waiting,
}

/// The wait for the next launcher.
#[derive(Debug, Default)]
struct Waiting {
    session: Option<Session>,
    /// The successors last sent to the daemon.
    told: Vec<String>,
    opened: Option<Instant>,
}

/// An announcement of a host that may lead, by its run.
#[derive(Debug)]
pub(crate) enum Word {
    /// The host leads, at the other end of this channel.
    Leads(String, OwnedFd),
    /// The host will not lead.
    GivesUp(String),
}

impl Following {
    pub(crate) fn new(plan: FailoverPlan) -> Self {
        Self {
            follower: Follower::new(plan, Duration::ZERO),
            since: Instant::now(),
            news: None,
            opened: None,
            report: None,
            waiting: Waiting::default(),
        }
    }

    /// Reads the membership's reports, if the follower needs them. `silent` is how long the launcher has been silent.
    pub(crate) fn look(&mut self, silent: Duration) {
        let wanted = self.follower.wants_membership(silent > 2 * BEAT_INTERVAL);
        match (wanted, &mut self.news) {
            (true, None) if is_due(self.opened) => {
                self.news = Some(MembershipFeed::open(&self.follower.plan.machine));
                self.opened = Some(Instant::now());
                self.forget();
            }
            (true, Some(news)) => {
                if let Some(report) = news.next() {
                    let now = self.since.elapsed();
                    self.follower.handle_membership(now, report.view.clone());
                    self.report = Some(report);
                } else if news.is_over() {
                    self.news = None;
                }
            }
            (false, Some(_)) => {
                self.news = None;
                self.forget();
            }
            (_, None) => {}
        }
    }

    fn forget(&mut self) {
        self.report = None;
        self.follower.forget_membership();
    }

    /// Returns whether the launcher's host was lost since the last call.
    pub(crate) fn has_lost_owner(&mut self) -> bool {
        self.follower.has_lost_owner(self.since.elapsed())
    }

    /// Returns the next announcement of a host that may lead, while the owner is lost. Tells the daemon of the loss,
    /// and which hosts may take this one over.
    pub(crate) fn await_leader(&mut self) -> Option<Word> {
        let waiting = &mut self.waiting;
        let successors: Vec<String> = self.follower.successors().map(str::to_owned).collect();
        let session = std::env::var(SESSION).ok()?.parse().ok()?;
        let lost = FromJob::OwnerLost {
            session,
            successors: successors.clone(),
        };
        match &mut waiting.session {
            Some(session) if successors != waiting.told => session.send(&lost),
            None if is_due(waiting.opened) => {
                waiting.session = Session::open(&self.follower.plan.machine, &lost).ok();
                waiting.opened = Some(Instant::now());
            }
            _ => {}
        }
        waiting.told = successors;
        let session = waiting.session.as_mut()?;
        session.flush();
        session.read();
        let word = match session.next() {
            Ok(Some(FromDaemon::Led { run })) => {
                session.take_descriptor().map(|way| Word::Leads(run, way))
            }
            Ok(Some(FromDaemon::GivenUp { run })) => return Some(Word::GivesUp(run)),
            Ok(None) if !session.is_ended() => return None,
            _ => None,
        };
        // No further message follows on this session. A new one is opened for another loss, or for this one if the
        // daemon has hung up.
        waiting.session = None;
        word
    }

    /// Records that the candidate on the host of this run will not lead.
    pub(crate) fn pass_over(&mut self, run: &str) {
        self.follower.pass_over(self.since.elapsed(), run);
    }

    /// Returns whether a launcher that has been silent for this long is no reason yet to end the job.
    pub(crate) fn is_patient(&self, silent: Duration, limit: Duration) -> bool {
        let now = self.since.elapsed();
        self.follower.is_patient(now, silent, limit)
    }

    /// Returns how long the job may still run.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.follower.remaining(self.since.elapsed())
    }

    /// Takes the feed of the membership and its last report, for another reader.
    pub(crate) fn take_news(&mut self) -> (Option<MembershipFeed>, Option<Report>) {
        (self.news.take(), self.report.take())
    }

    /// Returns the descriptors to poll.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let news = self.news.iter().flat_map(MembershipFeed::polls);
        news.chain(self.waiting.session.iter().map(Session::poll))
    }
}

fn is_due(opened: Option<Instant>) -> bool {
    opened.is_none_or(|opened| opened.elapsed() >= RECONNECT_INTERVAL)
}
