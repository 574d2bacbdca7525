//! Output of tasks, and the credit for it. The windows and repayments are the real code, with small sizes. Only the
//! number of bytes counts, not their content.

use std::time::Duration;

use regatta_job::credits::{ReceiverWindows, Repayment, SendWindow};
use regatta_job::registry::Piece;
use regatta_wire::control::{Ask, Route, StreamState};

use super::{Down, Life, Owner, Sim, Up, What};

/// Window of a host for one task in bytes, and the further bytes for the last output of tasks that have ended.
const WINDOW: usize = 40;
const LAST_OUTPUT: usize = 20;
/// Window of a host for the job's output, in bytes.
pub const HOST_WINDOW_BYTES: u32 = 80;
/// Size of one read, in bytes.
const PIECE_BYTES: usize = 16;

/// A stream of a task, as read by its host.
#[derive(Default)]
pub struct Source {
    route: Option<Route>,
    /// Bytes that were written and not read.
    unread: usize,
    /// Whether it is not read until there is room for its receiver.
    waits: bool,
}

/// Output on one host.
pub struct Outputs {
    /// By task and stream.
    sources: std::collections::BTreeMap<u64, Source>,
    receivers: ReceiverWindows,
    pub window: SendWindow,
}

impl Default for Outputs {
    fn default() -> Self {
        Self {
            sources: [].into(),
            receivers: ReceiverWindows::new(WINDOW, LAST_OUTPUT),
            window: open_window(),
        }
    }
}

pub fn open_window() -> SendWindow {
    SendWindow::open(HOST_WINDOW_BYTES as usize)
}

fn key(task: u32, stream: u32) -> u64 {
    u64::from(task) << 1 | u64::from(stream)
}

impl Outputs {
    /// Records that a task has started, whose output follows this route.
    pub fn task_started(&mut self, task: u32, route: Option<Route>) {
        for stream in 0..2 {
            let source = Source {
                route,
                ..Source::default()
            };
            self.sources.insert(key(task, stream), source);
        }
    }

    /// Returns the streams that are open and for other tasks.
    pub fn open_streams(&self) -> Vec<(u32, u32)> {
        let routed = self.sources.iter().filter(|(_, one)| one.route.is_some());
        let open = routed.map(|(key, _)| ((key >> 1) as u32, (key & 1) as u32));
        open.collect()
    }

    fn read_again(&mut self, keys: Vec<u64>) {
        for key in keys {
            if let Some(source) = self.sources.get_mut(&key) {
                source.waits = false;
            }
        }
    }

    /// Empties the windows, because all output in flight is lost, or has arrived.
    pub fn all_received(&mut self) {
        let again = self.receivers.all_received();
        self.read_again(again);
    }

    fn received(&mut self, by: u32, bytes: usize) {
        let again = self.receivers.received(by, bytes);
        self.read_again(again);
    }

    /// Reads from a source, if there is room. With `last` the task has ended, and its output is read in any case.
    fn read(&mut self, key: u64, is_here: bool, last: bool) -> Option<Piece> {
        let source = self.sources.get_mut(&key)?;
        let count = source.unread.min(PIECE_BYTES);
        if count == 0 || source.waits && !last {
            return None;
        }
        let mut route = source.route;
        match route {
            Some(to) if last => route = route.filter(|_| self.receivers.takes_last_output(to.to)),
            Some(to) if self.receivers.is_full(to.to) => {
                source.waits = true;
                self.receivers.wait(to.to, key);
                return None;
            }
            None if !is_here && !self.window.has_room() => return None,
            _ => {}
        }
        source.unread -= count;
        match route {
            Some(to) => self.receivers.sent(to.to, count),
            None if !is_here => self.window.sent(count),
            None => {}
        }
        Some(Piece {
            task: (key >> 1) as u32,
            stream: (key & 1) as u32,
            route,
            bytes: vec![0; count],
            then: StreamState::More,
        })
    }

