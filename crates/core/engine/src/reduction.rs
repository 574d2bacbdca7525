//! The steps of reductions, within a host and between hosts.

use regatta_memory::views::Views;

use crate::operation::Reduction;
use crate::schedule::{Step, Steps};
use crate::tree::{Hosts, Tree};

/// Size of a segment that is received while the previous one is combined, in bytes.
const SEGMENT: usize = 64 << 10;
/// Same as `SEGMENT`, between hosts. Smaller messages interleave on a connection, so that few of their bytes are received directly in place.
const FAR_SEGMENT: usize = 1 << 20;
/// Maximum number of pieces of a message that are in flight between hosts at the same time.
const FAR_SEGMENTS: usize = 8;

/// Combines the operands of the children into `mine`, in the order of their ranks, and sends the result to the parent.
pub(crate) fn combine_up(steps: &mut Steps, tree: &Tree, mine: &Views, what: Reduction) {
    let bytes = what.bytes();
    for &child in &tree.children {
        // The child's operands have higher ranks, so they are the right operand, `inout`.
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

/// Reduces along a tree within a host, with a commutative operator. Operands are combined as they are received, so that they are not copied first.
pub(crate) fn reduce_here(
    steps: &mut Steps,
    Tree { parent, children }: &Tree,
    (input, output): (Views, Views),
    what: Reduction,
) {
    let result = match parent {
        None => output,
        Some(_) if children.is_empty() => Views::none(),
        Some(_) => steps.scratch(what.bytes()),
    };
    let other = match children.len() {
        0 | 1 => Views::none(),
        _ => steps.scratch(what.bytes()),
    };
    let mut sum = input;
    for (at, &child) in children.iter().enumerate() {
        // Sums alternate between both memories, and the last one is the result.
        let next = match (children.len() - at) % 2 {
            1 => &result,
            _ => &other,
        };
        receive_sum(steps, child, &sum, next, what);
        sum = next.clone();
    }
    match parent {
        Some(parent) => steps.push(Step::Send(*parent, sum)),
        None if children.is_empty() => steps.push(Step::Copy(sum, result)),
        None => {}
    }
}

/// Receives operands, and stores their combination with `own` in `sum`, which may be the same memory.
fn receive_sum(steps: &mut Steps, from: u32, own: &Views, sum: &Views, what: Reduction) {
    if let Some(combined) = Views::combined(own, sum, what.operator, what.element) {
        steps.push(Step::Receive(from, combined));
        steps.push(Step::Wait);
        return;
    }
    let theirs = steps.scratch(what.bytes());
    steps.push(Step::Receive(from, theirs.clone()));
    // In place, the operands are already there.
    if own.contiguous().is_none() || own.contiguous() != sum.contiguous() {
        steps.push(Step::Copy(own.clone(), sum.clone()));
    }
    steps.push(Step::Wait);
    steps.push(what.combine(theirs, sum.clone()));
}

/// Receives the result from the parent into `buffer`, and sends it to the children.
pub(crate) fn send_down(steps: &mut Steps, tree: &Tree, buffer: &Views) {
    steps.push(Step::Wait);
    if let Some(parent) = tree.parent {
        steps.push(Step::Receive(parent, buffer.clone()));
        steps.push(Step::Wait);
    }
    let children = tree.children.iter().rev();
    steps.extend(children.map(|&child| Step::Send(child, buffer.clone())));
}

/// Reduces small vectors across hosts: up to each host's leader, between the leaders, and back down.
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

/// Exchanges the leaders' operands in rounds, each with the leader at twice the previous distance. Between two hosts that is one message in each
/// direction, at the same time.
pub(crate) fn leaders_exchange(steps: &mut Steps, hosts: &Hosts, output: &Views, what: Reduction) {
    // Leaders beyond the largest power of two each send their operands to a lower leader and receive the result from it.
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

/// A range of elements.
#[derive(Clone, Copy)]
struct Stretch {
    from: usize,
    count: usize,
}

impl Stretch {
    /// Returns piece number `index` of the range, in pieces of `each` elements. The last piece may be shorter.
    fn of(self, index: usize, each: usize) -> Stretch {
        let from = (index * each).min(self.count);
        Stretch {
            from: self.from + from,
            count: each.min(self.count - from),
        }
    }

    /// Returns all pieces of the range, in pieces of `each` elements.
    fn cut(self, each: usize) -> impl Iterator<Item = Stretch> {
        (0..self.count.div_ceil(each)).map(move |index| self.of(index, each))
    }

    fn views(self, whole: &Views, what: &Reduction) -> Views {
        let width = what.element.size();
        whole.part(self.from * width, self.count * width)
    }
}

/// The members that share the work on a vector, and this member's index among them.
struct Circle<'a> {
    ranks: &'a [u32],
    place: usize,
}

/// Reduces with a ring of partial sums, then a ring of results. Each member moves twice the data, however many members there are.
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

/// Does both rings, of partial sums and of results, for a range of `output`, which contains this member's operands and receives the result.
fn ring(steps: &mut Steps, circle: &Circle, whole: Stretch, output: &Views, what: Reduction) {
    let width = what.element.size();
    let (rank, size) = (circle.place, circle.ranks.len());
    if size < 2 {
        return;
    }
    let each = whole.count.div_ceil(size);
    let left = circle.ranks[(rank + size - 1) % size];
    let right = circle.ranks[(rank + 1) % size];
    let segment = (SEGMENT / width).max(1).min(each.max(1));
    let landing = [(); 2].map(|()| steps.scratch(segment * width));
    for round in 0..size - 1 {
        let gives = (rank + size - round) % size;
        let gets = (rank + size - round - 1) % size;
        // All pieces are cut alike, so both neighbours agree on the segments. While one segment is combined, the next is in flight.
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

/// Reduces large vectors across hosts. On each host the same number of members share the work: as many as the smallest host has. Each of them
/// combines one part of the vector from all members on its host, exchanges that part with the members that have the same part on other hosts, and
/// sends the result to all on its host. So each byte crosses between two hosts once in each direction, over several connections.
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

/// Combines within a host: each of the first `sharing` members combines its part of all members' vectors into `output`, which already contains its
/// own operands.
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

/// Reduces between two members: each sends its whole vector and combines both. `is_across` says whether they are on two hosts.
pub(crate) fn exchange_allreduce(
    steps: &mut Steps,
    (peer, is_across): (u32, bool),
    input: Views,
    output: Views,
    what: Reduction,
) {
    // Receive directly into the output, unless the input is there (in place).
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
        // Send first: checking for a message that cannot have arrived yet costs a system call.
        true => steps.extend(both.into_iter().rev()),
    }
    steps.push(Step::Wait);
    steps.push(match in_place {
        true => what.combine(theirs, output),
        false => what.combine(input, output),
    });
}

/// Reduces between two members on a host: each combines one half of the vector, one segment after the other. While one segment is combined, the next
/// one is in flight and the previous result is sent back.
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
    // Operands can be received into the output, unless this member's own operands are there.
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

/// A segment of [`pair_allreduce`] in flight.
struct Segment {
    /// Number of its receive. `None` if this task combines no elements of the segment.
    receive: Option<u32>,
    /// Step that combines it. `None` if the receive itself combines the elements.
    combine: Option<Step>,
    result: Views,
    /// The memory for the other member's result.
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

/// Reduces between two members: each combines one half, and sends each piece of the result as soon as it is combined. The operands are `from`; the
/// result goes to `output`, which may be the same memory.
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
    // Operands can be received into the output, unless this member's own operands are there.
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
