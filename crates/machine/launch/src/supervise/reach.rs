//! Tasks that cannot reach each other although this launcher reaches both: said to the user, and given up if that is wanted.
//!
//! *Who decides.* The task whose words are not acknowledged reports it ([`regatta_wire::control::Ask::Reach`]), again and again
//! while it lasts, so that the next launcher hears it too. The other one may only wait for words, and notices nothing. So this
//! launcher decides for both, once for each pair of tasks, and tells both the same: a verdict is not taken back. It decides
//! nothing about a host that it has not heard itself since the silence began: such a host may be lost, which is another matter
//! (`--host-timeout`). And it decides only when a report has just come: a task that is stopped, or gets no processor, reports
//! neither that the silence lasts nor that it is over.
//!
//! *What is said.* One line for all pairs of tasks on the same two hosts, and one when the last of them is reached again; of two
//! hosts that are cut off from each other again and again, no more than that in [`QUIET`]. Of very many pairs of hosts only
//! the first [`NAMED`] are named, the others counted.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use regatta_wire::control::Tell;
use regatta_wire::session::UnreachablePair;
use serde_json::json;

use super::Supervisor;

/// Two hosts of which nothing more is to be said are not named again before this time is over.
const QUIET: Duration = Duration::from_secs(10);
/// So many pairs of hosts are named at a time.
const NAMED: usize = 8;
/// Pairs of hosts that are not named are counted for so long before the number is said.
const COUNTING: Duration = Duration::from_secs(1);
/// The daemon is told of so many pairs of hosts.
const LISTED: usize = 64;

/// Two numbers, the lower one first: of tasks, or of hosts.
type Two = (u32, u32);

fn two(one: u32, other: u32) -> Two {
    (one.min(other), one.max(other))
}

/// Two tasks of which at least one does not reach the other.
#[derive(Debug)]
struct Pair {
    /// Since when, as far as is known.
    since: Instant,
    /// The one or two of them that have said so.
    by: BTreeSet<u32>,
    /// The task that said so first, and where the other one listens.
    first: u32,
    address: Option<SocketAddr>,
    /// A report has come since this launcher last looked: the silence lasts.
    renewed: bool,
    given_up: bool,
}

/// How far the user has been told of two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Told {
    #[default]
    Nothing,
    Named,
    /// As one of many.
    Counted,
}

/// All such pairs of tasks on the same two hosts.
#[derive(Debug, Default)]
struct Between {
    pairs: BTreeMap<Two, Pair>,
    told: Told,
    /// The user has been told that tasks of these hosts have given each other up.
    given_up: bool,
    /// The last pair has reached each other again at this moment, after so long.
    healed: Option<(Two, Duration)>,
    /// Nothing more is said of these hosts before this moment.
    quiet: Option<Instant>,
}

/// By their hosts.
#[derive(Debug, Default)]
pub(super) struct Reaches {
    hosts: BTreeMap<Two, Between>,
    /// So many pairs of hosts are not named, and their number is to be said then.
    counted: usize,
    count_due: Option<Instant>,
    /// The daemon of the virtual machine, if there is one, has not been told the latest.
    changed: bool,
}

impl Reaches {
    /// A task is no more: nobody waits for it, and that its hosts reach each other again nobody has seen.
    fn forget(&mut self, task: u32) {
        for between in self.hosts.values_mut() {
            let before = between.pairs.len();
            between
                .pairs
                .retain(|pair, _| pair.0 != task && pair.1 != task);
            let emptied = between.pairs.is_empty() && before > 0;
            if emptied && std::mem::take(&mut between.told) != Told::Nothing {
                between.quiet = Some(Instant::now() + QUIET);
                self.changed = true;
            }
        }
    }

    /// Hosts of which nothing is left to be said.
    fn tidy(&mut self, now: Instant) {
        self.hosts.retain(|_, between| {
            !between.pairs.is_empty() || between.quiet.is_some_and(|until| now < until)
        });
    }

    fn named(&self) -> usize {
        let named = |between: &&Between| between.told == Told::Named;
        self.hosts.values().filter(named).count()
    }
}

