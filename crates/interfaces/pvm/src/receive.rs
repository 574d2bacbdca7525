//! Receiving and probing.
//!
//! A blocking receive goes directly to Regatta, which does the matching. In three cases messages are first taken in, in
//! order, and kept in the inbox: when the program decides which message matches (`pvm_recvf`), when it has message
//! handlers (`pvm_addmhf`), and when a message was probed. Messages in the inbox arrived before all others.
//!
//! If a nonblocking call (`pvm_nrecv`, `pvm_probe`) finds no match among the known messages, it takes in *one* more, as
//! on PVM. So it does not find a message before all earlier ones are known, and a program that polls for several
//! selections in turn sees messages in their order of arrival. Known are: messages in the inbox, messages that arrived
//! before one that has been received, and messages that arrived before the answer to a call to the daemon
//! (`rg_recv_passed` returns the last two).
//!
//! *Rules of `pvm_recv` and `pvm_precv` for small messages:* no allocation, no system call, and no look-up except of
//! the buffer's number. (docs/hot-paths.md names the test.)

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

use crate::arrival::{Select, Taken, failure, info, take, take_next, take_passed};
use crate::contexts::{self, Source};
use crate::head::Head;
use crate::inbox::Label;
use crate::life::enrol;
use crate::message::{self, HEAD, codes, error};
use crate::send::length;
use crate::state::{Matcher, library};
use crate::trace::{self, Value, calls, ints, traced};
use crate::{handlers, miscellaneous, output, rg};

/// How long a receive waits.
#[derive(Clone, Copy)]
pub enum Wait {
    Forever,
    Until(Instant),
    /// Do not wait, but consider all messages that have arrived.
    Not,
}

impl Wait {
    /// Returns the time limit in seconds as Regatta's calls take it.
    #[inline(always)]
    pub fn seconds(self) -> f64 {
        match self {
            Wait::Forever => -1.0,
            Wait::Not => 0.0,
            Wait::Until(end) => end.saturating_duration_since(Instant::now()).as_secs_f64(),
        }
    }
}

/// The selection of a receive.
#[derive(Clone, Copy)]
pub struct Want {
    pub from: c_int,
    pub tag: c_int,
    /// `None`: the selection can match only messages that have already been taken in.
    source: Option<Source>,
}

impl Want {
    #[inline(always)]
    pub fn new(from: c_int, tag: c_int) -> Want {
        let possible = tag >= rg::ANY || library().options.reserved();
        let source = contexts::source(from).filter(|_| possible);
        Want { from, tag, source }
    }

    /// Makes the same selection for a sender from which Regatta expects no more messages.
    fn of_nobody(self) -> Want {
        Want {
            source: None,
            ..self
        }
    }

    fn label(&self) -> Label {
        Label {
            context: library().context,
            task: self.from,
            tag: self.tag,
        }
    }

    /// Returns the selection for Regatta, or `None` if Regatta cannot do the matching alone.
    #[inline(always)]
    pub fn select(self) -> Option<Select> {
        let library = library();
        let from = match self.source? {
            Source::Task(task) => task,
            Source::Anybody => rg::ANY,
            Source::Daemon => return None,
        };
        let both = self.tag == rg::ANY && library.options.reserved();
        let plain = library.handlers.is_empty()
            && library.matcher.is_none()
            && !both
            && !output::is_caught();
        plain.then_some(Select {
            from,
            tag: if self.tag < rg::ANY {
                self.tag & i32::MAX
            } else {
                self.tag
            },
            context: library.context,
            reserved: self.tag < rg::ANY,
        })
    }
}

/// Receives into a buffer that does not become the current one. Returns 0 if no message arrives in time. A receive from
/// a task that is gone finds no message.
#[inline(always)]
pub fn receive(from: c_int, tag: c_int, wait: Wait) -> Result<c_int, i32> {
    enrol()?;
    let want = Want::new(from, tag);
    if library().inbox.is_empty()
        && let Some(select) = want.select()
        && let Some(buffer) = known(take(select, wait.seconds()))?
    {
        return Ok(buffer);
    }
    receive_carefully(want, wait)
}

