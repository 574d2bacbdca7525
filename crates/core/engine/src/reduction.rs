//! How operands are combined: the steps of reductions, within a host and between hosts.

use regatta_memory::views::Views;

use crate::operation::Reduction;
use crate::schedule::{Step, Steps};
use crate::tree::{Hosts, Tree};

/// Bytes that are received while the ones before are combined.
const SEGMENT: usize = 64 << 10;
/// As `SEGMENT`, between hosts: the bytes of smaller messages mix on a connection, and few go straight to their place.
const FAR_SEGMENT: usize = 1 << 20;
/// Most pieces of a message that are on their way between hosts at the same time.
const FAR_SEGMENTS: usize = 8;

/// From the children, in the order of their ranks, into `mine`; then to the parent.
pub(crate) fn combine_up(steps: &mut Steps, tree: &Tree, mine: &Views, what: Reduction) {
    let bytes = what.bytes();
    for &child in &tree.children {
        // The child's operands are of higher places: it is `inout`, we come from before.
        let theirs = steps.scratch(bytes);
        steps.push(Step::Receive(child, theirs.clone()));
        steps.push(Step::Wait);
        steps.push(what.combine(mine.clone(), theirs.clone()));
        steps.push(Step::Copy(theirs, mine.clone()));
    }
    if let Some(parent) = tree.parent {
        steps.push(Step::Send(parent, mine.clone()));
    }
}

/// From the parent into `buffer`, and on to the children.
pub(crate) fn send_down(steps: &mut Steps, tree: &Tree, buffer: &Views) {
    steps.push(Step::Wait);
    if let Some(parent) = tree.parent {
        steps.push(Step::Receive(parent, buffer.clone()));
        steps.push(Step::Wait);
    }
    let children = tree.children.iter().rev();
    steps.extend(children.map(|&child| Step::Send(child, buffer.clone())));
}

/// Small vectors across hosts: up to each host's leader, between the leaders, down from each.
pub(crate) fn leaders_allreduce(
    steps: &mut Steps,
    hosts: &Hosts,
    rank: u32,
    input: Views,
    output: &Views,
    what: Reduction,
) {
    let within = hosts.within(rank);
    steps.push(Step::Copy(input, output.clone()));
    combine_up(steps, &within, output, what);
    if within.parent.is_none() {
        leaders_exchange(steps, hosts, output, what);
    }
    send_down(steps, &within, output);
}

/// The leaders' part, in rounds with one at twice the distance each time. Between two hosts that is one message each
/// way, at the same time.
pub(crate) fn leaders_exchange(steps: &mut Steps, hosts: &Hosts, output: &Views, what: Reduction) {
    // Of the leaders beyond a power of two each gives its part to one below, and gets the result from it.
    let (size, place) = (hosts.count(), hosts.number());
    let paired = 1 << size.ilog2();
    let extra = size - paired;
    let bytes = what.bytes();
    let hear = |steps: &mut Steps, from: usize| {
        let theirs = steps.scratch(bytes);
        steps.push(Step::Receive(hosts.leader(from), theirs.clone()));
        steps.push(Step::Wait);
        steps.push(what.combine(theirs, output.clone()));
    };
    let tell = |to: usize| Step::Send(hosts.leader(to), output.clone());
    if place >= paired {
        steps.push(tell(place - paired));
        steps.push(Step::Wait);
        steps.push(Step::Receive(hosts.leader(place - paired), output.clone()));
        steps.push(Step::Wait);
        return;
    }
    if place < extra {
        hear(steps, place + paired);
    }
    let mut bit = 1;
    while bit < paired {
        steps.push(tell(place ^ bit));
        hear(steps, place ^ bit);
        bit *= 2;
    }
    if place < extra {
        steps.push(tell(place + paired));
    }
}

/// A stretch of elements.
#[derive(Clone, Copy)]
struct Stretch {
    from: usize,
    count: usize,
}

impl Stretch {
    /// Number `index` of stretches of `each` elements, cut off at the end.
    fn of(self, index: usize, each: usize) -> Stretch {
        let from = (index * each).min(self.count);
        Stretch {
            from: self.from + from,
            count: each.min(self.count - from),
        }
    }

