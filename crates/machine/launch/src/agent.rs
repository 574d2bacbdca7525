//! The agent, `regatta agent`: acts for the launcher on another host.
//!
//! It exchanges the messages of `channel` on its standard input and output, starts the tasks of its host on the
//! launcher's orders, and reports what happens to them. It decides nothing about the job: the launcher decides what a
//! failure means. But when the channel ends, or the launcher is silent, it kills all its descendants: nothing outlives
//! its job. Only if the launcher's host is lost, and daemons report that, may it wait for another launcher or become
//! the launcher itself (`crate::succession`).
//!
//! Like the launcher it is three processes, so that the death of one or two of them leaves nothing behind. The outer
//! one waits for the inner one, which is the parent of the tasks and uses the channel. The middle one ends what the
//! inner one leaves. All three are subreapers.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use regatta_job::credits::SendWindow;
use regatta_job::failover::{Follower, Replica};
use regatta_job::registry::shortened;
use regatta_job::spawn::SpawnedTasks;
use regatta_program::Refusal;
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::time::Timespec;

use crate::channel::Link;
use crate::channel::messages::{Hello, Order, Preparation, Report};
use crate::channel::remote::BEAT_INTERVAL;
use crate::front_process;
use crate::hosts::environment;
use crate::hosts::gather;
use crate::hosts::host_starter::NewHostStarter;
use crate::hosts::reach::{self, Beacon};
use crate::hosts::rsh;
use crate::resident::join_socket::JoinSocket;
use crate::streams::standard_input::Feed;
use crate::streams::{Heard, Streams};
use crate::succession;
use crate::succession::following::Following;
use crate::succession::lead::AgentResources;
use crate::supervise::owner::{self, Owner};
use crate::sys;
use crate::system::limits;
use crate::system::signals::Signals;
use crate::system::time_asleep::Wakes;
use crate::system::tree;
use crate::tasks::worker::{self, Worker};
use crate::tasks::{self, Recipe, Tasks};
use crate::words;
use regatta_segment::job::Cause;
use regatta_wire::control::RequestError;
use regatta_wire::world::World;

mod called;
mod owner_lost;
mod reports;

pub use called::serve_caller;

/// Silence allowed to the launcher before it has sent its own limit.
const FIRST_SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// Time limit for ending what the job has left.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves one launcher to the end of its job. `temporary` means that this program is a copy made for the job. If this
/// agent becomes the launcher, `starter` starts further hosts.
pub fn run(temporary: bool, starter: NewHostStarter) -> Result<u8, Refusal> {
    let by_hand = "`regatta agent` is started by `regatta run --host ...`, not by hand";
    let link = rsh::channel_to_starter(temporary, by_hand)?;
    serve(link, starter)
}

/// Serves the launcher at the other end of a channel.
fn serve(link: Link, starter: NewHostStarter) -> Result<u8, Refusal> {
    // A session of its own keeps a terminal's signals, if there is a terminal, from the tasks.
    let _ = rustix::process::setsid();
    let signals = Signals::catch()?;
    let failed = |errno| Refusal::of_regatta(format!("the agent cannot be set up: {errno}"));
    let (end, leash) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(failed)?;
    tree::adopt_orphans()?;
    match front_process::fork_watched(None).map_err(failed)? {
        None => {
            drop(leash);
            let _ = rustix::thread::set_name(c"regatta-agent");
            let owner = Owner {
                leash: Some(end),
                group: sys::process_group(),
            };
            let served =
                tree::adopt_orphans().and_then(|()| Agent::new(link, signals, owner)?.serve());
            let lead = |resources| succession::lead::lead(resources, starter);
            let ended = served.and_then(|resources| resources.map_or(Ok(()), lead));
            tree::kill_all(KILL_TIMEOUT);
            if let Err(refusal) = ended {
                crate::warn(&refusal.sentence);
                std::process::exit(1);
            }
            std::process::exit(0);
        }
        Some(inner) => {
            drop(end);
            drop(link);
            let _ = rustix::thread::set_name(c"regatta-guard");
            Ok(guard(inner, &signals, leash))
        }
    }
}

