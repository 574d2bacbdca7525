//! The receiving side: first it receives the plan, then in each round a message for each of the sender's partitions.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use regatta_sys as rg;

use super::{AT_ONCE, Plan, check_index, plan_tag};
use crate::abi::*;
use crate::communicator::{Communicator, status_of};
use crate::datatype::{Block, Type, memory};
use crate::error::{Error, Result, checked};
use crate::requests::{self, Operation, State};

/// The arguments of a receive, after they have been checked.
pub struct Arguments {
    /// The program's buffer.
    pub buffer: *mut c_void,
    /// The memory of all partitions.
    pub block: Block,
    /// Number of elements of all partitions.
    pub count: i64,
    /// Number of partitions.
    pub partitions: c_int,
    /// The sender's rank in the engine's group.
    pub peer: c_int,
    /// The program's tag.
    pub tag: c_int,
}

/// A partitioned receive.
struct Receiving {
    comm: Comm,
    group: rg::Group,
    peer: c_int,
    tag: c_int,
    /// Memory into which messages are received.
    address: *mut u8,
    length: usize,
    partitions: c_int,
    /// For noncontiguous elements: datatype, buffer, and the memory into which messages are received first.
    apart: Option<(Arc<Type>, *mut c_void, Vec<u8>)>,
    /// The received plan.
    plan: Box<Plan>,
    known: bool,
    state: State,
    /// The request of the plan, or those of the sender's partitions by index; null once a partition has arrived.
    requests: Vec<rg::Request>,
    /// Index of the first partition that has not arrived.
    next: usize,
    /// Number of partitions that have not arrived.
    left: usize,
    /// Whether each of the sender's partitions has arrived.
    arrived: Vec<bool>,
    /// Number of bytes received in this round.
    bytes: u64,
    source: c_int,
    result: Result,
}

// SAFETY: the program guarantees that any thread may write to the buffer, from the start of a round to its end.
unsafe impl Send for Receiving {}

/// Makes a partitioned receive, and begins to receive its plan.
pub fn make(it: Arguments, comm: &Communicator) -> Result<Request> {
    let length = super::send::length(&it.block, it.count)?;
    let (address, apart) = match it.block {
        Block::Plain { offset, .. } => (it.buffer.wrapping_byte_offset(offset).cast(), None),
        Block::Layout(of) => {
            let mut bytes = memory(length)?;
            (bytes.as_mut_ptr(), Some((of, it.buffer, bytes)))
        }
    };
    let mut plan = Box::<Plan>::default();
    let mut request = rg::REQUEST_NULL;
    let (to, bytes) = ((&raw mut *plan).cast(), size_of::<Plan>());
    let tag = plan_tag(it.tag);
    // SAFETY: the plan lives until the request is complete, which `drop` ensures.
    checked(unsafe { rg::rg_irecv(to, bytes, it.peer, tag, comm.hidden, &mut request) })?;
    let operation = Receiving {
        comm: comm.handle,
        group: comm.hidden,
        peer: it.peer,
        tag: it.tag,
        address,
        length,
        partitions: it.partitions,
        apart,
        plan,
        known: false,
        state: State::Inactive,
        requests: vec![request],
        next: 0,
        left: 1,
        arrived: Vec::new(),
        bytes: 0,
        source: it.peer,
        result: Ok(()),
    };
    requests::of_operation(Box::new(operation), comm.handle)
}

impl Receiving {
    /// Returns the range of the buffer for one of the sender's partitions. A partition that does not fit gets a shorter
    /// range, so that its message is truncated.
    fn place(&self, number: usize) -> (usize, usize) {
        let each = self.plan.bytes as usize;
        let from = each.saturating_mul(number).min(self.length);
        (from, from.saturating_add(each).min(self.length))
    }

    fn begin_round(&mut self) -> Result {
        self.requests.clear();
        (self.next, self.left) = (0, 0);
        self.arrived.clear();
        self.arrived.resize(self.plan.partitions as usize, false);
        for number in 0..self.plan.partitions {
            let (from, to) = self.place(number as usize);
            let mut request = rg::REQUEST_NULL;
            let (address, tag) = (self.address.wrapping_add(from), self.plan.first + number);
            let (peer, group) = (self.peer, self.group);
            // SAFETY: the buffer belongs to the library until the round is complete.
            checked(unsafe {
                rg::rg_irecv(address.cast(), to - from, peer, tag, group, &mut request)
            })?;
            self.requests.push(request);
            self.left += 1;
        }
        Ok(())
    }

    fn fail(&mut self, result: Result) {
        if self.result.is_ok() {
            self.result = result;
        }
    }

    /// Handles the plan, which has been received.
    fn plan_arrived(&mut self, status: &rg::Status, code: c_int) {
        let told = checked(code).and_then(|()| match status.source {
            rg::NONE => Ok(()),
            _ => self.plan.check(self.tag),
        });
        self.known = told.is_ok();
        self.fail(told);
        if self.known {
            let begun = self.begin_round();
            self.fail(begun);
        }
    }

    /// Handles the completion of the request with this index.
    fn over(&mut self, number: usize, status: &rg::Status, code: c_int) {
        self.requests[number] = rg::REQUEST_NULL;
        self.left -= 1;
        self.source = status.source;
        match self.known {
            false => self.plan_arrived(status, code),
            true => self.part_arrived(number, status, code),
        }
        let rest = self.requests[self.next..].iter();
        self.next += rest.take_while(|it| **it == rg::REQUEST_NULL).count();
        if self.left == 0 {
            self.state = State::Complete;
        }
    }