    /// The whole of it in stretches of `each` elements.
    fn cut(self, each: usize) -> impl Iterator<Item = Stretch> {
        (0..self.count.div_ceil(each)).map(move |index| self.of(index, each))
    }

    fn views(self, whole: &Views, what: &Reduction) -> Views {
        let width = what.element.size();
        whole.part(self.from * width, self.count * width)
    }
}

/// Where a vector is worked on: this member's place among those that share the work, and where they are.
struct Circle<'a> {
    ranks: &'a [u32],
    place: usize,
}

/// A ring of partial sums, then a ring of results: each member moves twice the data whatever their number.
pub(crate) fn ring_allreduce(
    steps: &mut Steps,
    (rank, size): (u32, u32),
    input: Views,
    output: Views,
    what: Reduction,
) {
    let ranks: Vec<u32> = (0..size).collect();
    let circle = Circle {
        ranks: &ranks,
        place: rank as usize,
    };
    steps.push(Step::Copy(input, output.clone()));
    let whole = Stretch {
        from: 0,
        count: what.count,
    };
    ring(steps, &circle, whole, &output, what);
}

/// Both rings, of partial sums and of results, for a stretch of `output`, which holds this member's operands and will hold the result.
fn ring(steps: &mut Steps, circle: &Circle, whole: Stretch, output: &Views, what: Reduction) {
    let width = what.element.size();
    let (rank, size) = (circle.place, circle.ranks.len());
    let each = whole.count.div_ceil(size);
    let left = circle.ranks[(rank + size - 1) % size];
    let right = circle.ranks[(rank + 1) % size];
    let segment = (SEGMENT / width).max(1).min(each.max(1));
    let landing = [(); 2].map(|()| steps.scratch(segment * width));
    for round in 0..size - 1 {
        let gives = (rank + size - round) % size;
        let gets = (rank + size - round - 1) % size;
        // All pieces are cut alike, so both neighbours agree on the segments. While one segment
        // is combined the next is on its way.
        let mut combine = None;
        for turn in 0..each.div_ceil(segment) {
            let part = |index: usize| whole.of(index, each).of(turn, segment);
            let (mine, theirs) = (part(gets), &landing[turn % 2]);
            let theirs = theirs.part(0, mine.count * width);
            steps.push(Step::Receive(left, theirs.clone()));
            steps.push(Step::Send(right, part(gives).views(output, &what)));
            steps.extend(combine.take());
            steps.push(Step::Wait);
            combine = Some(what.combine_part(theirs, mine.views(output, &what), mine.count));
        }
        steps.extend(combine);
    }
    for round in 0..size - 1 {
        let gives = whole.of((rank + 1 + size - round) % size, each);
        let gets = whole.of((rank + size - round) % size, each);
        steps.push(Step::Receive(left, gets.views(output, &what)));
        steps.push(Step::Send(right, gives.views(output, &what)));
        steps.push(Step::Wait);
    }
}

/// Large vectors across hosts. As many members of each host as every host has share the work: each collects one part
/// of the vector from all on its host, exchanges that with those who have the same part on other hosts, and gives the
/// result to all on its host. So each byte crosses between two hosts once each way, by several connections.
pub(crate) fn shared_allreduce(
    steps: &mut Steps,
    hosts: &Hosts,
    rank: u32,
    input: &Views,
    output: &Views,
    what: Reduction,
) {
    let (here, place, sharing) = (hosts.here(), hosts.place(rank), hosts.fewest());
    let whole = Stretch {
        from: 0,
        count: what.count,
    };
    let each = what.count.div_ceil(sharing);
    let mine = whole.of(place, each);
    let shares = place < sharing;
    if here.len() > 1 {
        if shares && input.contiguous() != output.contiguous() {
            let own = mine.views(input, &what);
            steps.push(Step::Copy(own, mine.views(output, &what)));
        }
        collect(steps, (here, place, sharing), input, output, what);
        steps.push(Step::Wait);
    }
    if shares {
        let ranks: Vec<u32> = hosts.across(place).collect();
        let from = if here.len() > 1 { output } else { input };
        match ranks[..] {
            [first, second] => {
                let leads = hosts.number() == 0;
                let peer = if leads { second } else { first };
                halves(steps, (leads, peer), mine, (from, output), what);
            }
            _ => {
                if from.contiguous() != output.contiguous() {
                    let (own, result) = (mine.views(from, &what), mine.views(output, &what));
                    steps.push(Step::Copy(own, result));
                }
                let circle = Circle {
                    ranks: &ranks,
                    place: hosts.number(),
                };
                ring(steps, &circle, mine, output, what);
            }
        }
        steps.push(Step::Wait);
    }
    for distance in 1..here.len() {
        let to = (place + distance) % here.len();
        let from = (place + here.len() - distance) % here.len();
        if from < sharing {
            let theirs = whole.of(from, each).views(output, &what);
            steps.push(Step::Receive(here[from], theirs));
        }
        if shares {
            steps.push(Step::Send(here[to], mine.views(output, &what)));
        }
    }
}

