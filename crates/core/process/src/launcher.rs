//! Asking the launcher, and hearing from it.
//!
//! A task inherits a socket to its launcher. Questions are written to it; the launcher writes answers and events, changes
//! the task's word for news in the job's table, and rings its bell. So a task finds out by one load, where it looks for
//! messages anyway, and waits for an answer as it waits for a message. Events, and what started tasks write, become
//! messages of the task to itself: one wait covers them all. The launcher sends so much of what tasks write, and then waits
//! for the word that some of it has been received.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use regatta_connection::signal_mask::Blocked;
use regatta_engine::{Error, ReceiptCredit, Result};
use regatta_memory::uncancelled::Uncancelled;
use regatta_transport::paths::Shortage;
use regatta_wire::control::{Ask, Event, MAX_REQUEST_BYTES, Tell};
use regatta_wire::fields::Message;
use regatta_wire::frames::{self, Frames};
use rustc_hash::FxHashMap;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use crate::members::Answers;
use crate::output::{Begun, Piece};
use crate::shared_barrier::Leases;
use crate::state::{Process, enter};
use crate::wait::{Awaited, MAX_SLEEP, wait_for};
use crate::{abort, event, start};

/// Read at once.
const PIECE: usize = 4096;
/// Number of bytes of tasks' output received after which the launcher is told.
const RECEIPT_BATCH_BYTES: u32 = 64 << 10;

/// The destination of the events of a watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) context: u32,
    pub(crate) tag: i32,
    /// It happens again and again.
    pub(crate) stays: bool,
}

/// This task's end of the way to its launcher.
#[derive(Debug)]
pub(crate) struct Control {
    socket: OwnedFd,
    frames: Frames,
    unsent: Vec<u8>,
    last_id: u32,
    answers: FxHashMap<u32, Tell>,
    pub(crate) watches: FxHashMap<u32, Watch>,
    pub(crate) begun: Begun,
    pub(crate) leases: Leases,
    pub(crate) members: Answers,
    /// The news that have been looked at.
    seen: u32,
    /// The launcher has ended it.
    ended: bool,
}

impl Control {
    pub(crate) fn new(socket: OwnedFd) -> Control {
        abort::has_launcher(socket.as_raw_fd());
        Control {
            socket,
            frames: Frames::default(),
            unsent: Vec::new(),
            last_id: 0,
            answers: FxHashMap::default(),
            watches: FxHashMap::default(),
            begun: Begun::default(),
            leases: Leases::default(),
            members: Answers::default(),
            seen: 0,
            ended: false,
        }
    }

    /// The number of a question that is asked next, or once. Never 0, which in a shared barrier means no question, and never that of a watch,
    /// which lives longer than others.
    pub(crate) fn next_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            if !self.watches.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// Nothing comes from a launcher that has ended.
    pub(crate) fn check(&self) -> Result<()> {
        match self.ended {
            true => Err(Error::Launcher(
                "the launcher of this job has ended, and cannot be asked for anything".into(),
            )),
            false => Ok(()),
        }
    }

    /// Write what the launcher takes now. One that has ended takes nothing; its last words can still be read, and then its end.
    fn flush(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        // A handler of a signal would else find a frame half in the socket.
        let _blocked = Blocked::all();
        abort::sends();
        self.send_unsent();
        abort::sent(self.unsent.is_empty());
    }