/// Turns NO_TASK into `None`, "nothing yet": a message may be in the inbox, or the task may appear later.
#[inline(always)]
fn known<T>(taken: Result<Option<T>, i32>) -> Result<Option<T>, i32> {
    match taken {
        Err(codes::NO_TASK) => Ok(None),
        other => other,
    }
}

/// Takes messages in until one matches. Returns 0 if none arrives in time.
#[cold]
pub fn receive_carefully(want: Want, wait: Wait) -> Result<c_int, i32> {
    begin_looking(want);
    let mut seen = 0;
    let mut waited = false;
    take_in_passed()?;
    loop {
        if let Some(buffer) = pick(want, &mut seen)? {
            return Ok(buffer);
        }
        if waited {
            return Ok(0);
        }
        let came = match want.select() {
            Some(select) => match take(select, wait.seconds()) {
                Ok(Some(buffer)) => return Ok(buffer),
                Ok(None) => false,
                Err(codes::NO_TASK) => return receive_carefully(want.of_nobody(), wait),
                Err(code) => return Err(code),
            },
            None => await_in(&channels(), wait)?,
        };
        if !came {
            // Messages may have arrived while waiting: take these in and look a last time.
            take_in()?;
            waited = true;
        }
    }
}

/// Waits forever, as a task does that receives from one that is gone. Handlers are called meanwhile.
#[cold]
pub fn wait_for_nobody() -> Result<(), i32> {
    loop {
        await_in(&channels(), Wait::Forever)?;
    }
}

/// Searches the known messages, then takes in one more. Returns the position and the buffer of a match, which stays in
/// the inbox.
fn look(want: Want) -> Result<Option<(u64, c_int)>, i32> {
    begin_looking(want);
    let mut seen = 0;
    if let Some(found) = find(want, &mut seen)? {
        return Ok(Some(found));
    }
    if take_in_passed()?
        && let Some(found) = find(want, &mut seen)?
    {
        return Ok(Some(found));
    }
    match take_in_one()? {
        true => find(want, &mut seen),
        false => Ok(None),
    }
}

/// Like [`look`], but removes the match from the inbox. Returns 0 if there is none.
fn receive_by_look(from: c_int, tag: c_int) -> Result<c_int, i32> {
    enrol()?;
    let found = look(Want::new(from, tag))?;
    let taken = found.and_then(|(place, _)| library().inbox.remove(place));
    miscellaneous::settle_descriptor();
    Ok(taken.unwrap_or(0))
}

/// Returns selections of all channels in which this task may receive messages.
fn channels() -> Vec<Select> {
    let reserved = library().options.reserved();
    let both = [false, true].into_iter().filter(|&of| !of || reserved);
    let caught = output::is_caught().then_some(output::CAUGHT);
    let all = both.flat_map(|reserved| {
        let contexts = library().contexts.iter();
        contexts.map(move |&context| Select {
            from: rg::ANY,
            tag: rg::ANY,
            context,
            reserved,
        })
    });
    all.chain(caught).collect()
}

/// Returns the selection, among these, whose channel has the message that arrived first.
fn first_arrived(all: &[Select]) -> Option<Select> {
    let groups: Vec<rg::Group> = all.iter().map(Select::channel).collect();
    let mut index = -1;
    // SAFETY: the array has this many groups, and the index is writable.
    let code = unsafe { rg::rg_first_arrived(groups.as_ptr(), groups.len() as c_int, &mut index) };
    let found = usize::try_from(index).ok().filter(|_| code == rg::OK)?;
    all.get(found).copied()
}

/// Puts a message at the end of the inbox.
pub fn keep(buffer: c_int) {
    if let Some(label) = label_of(buffer) {
        library().inbox.push(buffer, label);
    }
}

