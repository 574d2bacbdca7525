//! Reports of this host's daemon about the hosts of the virtual machine, while a job runs in it.
//!
//! Each report lists all hosts. The last one counts. A connection that ends is made again: at once, then at most once
//! in [`RECONNECT_INTERVAL`], and after growing pauses (up to [`MAX_RECONNECT_INTERVAL`]) while it ends without a
//! report or cannot be made at all: the daemon may have no thread for it at the moment. The feed is over only if no
//! daemon exists any more, or the last report announces its end.
//!
//! Tasks that cannot reach each other are reported to the daemon on a second connection. If only that one ends,
//! everything is reported again on a new one after [`RECONNECT_INTERVAL`].

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use regatta_job::failover::{HostState, MembershipView};
use regatta_program::Refusal;
use regatta_wire::fields::{Message, bytes_of};
use regatta_wire::session::{FromDaemon, FromJob, MAX_REQUEST_BYTES, Membership, UnreachablePair};
use rustix::event::PollFd;

use crate::channel::session::{NoSession, Session};
use crate::resident::place::MachinePlace;

/// Minimum interval between two attempts to connect.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum interval between attempts, after many without a report. A host that is cut off must learn that soon after a
/// verdict.
const MAX_RECONNECT_INTERVAL: Duration = Duration::from_secs(4);

/// Time in which the kernel closes all connections to a daemon that has died: it closes them at once.
const HANG_UP_DELAY: Duration = Duration::from_secs(1);
/// The same for a daemon that has not reported yet and may be dead: longer than two attempts to connect take.
const HANG_UP_DELAY_UNHEARD: Duration = Duration::from_secs(5);

/// A host that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The host's name, or its address if another host has the same name.
    pub name: String,
    /// The run of the host. It is another one after the host has been gone.
    pub run: String,
    /// The address of its daemon.
    pub address: SocketAddr,
}

/// A report of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    /// The hosts that are up.
    pub hosts: Vec<Listed>,
    /// Whether the daemon announces its end, so that no other report follows.
    pub ending: bool,
    /// The runs of all hosts that are not gone. If it has a hindrance, the list of hosts is not reliable.
    pub view: MembershipView,
    /// For runs that are gone, the cause.
    pub causes: HashMap<String, String>,
}

/// The connection on which this host's daemon reports hosts.
#[derive(Debug)]
pub(crate) struct MembershipFeed {
    /// The address of the daemon, or `None` for a feed that is over.
    place: Option<MachinePlace>,
    session: Option<Session>,
    /// The connection for reports of tasks that cannot reach each other.
    unreachable: Option<Session>,
    /// The time at which that connection ended or could not be made, until everything is to be reported again.
    unheard: Option<Instant>,
    /// The time of the last attempt to connect, except the first.
    began: Option<Instant>,
    /// Whether the daemon has reported on this connection.
    has_reported: bool,
    /// Number of consecutive connections that ended without a report or could not be made.
    failures: u32,
    /// Whether the last report announces the daemon's end.
    ends: bool,
    /// A sentence about the state of the feed, until it is taken.
    remark: Option<String>,
    /// Whether it was connected again since the last `take_renewed`.
    renewed: bool,
    /// Whether no further attempt is made.
    over: bool,
}

impl MembershipFeed {
    /// Connects to the daemon of a machine. If that is not possible now, `next` tries again.
    pub(crate) fn open(machine: &str) -> Self {
        // The caller has checked the machine's name.
        MachinePlace::of(machine).map_or_else(|_| Self::closed(), Self::at)
    }

    fn at(place: MachinePlace) -> Self {
        let mut feed = Self {
            place: Some(place),
            over: false,
            ..Self::closed()
        };
        feed.connect();
        feed
    }

    /// Returns a feed that is over.
    pub(crate) fn closed() -> Self {
        Self {
            place: None,
            session: None,
            unreachable: None,
            unheard: None,
            began: None,
            has_reported: false,
            failures: 0,
            ends: false,
            remark: None,
            renewed: false,
            over: true,
        }
    }