impl Supervisor<'_> {
    /// A task says that another one, which listens at `address`, has not answered for so many milliseconds; without a
    /// number, that it answers again.
    pub(super) fn handle_reach(
        &mut self,
        by: u32,
        task: u32,
        address: Option<SocketAddr>,
        silent: Option<u32>,
    ) {
        let lives = |task: u32| self.registry.is_alive(task);
        let (Some(one), Some(other)) = (self.registry.host_of(by), self.registry.host_of(task))
        else {
            return;
        };
        let (hosts, tasks) = (two(one, other), two(by, task));
        match silent {
            Some(millis) if by != task && lives(by) && lives(task) => {
                let silent = Duration::from_millis(u64::from(millis));
                let now = Instant::now();
                let between = self.reaches.hosts.entry(hosts).or_default();
                between.healed = None;
                let pair = between.pairs.entry(tasks).or_insert_with(|| Pair {
                    since: now.checked_sub(silent).unwrap_or(now),
                    by: BTreeSet::new(),
                    first: by,
                    address,
                    renewed: true,
                    given_up: false,
                });
                pair.by.insert(by);
                pair.renewed = true;
            }
            Some(_) => {}
            None => self.reached(by, hosts, tasks),
        }
    }

    fn reached(&mut self, by: u32, hosts: Two, tasks: Two) {
        let Some(between) = self.reaches.hosts.get_mut(&hosts) else {
            return;
        };
        let Some(pair) = between.pairs.get_mut(&tasks) else {
            return;
        };
        pair.by.remove(&by);
        if !pair.by.is_empty() || pair.given_up {
            return;
        }
        let lasted = pair.since.elapsed();
        between.pairs.remove(&tasks);
        if between.pairs.is_empty() {
            between.healed = Some((tasks, lasted));
        }
    }

    /// Says who cannot reach whom, and who can again, and gives up those whose time is over.
    pub(super) fn watch_reaches(&mut self) {
        if self.reaches.hosts.is_empty() {
            return;
        }
        let now = Instant::now();
        let hosts: Vec<Two> = self.reaches.hosts.keys().copied().collect();
        for hosts in hosts {
            self.report_healed(hosts, now);
            self.report_cut(hosts, now);
            self.give_up_between(hosts);
        }
        self.report_count(now);
        self.notify_machine(now);
        self.reaches.tidy(now);
    }

    /// Until something has to be said of a pair. That a pair is to be given up, the next report of it tells.
    pub(super) fn until_reaches(&self) -> Option<Duration> {
        let now = Instant::now();
        let between = self.reaches.hosts.values().filter_map(|between| {
            let waits = between.told == Told::Nothing && !between.pairs.is_empty();
            between.quiet.filter(|until| waits && now < *until)
        });
        let next = between.chain(self.reaches.count_due).min()?;
        Some(next.saturating_duration_since(now))
    }

    /// A task is no more.
    pub(super) fn forget_reach(&mut self, task: u32) {
        self.reaches.forget(task);
    }

    /// The connection to the daemon has ended: on another one it is to be told all of it.
    pub(super) fn resend_reaches(&mut self) {
        self.reaches.changed = !self.reaches.hosts.is_empty();
    }

    /// How long tasks wait for one that cannot be reached; `None`: as long as it takes.
    fn patience(&self) -> Option<Duration> {
        self.plan.across.as_ref()?.unreachable
    }

    /// Have we heard both hosts ourselves since then?
    fn is_sure(&self, hosts: Two, since: Instant) -> bool {
        let is_heard = |number: u32| {
            let mut remotes = self.remotes.iter().filter(|remote| !remote.lost);
            let remote = remotes.find(|remote| remote.number == number);
            number == self.number || remote.is_some_and(|remote| remote.heard > since)
        };
        is_heard(hosts.0) && is_heard(hosts.1)
    }

    fn task_named(&self, task: u32) -> String {
        match self.lifecycle.host(task) {
            Some(host) => format!("task {task} on {host}"),
            None => format!("task {task}"),
        }
    }

    /// The first pair of two hosts of which we are sure: who does not reach whom, in a sentence without an end, and since when.
    fn surest(&self, hosts: Two) -> Option<(Two, String, Instant)> {
        let between = self.reaches.hosts.get(&hosts)?;
        let mut pairs = between.pairs.iter();
        let (&tasks, pair) = pairs.find(|(_, pair)| self.is_sure(hosts, pair.since))?;
        Some(self.sentence(tasks, pair))
    }

    fn sentence(&self, tasks: Two, pair: &Pair) -> (Two, String, Instant) {
        let other = if pair.first == tasks.0 {
            tasks.1
        } else {
            tasks.0
        };
        let (one, two) = (self.task_named(pair.first), self.task_named(other));
        let at = pair.address.map(|address| format!(" ({})", address.ip()));
        let at = at.unwrap_or_default();
        (
            (pair.first, other),
            format!("{one} cannot reach {two}{at}"),
            pair.since,
        )
    }

    fn event(&mut self, what: &str, (by, peer): Two, lasted: Duration) {
        self.output.event(&json!({
            "event": what, "task": by, "peer": peer, "seconds": lasted.as_secs_f64(),
            "host": self.lifecycle.host(by), "peer_host": self.lifecycle.host(peer),
        }));
    }

    fn report_cut(&mut self, hosts: Two, now: Instant) {
        let named = self.reaches.named();
        let waits = |between: &Between| {
            between.told == Told::Nothing && between.quiet.is_none_or(|until| now >= until)
        };
        if !self.reaches.hosts.get(&hosts).is_some_and(waits) {
            return;
        }
        let Some((tasks, sentence, since)) = self.surest(hosts) else {
            return;
        };
        let lasted = now - since;
        let told = match named < NAMED {
            true => Told::Named,
            false => Told::Counted,
        };
        if let Some(between) = self.reaches.hosts.get_mut(&hosts) {
            between.told = told;
        }
        self.reaches.changed = true;
        self.event("unreachable", tasks, lasted);
        if told == Told::Counted {
            self.reaches.counted += 1;
            self.reaches.count_due.get_or_insert(now + COUNTING);
            return;
        }
        let patience = match self.patience() {
            None => "waiting (--unreachable=SECONDS gives up)".to_owned(),
            Some(limit) => format!("giving up after {} s (--unreachable)", limit.as_secs_f64()),
        };
        let seconds = lasted.as_secs_f64();
        self.output.report(&format!(
            "{sentence}: no answer for {seconds:.1} s; {patience}"
        ));
    }

    fn report_count(&mut self, now: Instant) {
        if self.reaches.count_due.is_none_or(|due| now < due) {
            return;
        }
        self.reaches.count_due = None;
        let counted = std::mem::take(&mut self.reaches.counted);
        let pairs = match counted {
            1 => "1 more pair of hosts has".to_owned(),
            counted => format!("{counted} more pairs of hosts have"),
        };
        self.output.report(&format!(
            "{pairs} tasks that cannot reach each other (--json names one of each)"
        ));
    }

    fn report_healed(&mut self, hosts: Two, now: Instant) {
        let Some(between) = self.reaches.hosts.get_mut(&hosts) else {
            return;
        };
        let Some((tasks, lasted)) = between.healed.take() else {
            return;
        };
        let told = std::mem::take(&mut between.told);
        if told == Told::Nothing {
            return;
        }
        between.quiet = Some(now + QUIET);
        self.reaches.changed = true;
        self.event("reachable", tasks, lasted);
        if told == Told::Named {
            let (one, other) = (self.task_named(tasks.0), self.task_named(tasks.1));
            let seconds = lasted.as_secs_f64();
            self.output.report(&format!(
                "{one} and {other} reach each other again, after {seconds:.1} s"
            ));
        }
    }

    /// Has the daemons of the virtual machine tell it to who asks for the hosts.
    fn notify_machine(&mut self, now: Instant) {
        if !self.reaches.changed {
            return;
        }
        let told = self.reaches.hosts.values();
        let told = told.filter(|between| between.told != Told::Nothing);
        let firsts = told.filter_map(|between| {
            let (&tasks, pair) = between.pairs.first_key_value()?;
            let ((task, peer_task), _, since) = self.sentence(tasks, pair);
            Some(UnreachablePair {
                host: self.lifecycle.host(task)?.to_owned(),
                peer: self.lifecycle.host(peer_task)?.to_owned(),
                task,
                peer_task,
                since_ms: u64::try_from((now - since).as_millis()).unwrap_or(u64::MAX),
                given_up: between.pairs.values().all(|pair| pair.given_up),
            })
        });
        let pairs: Vec<UnreachablePair> = firsts.take(LISTED).collect();
        let growing = self.growing.as_mut();
        self.reaches.changed = !growing.is_none_or(|growing| growing.send_unreachable(pairs));
    }

    /// Tells both tasks of each pair whose time is over, and whose silence was just reported again, that the other one is dead for
    /// them.
    fn give_up_between(&mut self, hosts: Two) {
        let (Some(limit), Some(between)) = (self.patience(), self.reaches.hosts.get(&hosts)) else {
            return;
        };
        let is_over = |pair: &Pair| {
            let is_due = pair.renewed && pair.since.elapsed() >= limit;
            !pair.given_up && is_due && self.is_sure(hosts, pair.since)
        };
        let over = between.pairs.iter().filter(|(_, pair)| is_over(pair));
        let over: Vec<(Two, String)> = over
            .map(|(&tasks, pair)| {
                let (_, sentence, since) = self.sentence(tasks, pair);
                let seconds = since.elapsed().as_secs_f64();
                let sentence = format!("{sentence}: no answer for {seconds:.1} s (--unreachable)");
                (tasks, sentence)
            })
            .collect();
        if let Some(between) = self.reaches.hosts.get_mut(&hosts) {
            let pairs = between.pairs.values_mut();
            pairs.for_each(|pair| pair.renewed = false);
        }
        let Some((_, first)) = over.first() else {
            return;
        };
        let first = format!("{first}; both go on as if the other were dead");
        self.reaches.changed = true;
        let mut known = false;
        if let Some(between) = self.reaches.hosts.get_mut(&hosts) {
            for (tasks, _) in &over {
                if let Some(pair) = between.pairs.get_mut(tasks) {
                    pair.given_up = true;
                }
            }
            known = std::mem::replace(&mut between.given_up, true);
        }
        if !known {
            let more = match over.len() - 1 {
                0 => String::new(),
                1 => ", and 1 more pair of tasks on these hosts".to_owned(),
                more => format!(", and {more} more pairs of tasks on these hosts"),
            };
            self.output.report(&format!("{first}{more}"));
        }
        for ((one, other), sentence) in over {
            self.event("given-up", (one, other), limit);
            for (to, task) in [(one, other), (other, one)] {
                let sentence = sentence.clone();
                self.registry.send(to, Tell::GiveUp { task, sentence });
            }
        }
    }
}