/// Waits for the end of the inner process, and ends what that process has left. Returns the exit status.
fn guard(inner: Pid, signals: &Signals, leash: OwnedFd) -> u8 {
    let mut leash = Some(leash);
    loop {
        let _ = regatta_connection::ready::poll(&mut [PollFd::new(signals, PollFlags::IN)], None);
        while let Some(arrived) = signals.next() {
            leash.take_if(|_| owner::is_end(arrived.signal));
        }
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == inner {
                tree::kill_all(KILL_TIMEOUT);
                return status.exit_status().unwrap_or(1) as u8;
            }
        }
    }
}

struct Agent {
    link: Link,
    signals: Signals,
    owner: Owner,
    beacon: Option<Beacon>,
    hello: Option<Hello>,
    worker: Worker,
    /// Worlds for which the table had no room, in order, and the tasks of them that are gone.
    unentered: Vec<World>,
    gone_early: Vec<(u32, Option<Cause>)>,
    /// The preparation of the tasks, and the state kept in case the launcher's host is lost.
    template: Option<Preparation>,
    following: Option<Following>,
    /// The window for output to the launcher.
    window: RefCell<SendWindow>,
    /// Standard input for task 0, if this host has task 0.
    feed: Option<Feed>,
    /// Number of `StartSpawn` and `Admit` orders received.
    starts: u32,
    told_strays: bool,
    settled: bool,
    /// Whether the owner is lost, and another launcher has connected but not yet requested the state.
    called: bool,
    silence: Duration,
    heard: Instant,
    spoken: Instant,
    wakes: Wakes,
}

impl Agent {
    fn new(link: Link, signals: Signals, owner: Owner) -> Result<Self, Refusal> {
        Ok(Self {
            link,
            signals,
            owner,
            beacon: None,
            hello: None,
            worker: Worker::new(Some(Streams::new()?)),
            unentered: Vec::new(),
            gone_early: Vec::new(),
            template: None,
            following: None,
            window: RefCell::default(),
            feed: None,
            starts: 0,
            told_strays: false,
            settled: false,
            called: false,
            silence: FIRST_SILENCE_LIMIT,
            heard: Instant::now(),
            spoken: Instant::now(),
            wakes: Wakes::new(),
        })
    }

    /// Serves until the channel ends, which returns `None`, or until this agent must become the launcher.
    fn serve(mut self) -> Result<Option<AgentResources>, Refusal> {
        let beacon = gather::light()?;
        self.link
            .send_raw(format!("\n{} {}\n", rsh::READY, rsh::identity()).as_bytes());
        let connection = gather::connection();
        let hello = gather::hello(&beacon, connection.as_deref());
        self.beacon = Some(beacon);
        self.hello = Some(hello.clone());
        self.send_report(&Report::Hello { hello });
        loop {
            self.wait();
            if let Some(why) = self.reason_to_end() {
                why.into_iter()
                    .for_each(|why| self.send_report(&Report::Farewell { why }));
                // A guest is no descendant, so it is not killed with the tasks.
                let tasks = self.worker.tasks.iter();
                tasks.for_each(|tasks| tasks.signal_guests(Signal::TERM));
                return Ok(None);
            }
            self.follow_news()?;
            if self.follower().is_some_and(Follower::leads) {
                return Ok(self.into_resources());
            }
            self.handle_orders()?;
            self.worker.start_some(self.signals.before());
            self.worker.listen();
            self.worker.reap();
            self.handle_join_socket();
            self.pass_on_reports();
            self.pump();
            self.settle();
            if self.spoken.elapsed() >= BEAT_INTERVAL {
                self.send_report(&Report::Beat {});
            }
        }
    }