    fn connect(&mut self) {
        self.has_reported = false;
        let Some(place) = &self.place else { return };
        match Session::open_at(place, &FromJob::Watch {}) {
            Ok(session) => self.session = Some(session),
            Err(NoSession::NoDaemon(_)) => self.over = true,
            Err(NoSession::NotNow(refusal)) => self.fail(&refusal.sentence),
        }
    }

    /// Records that the connection has ended without a report, or could not be made.
    fn fail(&mut self, why: &str) {
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 {
            self.remark = Some(format!(
                "the daemon of this host does not report the hosts of the virtual machine: {why}. Until it does, this job does not learn of hosts that are lost or added, nor whether this host is cut off; the launcher keeps asking"
            ));
        }
    }

    /// Returns the current report, if it is new.
    pub(crate) fn next(&mut self) -> Option<Report> {
        if !self.over && self.session.is_none() && self.pause().is_zero() {
            self.began = Some(Instant::now());
            self.connect();
            self.renewed |= self.session.is_some();
        }
        self.renewed |= self.renew_unreachable();
        let session = self.session.as_mut()?;
        session.flush();
        let mut latest = None;
        while session.read() > 0 {}
        let trouble = loop {
            match session.next() {
                Ok(Some(FromDaemon::Membership { membership })) => latest = Some(membership),
                Ok(Some(_)) => {}
                Ok(None) if session.is_ended() => {
                    break Some("it closed the connection".to_owned());
                }
                Ok(None) => break None,
                Err(Refusal { sentence, .. }) => break Some(sentence),
            }
        };
        if let Some(membership) = &latest {
            self.ends = membership.ending;
            self.has_reported = true;
            if std::mem::take(&mut self.failures) > 0 {
                self.remark = Some(
                    "the daemon of this host reports the hosts of the virtual machine again"
                        .to_owned(),
                );
            }
        }
        if let Some(why) = trouble {
            (self.session, self.unreachable, self.unheard) = (None, None, None);
            self.over |= self.ends;
            if !self.has_reported {
                self.fail(&why);
            }
        }
        latest.map(report)
    }

    /// Returns the time until a connection is to be made again, if one is.
    pub(crate) fn until_renewal(&self) -> Option<Duration> {
        if self.over {
            return None;
        }
        match self.session {
            None => Some(self.pause()),
            Some(_) => self
                .unheard
                .map(|at| RECONNECT_INTERVAL.saturating_sub(at.elapsed())),
        }
    }

    /// Checks the connection for unreachable tasks. Returns true if it ended some time ago and everything must be
    /// reported again.
    fn renew_unreachable(&mut self) -> bool {
        if let Some(session) = &mut self.unreachable {
            // The daemon sends only its greeting.
            session.flush();
            while session.read() > 0 {}
            if session.is_ended() {
                (self.unreachable, self.unheard) = (None, Some(Instant::now()));
            }
        }
        let is_due = |at: &mut Instant| at.elapsed() >= RECONNECT_INTERVAL;
        self.unheard.take_if(is_due).is_some()
    }

    fn pause(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(8);
        let whole = (RECONNECT_INTERVAL * (1 << doublings)).min(MAX_RECONNECT_INTERVAL);
        let pause = |began: Instant| whole.saturating_sub(began.elapsed());
        self.began.map_or(Duration::ZERO, pause)
    }

    /// Returns whether the daemon was connected again since the last call: it has forgotten what was reported to it
    /// before.
    pub(crate) fn take_renewed(&mut self) -> bool {
        std::mem::take(&mut self.renewed)
    }

    /// Takes the sentence about the state of the feed.
    pub(crate) fn take_remark(&mut self) -> Option<String> {
        self.remark.take()
    }

    /// Tells the daemon which tasks of a job cannot reach each other. Returns false if it has not taken the previous
    /// report yet, or cannot be reached now.
    pub(crate) fn send_unreachable(&mut self, job: &str, pairs: Vec<UnreachablePair>) -> bool {
        if self.over || self.session.is_none() || self.unheard.is_some() {
            return self.over;
        }
        let said = FromJob::Unreachable {
            job: job.to_owned(),
            pairs: fitting(job, pairs),
        };
        match &mut self.unreachable {
            Some(session) if session.unsent() > 0 => return false,
            Some(session) => session.send(&said),
            None => {
                let place = self.place.as_ref();
                let opened = place.map(|place| Session::open_at(place, &said));
                self.unreachable = opened.and_then(Result::ok);
                self.unheard = self.unreachable.is_none().then(Instant::now);
            }
        }
        self.unreachable.is_some()
    }

