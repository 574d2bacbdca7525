//! The library's own messages and collectives: for making communicators, windows and files, and for connecting and
//! starting processes. Multi-stage operations advance while these wait.

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use regatta_sys as rg;

use crate::abi::SUCCESS;
use crate::error::{Error, Result, checked};
use crate::progress;

/// Number of words in the first part of a message. The remaining words follow in a second part.
const FRONT: usize = 64;

/// The channel for messages between processes that have no communicator in common.
pub const CHANNEL: rg::Group = rg::library_channel(0x4d50);

fn finish(code: c_int, request: rg::Request) -> Result<rg::Status> {
    checked(code)?;
    let mut status = rg::Status::default();
    checked(progress::wait(request, &mut status))?;
    Ok(status)
}

/// Waits until all members of a group have called it.
pub fn barrier(group: rg::Group) -> Result {
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the call may write the request.
    let code = unsafe { rg::rg_ibarrier(group, &mut request) };
    finish(code, request).map(drop)
}

/// Sets `flag` to the bitwise AND of the flags of all members that have not failed. A failed member is no error.
pub fn agree(group: rg::Group, flag: &mut c_int) -> Result {
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the flag stays until the request is complete.
    let code = unsafe { rg::rg_iagree(flag, group, &mut request) };
    checked(code)?;
    match progress::wait(request, &mut rg::Status::default()) {
        rg::ERR_DEAD => Ok(()),
        code => checked(code),
    }
}

/// Returns the words of each member, by rank. All members pass the same number of words.
pub fn allgather<const N: usize>(group: rg::Group, mine: [c_int; N]) -> Result<Vec<[c_int; N]>> {
    // SAFETY: the call takes the group by value and no pointers.
    let size = unsafe { rg::rg_size(group) };
    checked(size)?;
    let mine = Box::new(mine);
    let mut all = vec![[0; N]; size as usize];
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the arrays have these lengths, and live until the request is complete, or are leaked.
    let code = unsafe {
        rg::rg_iallgather(
            mine.as_ptr().cast(),
            size_of_val(&*mine),
            all.as_mut_ptr().cast(),
            group,
            &mut request,
        )
    };
    match finish(code, request) {
        Ok(_) => Ok(all),
        Err(error) => {
            // If the wait has failed, the collective may go on: other members may still write to these arrays.
            std::mem::forget((mine, all));
            Err(error)
        }
    }
}

/// A member at which a collective call has failed, and the class of its error.
pub struct Failed {
    /// Its rank in the group.
    pub rank: c_int,
    /// Its error class (MPI_ERR_).
    pub class: c_int,
}

impl Failed {
    /// Returns the first member whose class of error is not MPI_SUCCESS. `classes` is ordered by rank.
    pub fn first(classes: impl IntoIterator<Item = c_int>) -> Option<Failed> {
        let mut all = (0..)
            .zip(classes)
            .map(|(rank, class)| Failed { rank, class });
        all.find(|it| it.class != SUCCESS)
    }

    /// Returns the error that the other members report for it. `consequence` states the effect on the call.
    pub fn error(&self, consequence: &str) -> Error {
        let rank = self.rank;
        let text = format!("the call has failed at the process with rank {rank}, so {consequence}");
        Error::new(self.class, text)
    }
}

/// Returns the error class of an outcome, which members exchange.
pub fn class_of<T>(outcome: &Result<T>) -> c_int {
    outcome.as_ref().err().map_or(SUCCESS, Error::class)
}

/// Waits until all members have called it, each with its own outcome so far. If one of them has failed, all fail, so
/// that none waits later for one that has given up. Returns the own outcome, and whether all have called it: a member
/// that has died counts as missing, not as failed.
pub fn meet_with<T>(group: rg::Group, own: Result<T>, consequence: &str) -> Result<(T, Result)> {
    let all = allgather(group, [class_of(&own)]);
    let own = own?;
    match all {
        Err(error) => Ok((own, Err(error))),
        Ok(all) => match Failed::first(all.into_iter().map(|[class]| class)) {
            Some(failed) => Err(failed.error(consequence)),
            None => Ok((own, Ok(()))),
        },
    }
}

