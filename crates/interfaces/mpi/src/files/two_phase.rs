//! Collective accesses in two phases.
//!
//! If the accesses of processes interleave, each process by itself would access many small pieces. So the part of the
//! file that they access is divided among processes. To write, every process sends its data to the processes that own
//! the parts, and these write long runs. To read, these read long runs and send every process what it has requested.
//! Large accesses are done in rounds, so that no process needs memory for more than a window of its part at a time.
//!
//! If accesses do not interleave, or consist of long pieces, processes access the file directly.

use std::ffi::c_int;

use regatta_sys as rg;

use super::access::{Direction, Transfer};
use super::posix::{Outcome, number as number_of};
use super::view::Run;
use crate::communicator::internal_messages;
use crate::error::{Result, checked};
use crate::progress;

/// Splits a number into two words for exchanges.
pub fn words(number: i64) -> [c_int; 2] {
    [number as c_int, (number >> 32) as c_int]
}

/// Returns the number in two words.
pub fn number([low, high]: [c_int; 2]) -> i64 {
    i64::from(low as u32) | i64::from(high) << 32
}

/// Maximum number of bytes of the file that a process has in memory at a time.
const WINDOW: i64 = 16 << 20;
/// Minimum length of a process's part, in bytes.
const SHORTEST: i64 = 1 << 20;

/// Minimum length in bytes of pieces that are worth a system call each.
const LONG: usize = 16 << 10;

/// Maximum ratio of a process's range in the file, from its first to its last byte, to the bytes that it reads, up to
/// which it reads by itself. It then reads all of the range ([`Sieve`](super::sieve::Sieve)), which has to be read from
/// the page cache once in any case.
const MAX_SIEVED_RATIO: i64 = 4;

/// The division of the accessed part of the file.
struct Division {
    begin: i64,
    end: i64,
    /// Length of each process's part in bytes.
    part: i64,
    members: usize,
}

impl Division {
    fn rounds(&self) -> i64 {
        (self.part + WINDOW - 1) / WINDOW
    }

    /// Returns the range of the file that a process transfers in a round.
    fn window(&self, member: usize, round: i64) -> (i64, i64) {
        let part = self.begin + member as i64 * self.part;
        let end = (part + self.part).min(self.end);
        let begin = part + round * WINDOW;
        (begin.min(end), (begin + WINDOW).min(end))
    }
}

/// Accesses the file collectively.
///
/// # Safety
/// The memory is valid for reads or writes, depending on the direction.
pub unsafe fn access(transfer: &Transfer<'_>) -> Result<Outcome<usize>> {
    let file = transfer.file;
    if file.comm.size() == 1 {
        // SAFETY: the caller upholds the safety contract of this function.
        return Ok(unsafe { transfer.alone() });
    }
    let range = transfer.view.range(transfer.from, transfer.length);
    let (start, end) = range.unwrap_or((-1, -1));
    let ([a, b], [c, d]) = (words(start), words(end));
    let rises = transfer.view.rises(transfer.from, transfer.length);
    let possible = c_int::from(file.posix.is_regular() && rises);
    let is_sieved = transfer.direction == Direction::Read
        && end - start <= MAX_SIEVED_RATIO * transfer.length as i64;
    let short = c_int::from(range.is_some() && transfer.view.piece < LONG && !is_sieved);
    let all = internal_messages::allgather(file.comm.hidden, [a, b, c, d, possible, short])?;
    let useful = all.iter().all(|it| it[4] != 0) && all.iter().any(|it| it[5] != 0);
    let ranges = all
        .iter()
        .map(|it| (number([it[0], it[1]]), number([it[2], it[3]])));
    let mut ranges: Vec<(i64, i64)> = ranges.filter(|&(start, _)| start >= 0).collect();
    ranges.sort_unstable();
    let interleaved = ranges.windows(2).any(|pair| pair[1].0 < pair[0].1);
    if !useful || !interleaved {
        // SAFETY: the caller upholds the safety contract of this function.
        return Ok(unsafe { transfer.alone() });
    }
    let begin = ranges[0].0;
    let end = ranges.iter().map(|&(_, end)| end).max().unwrap_or(begin);
    let members = i64::from(file.comm.size());
    let part = (end - begin).div_euclid(members) + 1;
    let part = (part.max(SHORTEST) + 4095) & !4095;
    let division = Division {
        begin,
        end,
        part,
        members: members as usize,
    };
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { in_rounds(transfer, &division) }
}