    /// Returns whether no further report follows.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Returns whether the daemon of this host has ended, given that it closed another connection without a reason this
    /// long ago. `None` if that is not known yet.
    pub(crate) fn has_daemon_ended(&self, since: Duration) -> Option<bool> {
        let tells = self.session.is_some() && self.has_reported;
        let lives = since
            >= if tells {
                HANG_UP_DELAY
            } else {
                HANG_UP_DELAY_UNHEARD
            };
        (self.over || lives).then_some(self.over)
    }

    /// Ends the feed.
    pub(crate) fn close(&mut self) {
        *self = Self::closed();
    }

    /// Returns the descriptors to poll.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.session
            .iter()
            .chain(&self.unreachable)
            .map(Session::poll)
    }
}

/// Returns the first of these pairs, as many as fit into one request to the daemon.
fn fitting(job: &str, mut pairs: Vec<UnreachablePair>) -> Vec<UnreachablePair> {
    let request = FromJob::Unreachable {
        job: job.to_owned(),
        pairs: Vec::new(),
    };
    let mut empty = Vec::new();
    request.encode(&mut empty);
    let mut length = empty.len();
    let fits = |pair: &&UnreachablePair| {
        length += bytes_of(*pair).len();
        length <= MAX_REQUEST_BYTES
    };
    let count = pairs.iter().take_while(fits).count();
    pairs.truncate(count);
    pairs
}

/// Converts the daemon's report for this job.
fn report(said: Membership) -> Report {
    let state = |suspected: bool| match suspected {
        true => HostState::Suspected,
        false => HostState::Alive,
    };
    let left = said.hosts.iter();
    let left = left.map(|host| (host.run.clone(), state(host.suspected)));
    Report {
        view: MembershipView {
            left: left.collect(),
            own: Some(said.own.clone()),
            hindrance: said.hindrance.clone(),
        },
        ending: said.ending,
        hosts: listed(&said),
        causes: said.gone.into_iter().collect(),
    }
}