/// Within a host: each of the first `sharing` members adds up its part of all members' vectors in `output`, where its
/// own is already.
fn collect(
    steps: &mut Steps,
    (here, place, sharing): (&[u32], usize, usize),
    input: &Views,
    output: &Views,
    what: Reduction,
) {
    let width = what.element.size();
    let size = here.len();
    let whole = Stretch {
        from: 0,
        count: what.count,
    };
    let each = what.count.div_ceil(sharing);
    let segment = (SEGMENT / width).max(1);
    let landings = if place < sharing { 2 * (size - 1) } else { 0 };
    let most = segment.min(each) * width;
    let landing: Vec<Views> = (0..landings).map(|_| steps.scratch(most)).collect();
    let mut combine = vec![];
    for turn in 0..each.div_ceil(segment) {
        let part = |index: usize| whole.of(index, each).of(turn, segment);
        let mut next = vec![];
        for distance in 1..size {
            let to = (place + distance) % size;
            let from = (place + size - distance) % size;
            if place < sharing {
                let mine = part(place);
                let theirs = &landing[turn % 2 * (size - 1) + distance - 1];
                let theirs = theirs.part(0, mine.count * width);
                steps.push(Step::Receive(here[from], theirs.clone()));
                next.push(what.combine_part(theirs, mine.views(output, &what), mine.count));
            }
            if to < sharing {
                steps.push(Step::Send(here[to], part(to).views(input, &what)));
            }
        }
        steps.extend(std::mem::replace(&mut combine, next));
        steps.push(Step::Wait);
    }
    steps.extend(combine);
}

/// Between two: each sends its whole vector, and combines both. `is_across`: they are on two hosts.
pub(crate) fn exchange_allreduce(
    steps: &mut Steps,
    (peer, is_across): (u32, bool),
    input: Views,
    output: Views,
    what: Reduction,
) {
    // Received where the result goes, unless that is where the input still is.
    let in_place = input.contiguous() == output.contiguous();
    let theirs = match in_place {
        true => steps.scratch(what.bytes()),
        false => output.clone(),
    };
    let both = [
        Step::Receive(peer, theirs.clone()),
        Step::Send(peer, input.clone()),
    ];
    match is_across {
        false => steps.extend(both),
        // A look for a message that cannot be there yet is a system call.
        true => steps.extend(both.into_iter().rev()),
    }
    steps.push(Step::Wait);
    steps.push(match in_place {
        true => what.combine(theirs, output),
        false => what.combine(input, output),
    });
}