fn label_of(buffer: c_int) -> Option<Label> {
    message::info(buffer).map(|info| Label {
        context: info.ctx,
        task: info.src,
        tag: info.tag,
    })
}

/// Takes in all messages that have arrived.
fn take_in() -> Result<(), i32> {
    while take_in_one()? {}
    Ok(())
}

/// Takes in all messages that were passed over. Returns whether there were any.
fn take_in_passed() -> Result<bool, i32> {
    let mut any = false;
    for select in channels() {
        while take_in_next(|| take_passed(select))?.is_some() {
            any = true;
        }
    }
    Ok(any)
}

/// Takes in the message that arrived first, and before it any output for the file. Returns `false` if there is none.
pub fn take_in_one() -> Result<bool, i32> {
    let all = channels();
    loop {
        let first = match all[..] {
            [only] => Some(only),
            _ => first_arrived(&all),
        };
        let Some(first) = first else {
            return Ok(false);
        };
        match take_in_next(|| take_next(first, 0.0))? {
            None => return Ok(false),
            Some(true) => return Ok(true),
            Some(false) => {}
        }
    }
}

/// Takes in what `take` receives. Returns `None` if it receives nothing, else whether it was a message for the program.
fn take_in_next(take: impl Fn() -> Result<Taken, i32>) -> Result<Option<bool>, i32> {
    let before = library().inbox.end();
    let taken = take()?;
    // One received message may become several for the program. All but the first are in the inbox already: take them
    // out again.
    let behind = library().inbox.take_from(before);
    let is_message = match taken {
        Taken::Message(buffer) => {
            handlers::offer(buffer);
            true
        }
        Taken::Swallowed => !behind.is_empty(),
        Taken::Nothing => return Ok(None),
    };
    behind.into_iter().for_each(handlers::offer);
    Ok(Some(is_message))
}

/// Returns whether there is a message that has arrived but was not taken in yet.
pub fn anything_waits() -> bool {
    first_arrived(&channels()).is_some()
}

fn begin_looking(want: Want) {
    if want.tag < rg::ANY && library().options.reserved() {
        contexts::note(library().context);
    }
}

/// Waits until a message from these channels has been taken in. Returns `false` if none arrives in time.
pub fn await_in(all: &[Select], wait: Wait) -> Result<bool, i32> {
    if let &[only] = all {
        let came = take_in_next(|| take_next(only, wait.seconds()))?;
        return Ok(came.is_some());
    }
    let mut fd = -1;
    // SAFETY: the result points to a local variable.
    if unsafe { rg::rg_fd(&mut fd) } != rg::OK {
        return Err(codes::SYS_ERR);
    }
    loop {
        // SAFETY: the call takes plain values only.
        let cleared = unsafe { rg::rg_clear_fd() };
        if take_in_one()? {
            return Ok(true);
        }
        if cleared != rg::OK {
            return Err(failure(cleared));
        }
        let patience = match wait {
            Wait::Not => return Ok(false),
            Wait::Forever => -1,
            Wait::Until(end) => {
                let left = end.saturating_duration_since(Instant::now());
                if left == Duration::ZERO {
                    return Ok(false);
                }
                // Rounded up, so that the wait is not shorter than requested.
                c_int::try_from(left.as_millis() + 1).unwrap_or(c_int::MAX)
            }
        };
        let mut poll = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the array has one entry.
        unsafe { libc::poll(&mut poll, 1, patience) };
    }
}

/// Finds a match in the inbox, and removes it. See [`find`].
fn pick(want: Want, seen: &mut u64) -> Result<Option<c_int>, i32> {
    let found = find(want, seen)?;
    Ok(found.and_then(|(place, _)| library().inbox.remove(place)))
}

