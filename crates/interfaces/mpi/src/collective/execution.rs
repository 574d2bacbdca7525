//! Execution of a collective: blocking, nonblocking or persistent.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use super::memory::Flat;
use super::messages::{Content, VERDICT};
use super::{Collective, Entry, LocalData, OwnGroup, messages};
use crate::abi::*;
use crate::blocking_collectives::beside;
use crate::error::{Error, PROC_FAILED, Result, checked, not_null};
use crate::progress;
use crate::requests::{self, Operation, State};

/// Executes a collective, and waits until it is complete.
///
/// # Safety
/// The buffers are valid as the call requires.
pub unsafe fn run(collective: Collective) -> Result {
    let mut begun = Begun::new(collective, false);
    if begun.of.has_parts() {
        // SAFETY: the caller upholds the safety contract of this function, and completion is awaited here.
        unsafe { begun.begin()? };
        begun.wait();
        return begun.finish().1;
    }
    let Some(engine) = begun.of.engine else {
        return Ok(());
    };
    // SAFETY: the caller upholds the safety contract of this function, and the collective is complete when the engine's
    // call returns.
    unsafe {
        let (gives, takes) = begun.of.flats()?;
        beside(|| begun.of.enter(engine, &gives, &takes, None))?;
        begun.of.taken(&takes);
    }
    Ok(())
}

/// Executes a collective to which no fast path applied; see [`run`].
///
/// # Safety
/// See [`run`].
#[cold]
#[inline(never)]
pub unsafe fn slowly(describe: impl FnOnce() -> Result<Collective>) -> Result {
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { run(describe()?) }
}

/// Begins a nonblocking collective.
///
/// # Safety
/// See [`run`], until the request is complete.
pub unsafe fn begin(mut collective: Collective, request: *mut Request) -> Result {
    not_null(request, "request")?;
    // Between hosts the engine numbers all collectives of a group, blocking or not. In a separate group, nonblocking
    // collectives may be ordered differently relative to blocking ones in each process, as some programs for other MPI
    // libraries do.
    if let Some((_, group)) = &mut collective.engine
        && *group == collective.comm.group
    {
        *group = collective.comm.hidden;
    }
    let comm = collective.comm.handle;
    let mut begun = Box::new(Begun::new(collective, false));
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        begun.begin()?;
        *request = requests::of_operation(begun, comm)?;
    }
    Ok(())
}

/// Makes a persistent request that begins a collective at each start. Processes may start their requests in different
/// orders as long as they exist. So each request has groups of its own for the engine's collective and for messages: in
/// the shared group, tags are reused after some time.
///
/// # Safety
/// See [`run`], until the request is freed.
pub unsafe fn keep(mut collective: Collective, request: *mut Request) -> Result {
    not_null(request, "request")?;
    // All processes do this, whether they have messages or not.
    if collective.is_by_messages() {
        collective.own_hidden = Some(own_group(collective.comm.hidden)?);
    }
    if let Some((_, group)) = &mut collective.engine {
        let own = own_group(*group)?;
        *group = own.0;
        collective.own = Some(own);
    }
    let comm = collective.comm.handle;
    let kept = Box::new(Begun::new(collective, true));
    let kept = requests::of_operation(kept, comm)?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *request = kept };
    Ok(())
}

/// Returns a new group with the same members. It is revoked together with `of`.
fn own_group(of: rg::Group) -> Result<OwnGroup> {
    let mut own = rg::Group { id: -1 };
    // SAFETY: the call may write `own`.
    beside(|| unsafe { rg::rg_group_dup(of, &mut own) })?;
    let own = OwnGroup(own);
    // SAFETY: the call takes groups by value and no pointers.
    checked(unsafe { rg::rg_group_tie(of, own.0) })?;
    Ok(own)
}

impl Collective {
    /// Returns whether it is more than a collective of the engine in the whole communicator, for this process.
    fn has_parts(&self) -> bool {
        let by_messages = !self.sends.is_empty() || !self.receives.is_empty();
        // A reduction in one group of an intercommunicator.
        let of_side = |(_, group): (Entry, rg::Group)| group != self.comm.group;
        by_messages || self.engine.is_some_and(of_side)
    }

    /// Returns whether it uses messages, in this process or others: whether it is not the engine's in the whole
    /// communicator. The result is the same in all processes.
    fn is_by_messages(&self) -> bool {
        let is_whole = |(_, group): (Entry, rg::Group)| group == self.comm.group;
        !self.engine.is_some_and(is_whole)
    }

    /// Returns the group of its messages.
    fn hidden(&self) -> rg::Group {
        self.own_hidden
            .as_ref()
            .map_or(self.comm.hidden, |own| own.0)
    }