/// Between two on a host: each adds up one half of the vector, a segment after the other. While one segment is
/// combined the next one is on its way, and the result of the one before goes back.
pub(crate) fn pair_allreduce(
    steps: &mut Steps,
    rank: u32,
    input: &Views,
    output: &Views,
    what: Reduction,
) {
    let width = what.element.size();
    let half = what.count.div_ceil(2);
    let whole = Stretch {
        from: 0,
        count: what.count,
    };
    let (mine, theirs) = match rank {
        0 => (whole.of(0, half), whole.of(1, half)),
        _ => (whole.of(1, half), whole.of(0, half)),
    };
    let segment = (SEGMENT / width).max(1).min(half);
    // Incoming operands may go where the result goes, unless the own operands are there.
    let landing = match input.contiguous() == output.contiguous() {
        true => Some([(); 2].map(|()| steps.scratch(segment * width))),
        false => None,
    };
    let peer = 1 - rank;
    let mut combine = None;
    for turn in 0..half.div_ceil(segment) {
        let (gets, gives) = (mine.of(turn, segment), theirs.of(turn, segment));
        let (own, result) = (gets.views(input, &what), gets.views(output, &what));
        let landing = landing
            .as_ref()
            .map(|both| both[turn % 2].part(0, gets.count * width));
        let combined = Views::combined(&own, &result, what.operator, what.element);
        let then = match (&combined, &landing) {
            (Some(_), _) => None,
            (None, Some(theirs)) => Some((theirs.clone(), result.clone())),
            (None, None) => Some((own, result.clone())),
        };
        let to = combined.or(landing).unwrap_or_else(|| result.clone());
        let receive = (gets.count > 0).then(|| steps.start(Step::Receive(peer, to)));
        if gives.count > 0 {
            steps.push(Step::Send(peer, gives.views(input, &what)));
        }
        let next = Segment {
            receive,
            combine: then.map(|(from, inout)| what.combine_part(from, inout, gets.count)),
            result,
            theirs: gives.views(output, &what),
        };
        if let Some(before) = combine.replace(next) {
            before.finish(steps, peer);
        }
    }
    if let Some(last) = combine {
        last.finish(steps, peer);
    }
}

/// A segment of [`pair_allreduce`] that is on its way.
struct Segment {
    /// The number of its receive, unless this task has no part of it.
    receive: Option<u32>,
    /// Unless that is done as it comes.
    combine: Option<Step>,
    result: Views,
    /// Where the other one's result goes.
    theirs: Views,
}

impl Segment {
    fn finish(self, steps: &mut Steps, peer: u32) {
        if let Some(receive) = self.receive {
            steps.push(Step::Until(receive));
            steps.extend(self.combine);
            steps.push(Step::Send(peer, self.result));
        }
        if !self.theirs.is_empty() {
            steps.push(Step::Receive(peer, self.theirs));
        }
    }
}

/// Between two: each adds up one half, and gives the other its part of that as soon as it has it. The operands
/// are `from`; the result goes to `output`, which may be the same.
fn halves(
    steps: &mut Steps,
    (leads, peer): (bool, u32),
    whole: Stretch,
    (from, output): (&Views, &Views),
    what: Reduction,
) {
    let width = what.element.size();
    let half = whole.count.div_ceil(2);
    let (mine, theirs) = match leads {
        true => (whole.of(0, half), whole.of(1, half)),
        false => (whole.of(1, half), whole.of(0, half)),
    };
    let each = (FAR_SEGMENT / width)
        .max(half.div_ceil(FAR_SEGMENTS))
        .max(1);
    // Incoming operands may go where the result goes, unless the own operands are there.
    let in_place = from.contiguous() == output.contiguous();
    let landing = match in_place {
        true => steps.scratch(mine.count * width),
        false => mine.views(output, &what),
    };
    let landing = |part: Stretch| landing.part((part.from - mine.from) * width, part.count * width);
    let receives: Vec<(Stretch, u32)> = mine
        .cut(each)
        .map(|part| (part, steps.start(Step::Receive(peer, landing(part)))))
        .collect();
    for part in theirs.cut(each) {
        steps.push(Step::Send(peer, part.views(from, &what)));
    }
    for part in theirs.cut(each) {
        steps.push(Step::Receive(peer, part.views(output, &what)));
    }
    for (part, receive) in receives {
        let (own, result) = (part.views(from, &what), part.views(output, &what));
        steps.push(Step::Until(receive));
        steps.push(match in_place {
            true => what.combine_part(landing(part), result.clone(), part.count),
            false => what.combine_part(own, result.clone(), part.count),
        });
        steps.push(Step::Send(peer, result));
    }
}