unsafe fn in_rounds(transfer: &Transfer<'_>, division: &Division) -> Result<Outcome<usize>> {
    let (mut outcome, mut moved) = (Ok(()), 0usize);
    for round in 0..division.rounds() {
        // SAFETY: the caller upholds the safety contract of this function.
        let this = unsafe {
            match transfer.direction {
                Direction::Write => write_round(transfer, division, round)?,
                Direction::Read => read_round(transfer, division, round)?,
            }
        };
        outcome = outcome.and(this.map(|bytes| moved += bytes));
    }
    // Bytes that one process could not transfer are missing in others, so all get its error.
    let file = transfer.file;
    let all = internal_messages::allgather(file.comm.hidden, [number_of(&outcome)])?;
    Ok(match all.iter().find(|it| it[0] != 0) {
        Some(&[number]) => Err(number),
        None => Ok(moved),
    })
}

/// Returns the runs of this process's access in a window of the file.
fn runs_in(transfer: &Transfer<'_>, (begin, end): (i64, i64)) -> Vec<Run> {
    let Transfer {
        view, from, length, ..
    } = *transfer;
    let mut runs = Vec::new();
    if begin >= end {
        return runs;
    }
    let first = view.bytes_before(begin, from, from + length);
    let last = view.bytes_before(end, first, from + length);
    view.runs(first, last - first, |mut run| {
        run.at += first - from;
        runs.push(run);
        true
    });
    runs
}

/// Size of a run's description in a message, in bytes.
const RUN: usize = 16;

/// Returns a message of runs, with their data if `data` is given.
fn message(runs: &[Run], data: Option<*const u8>) -> Vec<u8> {
    if runs.is_empty() {
        return Vec::new();
    }
    let bytes = match data {
        Some(_) => runs.iter().map(|run| run.length).sum(),
        None => 0,
    };
    let mut message = Vec::with_capacity(8 + runs.len() * RUN + bytes);
    message.extend_from_slice(&(runs.len() as u64).to_ne_bytes());
    for run in runs {
        message.extend_from_slice(&run.offset.to_ne_bytes());
        message.extend_from_slice(&(run.length as u64).to_ne_bytes());
    }
    if let Some(data) = data {
        for run in runs {
            // SAFETY: the caller guarantees that the data are as long as the runs.
            let piece =
                unsafe { std::slice::from_raw_parts(data.wrapping_add(run.at), run.length) };
            message.extend_from_slice(piece);
        }
    }
    message
}

fn word(message: &[u8], at: usize) -> i64 {
    let bytes = message.get(at..at + 8).and_then(|it| it.try_into().ok());
    bytes.map_or(0, i64::from_ne_bytes)
}

/// Returns the runs of a message; `at` is the index of their data in the message.
fn parse(message: &[u8]) -> Vec<Run> {
    let count = word(message, 0) as usize;
    let mut at = 8 + count * RUN;
    (0..count)
        .map(|index| {
            let offset = word(message, 8 + index * RUN);
            let length = word(message, 16 + index * RUN) as usize;
            let run = Run { offset, at, length };
            at += length;
            run
        })
        .collect()
}

/// Returns the smallest list of runs that covers all of these, which are sorted by offset.
fn cover(runs: &[Run]) -> Vec<Run> {
    let mut covers: Vec<Run> = Vec::new();
    for run in runs {
        match covers.last_mut() {
            Some(last) if last.end() >= run.offset => {
                let end = last.end().max(run.end());
                last.length = (end - last.offset) as usize;
            }
            _ => {
                let at = covers.last().map_or(0, |last| last.at + last.length);
                covers.push(Run { at, ..*run });
            }
        }
    }
    covers
}

/// Returns the index of a run's bytes in the memory of the runs that cover it.
fn place_in(covers: &[Run], run: &Run) -> usize {
    let index = covers.partition_point(|it| it.offset <= run.offset);
    let cover = &covers[index.saturating_sub(1)];
    cover.at + (run.offset - cover.offset) as usize
}

/// Returns the runs in all messages, sorted by offset.
fn wanted(messages: &[Vec<u8>]) -> Vec<Run> {
    let mut all: Vec<Run> = messages.iter().flat_map(|it| parse(it)).collect();
    all.sort_by_key(|run| run.offset);
    all
}

unsafe fn write_round(
    transfer: &Transfer<'_>,
    division: &Division,
    round: i64,
) -> Result<Outcome<usize>> {
    let mut moved = 0;
    let outgoing = (0..division.members).map(|member| {
        let runs = runs_in(transfer, division.window(member, round));
        moved += runs.iter().map(|run| run.length).sum::<usize>();
        message(&runs, Some(transfer.data))
    });
    let incoming = exchange(transfer, outgoing.collect())?;
    let covers = cover(&wanted(&incoming));
    let total = covers.last().map_or(0, |last| last.at + last.length);
    let mut window = vec![0; total];
    for message in &incoming {
        for run in parse(message) {
            let to = place_in(&covers, &run);
            window[to..to + run.length].copy_from_slice(&message[run.at..run.at + run.length]);
        }
    }
    let write = |run: &Run| {
        // SAFETY: the window is as long as the runs.
        unsafe {
            let from = window.as_ptr().add(run.at);
            transfer.file.posix.write(from, run.length, run.offset)
        }
    };
    Ok(covers.iter().try_for_each(write).map(|()| moved))
}