    /// Returns whether more is in flight than allowed, after this piece was read. The last output of a task may exceed
    /// the host's own window.
    fn is_too_much(&self, piece: &Piece, is_exempt: bool) -> bool {
        let most_of_host = HOST_WINDOW_BYTES as usize + PIECE_BYTES;
        if piece.route.is_none() && !is_exempt && self.window.on_their_way() >= most_of_host {
            return true;
        }
        let mut routes = self.sources.values().filter_map(|source| source.route);
        let most = WINDOW + LAST_OUTPUT + PIECE_BYTES;
        routes.any(|route| self.receivers.on_their_way(route.to) > most)
    }
}

impl Sim {
    /// Returns the launcher that gets a host's reports now, and whether it is on this host.
    fn listener(&self, host: u32) -> Option<(usize, bool)> {
        let own = &self.hosts[host as usize];
        if own.life != Life::Up || !own.has_begun {
            return None;
        }
        match (&own.follower, own.owner) {
            (Some(follower), Owner::Leader(by)) if !follower.is_without_owner() => {
                Some((by, false))
            }
            (None, _) => {
                let here = self.launcher_on(host)?;
                let leads = self.launchers[here].rejoin.is_none();
                leads.then_some((here, true))
            }
            _ => None,
        }
    }

    /// Lets a task write something.
    pub fn write(&mut self, task: u32) {
        let (host, bytes) = (self.tasks[task as usize].host, 1 + self.random(60) as usize);
        let sources = &mut self.hosts[host as usize].outputs.sources;
        if let Some(source) = sources.get_mut(&key(task, 0)) {
            source.unread += bytes;
        }
        self.pump(host);
    }

    /// Lets a host read what its tasks have written, as far as the windows allow.
    pub fn pump(&mut self, host: u32) {
        let keys = self.hosts[host as usize].outputs.sources.keys();
        for key in keys.copied().collect::<Vec<_>>() {
            while let Some((launcher, is_here)) = self.listener(host) {
                let outputs = &mut self.hosts[host as usize].outputs;
                let Some(piece) = outputs.read(key, is_here, false) else {
                    break;
                };
                let is_too_much = outputs.is_too_much(&piece, is_here);
                self.note_wrong(is_too_much, || format!("host {host} sends too much"));
                self.pass(host, (launcher, is_here), piece);
            }
        }
        if let Some((launcher, true)) = self.listener(host) {
            self.speak(launcher);
        }
    }

    fn pass(&mut self, host: u32, (launcher, is_here): (usize, bool), piece: Piece) {
        match (is_here, piece.route) {
            (true, _) => self.caught(launcher, piece),
            (false, None) => {
                let (task, bytes) = (piece.task, piece.bytes);
                self.send_up(launcher, host, Up::Output { task, bytes });
            }
            (false, Some(route)) => {
                let caught = Up::Caught {
                    task: piece.task,
                    stream: piece.stream,
                    route,
                    bytes: piece.bytes,
                    then: piece.then,
                };
                self.send_up(launcher, host, caught);
            }
        }
    }

    /// Reads the rest of an ended task's output for another one, and closes its streams.
    pub fn pass_last_output(&mut self, task: u32) {
        let host = self.tasks[task as usize].host;
        for stream in 0..2 {
            let key = key(task, stream);
            let route = self.hosts[host as usize].outputs.sources.get(&key);
            let Some(route) = route.and_then(|source| source.route) else {
                continue;
            };
            loop {
                let listener = self.listener(host);
                let is_here = listener.is_some_and(|(_, is_here)| is_here);
                let outputs = &mut self.hosts[host as usize].outputs;
                let Some(piece) = outputs.read(key, is_here, true) else {
                    break;
                };
                let is_too_much = outputs.is_too_much(&piece, true);
                self.note_wrong(is_too_much, || {
                    format!("host {host} sends too much at an end")
                });
                if let Some(listener) = listener {
                    self.pass(host, listener, piece);
                }
            }
            self.hosts[host as usize].outputs.sources.remove(&key);
            if let Some(listener) = self.listener(host) {
                let closed = Piece {
                    task,
                    stream,
                    route: Some(route),
                    bytes: Vec::new(),
                    then: StreamState::Closed,
                };
                self.pass(host, listener, closed);
            }
        }
    }