/// Finds a match in the inbox. Returns its position and its buffer. If the program does the matching, begins at `seen`,
/// and advances it.
fn find(want: Want, seen: &mut u64) -> Result<Option<(u64, c_int)>, i32> {
    if let Some(matcher) = library().matcher {
        return find_by(matcher, want, seen);
    }
    let inbox = &mut library().inbox;
    inbox.refresh(label_of);
    Ok(inbox.find(&want.label()))
}

/// Calls the program's matching function for each message from `seen` on.
fn find_by(matcher: Matcher, want: Want, seen: &mut u64) -> Result<Option<(u64, c_int)>, i32> {
    let mut best: Option<(c_int, (u64, c_int))> = None;
    library().inbox.show_all();
    while let Some((place, buffer)) = library().inbox.from(*seen) {
        *seen = place + 1;
        // SAFETY: the program has passed this function, and no reference into the library's state is held.
        let rank = unsafe { matcher(buffer, want.from, want.tag) };
        match rank {
            ..0 => return Err(rank),
            0 => {}
            1 => {
                best = Some((rank, (place, buffer)));
                break;
            }
            _ if best.is_none_or(|(most, _)| rank > most) => best = Some((rank, (place, buffer))),
            _ => {}
        }
    }
    Ok(best.map(|(_, chosen)| chosen))
}

/// Frees the received buffer before this task waits: its memory belongs to the sender, which can then reuse it for its
/// next message.
#[cold]
fn let_go(from: c_int, tag: c_int) {
    if Want::new(from, tag).source.is_some() {
        message::set_received(0);
    }
}

/// Receives, and makes the message the current receive buffer. The previous one is freed even if no message arrives.
#[inline(always)]
fn receive_current(name: &str, from: c_int, tag: c_int, wait: Wait) -> c_int {
    if message::received_is_foreign() && matches!(wait, Wait::Forever) {
        let_go(from, tag);
    }
    let received = receive(from, tag, wait);
    miscellaneous::settle_descriptor();
    match received {
        Ok(buffer) => {
            message::set_received(buffer);
            buffer
        }
        Err(code) => error::result(name, code),
    }
}

/// Returns the values that a tracer gets for a receive when it begins.
fn wanted_told(from: c_int, tag: c_int) -> [Value<'static>; 3] {
    ints([from, tag, library().context])
}