unsafe fn read_round(
    transfer: &Transfer<'_>,
    division: &Division,
    round: i64,
) -> Result<Outcome<usize>> {
    let asked =
        (0..division.members).map(|member| runs_in(transfer, division.window(member, round)));
    let asked: Vec<Vec<Run>> = asked.collect();
    let outgoing = asked.iter().map(|runs| message(runs, None)).collect();
    let incoming = exchange(transfer, outgoing)?;
    let covers = cover(&wanted(&incoming));
    let total = covers.last().map_or(0, |last| last.at + last.length);
    let mut window = vec![0; total];
    // Requests for bytes behind the end of the file are answered with fewer bytes.
    let mut end = i64::MAX;
    let read = |run: &Run| {
        // SAFETY: the window is as long as the runs.
        let read = unsafe {
            let to = window.as_mut_ptr().add(run.at);
            transfer.file.posix.read(to, run.length, run.offset)
        };
        read.map(|bytes| {
            if bytes < run.length {
                end = end.min(run.offset + bytes as i64);
            }
        })
    };
    let outcome = covers.iter().try_for_each(read);
    let answers = incoming.iter().map(|message| {
        let mut answer = Vec::new();
        for run in parse(message) {
            let there = (end - run.offset).clamp(0, run.length as i64) as usize;
            let from = place_in(&covers, &run);
            answer.extend_from_slice(&window[from..from + there]);
        }
        answer
    });
    let answers = exchange(transfer, answers.collect())?;
    let mut moved = 0;
    for (runs, answer) in asked.iter().zip(&answers) {
        let mut rest = answer.as_slice();
        moved += rest.len();
        for run in runs {
            let (piece, others) = rest.split_at(run.length.min(rest.len()));
            rest = others;
            // SAFETY: the caller guarantees that the memory is as long as the runs.
            unsafe {
                let to = transfer.data.add(run.at);
                std::ptr::copy_nonoverlapping(piece.as_ptr(), to, piece.len());
            }
        }
    }
    Ok(outcome.map(|()| moved))
}

/// The tag of exchanges. All processes make the collective accesses of one file in the same order.
const TAG: c_int = 1;

/// Sends a message to each process, and receives one from each. Empty messages are not sent.
fn exchange(transfer: &Transfer<'_>, mut outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let comm = &transfer.file.comm;
    let (own, group) = (comm.rank as usize, comm.hidden);
    let lengths: Vec<i64> = outgoing.iter().map(|it| it.len() as i64).collect();
    let mut theirs = vec![0i64; lengths.len()];
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the arrays have a number for each process, and live until the request is complete.
    let code = unsafe {
        let (from, to) = (lengths.as_ptr().cast(), theirs.as_mut_ptr().cast());
        rg::rg_ialltoall(from, size_of::<i64>(), to, group, &mut request)
    };
    checked(code)?;
    checked(progress::wait(request, &mut rg::Status::default()))?;
    let mut incoming: Vec<Vec<u8>> = theirs.iter().map(|_| Vec::new()).collect();
    incoming[own] = std::mem::take(&mut outgoing[own]);
    let mut requests = Vec::new();
    let mut begun = Ok(());
    for peer in (0..lengths.len()).filter(|&peer| peer != own) {
        if theirs[peer] != 0 {
            let message = &mut incoming[peer];
            message.resize(theirs[peer] as usize, 0);
            let (to, length) = (message.as_mut_ptr().cast(), message.len());
            begun = begun.and(begin(&mut requests, |request| {
                // SAFETY: the message lives until the request is complete.
                unsafe { rg::rg_irecv(to, length, peer as c_int, TAG, group, request) }
            }));
        }
    }
    for peer in (0..lengths.len()).filter(|&peer| !outgoing[peer].is_empty()) {
        let (from, length) = (outgoing[peer].as_ptr().cast(), outgoing[peer].len());
        begun = begun.and(begin(&mut requests, |request| {
            // SAFETY: the message lives until the request is complete.
            unsafe { rg::rg_isend(from, length, peer as c_int, TAG, group, request) }
        }));
    }
    for request in requests {
        begun = begun.and(checked(progress::wait(request, &mut rg::Status::default())));
    }
    begun?;
    Ok(incoming)
}

fn begin(requests: &mut Vec<rg::Request>, call: impl FnOnce(*mut rg::Request) -> c_int) -> Result {
    let mut request = rg::REQUEST_NULL;
    checked(call(&mut request))?;
    requests.push(request);
    Ok(())
}
