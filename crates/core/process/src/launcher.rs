//! Requests to the launcher, and its messages.
//!
//! A task inherits a socket to its launcher. Requests are written to it. The launcher writes answers and events, changes the task's news counter in
//! the job's table, and rings its bell. So a task learns of news by one load, where it polls for messages anyway, and waits for an answer as it
//! waits for a message. Events, and the output of started tasks, become messages of the task to itself, so that one wait covers all of them. The
//! launcher sends a limited amount of output, and then waits until it learns that some of it was received.

use std::time::Duration;

use regatta_engine::{Error, ReceiptCredit, Result, Shortage, Upkeep};
use regatta_memory::uncancelled::Uncancelled;
use regatta_wire::control::{Ask, Event, MAX_REQUEST_BYTES, Tell};
use regatta_wire::fields::Message;

use crate::launcher_socket::{Control, Watch};
use crate::output::Piece;
use crate::state::{Process, enter};
use crate::wait::{Awaited, MAX_SLEEP, wait_for};
use crate::{event, start};

/// Number of bytes of tasks' output received after which the launcher is notified.
const RECEIPT_BATCH_BYTES: u32 = 64 << 10;

impl Process {
    /// Handles the launcher's messages, if there are any. Returns whether there were.
    #[inline(always)]
    pub(crate) fn handle_news(&mut self) -> bool {
        match &self.control {
            Some(control) if control.has_news(self.job.news(self.engine.me())) => self.read_news(),
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
        for ReceiptCredit { of, amount } in self.engine.receipt_credits().take() {
            let (task, bytes) = (of, amount);
            control.put(&Ask::Taken { task, bytes });
        }
        let (moved, changed) = control.exchange(news);
        // Wake other threads, or the program that waits for the descriptor, only if something has changed.
        self.heard += u64::from(changed);
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

    /// Handles a message of the launcher that is not an answer.
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
                self.engine.transport_mut().give_up(task);
            }
            _ => {}
        }
    }

    /// Receives messages. Those of a task on this host were sent before the launcher learned of its end. They arrive on another path than the event,
    /// but not after it.
    fn take_in(&mut self) {
        /// Enough for everything that has arrived. There is a limit because a task may send continuously.
        const MAX_PROGRESS_STEPS: u32 = 64;
        let _ = (0..MAX_PROGRESS_STEPS).find(|_| !self.engine.progress());
    }

    /// Reports to the launcher which tasks have become unreachable or reachable again, and gives up tasks for which a host lacks a descriptor or
    /// another resource. Returns true if some were given up, which ends calls that wait for them.
    #[inline]
    pub(crate) fn report_reaches(&mut self) -> bool {
        if self.engine.transport_mut().has_reaches() {
            self.send_reaches();
        }
        self.engine.transport_mut().has_shortages() && self.give_up_for_shortages()
    }

    #[cold]
    fn give_up_for_shortages(&mut self) -> bool {
        for Shortage { peer, sentence } in self.engine.transport_mut().take_shortages() {
            self.given_up.insert(peer, sentence);
            self.engine.transport_mut().give_up(peer);
        }
        true
    }

    #[cold]
    fn send_reaches(&mut self) {
        let reaches = self.engine.transport_mut().take_reaches();
        let Some(control) = &mut self.control else {
            return;
        };
        for reach in reaches {
            let millis = |silent: Duration| u32::try_from(silent.as_millis()).unwrap_or(u32::MAX);
            let ask = Ask::Reach {
                task: reach.peer,
                address: self.job.address(reach.peer),
                silent: reach.silent.map(millis),
            };
            control.put(&ask);
        }
        control.flush();
    }

    /// Handles the launcher's messages while a task waits: a launcher that has died does not ring, and one that was busy may accept more of a long
    /// request now.
    pub(crate) fn listen(&mut self) {
        self.read_news();
    }

    /// Fails if the launcher has ended. A task that it has started ends with it. A task that has joined by itself does not, but is not notified of
    /// the end of tasks any more, so it must not wait for any.
    pub(crate) fn check_launcher(&mut self, waited: Duration) -> Result<()> {
        if waited < MAX_SLEEP {
            return Ok(());
        }
        self.read_news();
        self.launcher()
    }

    /// Fails if the launcher is known to have ended.
    pub(crate) fn launcher(&self) -> Result<()> {
        self.control.as_ref().map_or(Ok(()), Control::check)
    }

    /// Determines whether there are more tasks than cores, which changes as tasks start and end.
    pub(crate) fn look_around(&mut self) {
        self.engine.transport_mut().look_around();
        self.pace.set_tasks_per_core(self.job.tasks_per_core());
    }

    /// Handles an event that this task watches.
    fn happened(&mut self, number: u32, event: &Event) {
        self.note(number, &event::bytes(number, event));
    }

    /// Sends this task the event of a watch as a message.
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

/// Sends a request to the launcher, without waiting for the answer. Returns the number of the request.
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
            "this task has no launcher, which is needed to start and watch tasks; start it with `regatta run`"
                .into(),
        ));
    };
    let id = id.unwrap_or_else(|| control.next_id());
    if let Some(watch) = watch {
        control.watches.insert(id, watch);
    }
    let mut request = Vec::new();
    question(id).encode(&mut request);
    if request.len() > MAX_REQUEST_BYTES || !control.put_bytes(&request) {
        control.watches.remove(&id);
        return Err(Error::Argument(format!(
            "the request is longer than {MAX_REQUEST_BYTES} bytes, the limit of requests to the launcher"
        )));
    }
    control.flush();
    Ok(id)
}

/// Sends a request to the launcher. Blocks until it has answered.
pub(crate) fn ask(question: impl FnOnce(u32) -> Ask) -> Result<Tell> {
    let id = send_request(None, question, None)?;
    wait_for(Answer(id)).and_then(unless_refused)
}

/// Sends a request to the launcher under a number of [`Control::next_id`], which may have been answered already.
pub(crate) fn ask_under(id: u32, question: impl FnOnce(u32) -> Ask) -> Result<Tell> {
    let id = send_request(Some(id), question, None)?;
    wait_for(Answer(id)).and_then(unless_refused)
}

/// Requests notifications from the launcher. Blocks until it has confirmed. Returns the number of the request.
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

/// Waits for the launcher's answer to the request with this number.
struct Answer(u32);

impl Awaited for Answer {
    type Output = Tell;
    const PROGRESSES: bool = false;

    fn poll(&mut self, process: &mut Process) -> Result<Option<Tell>> {
        let Some(control) = &mut process.control else {
            return Ok(None);
        };
        if let Some(answer) = control.take_answer(self.0) {
            // The caller that gets the answer knows of the messages that arrived before it.
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
