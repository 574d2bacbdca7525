//! A host of a job that another host leads, with the process that reports the membership to it.
//!
//! [`Follower`] decides; the membership is asked (`regatta hosts --watch --json`) while it wants to know.

use std::time::{Duration, Instant};

use regatta_job::failover::{FailoverPlan, Follower};
use rustix::event::PollFd;
use rustix::process::{Pid, WaitStatus};

use super::OWN;
use crate::news::{News, Report};
use crate::remote::BEAT;
use crate::signals::Signals;

/// A command that reports the membership and has ended is started again after this time at the earliest.
const AGAIN: Duration = Duration::from_secs(1);

/// A follower, and the process that reports to it.
#[derive(Debug)]
pub(crate) struct Following {
    pub follower: Follower,
    /// The beginning of the follower's time.
    since: Instant,
    news: Option<News>,
    opened: Option<Instant>,
    report: Option<Report>,
}

impl Following {
    pub(crate) fn new(plan: FailoverPlan) -> Self {
        Self {
            follower: Follower::new(plan, Duration::ZERO),
            since: Instant::now(),
            news: None,
            opened: None,
            report: None,
        }
    }

    /// Reads what the membership reports, if the follower wants it. The launcher has been silent for so long.
    pub(crate) fn look(&mut self, silent: Duration, signals: &Signals) {
        let wanted = self.follower.wants_membership(silent > 2 * BEAT);
        match (wanted, &mut self.news) {
            (true, None) if self.opened.is_none_or(|opened| opened.elapsed() >= AGAIN) => {
                let arguments = self.follower.plan.tell.iter().cloned();
                let words = std::iter::once(OWN.to_owned()).chain(arguments);
                self.news = Some(News::open(&words.collect::<Vec<_>>(), signals));
                self.opened = Some(Instant::now());
                self.forget();
            }
            (true, Some(news)) => {
                if let Some(report) = news.next() {
                    let now = self.since.elapsed();
                    self.follower.handle_membership(now, report.view.clone());
                    self.report = Some(report);
                } else if news.is_over() && news.teller().is_none() {
                    // Closed when nobody needed it, or killed.
                    self.news = None;
                }
            }
            (false, Some(news)) => {
                news.close();
                if news.teller().is_none() {
                    self.news = None;
                    self.forget();
                }
            }
            (_, None) => {}
        }
    }

    fn forget(&mut self) {
        self.report = None;
        self.follower.forget_membership();
    }

    /// The candidate on the host of this run will not lead.
    pub(crate) fn pass_over(&mut self, run: &str) {
        self.follower.pass_over(self.since.elapsed(), run);
    }

    /// Whether the launcher's host was lost since the last call.
    pub(crate) fn has_lost_owner(&mut self) -> bool {
        self.follower.has_lost_owner(self.since.elapsed())
    }

    /// Whether a launcher that has been silent for so long is no reason to end the job yet.
    pub(crate) fn is_patient(&self, silent: Duration, limit: Duration) -> bool {
        let now = self.since.elapsed();
        self.follower.is_patient(now, silent, limit)
    }

    /// For how long the job may still run.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.follower.remaining(self.since.elapsed())
    }

    /// The process that reports, and its last report, for somebody else to listen to.
    pub(crate) fn take_news(&mut self) -> (Option<News>, Option<Report>) {
        (self.news.take(), self.report.take())
    }

    /// That process: no signal of the job is its.
    pub(crate) fn helper(&self) -> Option<Pid> {
        self.news.as_ref().and_then(News::teller)
    }

    pub(crate) fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        if let Some(news) = &mut self.news {
            news.reaped(pid, status);
        }
    }

    /// Descriptors to wait for.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.news.iter().flat_map(News::polls)
    }
}