    /// Returns `Some` with the reason if this agent must end. The inner `None` means that the channel has ended, so the
    /// reason cannot be sent.
    fn reason_to_end(&mut self) -> Option<Option<String>> {
        let (arrived, lives) = self.owner.wishes(&self.signals);
        let asked = arrived.iter().find(|arrived| owner::is_end(arrived.signal));
        self.heard += self.wakes.away();
        while self.link.read() > 0 {
            self.heard = Instant::now();
        }
        let silent = self.heard.elapsed();
        let patient = |following: &Following| following.is_patient(silent, self.silence);
        let given_up = silent >= self.silence && !self.following.as_ref().is_some_and(patient);
        if self.link.is_ended() {
            return Some(None);
        }
        if !lives {
            return Some(Some(
                "its agent ends, because the process that supervises it was killed".to_owned(),
            ));
        }
        if let Some(asked) = asked {
            let signal = words::signal(asked.signal.as_raw());
            return Some(Some(format!("its agent was ended there by {signal}")));
        }
        given_up.then(|| {
            let seconds = silent.as_secs_f32().floor();
            Some(format!(
                "its agent received nothing from this host for {seconds} s (--host-timeout) and ended the tasks there"
            ))
        })
    }

    /// Returns this host's state as a follower, if the job can outlive its launcher's host.
    fn follower(&self) -> Option<&Follower> {
        self.following.as_ref().map(|following| &following.follower)
    }

    /// Returns this host's state as a follower for changes.
    fn follower_mut(&mut self) -> Option<&mut Follower> {
        self.following
            .as_mut()
            .map(|following| &mut following.follower)
    }

    fn wait(&self) {
        let timeout = match self.worker.are_to_start() {
            true => Duration::ZERO,
            false => self.until_turn(),
        };
        let mut fds: Vec<PollFd> = self
            .owner
            .polls(&self.signals)
            .chain(self.link.polls())
            .collect();
        let shows = self.window.borrow().has_room();
        fds.extend(self.worker.polls(shows, self.has_begun_for_owner()));
        fds.extend(self.feed.iter().flat_map(Feed::polls));
        fds.extend(self.following.iter().flat_map(Following::polls));
        let timeout = Timespec::try_from(timeout).ok();
        let _ = regatta_connection::ready::poll(&mut fds, timeout.as_ref());
    }

    fn send_report(&mut self, report: &Report) {
        self.spoken = Instant::now();
        if self.is_without_owner() {
            // The next launcher requests the whole state.
            return;
        }
        // No report reaches the frame limit: output is sent as it is read, in pieces.
        let _ = self.link.send(report);
    }

    fn handle_orders(&mut self) -> Result<(), Refusal> {
        self.link.flush();
        let astray = || Refusal::of_regatta("the agent received an invalid message");
        if self.is_without_owner() && !self.called {
            return Ok(());
        }
        loop {
            match self.link.next() {
                Ok(Some(order)) => self.obey(order)?,
                Ok(None) => break,
                Err(_) => return Err(astray()),
            }
        }
        self.pass_on_reports();
        Ok(())
    }

