//! The sending side. Any thread may mark partitions ready while another one waits for the request. So their state is
//! separate from the operation, which is locked by a thread that waits for it.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use regatta_sys as rg;

use super::{AT_ONCE, PartTags, Plan, check_index, plan_tag};
use crate::abi::*;
use crate::communicator::Communicator;
use crate::datatype::{Block, memory};
use crate::error::{Error, Object, Result, checked};
use crate::requests::{self, Operation, State};
use crate::wake_up;

/// All partitioned sends, by their requests.
static SENDS: RwLock<Option<HashMap<Request, Arc<Send>>>> = RwLock::new(None);

/// A partitioned send.
pub struct Send {
    buffer: *const c_void,
    /// The memory of a partition.
    block: Block,
    count: i64,
    /// Distance in bytes in memory from one partition to the next.
    step: isize,
    partitions: c_int,
    peer: c_int,
    group: rg::Group,
    comm: Comm,
    tags: PartTags,
    round: Mutex<Round>,
}

// SAFETY: the program guarantees that any thread may read the buffer, from the start of a round to its end.
unsafe impl std::marker::Send for Send {}
// SAFETY: any thread may read the buffer, and a mutex protects the round.
unsafe impl Sync for Send {}

/// A round, from a start to its completion.
#[derive(Default)]
struct Round {
    active: bool,
    ready: Vec<bool>,
    left: c_int,
    requests: Vec<rg::Request>,
    /// Packed partitions that are being sent.
    packed: Vec<Vec<u8>>,
    /// The tag by which waiting threads are woken once all partitions are ready.
    wake: c_int,
}

/// The arguments of a send, after they have been checked.
pub struct Arguments {
    /// The program's buffer.
    pub buffer: *const c_void,
    /// The memory of a partition.
    pub block: Block,
    /// Number of elements of a partition.
    pub count: i64,
    /// Distance in bytes in memory from one partition to the next.
    pub step: isize,
    /// Number of partitions.
    pub partitions: c_int,
    /// The receiver's rank in the engine's group.
    pub peer: c_int,
    /// The program's tag.
    pub tag: c_int,
}

/// Returns the length of a block in a message, in bytes.
pub(super) fn length(block: &Block, count: i64) -> Result<usize> {
    match block {
        Block::Plain { length, .. } => Ok(*length),
        Block::Layout(of) => of.packed_size(count),
    }
}

/// Makes a partitioned send, and sends the plan to the receiver.
pub fn make(it: Arguments, comm: &Communicator) -> Result<Request> {
    let tags = PartTags::take(it.partitions)?;
    let plan = Plan {
        bytes: length(&it.block, it.count)? as u64,
        partitions: it.partitions,
        tag: it.tag,
        first: tags.first(),
        padding: 0,
    };
    let (address, bytes) = ((&raw const plan).cast(), size_of::<Plan>());
    let tag = plan_tag(it.tag);
    // SAFETY: the plan has this many bytes, which the engine copies.
    checked(unsafe { rg::rg_bsend(address, bytes, it.peer, tag, comm.hidden) })?;
    let send = Arc::new(Send {
        buffer: it.buffer,
        block: it.block,
        count: it.count,
        step: it.step,
        partitions: it.partitions,
        peer: it.peer,
        group: comm.hidden,
        comm: comm.handle,
        tags,
        round: Mutex::default(),
    });
    let operation = Sending {
        send: send.clone(),
        requests: Vec::new(),
        state: State::Inactive,
        result: Ok(()),
    };
    let request = requests::of_operation(Box::new(operation), comm.handle)?;
    let mut sends = SENDS.write().unwrap_or_else(PoisonError::into_inner);
    sends.get_or_insert_default().insert(request, send);
    Ok(request)
}

/// Returns the partitioned send of this request.
pub fn find(request: Request) -> Result<Arc<Send>> {
    let sends = SENDS.read().unwrap_or_else(PoisonError::into_inner);
    let found = sends.as_ref().and_then(|sends| sends.get(&request));
    if let Some(send) = found {
        return Ok(send.clone());
    }
    drop(sends);
    let comm = requests::find(request)?.comm();
    let text = "the request is not a partitioned send (MPI_Psend_init)";
    Err(Error::new(ERR_REQUEST, text).on(Object::Comm(comm)))
}

impl Send {
    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks partitions ready and sends them. If one of them is invalid or ready already, none is sent.
    pub fn ready(&self, partitions: impl Iterator<Item = c_int> + Clone) -> Result {
        let result = self.send(partitions);
        result.map_err(|error| error.on(Object::Comm(self.comm)))
    }