/// Waits as [`meet_with`] does until all members have called it. Fails if one has failed or died.
pub fn agree_on_outcome<T>(group: rg::Group, own: Result<T>, consequence: &str) -> Result<T> {
    let (own, met) = meet_with(group, own, consequence)?;
    met.map(|()| own)
}

/// Returns the words of each member, by rank. Members may pass different numbers of words.
pub fn allgather_lists(group: rg::Group, mine: &[c_int]) -> Result<Vec<Vec<c_int>>> {
    const WORD: usize = size_of::<c_int>();
    let counts = allgather(group, [mine.len() as c_int])?;
    let counts: Vec<usize> = counts.iter().map(|&[count]| count as usize).collect();
    let lengths: Vec<usize> = counts.iter().map(|count| count * WORD).collect();
    let mut end = 0;
    let mut offsets = Vec::with_capacity(counts.len());
    for length in &lengths {
        offsets.push(end);
        end += length;
    }
    let mine: Box<[c_int]> = mine.into();
    let mut all: Vec<c_int> = vec![0; end / WORD];
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the arrays have these lengths, and live until the request is complete, or are leaked.
    let code = unsafe {
        rg::rg_iallgatherv(
            mine.as_ptr().cast(),
            size_of_val(&*mine),
            all.as_mut_ptr().cast(),
            lengths.as_ptr(),
            offsets.as_ptr(),
            group,
            &mut request,
        )
    };
    if let Err(error) = finish(code, request) {
        // See `allgather`. The engine has copied the lengths and offsets.
        std::mem::forget((mine, all));
        return Err(error);
    }
    let mut rest = all.as_slice();
    let lists = counts.iter().map(|&count| {
        let (list, others) = rest.split_at(count);
        rest = others;
        list.to_vec()
    });
    Ok(lists.collect())
}

/// Returns the words that the root passes. All members expect this number of words.
pub fn broadcast_words<const N: usize>(
    group: rg::Group,
    root: c_int,
    words: [c_int; N],
) -> Result<[c_int; N]> {
    let mut words = words;
    broadcast_into(group, root, &mut words)?;
    Ok(words)
}

/// Returns the words that the root passes.
pub fn broadcast(group: rg::Group, root: c_int, words: Vec<c_int>) -> Result<Vec<c_int>> {
    let (mut front, in_front) = front_of(&words);
    broadcast_into(group, root, &mut front)?;
    let count = usize::try_from(front[0]).unwrap_or(0);
    let mut all = words;
    if count < FRONT {
        return Ok(front[1..=count].to_vec());
    }
    let mut rest = all.split_off(in_front);
    rest.resize(count - (FRONT - 1), 0);
    broadcast_into(group, root, &mut rest)?;
    Ok([&front[1..], &rest[..]].concat())
}

fn broadcast_into(group: rg::Group, root: c_int, words: &mut [c_int]) -> Result {
    let mut request = rg::REQUEST_NULL;
    let (address, length) = (words.as_mut_ptr().cast(), size_of_val(words));
    // SAFETY: the array has this length, and stays until the request is complete.
    let code = unsafe { rg::rg_ibroadcast(address, length, root, group, &mut request) };
    finish(code, request).map(drop)
}

/// Locked while both parts of a message are being sent, so that no other thread's message comes between them.
static SENDING: Mutex<()> = Mutex::new(());

/// Returns the first part of a message, which begins with the number of words, and how many of the words it contains.
fn front_of(words: &[c_int]) -> ([c_int; FRONT], usize) {
    let mut front = [0; FRONT];
    front[0] = words.len() as c_int;
    let in_front = words.len().min(FRONT - 1);
    front[1..=in_front].copy_from_slice(&words[..in_front]);
    (front, in_front)
}

/// Sends words to a member.
pub fn send(group: rg::Group, to: c_int, tag: c_int, words: &[c_int]) -> Result {
    send_while(group, to, tag, words, || Ok(()))
}