    fn obey(&mut self, order: Order) -> Result<(), Refusal> {
        match order {
            Order::Probe { targets } => {
                let seen = reach::look_for(&targets);
                self.send_report(&Report::Probed { seen });
            }
            Order::Prepare { job } => match self.prepare(job) {
                Ok(addresses) => self.send_report(&Report::Prepared { addresses }),
                Err(refusal) => self.send_report(&worker::refused(refusal)),
            },
            Order::Failover { plan } => self.following = Some(Following::new(plan)),
            Order::Succession { order } => {
                if let Some(follower) = self.follower_mut() {
                    follower.set_order(order);
                }
            }
            Order::Copy {
                change,
                bytes,
                last,
            } => {
                if let Some(follower) = self.follower_mut() {
                    let taken = follower.replica.take_piece(change, &bytes, last);
                    taken
                        .map_err(|_| Refusal::of_regatta("a copy of the registry is not valid"))?;
                }
            }
            Order::Confirm {} => {
                let replica = self.follower().map(|follower| &follower.replica);
                if let Some(changes) = replica.and_then(Replica::changes) {
                    self.send_report(&Report::Copied { changes });
                }
            }
            Order::Lead { tasks, changes } => self.report_state(tasks, changes),
            Order::Start { ref addresses } => {
                if let Some(follower) = self.follower_mut() {
                    follower.local.addresses.clone_from(addresses);
                }
                self.worker.obey(order);
            }
            Order::Enter { world } => {
                let first = world.first;
                let refused = self.enter(world).err().map(shortened);
                self.send_report(&Report::Entered { first, refused });
            }
            Order::StartSpawn {
                share: SpawnedTasks { count: 1.., .. },
            }
            | Order::Admit { .. } => {
                self.starts += 1;
                (self.settled, self.told_strays) = (false, false);
                self.worker.obey(order);
            }
            Order::Tell { task, ref bytes } => {
                let follower = self.follower_mut();
                let due = follower.and_then(|host| host.local.note_message(task, bytes));
                self.worker.obey(order);
                if let Some(count) = due {
                    self.send_report(&Report::Heard { task, count });
                }
            }
            Order::Gone { rank, cause } => self.note_gone(rank, cause),
            Order::Signal { signal } => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    tasks::signal_orphans(signal);
                    let tasks = self.worker.tasks.iter();
                    tasks.for_each(|tasks| tasks.signal_guests(signal));
                }
            }
            Order::Credit { bytes } => self.window.borrow_mut().repaid(bytes as usize),
            Order::Input { bytes } => {
                if let Some(feed) = &mut self.feed {
                    feed.push(&bytes);
                }
            }
            order => self.worker.obey(order),
        }
        Ok(())
    }

    /// Enters tasks into the table, after earlier ones for which there was no room, since the table has no gaps.
    fn enter(&mut self, world: World) -> Result<(), (RequestError, String)> {
        let Some(tasks) = &mut self.worker.tasks else {
            return Ok(());
        };
        if self
            .unentered
            .iter()
            .all(|known| known.first != world.first)
        {
            self.unentered.push(world);
        }
        while let Some(world) = self.unentered.first() {
            // Another launcher repeats orders of the previous one.
            if world.first >= tasks.job().tasks() {
                let entered = tasks.enter(world);
                entered.map_err(|error| (RequestError::Memory, error.to_string()))?;
                if let Some(following) = &mut self.following {
                    following.follower.local.worlds.push(world.clone());
                }
            }
            self.unentered.remove(0);
            let known = tasks.job().tasks();
            self.gone_early.retain(|&(rank, cause)| {
                tasks.note_gone(rank, cause);
                rank >= known
            });
        }
        Ok(())
    }

    fn note_gone(&mut self, rank: u32, cause: Option<Cause>) {
        if let Some(follower) = self.follower_mut() {
            follower.local.gone.push((rank, cause));
        }
        let tasks = self.worker.tasks.as_ref();
        let is_known = tasks.is_none_or(|tasks| rank < tasks.job().tasks());
        match is_known || self.unentered.is_empty() {
            true => self.worker.obey(Order::Gone { rank, cause }),
            false => self.gone_early.push((rank, cause)),
        }
    }

    fn prepare(&mut self, order: Preparation) -> Result<Vec<(u32, std::net::SocketAddr)>, Refusal> {
        // Every host that looks for this one has reached it by now.
        self.beacon = None;
        self.template = Some(order.clone());
        let group = self.owner.group;
        let (mut tasks, addresses) = Tasks::prepared(&order, |count| recipe(&order, count, group))?;
        if tasks.has(0) {
            let (feed, input) = Feed::new()?;
            tasks.set_input(input);
            self.feed = Some(feed);
        }
        if !order.join_name.is_empty() {
            self.worker.join_socket = JoinSocket::of_job(&order.join_name);
        }
        self.worker.tasks = Some(tasks);
        *self.window.borrow_mut() = SendWindow::open(order.window as usize);
        self.silence = Duration::from_millis(u64::from(order.silence));
        Ok(addresses)
    }

    /// Lets processes wait that have requested to join.
    fn handle_join_socket(&mut self) {
        if self.has_begun_for_owner() {
            for caller in self.worker.callers() {
                self.worker.let_wait(caller);
            }
        }
    }

    /// Sends what tasks have written, as far as the window allows.
    fn pump(&mut self) {
        if self.is_without_owner() {
            return;
        }
        let (link, window) = (&mut self.link, &self.window);
        self.worker
            .pump(|| window.borrow().has_room(), &mut |heard| {
                send_output(link, window, heard)
            });
        self.pass_on_reports();
        if let Some(taken) = self
            .feed
            .as_mut()
            .map(Feed::flush)
            .filter(|&taken| taken > 0)
        {
            self.send_report(&Report::Taken {
                bytes: taken as u32,
            });
        }
    }

    /// Reports once that nothing of the job is left on this host.
    fn settle(&mut self) {
        let idle = self.worker.begun
            && !self.settled
            && !self.is_without_owner()
            && self
                .worker
                .tasks
                .as_ref()
                .is_none_or(|tasks| !tasks.are_left());
        if !idle {
            return;
        }
        self.feed = None;
        let (_, none_left) = tasks::reap();
        if !none_left {
            if !self.told_strays {
                self.told_strays = true;
                self.send_report(&Report::Strays {
                    names: tasks::strays(&[]),
                });
            }
            return;
        }
        let (link, window) = (&mut self.link, &self.window);
        let all = self
            .worker
            .drain(|| window.borrow().has_room(), &mut |heard| {
                send_output(link, window, heard)
            });
        self.pass_on_reports();
        if all {
            self.settled = true;
            let starts = self.starts;
            self.send_report(&Report::Settled { starts });
        }
    }
}