    /// Tests whether this partition of the sender has arrived.
    fn look_at(&mut self, number: usize) -> bool {
        let mut request = self.requests[number];
        let (mut done, mut status) = (0, rg::Status::default());
        if request != rg::REQUEST_NULL {
            // SAFETY: the request belongs to the engine; the call may write the other arguments.
            let code = unsafe { rg::rg_test(&mut request, &mut done, &mut status) };
            if done != 0 {
                self.over(number, &status, code);
            }
        }
        self.arrived[number]
    }

    fn part_arrived(&mut self, number: usize, status: &rg::Status, code: c_int) {
        self.fail(checked(code));
        self.bytes += status.length as u64;
        self.arrived[number] = true;
        let (from, to) = self.place(number);
        if let (Some((of, buffer, bytes)), rg::OK) = (&self.apart, code) {
            // SAFETY: the elements belong to the library until the round is complete; these bytes have been received.
            unsafe { of.unpack(bytes.as_ptr().wrapping_add(from), from, to, *buffer) };
        }
    }
}

impl Operation for Receiving {
    fn state(&self) -> State {
        self.state
    }

    fn waits_for(&self) -> &[rg::Request] {
        let end = self.requests.len().min(self.next + AT_ONCE);
        &self.requests[self.next..end]
    }

    fn completed(&mut self, index: usize, status: &rg::Status, code: c_int) {
        self.over(self.next + index, status, code);
    }

    fn finish(&mut self) -> (Status, Result) {
        let status = self.look();
        self.state = State::Inactive;
        (status, std::mem::replace(&mut self.result, Ok(())))
    }

    fn look(&self) -> Status {
        let status = rg::Status {
            source: self.source,
            tag: self.tag,
            length: self.bytes as usize,
            ..rg::Status::default()
        };
        status_of(self.comm, &status)
    }

    fn start(&mut self) -> Result {
        if self.state != State::Inactive {
            let text = "the request is active: it was started and is not complete";
            return Err(Error::new(ERR_REQUEST, text));
        }
        if !self.known && self.left == 0 {
            let text = "the receive matched no valid send and cannot be started again";
            return Err(Error::new(ERR_REQUEST, text));
        }
        self.bytes = 0;
        if self.known {
            self.begin_round()?;
        }
        self.state = match self.left {
            0 => State::Complete,
            _ => State::Pending,
        };
        Ok(())
    }

    fn is_persistent(&self) -> bool {
        true
    }

    /// Returns true until the plan has been received: the sender may wait for this side to receive its partitions.
    fn has_stages(&self) -> bool {
        !self.known
    }

    fn part(&mut self, partition: c_int) -> Option<Result<bool>> {
        if let Err(error) = check_index(partition, self.partitions) {
            return Some(Err(error));
        }
        if self.state != State::Pending {
            return Some(Ok(true));
        }
        if !self.known {
            return Some(Ok(false));
        }
        let own = self.length / self.partitions as usize;
        let (from, each) = (own * partition as usize, self.plan.bytes as usize);
        let all = self.arrived.len();
        let (first, last) = match own == 0 || each == 0 {
            true => (0, all),
            false => (from / each, (from + own).div_ceil(each).min(all)),
        };
        Some(Ok((first..last).all(|number| self.look_at(number))))
    }
}

impl Drop for Receiving {
    /// Receives a pending plan and drops it: it belongs to this receive and not to a later one.
    fn drop(&mut self) {
        unsafe extern "C" fn over(_status: *const rg::Status, plan: *mut c_void) {
            // SAFETY: `drop` has given the plan to this callback.
            drop(unsafe { Box::from_raw(plan.cast::<Plan>()) });
        }
        if !self.known
            && let Some(mut request) = self.requests.pop()
            && request != rg::REQUEST_NULL
        {
            self.left = 0;
            let plan = Box::into_raw(std::mem::take(&mut self.plan)).cast();
            // SAFETY: the callback takes the plan back, once.
            unsafe { rg::rg_on_complete(&mut request, Some(over), plan) };
        }
        if self.left > 0
            && let Some((_, _, bytes)) = self.apart.take()
        {
            // Messages may still be received into this memory, so it is leaked.
            std::mem::forget(bytes);
        }
        self.requests.drain(..).for_each(requests::detach);
    }
}

/// Returns whether a partition has arrived.
pub fn arrived(request: Request, partition: c_int) -> Result<bool> {
    if request == REQUEST_NULL {
        return Ok(true);
    }
    let found = requests::find(request)?;
    let none = || {
        let text = "the request is not a partitioned receive (MPI_Precv_init)";
        Error::new(ERR_REQUEST, text)
    };
    let object = crate::error::Object::Comm(found.comm());
    if found.plain().is_some() {
        return Err(none().on(object));
    }
    // Waits for a thread that has the receive locked while waiting for it. That thread releases the lock: a partition
    // may have to arrive before the sender marks the next one ready.
    let mut operation = found.operation();
    let Some(inner) = operation.as_mut() else {
        return Err(none().on(object));
    };
    let part = inner.part(partition).ok_or_else(none);
    let found = part.and_then(|part| part).and_then(|there| {
        if there {
            return Ok(true);
        }
        // The plan may have arrived meanwhile.
        crate::progress::advance_one(inner.as_mut());
        inner.part(partition).unwrap_or(Ok(false))
    });
    found.map_err(|error| error.on(object))
}