    /// Returns the elements that this process contributes and receives, each contiguous.
    ///
    /// # Safety
    /// The buffers are valid as the call requires.
    unsafe fn flats(&self) -> Result<(Flat, Flat)> {
        let in_place = matches!(self.gives, LocalData::InPlace);
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            let gives = match (&self.gives, &self.takes) {
                (LocalData::Memory(memory), _) => memory.give()?,
                (LocalData::Copied, LocalData::Memory(memory)) => memory.copy()?,
                _ => Flat::NONE,
            };
            let takes = match (&self.takes, self.gives.memory()) {
                (LocalData::Memory(memory), _) => memory.take(in_place)?,
                (_, Some(memory)) if self.leads => memory.copy()?,
                _ => Flat::NONE,
            };
            Ok((gives, takes))
        }
    }

    /// Copies received elements to the caller's buffer.
    ///
    /// # Safety
    /// See [`Collective::flats`].
    unsafe fn taken(&self, takes: &Flat) {
        if let LocalData::Memory(memory) = &self.takes {
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { memory.taken(takes) };
        }
    }
}

/// A collective that has begun, or a persistent one.
struct Begun {
    of: Collective,
    state: State,
    persistent: bool,
    gives: Flat,
    takes: Flat,
    /// The contents of all messages: first those received, then those sent.
    content: Vec<Flat>,
    /// The engine's request, if there is one, then those of the messages, in the order of `content`.
    requests: Vec<rg::Request>,
    left: usize,
    failed: Option<Error>,
}

// SAFETY: it has memory of its own, and the caller's buffers, which belong to the library until the operation is
// complete.
unsafe impl Send for Begun {}

impl Begun {
    fn new(of: Collective, persistent: bool) -> Begun {
        Begun {
            of,
            state: State::Inactive,
            persistent,
            gives: Flat::NONE,
            takes: Flat::NONE,
            content: Vec::new(),
            requests: Vec::new(),
            left: 0,
            failed: None,
        }
    }

    /// Begins everything that can begin now. If it fails, nothing has begun.
    ///
    /// # Safety
    /// See [`begin`].
    unsafe fn begin(&mut self) -> Result {
        // SAFETY: the caller upholds the safety contract of this function.
        (self.gives, self.takes) = unsafe { self.of.flats()? };
        self.content.clear();
        let receives = self.of.receives.iter().map(|it| &it.content);
        let sends = self.of.sends.iter().map(|it| &it.content);
        for (index, content) in receives.chain(sends).enumerate() {
            let receives = index < self.of.receives.len();
            // SAFETY: the caller upholds the safety contract of this function.
            let flat = unsafe {
                match content {
                    Content::Memory(memory) if receives => memory.take(false)?,
                    Content::Memory(memory) => memory.give()?,
                    Content::Copied(memory) => memory.copy()?,
                    Content::Result(_) => Flat::NONE,
                    Content::Slice(_, _, whole) => Flat::room(*whole)?,
                    Content::Verdict => Flat::NONE,
                }
            };
            self.content.push(flat);
        }
        self.failed = None;
        self.requests.clear();
        if let Some(engine) = self.of.engine {
            let mut request = rg::REQUEST_NULL;
            // SAFETY: the memory is this collective's until its end.
            checked(unsafe {
                (self.of).enter(engine, &self.gives, &self.takes, Some(&mut request))
            })?;
            self.requests.push(request);
        }
        self.left = self.requests.len();
        self.state = State::Pending;
        self.receive();
        if !self.of.leads {
            self.send();
        }
        self.end_if_over();
        Ok(())
    }

    fn receive(&mut self) {
        for at in 0..self.of.receives.len() {
            match self.of.receives[at].content {
                // The verdict is sent only if there is no result.
                Content::Verdict => self.requests.push(rg::REQUEST_NULL),
                _ => {
                    let request = self.receive_one(at);
                    self.requests.push(request);
                }
            }
        }
    }

    /// Begins to receive a message.
    fn receive_one(&mut self, at: usize) -> rg::Request {
        let message = &self.of.receives[at];
        let (length, flat) = (message.content.length(), &self.content[at]);
        let mut request = rg::REQUEST_NULL;
        // SAFETY: the memory is this collective's until its end.
        let code =
            unsafe { messages::receive(flat, length, message, self.of.hidden(), &mut request) };
        self.started(code);
        request
    }

