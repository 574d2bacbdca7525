//! Collectives with short parts across hosts: members send to their host's leader (its first member), leaders exchange, and each leader distributes
//! the result.
//!
//! All parts that go from one host to another travel in one message, and each member is woken only once.

use regatta_memory::views::Views;

use crate::operation::Operation;
use crate::schedule::{Step, Steps};
use crate::tree::Hosts;

/// Consecutive parts in one block of memory.
struct Packed<'a> {
    bytes: &'a Views,
    /// End of the last part that was returned.
    end: usize,
}

impl Packed<'_> {
    /// Returns the next `len` bytes.
    fn next(&mut self, len: usize) -> Views {
        self.end += len;
        self.bytes.part(self.end - len, len)
    }
}

/// Returns the steps of an allgather. The leaders exchange data as in a dissemination algorithm: in each round they send all data that they have to
/// the leader at twice the previous distance.
pub(crate) fn leaders_allgather(hosts: &Hosts, rank: u32, operation: &Operation) -> Steps {
    let (output, gets) = (operation.out(), &operation.gets);
    let own = gets.cut(&output, rank);
    let given = operation.input.clone().unwrap_or_else(|| own.clone());
    let (count, number) = (hosts.count(), hosts.number());
    // Member lists of the hosts in ring order from this host on. The parts received so far are then contiguous at the start of `all`.
    let lists: Vec<&[u32]> = (0..count)
        .map(|at| hosts.list((number + at) % count))
        .collect();
    let bytes_of = |list: &&[u32]| list.iter().map(|&other| gets.of(other).0).sum::<usize>();
    let ends = |heard: usize| lists[..heard].iter().map(bytes_of).sum::<usize>();
    let mut steps = Steps::default();
    let all = steps.scratch(ends(count));
    let (leader, followers) = (hosts.here()[0], &hosts.here()[1..]);
    if rank != leader {
        steps.push(Step::Send(leader, given.clone()));
        steps.push(Step::Receive(leader, all.clone()));
        steps.push(Step::Wait);
    } else {
        let mut here = Packed {
            bytes: &all,
            end: 0,
        };
        // If the input is longer than this member's part, the rest is ignored, as in the other algorithms.
        steps.push(Step::Copy(given.clone(), here.next(gets.of(rank).0)));
        for &other in followers {
            steps.push(Step::Receive(other, here.next(gets.of(other).0)));
        }
        steps.push(Step::Wait);
        let mut heard = 1;
        while heard < count {
            let more = heard.min(count - heard);
            let (mine, theirs) = (ends(more), ends(heard + more) - ends(heard));
            let before = hosts.leader((number + count - heard) % count);
            let after = hosts.leader((number + heard) % count);
            steps.push(Step::Send(before, all.part(0, mine)));
            steps.push(Step::Receive(after, all.part(ends(heard), theirs)));
            steps.push(Step::Wait);
            heard += more;
        }
        steps.extend(
            followers
                .iter()
                .map(|&other| Step::Send(other, all.clone())),
        );
    }
    let mut packed = Packed {
        bytes: &all,
        end: 0,
    };
    for &other in lists.iter().copied().flatten() {
        let from = packed.next(gets.of(other).0);
        if other != rank || operation.input.is_some() {
            steps.push(Step::Copy(from, gets.cut(&output, other)));
        }
    }
    steps
}

/// Returns the steps of a complete exchange of parts of equal length. Each leader gathers a row of parts from each member of its host, sends each
/// other host the parts for its members, and sends each member its row of received parts.
pub(crate) fn leaders_alltoall(
    hosts: &Hosts,
    (rank, size): (u32, u32),
    operation: &Operation,
) -> Steps {
    let part = operation.gets.longest();
    let row = part * size as usize;
    let (given, output) = (operation.given().part(0, row), operation.out().part(0, row));
    let (leader, followers) = (hosts.here()[0], &hosts.here()[1..]);
    let mut steps = Steps::default();
    if rank != leader {
        steps.push(Step::Send(leader, given));
        // Input and output may be the same memory.
        steps.push(Step::Wait);
        steps.push(Step::Receive(leader, output));
        return steps;
    }
    let rows: Vec<Views> = hosts.here().iter().map(|_| steps.scratch(row)).collect();
    steps.push(Step::Copy(given, rows[0].clone()));
    for (&other, row) in followers.iter().zip(&rows[1..]) {
        steps.push(Step::Receive(other, row.clone()));
    }
    steps.push(Step::Wait);
    let come = exchange_cells(&mut steps, hosts, &rows, part);
    steps.push(Step::Wait);
    let results: Vec<Views> = hosts.here().iter().map(|_| steps.scratch(row)).collect();
    for (senders, cells) in &come {
        let mut packed = Packed {
            bytes: cells,
            end: 0,
        };
        for result in &results {
            for &sender in *senders {
                let place = result.part(sender as usize * part, part);
                steps.push(Step::Copy(packed.next(part), place));
            }
        }
    }
    for (&other, result) in followers.iter().zip(&results[1..]) {
        steps.push(Step::Send(other, result.clone()));
    }
    steps.push(Step::Copy(results[0].clone(), output));
    steps
}

/// Adds the messages between the leaders. Returns, per host, its members and the memory for their parts, ordered by receiver on this host.
fn exchange_cells<'a>(
    steps: &mut Steps,
    hosts: &'a Hosts,
    rows: &[Views],
    part: usize,
) -> Vec<(&'a [u32], Views)> {
    let (count, number) = (hosts.count(), hosts.number());
    let mut come = vec![];
    for distance in 0..count {
        let to = hosts.list((number + distance) % count);
        let from = hosts.list((number + count - distance) % count);
        let cells = steps.scratch(rows.len() * to.len() * part);
        let mut packed = Packed {
            bytes: &cells,
            end: 0,
        };
        for &receiver in to {
            for row in rows {
                let cell = row.part(receiver as usize * part, part);
                steps.push(Step::Copy(cell, packed.next(part)));
            }
        }
        if distance == 0 {
            come.push((to, cells));
            continue;
        }
        let theirs = steps.scratch(rows.len() * from.len() * part);
        steps.push(Step::Send(to[0], cells));
        steps.push(Step::Receive(from[0], theirs.clone()));
        come.push((from, theirs));
    }
    come
}