    fn send(&self, partitions: impl Iterator<Item = c_int> + Clone) -> Result {
        let mut round = self.round();
        if !round.active {
            let text = "the request is not started, or complete: call MPI_Start before MPI_Pready";
            return Err(Error::new(ERR_REQUEST, text));
        }
        self.mark(&mut round, partitions.clone())?;
        // A message that fails counts as sent, so that waiting threads do not wait for it.
        let mut result = Ok(());
        for partition in partitions {
            round.left -= 1;
            match self.begin(partition) {
                Ok((request, packed)) => {
                    round.requests.push(request);
                    round.packed.extend(packed);
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        match round.left {
            0 => wake_up::wake(round.wake).and(result),
            _ => result,
        }
    }

    fn mark(&self, round: &mut Round, partitions: impl Iterator<Item = c_int> + Clone) -> Result {
        for (before, partition) in partitions.clone().enumerate() {
            let checked = check_index(partition, self.partitions).and_then(|()| {
                match round.ready[partition as usize] {
                    false => Ok(()),
                    true => Err(Error::new(
                        ERR_ARG,
                        format!("partition {partition} is already ready"),
                    )),
                }
            });
            if checked.is_err() {
                for partition in partitions.take(before) {
                    round.ready[partition as usize] = false;
                }
                return checked;
            }
            round.ready[partition as usize] = true;
        }
        Ok(())
    }

    /// Begins to send a partition.
    fn begin(&self, partition: c_int) -> Result<(rg::Request, Option<Vec<u8>>)> {
        let begin = (self.buffer).wrapping_byte_offset(self.step * partition as isize);
        let length = match self.peer {
            rg::NONE => 0,
            _ => length(&self.block, self.count)?,
        };
        let (address, packed) = match &self.block {
            // For MPI_PROC_NULL nothing is sent or read.
            _ if self.peer == rg::NONE => (begin, None),
            Block::Plain { offset, .. } => (begin.wrapping_byte_offset(*offset), None),
            Block::Layout(of) => {
                let mut bytes = memory(length)?;
                // SAFETY: the program has marked the partition ready, so it may be read.
                unsafe { of.pack(begin, 0, length, bytes.as_mut_ptr()) };
                (bytes.as_ptr().cast(), Some(bytes))
            }
        };
        let mut request = rg::REQUEST_NULL;
        let tag = self.tags.first() + partition;
        // SAFETY: the bytes live until the round is complete.
        checked(unsafe {
            rg::rg_isend(address, length, self.peer, tag, self.group, &mut request)
        })?;
        Ok((request, packed))
    }
}

/// A partitioned send as an operation. It waits until the last partition is ready, then for the messages.
struct Sending {
    send: Arc<Send>,
    requests: Vec<rg::Request>,
    state: State,
    result: Result,
}

impl Sending {
    /// Returns the index of the first request that is waited for now.
    fn first(&self) -> usize {
        self.requests.len().saturating_sub(AT_ONCE)
    }
}

impl Operation for Sending {
    fn state(&self) -> State {
        self.state
    }

    fn waits_for(&self) -> &[rg::Request] {
        &self.requests[self.first()..]
    }

    fn completed(&mut self, index: usize, _status: &rg::Status, code: c_int) {
        self.requests.swap_remove(self.first() + index);
        if let (Ok(()), Err(error)) = (&self.result, checked(code)) {
            self.result = Err(error);
        }
        let mut round = self.send.round();
        self.requests.append(&mut round.requests);
        if self.requests.is_empty() {
            round.active = false;
            round.packed.clear();
            self.state = State::Complete;
        }
    }

    fn finish(&mut self) -> (Status, Result) {
        self.state = State::Inactive;
        let result = std::mem::replace(&mut self.result, Ok(()));
        (Status::empty(ANY_SOURCE), result)
    }

    fn look(&self) -> Status {
        Status::empty(ANY_SOURCE)
    }

    fn start(&mut self) -> Result {
        if self.state != State::Inactive {
            let text = "the request is active: it was started and is not complete";
            return Err(Error::new(ERR_REQUEST, text));
        }
        let (wake, request) = wake_up::sleep()?;
        let mut round = self.send.round();
        round.active = true;
        round.ready.clear();
        round.ready.resize(self.send.partitions as usize, false);
        round.left = self.send.partitions;
        round.wake = wake;
        self.requests.push(request);
        self.state = State::Pending;
        match round.left {
            // Without partitions none will be marked ready.
            0 => wake_up::wake(wake),
            _ => Ok(()),
        }
    }

    fn is_persistent(&self) -> bool {
        true
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let mut sends = SENDS.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(sends) = sends.as_mut() {
            sends.retain(|_, send| !Arc::ptr_eq(send, &self.send));
        }
        drop(sends);
        let mut round = self.send.round();
        self.requests.append(&mut round.requests);
        if !self.requests.is_empty() {
            // The messages go on, so their memory is leaked.
            std::mem::forget(std::mem::take(&mut round.packed));
        }
        self.requests.drain(..).for_each(requests::detach);
    }
}