    /// Handles a piece for some task, or for the job's output.
    pub fn caught(&mut self, launcher: usize, mut piece: Piece) {
        let leader = &mut self.launchers[launcher];
        if !leader.registry.task_wrote(&mut piece) {
            leader.credits.piece_diverted(&piece);
            self.repay(launcher);
        }
    }

    /// Lets a launcher repay what it has passed on, unless too much waits to be written.
    pub fn repay(&mut self, launcher: usize) {
        let is_full = self.now < self.full;
        let remotes = self.launchers[launcher].remotes.keys();
        for host in remotes.copied().collect::<Vec<_>>() {
            let credits = &mut self.launchers[launcher].credits;
            if let Some(bytes) = credits.repay_host(host, is_full) {
                self.note_wrong(is_full, || {
                    format!("host {host} is repaid while the output is full")
                });
                self.send_down(launcher, host, Down::Credit { bytes });
            }
        }
        let all = self.launchers[launcher].credits.repay_diverted(is_full);
        self.note_wrong(is_full && !all.is_empty(), || {
            format!("{all:?} are repaid while the output is full")
        });
        for Repayment { by, task, bytes } in all {
            self.taken(launcher, by, task, bytes);
        }
    }

    /// Makes the job's output full for a while.
    pub fn fill(&mut self, time: Duration) {
        self.full = self.full.max(self.now + time);
        self.at(self.full, What::Drained);
    }

    pub fn drained(&mut self) {
        if let Some(launcher) = self.working_launcher() {
            self.repay(launcher);
        }
    }

    /// Handles that a task has received this many bytes that another one has written.
    pub fn taken(&mut self, launcher: usize, by: u32, task: u32, bytes: u32) {
        let leader = &self.launchers[launcher];
        match leader.registry.host_of(task) {
            Some(host) if host == leader.host => self.received(host, by, bytes as usize),
            Some(host) if leader.remotes.contains_key(&host) => {
                self.send_down(launcher, host, Down::Taken { by, bytes });
            }
            _ => {}
        }
    }

    /// Handles that a task does not receive output any more, so that writers do not wait for it.
    pub fn hushed(&mut self, launcher: usize, by: u32) {
        let leader = &mut self.launchers[launcher];
        if !leader.registry.stop_output_to(by) {
            return;
        }
        let (own, bytes) = (leader.host, u32::MAX);
        let hosts: Vec<u32> = leader.remotes.keys().copied().collect();
        for host in hosts {
            self.send_down(launcher, host, Down::Taken { by, bytes });
        }
        self.received(own, by, usize::MAX);
    }

    /// Tells a host that this many bytes have been received.
    pub fn received(&mut self, host: u32, by: u32, bytes: usize) {
        self.hosts[host as usize].outputs.received(by, bytes);
        self.pump(host);
    }

    /// Lets a task read output that it has received.
    pub fn read_output(&mut self, by: u32, task: u32, bytes: u32) {
        if self.tasks[by as usize].runs() {
            self.request(by, &Ask::Taken { task, bytes });
        }
    }

    /// Checks that no credit is lost: no source waits, and no bytes are in flight except those that the launcher has
    /// not repaid because they are few.
    pub fn credit_is_whole(&self, leader: usize) -> Result<(), String> {
        let credits = &self.launchers[leader].credits;
        for (number, host) in (0..).zip(&self.hosts) {
            if host.life != Life::Up {
                continue;
            }
            let unread = host.outputs.sources.iter().find(|(_, one)| one.unread > 0);
            if let Some((key, source)) = unread {
                let (task, unread) = (key >> 1, source.unread);
                return Err(format!(
                    "{unread} bytes of task {task} are never read: {}",
                    self.sketch()
                ));
            }
            if !host.outputs.receivers.are_whole() {
                return Err(format!("a window of host {number} is not whole"));
            }
            let is_here = number == self.launchers[leader].host;
            let (on_their_way, owed) = (host.outputs.window.on_their_way(), credits.owed(number));
            if !is_here && on_their_way as u64 != owed {
                return Err(format!(
                    "{on_their_way} bytes of host {number} are on their way, and {owed} are owed"
                ));
            }
        }
        Ok(())
    }
}