    fn send_unsent(&mut self) {
        while !self.unsent.is_empty() && !self.ended {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&self.socket, &self.unsent, flags) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// Read what has arrived; whether it was anything.
    fn read(&mut self) -> bool {
        let mut moved = false;
        let mut piece = [0_u8; PIECE];
        while !self.ended {
            match rustix::net::recv(&self.socket, &mut piece, RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.ended = true,
                Ok((n, _)) => {
                    self.frames.push(&piece[..n]);
                    moved = true;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.ended = true,
            }
        }
        moved
    }

    /// Answers that have come are kept for whoever asked; all else is handed out, in its order.
    fn keep_answers(&mut self) -> Vec<Tell> {
        let mut unasked = Vec::new();
        loop {
            match self.frames.next_message::<Tell>() {
                Ok(None) => break,
                Ok(Some(tell)) => match tell.id() {
                    Some(id) => drop(self.answers.insert(id, tell)),
                    None => unasked.push(tell),
                },
                Err(_) => {
                    self.ended = true;
                    break;
                }
            }
        }
        unasked
    }
}

impl Drop for Control {
    /// The inherited descriptor stays open; so that the launcher knows that nobody listens any more, the socket ends.
    fn drop(&mut self) {
        abort::has_no_launcher(self.socket.as_raw_fd());
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

impl Process {
    /// Hear what the launcher has to tell, if there is something. Says whether there was.
    #[inline(always)]
    pub(crate) fn handle_news(&mut self) -> bool {
        match &self.control {
            Some(control) if control.seen != self.job.news(self.engine.me()) => self.read_news(),
            Some(_) if self.engine.receipt_credits().sum() >= RECEIPT_BATCH_BYTES => {
                self.read_news()
            }
            _ => false,
        }
    }

    #[cold]
    fn read_news(&mut self) -> bool {
        let news = self.job.news(self.engine.me());
        let Some(control) = &mut self.control else {
            return false;
        };
        control.seen = news;
        let lived = !control.ended;
        for ReceiptCredit { of, amount } in self.engine.receipt_credits().take() {
            let (task, bytes) = (of, amount);
            // It fits every frame.
            let _ = frames::put(&Ask::Taken { task, bytes }, &mut control.unsent);
        }
        control.flush();
        let moved = control.read();
        // Only what is news wakes other threads, or whoever waits at the descriptor.
        self.heard += u64::from(moved || lived && control.ended);
        let unasked = control.keep_answers();
        if unasked
            .iter()
            .any(|tell| matches!(tell, Tell::Event { .. }))
        {
            self.take_in();
        }
        for tell in unasked {
            self.handle_message(tell);
        }
        self.look_around();
        moved
    }

    /// The task does what the launcher says without having been asked.
    fn handle_message(&mut self, tell: Tell) {
        match tell {
            Tell::Event { watch, event } => self.happened(watch, &event),
            Tell::Born {
                task,
                parent,
                manner,
            } => self.born(task, parent, manner),
            Tell::Start {
                watch,
                task,
                ticket,
                program,
                arguments,
                environment,
            } => {
                let what = start::bytes(task, ticket, &program, &arguments, &environment);
                self.note(watch, &what);
            }
            Tell::StartHosts {
                watch,
                request,
                hosts,
            } => self.note(watch, &start::hosts(request, &hosts)),
            Tell::Output {
                task,
                stream,
                manner,
                bytes,
                then,
            } => self.wrote(Piece {
                task,
                stream,
                manner,
                bytes,
                then,
            }),
            Tell::GiveUp { task, sentence } => {
                self.given_up.insert(task, sentence);
                self.engine.transport.give_up(task);
            }
            _ => {}
        }
    }

    /// The messages of a task of this host were there before the launcher knew of its end. They come another way than the event,
    /// but not after it.
    fn take_in(&mut self) {
        /// Enough for all that is there; somebody else may send on and on.
        const MAX_PROGRESS_STEPS: u32 = 64;
        let _ = (0..MAX_PROGRESS_STEPS).find(|_| !self.engine.progress());
    }

    /// Tells the launcher who cannot be reached, or can again, and gives up tasks for which a host lacks a descriptor or the like. True:
    /// some were given up, which ends calls that wait for them.
    #[inline]
    pub(crate) fn report_reaches(&mut self) -> bool {
        if self.engine.transport.has_reaches() {
            self.send_reaches();
        }
        self.engine.transport.has_shortages() && self.give_up_for_shortages()
    }

    #[cold]
    fn give_up_for_shortages(&mut self) -> bool {
        for Shortage { peer, sentence } in self.engine.transport.take_shortages() {
            self.given_up.insert(peer, sentence);
            self.engine.transport.give_up(peer);
        }
        true
    }

    #[cold]
    fn send_reaches(&mut self) {
        let reaches = self.engine.transport.take_reaches();
        let Some(control) = &mut self.control else {
            return;
        };
        for reach in reaches {
            let millis = |silent: Duration| u32::try_from(silent.as_millis()).unwrap_or(u32::MAX);
            let ask = Ask::Reach {
                task: reach.peer,
                address: reach.address,
                silent: reach.silent.map(millis),
            };
            // It fits every frame.
            let _ = frames::put(&ask, &mut control.unsent);
        }
        control.flush();
    }

    /// While a task waits: a launcher that has died does not ring; and one that was busy may take more of a long question
    /// now.
    pub(crate) fn listen(&mut self) {
        self.read_news();
    }

    /// A task that a launcher has started goes with it; a task that was let in does not, but gets no notice of ends any more,
    /// so it must not wait for somebody.
    pub(crate) fn check_launcher(&mut self, waited: Duration) -> Result<()> {
        if waited < MAX_SLEEP {
            return Ok(());
        }
        self.read_news();
        self.launcher()
    }

    /// The error of a launcher that is known to have ended.
    pub(crate) fn launcher(&self) -> Result<()> {
        self.control.as_ref().map_or(Ok(()), Control::check)
    }

    /// More tasks than cores? That changes as tasks come and go.
    pub(crate) fn look_around(&mut self) {
        self.engine.transport.look_around();
        self.pace.set_tasks_per_core(self.job.tasks_per_core());
    }

    /// Something that this task watches has happened.
    fn happened(&mut self, number: u32, event: &Event) {
        self.note(number, &event::bytes(number, event));
    }

    /// Turns the event of a watch into a message of this task to itself.
    fn note(&mut self, number: u32, bytes: &[u8]) {
        let Some(control) = &mut self.control else {
            return;
        };
        let Some(watch) = control.watches.get(&number).copied() else {
            return;
        };
        if !watch.stays {
            control.watches.remove(&number);
        }
        self.engine
            .notify_self(watch.context, watch.tag, bytes, ReceiptCredit::FREE);
    }
}

/// Ask the launcher something, without waiting for the answer: the number of the question.
fn send_request(
    id: Option<u32>,
    question: impl FnOnce(u32) -> Ask,
    watch: Option<Watch>,
) -> Result<u32> {
    let _whole = Uncancelled::begin();
    let mut held = enter()?;
    if held.control.is_none() && held.alone {
        let socket = crate::launcher_on_demand::call_launcher(held.job.fd())?;
        held.control = Some(Control::new(socket));
    }
    let Some(control) = &mut held.control else {
        return Err(Error::Launcher(
            "this task was started without a launcher that could start and watch tasks; start it \
             with `regatta run`"
                .into(),
        ));
    };
    let id = id.unwrap_or_else(|| control.next_id());
    if let Some(watch) = watch {
        control.watches.insert(id, watch);
    }
    let mut request = Vec::new();
    question(id).encode(&mut request);
    if request.len() > MAX_REQUEST_BYTES
        || frames::put_bytes(&request, &mut control.unsent).is_err()
    {
        control.watches.remove(&id);
        return Err(Error::Argument(format!(
            "the request is longer than {MAX_REQUEST_BYTES} bytes, which is the most that can be sent to the launcher"
        )));
    }
    control.flush();
    Ok(id)
}

/// Ask the launcher something; blocks until it has answered.
pub(crate) fn ask(question: impl FnOnce(u32) -> Ask) -> Result<Tell> {
    let id = send_request(None, question, None)?;
    wait_for(Answer(id)).and_then(unless_refused)
}

/// Ask the launcher something under a number of [`Control::next_id`]; it may have been answered already.
pub(crate) fn ask_under(id: u32, question: impl FnOnce(u32) -> Ask) -> Result<Tell> {
    let id = send_request(Some(id), question, None)?;
    wait_for(Answer(id)).and_then(unless_refused)
}

/// Ask the launcher to tell of something; blocks until it has said that it will. The number of the question.
pub(crate) fn ask_to_watch(question: impl FnOnce(u32) -> Ask, watch: Watch) -> Result<u32> {
    let id = send_request(None, question, Some(watch))?;
    let answer = wait_for(Answer(id)).and_then(unless_refused);
    if answer.is_err()
        && let Some(control) = &mut enter()?.control
    {
        control.watches.remove(&id);
    }
    answer.map(|_| id)
}

fn unless_refused(answer: Tell) -> Result<Tell> {
    match answer {
        Tell::Refused { why, sentence, .. } => Err(Error::Refused(why, sentence)),
        answer => Ok(answer),
    }
}

/// The launcher's answer to the question of this number.
struct Answer(u32);

impl Awaited for Answer {
    type Output = Tell;
    const PROGRESSES: bool = false;

    fn poll(&mut self, process: &mut Process) -> Result<Option<Tell>> {
        let Some(control) = &mut process.control else {
            return Ok(None);
        };
        if let Some(answer) = control.answers.remove(&self.0) {
            // Messages that came before the answer are known to whoever has the answer.
            process.engine.pass_over();
            return Ok(Some(answer));
        }
        control.check().map(|()| None)
    }

    fn check(&mut self, process: &mut Process, _waited: Duration) -> Result<()> {
        process.listen();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    #[test]
    fn the_last_words_of_a_launcher_are_heard_by_a_task_that_has_something_to_say() {
        let (launcher, ours) = UnixStream::pair().unwrap();
        let mut control = Control::new(OwnedFd::from(ours));
        let mut words = Vec::new();
        frames::put_bytes(b"last words", &mut words).unwrap();
        rustix::io::write(&launcher, &words).unwrap();
        drop(launcher);
        control.unsent.extend_from_slice(&words);
        control.flush();
        assert!(control.check().is_ok(), "there is something to read");
        assert!(control.read() && control.check().is_err());
        let heard = control.frames.next_bytes().unwrap();
        assert_eq!(heard, Some(&b"last words"[..]));
    }

    /// A handler of a signal that aborts in another thread does not write into the middle of a frame.
    #[test]
    fn other_threads_see_that_a_frame_is_being_written() {
        const TIME_LIMIT: Duration = Duration::from_secs(20);
        let (mut launcher, ours) = UnixStream::pair().unwrap();
        let mut control = Control::new(OwnedFd::from(ours));
        let is_over = AtomicBool::new(false);
        let is_seen = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let begun = Instant::now();
                let mut is_seen = false;
                while !is_seen && begun.elapsed() < TIME_LIMIT {
                    is_seen = abort::is_frame_cut();
                }
                is_over.store(true, Ordering::Relaxed);
                is_seen
            });
            while !is_over.load(Ordering::Relaxed) {
                // The launcher takes it at once.
                control.unsent.extend_from_slice(&[0; PIECE]);
                control.flush();
                launcher.read_exact(&mut [0; PIECE]).unwrap();
            }
            other.join().unwrap()
        });
        assert!(is_seen);
    }

    #[test]
    fn no_question_has_the_number_of_none() {
        let (_launcher, ours) = UnixStream::pair().unwrap();
        let mut control = Control::new(OwnedFd::from(ours));
        control.last_id = u32::MAX - 1;
        assert_eq!(control.next_id(), u32::MAX);
        assert_eq!(control.next_id(), 1);
    }

    #[test]
    fn no_question_has_the_number_of_a_watch_that_lives() {
        let (_launcher, ours) = UnixStream::pair().unwrap();
        let mut control = Control::new(OwnedFd::from(ours));
        let number = control.next_id();
        let watch = Watch {
            context: 0,
            tag: 0,
            stays: true,
        };
        control.watches.insert(number, watch);
        control.last_id = u32::MAX;
        assert_eq!(control.next_id(), number + 1);
    }
}