/// Sends words to a member. Calls `meanwhile` before it waits for them to be sent.
fn send_while<R>(
    group: rg::Group,
    to: c_int,
    tag: c_int,
    words: &[c_int],
    meanwhile: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let (front, in_front) = front_of(words);
    let rest = &words[in_front..];
    let mut requests = [rg::REQUEST_NULL; 2];
    let part = |words: &[c_int], request: &mut rg::Request| {
        let (address, length) = (words.as_ptr().cast(), size_of_val(words));
        // SAFETY: the words live until the request is complete.
        checked(unsafe { rg::rg_isend(address, length, to, tag, group, request) })
    };
    let guard = SENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut begun = part(&front, &mut requests[0]);
    if begun.is_ok() && !rest.is_empty() {
        begun = part(rest, &mut requests[1]);
    }
    drop(guard);
    let mut outcome = begun.and_then(|()| meanwhile());
    for request in requests {
        if request != rg::REQUEST_NULL {
            let sent = checked(progress::wait(request, &mut rg::Status::default()));
            outcome = outcome.and_then(|value| sent.map(|()| value));
        }
    }
    outcome
}

/// Receives words from a member, or from any (RG_ANY). Returns the sender's rank and the words.
pub fn receive(group: rg::Group, from: c_int, tag: c_int) -> Result<(c_int, Vec<c_int>)> {
    let mut front = [0; FRONT];
    let status = receive_into(group, from, tag, &mut front)?;
    receive_rest(group, tag, &front, status)
}

/// Maximum time in seconds between two advances of multi-stage operations while a receive with a time limit waits.
const SLICE: f64 = 0.01;

/// Receives words as [`receive`] does. Returns `None` if no message arrives within this many seconds.
pub fn receive_within(
    group: rg::Group,
    from: c_int,
    tag: c_int,
    seconds: f64,
) -> Result<Option<(c_int, Vec<c_int>)>> {
    // SAFETY: the call has no arguments and no preconditions.
    let end = unsafe { rg::rg_time() } + seconds;
    let mut front: [c_int; FRONT] = [0; FRONT];
    let mut status = rg::Status::default();
    let (address, room) = (front.as_mut_ptr().cast(), size_of_val(&front));
    loop {
        // SAFETY: the call has no arguments and no preconditions.
        let left = (end - unsafe { rg::rg_time() }).max(0.0);
        let slice = match progress::is_idle() {
            true => left,
            false => left.min(SLICE),
        };
        // SAFETY: this many bytes may be written, and the status.
        match unsafe { rg::rg_recv_within(address, room, from, tag, group, slice, &mut status) } {
            rg::ERR_NOTHING if left <= 0.0 => return Ok(None),
            rg::ERR_NOTHING => progress::advance(),
            code => {
                checked(code)?;
                return receive_rest(group, tag, &front, status).map(Some);
            }
        }
    }
}

/// Receives the remaining words of a message whose first part has been received.
fn receive_rest(
    group: rg::Group,
    tag: c_int,
    front: &[c_int; FRONT],
    status: rg::Status,
) -> Result<(c_int, Vec<c_int>)> {
    let count = usize::try_from(front[0]).unwrap_or(0);
    let in_front = count.min(FRONT - 1);
    let mut words = front[1..=in_front].to_vec();
    if count > in_front {
        words.resize(count, 0);
        receive_into(group, status.source, tag, &mut words[in_front..])?;
    }
    Ok((status.source, words))
}

fn receive_into(
    group: rg::Group,
    from: c_int,
    tag: c_int,
    words: &mut [c_int],
) -> Result<rg::Status> {
    let mut request = rg::REQUEST_NULL;
    let (address, length) = (words.as_mut_ptr().cast(), size_of_val(words));
    // SAFETY: the array has this length, and stays until the request is complete.
    let code = unsafe { rg::rg_irecv(address, length, from, tag, group, &mut request) };
    finish(code, request)
}

/// Exchanges words with another member.
pub fn exchange(group: rg::Group, peer: c_int, tag: c_int, words: &[c_int]) -> Result<Vec<c_int>> {
    let theirs = || receive(group, peer, tag).map(|(_, words)| words);
    send_while(group, peer, tag, words, theirs)
}