/// Returns the values that a tracer gets for a receive when it ends.
fn received_told(buffer: c_int) -> [Value<'static>; 5] {
    let context = library().context;
    match message::info(buffer).filter(|_| buffer > 0) {
        Some(info) => ints([buffer, message::length(buffer), info.tag, context, info.src]),
        None => ints([buffer, -1, -1, context, -1]),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pvm_recv(from: c_int, tag: c_int) -> c_int {
    let received = || receive_current("pvm_recv", from, tag, Wait::Forever);
    traced(
        calls::RECV,
        move || wanted_told(from, tag),
        received,
        received_told,
    )
}

#[unsafe(no_mangle)]
extern "C" fn pvm_nrecv(from: c_int, tag: c_int) -> c_int {
    let received = || match receive_by_look(from, tag) {
        Ok(buffer) => {
            message::set_received(buffer);
            buffer
        }
        Err(code) => error::result("pvm_nrecv", code),
    };
    traced(
        calls::NRECV,
        move || wanted_told(from, tag),
        received,
        received_told,
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_trecv(from: c_int, tag: c_int, limit: *const libc::timeval) -> c_int {
    // SAFETY: by the C contract the pointer is valid or NULL.
    let wait = match unsafe { limit.as_ref() } {
        None => Wait::Forever,
        Some(limit) => {
            let limit = Duration::from_secs(limit.tv_sec.max(0) as u64)
                + Duration::from_micros(limit.tv_usec.max(0) as u64);
            let end = Instant::now().checked_add(limit);
            match limit {
                Duration::ZERO => Wait::Not,
                _ => end.map_or(Wait::Forever, Wait::Until),
            }
        }
    };
    let entry = move || {
        // SAFETY: by the C contract the pointer is valid or NULL.
        let (seconds, microseconds) = match unsafe { limit.as_ref() } {
            Some(limit) => (limit.tv_sec as c_int, limit.tv_usec as c_int),
            None => (-1, -1),
        };
        ints([from, tag, library().context, seconds, microseconds])
    };
    let received = || receive_current("pvm_trecv", from, tag, wait);
    traced(calls::TRECV, entry, received, received_told)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_probe(from: c_int, tag: c_int) -> c_int {
    let found = || {
        let found = enrol().and_then(|_| look(Want::new(from, tag)));
        miscellaneous::settle_descriptor();
        match found {
            Ok(None) => 0,
            Ok(Some((place, buffer))) => {
                library().inbox.show(place);
                buffer
            }
            Err(code) => error::result("pvm_probe", code),
        }
    };
    traced(
        calls::PROBE,
        move || wanted_told(from, tag),
        found,
        trace::code,
    )
}

#[unsafe(no_mangle)]
extern "C" fn pvm_recvf(matcher: Option<Matcher>) -> Option<Matcher> {
    let replaced = || std::mem::replace(&mut library().matcher, matcher);
    traced(calls::RECVF, || [], replaced, |_| [])
}

/// Result of `pvm_precv`.
struct Received {
    src: c_int,
    tag: c_int,
    length: usize,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_precv(
    from: c_int,
    tag: c_int,
    data: *mut c_void,
    count: c_int,
    datatype: c_int,
    source: *mut c_int,
    its_tag: *mut c_int,
    its_length: *mut c_int,
) -> c_int {
    let known = Cell::new([-1; 3]);
    let received = || match precv(from, tag, data, count, datatype) {
        Ok(told) => {
            known.set([
                c_int::try_from(told.length).unwrap_or(c_int::MAX),
                told.tag,
                told.src,
            ]);
            // SAFETY: by the C contract the results are writable or NULL.
            unsafe {
                if !source.is_null() {
                    *source = told.src;
                }
                if !its_tag.is_null() {
                    *its_tag = told.tag;
                }
                if !its_length.is_null() {
                    *its_length = c_int::try_from(told.length).unwrap_or(c_int::MAX);
                }
            }
            0
        }
        Err(code) => error::result("pvm_precv", code),
    };
    let entry = move || {
        let [from, tag, context] = wanted_told(from, tag);
        let [count, datatype] = ints([count, datatype]);
        [
            from,
            tag,
            context,
            Value::Address(data.addr()),
            count,
            datatype,
        ]
    };
    let exit = |code| {
        let [length, tag, src] = known.get();
        ints([code, length, tag, library().context, src])
    };
    traced(calls::PRECV, entry, received, exit)
}

/// Receives into the program's memory, directly if Regatta can do the matching alone.
#[inline(always)]
fn precv(
    from: c_int,
    tag: c_int,
    data: *mut c_void,
    count: c_int,
    datatype: c_int,
) -> Result<Received, i32> {
    enrol()?;
    let capacity = length(data, count, datatype)?;
    let want = Want::new(from, tag);
    match want.select().filter(|_| library().inbox.is_empty()) {
        Some(select) => match precv_at_once(select, data, capacity) {
            Err(codes::NO_TASK) => {
                precv_taken_in(receive_carefully(want, Wait::Forever)?, data, capacity)
            }
            other => other,
        },
        None => precv_taken_in(receive(from, tag, Wait::Forever)?, data, capacity),
    }
}

/// Copies a message from its buffer to the program's memory, and frees the buffer.
fn precv_taken_in(buffer: c_int, data: *mut c_void, capacity: usize) -> Result<Received, i32> {
    let (Some(info), Some(body)) = (message::info(buffer), message::body(buffer)) else {
        return Err(codes::SYS_ERR);
    };
    // SAFETY: by the C contract the memory has this much room.
    unsafe {
        std::ptr::copy_nonoverlapping(body.as_ptr(), data.cast(), body.len().min(capacity));
    }
    let told = Received {
        src: info.src,
        tag: info.tag,
        length: body.len(),
    };
    message::free(buffer);
    Ok(told)
}

/// Receives directly. Small messages take the way through a block, which is cheaper than two views.
#[inline(always)]
fn precv_at_once(select: Select, data: *mut c_void, capacity: usize) -> Result<Received, i32> {
    if capacity > message::STANDARD {
        return precv_large(select, data, capacity);
    }
    let storage = message::spare(0)?;
    let mut status = rg::Status::default();
    // SAFETY: the storage has room for the size that is passed.
    let code = unsafe {
        rg::rg_recv_within(
            storage.as_mut_ptr().cast(),
            HEAD + storage.capacity(),
            select.from,
            select.tag,
            select.channel(),
            -1.0,
            &mut status,
        )
    };
    // SAFETY: Regatta has written this many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(storage.as_mut_ptr(), status.length) };
    let head = match code {
        rg::OK => Head::read(bytes),
        _ => None,
    };
    let Some(head) = head else {
        return precv_otherwise(code, storage, status, select, data, capacity);
    };
    let length = status.length - HEAD;
    // SAFETY: by the C contract the memory has this much room.
    unsafe {
        std::ptr::copy_nonoverlapping(
            bytes.as_ptr().add(HEAD),
            data.cast::<u8>(),
            length.min(capacity),
        );
    }
    let info = info(&status, select, head);
    message::give_back(storage);
    Ok(Received {
        src: info.src,
        tag: info.tag,
        length,
    })
}

/// Handles an event, a message without PVM's header, or one that is longer than expected: receives it through a buffer.
#[cold]
fn precv_otherwise(
    code: c_int,
    storage: message::Storage,
    status: rg::Status,
    select: Select,
    data: *mut c_void,
    capacity: usize,
) -> Result<Received, i32> {
    let buffer = match code {
        rg::OK => crate::arrival::accept(storage, &status, select)?,
        _ => {
            message::give_back(storage);
            None
        }
    };
    let buffer = match buffer {
        Some(buffer) => buffer,
        None => take(select, -1.0)?.ok_or(codes::SYS_ERR)?,
    };
    precv_taken_in(buffer, data, capacity)
}

fn precv_large(select: Select, data: *mut c_void, capacity: usize) -> Result<Received, i32> {
    let mut head = [0_u8; HEAD];
    let view = |base: *mut c_void, block: usize| rg::View {
        base,
        block,
        count: 1,
        stride: 0,
    };
    let views = [view(head.as_mut_ptr().cast(), HEAD), view(data, capacity)];
    let mut status = rg::Status::default();
    // SAFETY: `head` lives here, and by the C contract the memory has this much room.
    let code = unsafe {
        rg::rg_recvv(
            views.as_ptr(),
            2,
            select.from,
            select.tag,
            select.channel(),
            &mut status,
        )
    };
    match code {
        rg::OK | rg::ERR_TRUNCATED => {}
        code => return Err(failure(code)),
    }
    if let Some(head) = Head::read(&head[..status.length.min(HEAD)]) {
        let info = info(&status, select, head);
        let length = status.length - HEAD;
        return Ok(Received {
            src: info.src,
            tag: info.tag,
            length,
        });
    }
    // An event or a message without PVM's header: its rest is in the program's memory. Put it together.
    let arrived = status.length.min(HEAD + capacity);
    let mut bytes = head.to_vec();
    // SAFETY: Regatta has written these bytes.
    bytes.extend_from_slice(unsafe {
        std::slice::from_raw_parts(data.cast(), arrived.saturating_sub(HEAD))
    });
    bytes.truncate(arrived);
    match crate::arrival::strange(&bytes, &status, select)? {
        Some(buffer) => precv_taken_in(buffer, data, capacity),
        None => precv_large(select, data, capacity),
    }
}