    fn send(&mut self) {
        let hidden = self.of.hidden();
        let mut is_result_empty = false;
        for at in 0..self.of.sends.len() {
            let message = &self.of.sends[at];
            let place = self.of.receives.len() + at;
            let failed = self.failed.as_ref();
            let (address, length): (*const c_void, usize) = match (&message.content, failed) {
                (Content::Result(whole), _) => {
                    let length = if failed.is_none() { *whole } else { 0 };
                    is_result_empty = length < *whole;
                    (self.takes.address, length)
                }
                (Content::Verdict, Some(error)) if is_result_empty => {
                    let text = error.text().as_bytes();
                    self.content[place] = Flat::of_bytes(&text[..text.len().min(VERDICT)]);
                    (self.content[place].address, self.content[place].each)
                }
                (Content::Verdict, _) => {
                    self.requests.push(rg::REQUEST_NULL);
                    continue;
                }
                (content, _) => (self.content[place].address, content.length()),
            };
            let mut request = rg::REQUEST_NULL;
            // SAFETY: the memory is this collective's until its end.
            let code = unsafe { messages::send(address, length, message, hidden, &mut request) };
            self.started(code);
            self.requests.push(request);
        }
    }

    fn started(&mut self, code: c_int) {
        match code {
            rg::OK => self.left += 1,
            _ => self.fail(Error::of_engine(code)),
        }
    }

    fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    fn end_if_over(&mut self) {
        if self.left > 0 || self.state != State::Pending {
            return;
        }
        self.state = State::Complete;
        if self.failed.is_some() {
            return;
        }
        // SAFETY: the buffers belong to the library until the program is notified of the completion.
        unsafe {
            self.of.taken(&self.takes);
            for (message, flat) in self.of.receives.iter().zip(&self.content) {
                match &message.content {
                    Content::Memory(memory) => memory.taken(flat),
                    Content::Slice(memory, from, _) => memory.taken_behind(flat, *from),
                    _ => (),
                }
            }
        }
    }

    /// Waits until it is complete.
    fn wait(&mut self) {
        let mut at = 0;
        while self.state == State::Pending && at < self.requests.len() {
            let mut status = rg::Status::default();
            let mut request = self.requests[at];
            if request != rg::REQUEST_NULL {
                let code = match progress::is_idle() {
                    // SAFETY: the request belongs to the engine, and the status may be written.
                    true => unsafe { rg::rg_wait(&mut request, &mut status) },
                    false => progress::wait(request, &mut status),
                };
                self.completed(at, &status, code);
            }
            at += 1;
        }
    }

    /// Handles the received message at this index. If it is empty although it should have a result, begins to receive
    /// the verdict with the reason.
    fn hear(&mut self, at: usize, status: &rg::Status) {
        let engine = usize::from(self.of.engine.is_some());
        let Some(at) = at.checked_sub(engine) else {
            return;
        };
        let is_verdict = |at: usize| {
            let message = self.of.receives.get(at);
            message.is_some_and(|it| matches!(it.content, Content::Verdict))
        };
        let is_whole = || status.length >= self.of.receives[at].content.length().min(1);
        let (comes_next, is_it) = (is_verdict(at + 1) && !is_whole(), is_verdict(at));
        if comes_next {
            match Flat::room(VERDICT) {
                Ok(room) => {
                    self.content[at + 1] = room;
                    self.requests[engine + at + 1] = self.receive_one(at + 1);
                }
                Err(error) => self.fail(error),
            }
        }
        if !is_it {
            return;
        }
        let length = status.length.min(VERDICT);
        let address = self.content[at].address.cast::<u8>();
        // SAFETY: the memory has this many received bytes.
        let text = unsafe { std::slice::from_raw_parts(address, length) };
        let text = String::from_utf8_lossy(text).into_owned();
        // The verdict is more precise than an error that a message is empty.
        self.failed = Some(Error::new(
            PROC_FAILED,
            format!("the other side has no result: {text}"),
        ));
    }
}

impl Operation for Begun {
    fn state(&self) -> State {
        self.state
    }

    fn waits_for(&self) -> &[rg::Request] {
        &self.requests
    }

    fn completed(&mut self, index: usize, status: &rg::Status, code: c_int) {
        self.requests[index] = rg::REQUEST_NULL;
        self.left -= 1;
        match code {
            0.. => self.hear(index, status),
            _ => self.fail(Error::of_engine(code)),
        }
        if index == 0 && self.of.leads {
            self.send();
        }
        self.end_if_over();
    }

    fn finish(&mut self) -> (Status, Result) {
        if self.persistent {
            self.state = State::Inactive;
        }
        let result = self.failed.take().map_or(Ok(()), Err);
        (self.look(), result)
    }

    fn look(&self) -> Status {
        Status::empty(ANY_SOURCE)
    }

    fn start(&mut self) -> Result {
        match self.state {
            State::Inactive if self.persistent => {
                // SAFETY: the program guarantees that the buffers are valid until the request is freed.
                unsafe { self.begin() }
            }
            _ => Err(Error::new(
                ERR_REQUEST,
                "the request is already started, or not persistent",
            )),
        }
    }

    fn is_persistent(&self) -> bool {
        self.persistent
    }

    fn has_stages(&self) -> bool {
        self.of.leads
    }
}