/// Returns how `count` tasks are started on this host. Changes to the directory that they run in.
fn recipe(order: &Preparation, count: u32, group: Pid) -> Result<Recipe, Refusal> {
    let text = |bytes: &Vec<u8>| std::ffi::OsString::from_vec(bytes.clone());
    let directory = environment::directory_here(text(&order.directory));
    std::env::set_current_dir(&directory).map_err(|error| {
        Refusal::of_regatta(format!(
            "the directory {} cannot be used on this host ({error}); start the job in a directory that exists on all hosts, or name one with --directory",
            directory.to_string_lossy()
        ))
    })?;
    let sent = order.environment.iter();
    let sent = sent.map(|(name, value)| (text(name), text(value)));
    let environment = regatta_program::with_libraries(environment::adapted(sent, directory));
    let path = environment
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.as_os_str());
    let name = text(&order.program);
    // A resident job begins without a program.
    let program = match name.is_empty() {
        true => std::path::PathBuf::new(),
        false => regatta_program::find(&name, path)?,
    };
    regatta_program::check_libraries(&program, &environment)?;
    let arguments: Vec<std::ffi::OsString> = order.arguments.iter().map(text).collect();
    let environment = regatta_program::admit(&program, &arguments, environment)?;
    limits::check(count)?;
    let files = limits::make_room(limits::Files::Tasks(count), 4)?;
    Ok(Recipe {
        name,
        program,
        arguments,
        environment,
        group,
        files,
    })
}

fn send_output(link: &mut Link, window: &RefCell<SendWindow>, heard: Heard) -> bool {
    let (rank, which, bytes) = match heard {
        Heard::Bytes(rank, which, bytes) => (rank, which, bytes),
        Heard::End(rank, which) => (rank, which, &[][..]),
    };
    // The last piece may exceed the window, by its own size at most.
    window.borrow_mut().sent(bytes.len());
    let _ = link.send(&Report::Output {
        rank,
        stream: which as u32,
        bytes: bytes.to_vec(),
    });
    true
}