/// Returns the hosts that are up, among those that are not gone.
fn listed(said: &Membership) -> Vec<Listed> {
    let mut names: HashMap<&str, u32> = HashMap::new();
    for host in &said.hosts {
        *names.entry(&host.name).or_default() += 1;
    }
    // A host that has not described itself has no name yet.
    let up = said.hosts.iter();
    let up = up.filter(|host| host.described && !host.suspected && !host.name.is_empty());
    let listed = up.map(|host| Listed {
        name: match names.get(host.name.as_str()) {
            Some(1) => host.name.clone(),
            _ => host.address.to_string(),
        },
        run: host.run.clone(),
        address: host.address,
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use regatta_wire::session::MachineHost;

    use super::*;
    use crate::channel::session::tests::{hello, pair, say};

    fn host(name: &str, number: u8) -> MachineHost {
        MachineHost {
            name: name.to_owned(),
            run: format!("r{number}"),
            address: ([10, 0, 0, number], 77).into(),
            described: true,
            suspected: false,
        }
    }

    fn membership(hosts: Vec<MachineHost>) -> Membership {
        Membership {
            own: "r1".to_owned(),
            hosts,
            gone: Vec::new(),
            hindrance: None,
            ending: false,
        }
    }

    /// Returns a feed for a nonexistent place, with a connection to the returned stream.
    fn feed() -> (MembershipFeed, UnixStream) {
        let (session, mut daemon) = pair();
        say(&mut daemon, &hello());
        let feed = MembershipFeed {
            place: Some(MachinePlace::scratch("nowhere")),
            session: Some(session),
            over: false,
            ..MembershipFeed::closed()
        };
        (feed, daemon)
    }

    fn tell(daemon: &mut UnixStream, membership: &Membership) {
        let membership = membership.clone();
        say(daemon, &FromDaemon::Membership { membership });
    }

    #[test]
    fn hosts_that_are_up_are_listed_under_names_that_mean_one() {
        let suspected = MachineHost {
            suspected: true,
            ..host("gamma", 3)
        };
        let new = MachineHost {
            described: false,
            ..host("10.0.0.7:77", 7)
        };
        let hosts = vec![
            host("alpha", 1),
            host("beta", 2),
            suspected,
            host("twin", 4),
            host("twin", 5),
            new,
        ];
        let mut said = membership(hosts);
        let report = super::report(said.clone());
        let names: Vec<&str> = report.hosts.iter().map(|host| &*host.name).collect();
        assert_eq!(names, ["alpha", "beta", "10.0.0.4:77", "10.0.0.5:77"]);
        assert_eq!((report.view.hindrance, report.ending), (None, false));
        said.hindrance = Some("only 1 of 3 hosts answer".to_owned());
        let why = super::report(said).view.hindrance;
        assert_eq!(why.as_deref(), Some("only 1 of 3 hosts answer"));
    }

    #[test]
    fn who_lives_who_is_here_and_why_others_are_gone_is_known_by_run() {
        let mut said = membership(vec![host("alpha", 1), host("beta", 2), host("gamma", 3)]);
        said.hosts[2].suspected = true;
        said.gone = vec![("r4".to_owned(), "it has been silent".to_owned())];
        let report = super::report(said);
        assert_eq!(report.view.own.as_deref(), Some("r1"));
        let view = &report.view;
        assert!(view.is_suspected("r3") && view.is_left("r2") && !view.is_suspected("r2"));
        assert!(!view.is_left("r4"));
        let cause = report.causes.get("r4").map(String::as_str);
        assert_eq!(cause, Some("it has been silent"));
    }

    #[test]
    fn of_several_reports_the_last_one_counts() {
        let (mut feed, mut daemon) = feed();
        tell(&mut daemon, &membership(vec![host("alpha", 1)]));
        let both = membership(vec![host("alpha", 1), host("beta", 2)]);
        tell(&mut daemon, &both);
        let report = feed.next().expect("a report");
        assert_eq!(report.hosts.len(), 2);
        assert_eq!(feed.next(), None);
    }

    #[test]
    fn a_daemon_that_hangs_up_is_asked_again_until_there_is_none() {
        let (mut feed, mut daemon) = feed();
        tell(&mut daemon, &membership(vec![host("alpha", 1)]));
        drop(daemon);
        assert!(feed.next().is_some());
        assert!(!feed.is_over() && feed.until_renewal().is_some());
        assert_eq!((feed.next(), feed.is_over()), (None, true));
        assert_eq!(feed.take_remark(), None);
    }

    /// Waits for a report. If the feed connects meanwhile, the old connection `told` gets this report, and stays open.
    fn await_report(feed: &mut MembershipFeed, told: &mut UnixStream) -> Report {
        say(told, &hello());
        tell(told, &membership(vec![host("alpha", 1)]));
        feed.next().expect("a report")
    }

    #[test]
    fn a_connection_that_is_cut_is_made_anew_and_what_was_said_is_to_be_said_again() {
        let place = MachinePlace::scratch("feed");
        let claimed = place.claim().expect("the place");
        let accept = || claimed.listener.accept().expect("a connection").0;
        let mut feed = MembershipFeed::at(place);
        let mut daemon = accept();
        await_report(&mut feed, &mut daemon);
        assert!(feed.send_unreachable("alpha:1", Vec::new()) && !feed.take_renewed());
        drop((daemon, accept()));
        assert_eq!(feed.next(), None);
        assert!(
            !feed.send_unreachable("alpha:1", Vec::new()),
            "nobody hears it"
        );
        assert_eq!(feed.next(), None);
        let mut daemon = accept();
        await_report(&mut feed, &mut daemon);
        assert!(feed.take_renewed() && feed.send_unreachable("alpha:1", Vec::new()));
        assert_eq!(feed.take_remark(), None);
        // The feed takes the next connection, which is closed without a report.
        drop(daemon);
        feed.next();
        assert!(!feed.is_over() && feed.until_renewal().is_some());
    }

    #[test]
    fn unreachable_tasks_are_to_be_told_again_some_time_after_their_connection_has_ended_alone() {
        let place = MachinePlace::scratch("unreachable");
        let claimed = place.claim().expect("the place");
        let accept = || claimed.listener.accept().expect("a connection").0;
        let mut feed = MembershipFeed::at(place);
        let mut daemon = accept();
        await_report(&mut feed, &mut daemon);
        assert!(feed.send_unreachable("alpha:1", Vec::new()));
        assert_eq!(feed.until_renewal(), None);
        drop(accept());
        assert_eq!(feed.next(), None);
        assert!(!feed.take_renewed() && !feed.send_unreachable("alpha:1", Vec::new()));
        assert!(
            feed.until_renewal()
                .is_some_and(|pause| pause <= RECONNECT_INTERVAL)
        );
        feed.unheard = Instant::now().checked_sub(RECONNECT_INTERVAL);
        assert_eq!(feed.until_renewal(), Some(Duration::ZERO));
        assert_eq!(feed.next(), None);
        assert!(feed.take_renewed() && feed.send_unreachable("alpha:1", Vec::new()));
        accept();
        assert_eq!(feed.until_renewal(), None);
    }

    #[test]
    fn a_daemon_is_told_of_as_many_unreachable_tasks_as_it_takes() {
        let pair = |task| UnreachablePair {
            host: "h".repeat(1000),
            peer: "p".repeat(1000),
            task,
            peer_task: 0,
            since_ms: 0,
            given_up: false,
        };
        let all: Vec<UnreachablePair> = (0..1000).map(pair).collect();
        let length = |count: usize| {
            let request = FromJob::Unreachable {
                job: "alpha:1".to_owned(),
                pairs: all[..count].to_vec(),
            };
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            bytes.len()
        };
        let told = fitting("alpha:1", all.clone());
        assert_eq!(told, all[..told.len()]);
        assert!(
            length(told.len()) <= MAX_REQUEST_BYTES && length(told.len() + 1) > MAX_REQUEST_BYTES
        );
        assert_eq!(fitting("alpha:1", all[..64].to_vec()), all[..64]);
    }

    #[test]
    fn a_daemon_that_says_nothing_is_remarked_once_and_when_it_tells_again() {
        let (mut feed, daemon) = feed();
        drop(daemon);
        assert_eq!(feed.next(), None);
        let remark = feed.take_remark().expect("a remark");
        assert!(remark.contains("it closed the connection"), "{remark}");
        let (session, mut daemon) = pair();
        say(&mut daemon, &hello());
        tell(&mut daemon, &membership(Vec::new()));
        feed.session = Some(session);
        assert!(feed.next().is_some());
        let remark = feed.take_remark().expect("a remark");
        assert!(remark.ends_with("again"), "{remark}");
    }

    #[test]
    fn a_daemon_that_has_ended_is_told_from_one_that_has_ended_one_connection() {
        let (mut feed, mut daemon) = feed();
        tell(&mut daemon, &membership(vec![host("alpha", 1)]));
        assert!(feed.next().is_some());
        assert_eq!(feed.has_daemon_ended(Duration::ZERO), None);
        assert_eq!(feed.has_daemon_ended(HANG_UP_DELAY), Some(false));
        drop(daemon);
        assert_eq!(feed.next(), None);
        assert_eq!(
            feed.has_daemon_ended(HANG_UP_DELAY),
            None,
            "it is asked again"
        );
        assert_eq!(feed.has_daemon_ended(HANG_UP_DELAY_UNHEARD), Some(false));
        assert_eq!(feed.next(), None);
        assert_eq!(feed.has_daemon_ended(Duration::ZERO), Some(true));
    }

    #[test]
    fn a_daemon_that_has_told_of_its_end_is_not_asked_again() {
        let (mut feed, mut daemon) = feed();
        let ending = Membership {
            ending: true,
            ..membership(Vec::new())
        };
        tell(&mut daemon, &ending);
        drop(daemon);
        assert!(feed.next().is_some_and(|report| report.ending));
        assert!(feed.is_over() && feed.until_renewal().is_none());
    }
}
