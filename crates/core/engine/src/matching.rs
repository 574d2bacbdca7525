//! Matching: the rules by which receives take messages.
//!
//! A message has a context, a source and a tag. A receive selects one context, one source or any, and one tag, any, or tags under a mask. Among
//! receives that select a message, the one posted first takes it; among messages that a receive selects, it takes the one that arrived first. So
//! messages of one sender do not overtake each other.
//!
//! The oldest receives form a *run*, up to 64 of them, while they select the same messages. Usually the run contains all receives. Each of the
//! others is in one list, by what it selects. An arriving message is compared with the fronts of the four lists that may contain its receive, and
//! the oldest one takes it. A waiting ("unexpected") message is in four lists, so that for every kind of selection the oldest message is at the
//! front of a list. Only receives with a mask search a list.

use crate::index::{ANY_SOURCE, ANY_TAG, Index, Key};
use crate::transport::Peer;

/// The key of lists of receives with a mask.
const MASKED: i32 = -2;

/// The tags that a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagSelect {
    /// This tag.
    Exactly(i32),
    /// Any tag.
    Any,
    /// Tags with `tag & mask == wanted & mask`.
    Masked {
        /// The pattern.
        wanted: i32,
        /// The bits to compare.
        mask: i32,
    },
}

/// The messages that a receive selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// The context, always exact.
    pub context: u32,
    /// The source. `None` for any.
    pub source: Option<Peer>,
    /// The tags.
    pub tag: TagSelect,
}

impl Select {
    /// Returns whether the receive takes this message.
    #[inline(always)]
    pub fn takes(&self, context: u32, source: Peer, tag: i32) -> bool {
        self.context == context
            && self.source.is_none_or(|wanted| wanted == source)
            && match self.tag {
                TagSelect::Exactly(wanted) => wanted == tag,
                TagSelect::Any => true,
                TagSelect::Masked { wanted, mask } => tag & mask == wanted & mask,
            }
    }

    fn key(&self) -> Key {
        let tag = match self.tag {
            TagSelect::Exactly(tag) => tag,
            TagSelect::Any => ANY_TAG,
            TagSelect::Masked { .. } => MASKED,
        };
        (self.context, self.source.unwrap_or(ANY_SOURCE), tag)
    }
}

/// Receives that wait for their message. `T` is the owner's data for each of them.
pub struct Posted<T> {
    /// The oldest receives, while all of them select the same. Usually these are all receives, and they are found by a comparison, without a hash
    /// table.
    run: Run<T>,
    /// The other receives, all younger than the run.
    index: Index<1, (Select, T)>,
    /// Number of receives in `index` that do not select exactly one source and one tag.
    wild: usize,
}

/// Receives that select the same, oldest first: a queue of fixed capacity.
struct Run<T> {
    /// Their selection. Only valid while there are any.
    select: Select,
    owners: [(u32, T); MAX_RUN_RECEIVES],
    /// Number of the oldest receive's slot in `owners`, not reduced modulo the capacity.
    first: usize,
    len: usize,
    /// The number of the next receive.
    next: u32,
}

/// Bit that marks the numbers of receives in the run.
const RUN_BIT: u32 = 1 << 31;
/// Maximum number of receives in the run. Withdrawing one is a linear search.
const MAX_RUN_RECEIVES: usize = 64;

impl<T: Copy + Default> Default for Posted<T> {
    fn default() -> Self {
        let nothing = Select {
            context: 0,
            source: None,
            tag: TagSelect::Any,
        };
        Posted {
            run: Run {
                select: nothing,
                owners: [(0, T::default()); MAX_RUN_RECEIVES],
                first: 0,
                len: 0,
                next: 0,
            },
            index: Index::default(),
            wild: 0,
        }
    }
}

impl<T: Copy> Run<T> {
    /// Adds a receive at the end. There must be fewer than [`MAX_RUN_RECEIVES`].
    #[inline(always)]
    fn push(&mut self, owner: T) -> u32 {
        let number = RUN_BIT | self.next;
        self.next = self.next.wrapping_add(1) & !RUN_BIT;
        self.owners[(self.first + self.len) % MAX_RUN_RECEIVES] = (number, owner);
        self.len += 1;
        number
    }

    #[inline(always)]
    fn oldest(&self) -> Option<T> {
        (self.len > 0).then(|| self.owners[self.first % MAX_RUN_RECEIVES].1)
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<T> {
        let oldest = self.oldest()?;
        self.first = self.first.wrapping_add(1);
        self.len -= 1;
        Some(oldest)
    }

    fn iter(&self) -> impl Iterator<Item = (u32, T)> {
        (0..self.len).map(|at| self.owners[(self.first + at) % MAX_RUN_RECEIVES])
    }

    /// Removes the receive with this number.
    fn remove(&mut self, number: u32) -> Option<T> {
        let at = self.iter().position(|(other, _)| other == number)?;
        let (_, owner) = self.owners[(self.first + at) % MAX_RUN_RECEIVES];
        for at in at + 1..self.len {
            self.owners[(self.first + at - 1) % MAX_RUN_RECEIVES] =
                self.owners[(self.first + at) % MAX_RUN_RECEIVES];
        }
        self.len -= 1;
        Some(owner)
    }
}

fn is_wild(select: &Select) -> bool {
    select.source.is_none() || !matches!(select.tag, TagSelect::Exactly(_))
}

impl<T: Copy> Posted<T> {
    /// Returns whether no receive is posted.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.run.len == 0 && self.index.is_empty()
    }

    /// Posts a receive. Returns its number, for `remove`.
    #[inline(always)]
    pub fn post(&mut self, select: Select, owner: T) -> u32 {
        if self.index.is_empty() {
            if self.run.len == 0 {
                self.run.select = select;
                return self.run.push(owner);
            }
            if self.run.len < MAX_RUN_RECEIVES && self.run.select == select {
                return self.run.push(owner);
            }
        }
        self.wild += is_wild(&select) as usize;
        self.index.insert([select.key()], (select, owner))
    }

    /// Posts a receive of messages of one source with one tag if it can join the run: all posted receives select the same, and there are fewer than
    /// [`MAX_RUN_RECEIVES`]. Returns its number, for `remove`, or `None`, without effect.
    #[inline(always)]
    pub fn post_alike(&mut self, context: u32, source: Peer, tag: i32, owner: T) -> Option<u32> {
        if !self.index.is_empty() {
            return None;
        }
        let run = &mut self.run;
        if run.len == 0 {
            run.select = Select {
                context,
                source: Some(source),
                tag: TagSelect::Exactly(tag),
            };
        } else if run.len == MAX_RUN_RECEIVES
            || run.select.context != context
            || run.select.source != Some(source)
            || run.select.tag != TagSelect::Exactly(tag)
        {
            return None;
        }
        Some(run.push(owner))
    }

    /// Returns the source, context, tag and owner of the oldest receive, if it selects one source and one tag.
    #[inline(always)]
    pub fn oldest(&self) -> Option<(Peer, u32, i32, T)> {
        let owner = self.run.oldest()?;
        let select = &self.run.select;
        match (select.source, select.tag) {
            (Some(source), TagSelect::Exactly(tag)) => Some((source, select.context, tag, owner)),
            _ => None,
        }
    }

    /// Returns the length of the run: how many receives select the same as the oldest one, without others between them.
    #[inline(always)]
    pub fn in_run(&self) -> usize {
        self.run.len
    }

    /// Removes the receive that `oldest` has returned. It has received its message.
    #[inline(always)]
    pub fn take_oldest(&mut self) {
        self.run.pop();
    }

    /// Removes and returns the oldest receive that selects this message, if there is one.
    #[inline(always)]
    pub fn take(&mut self, context: u32, source: Peer, tag: i32) -> Option<T> {
        if self.run.len > 0 && self.run.select.takes(context, source, tag) {
            return self.run.pop();
        }
        if self.index.is_empty() {
            return None;
        }
        self.take_indexed(context, source, tag)
    }

    fn take_indexed(&mut self, context: u32, source: Peer, tag: i32) -> Option<T> {
        let mut best = self.index.front(0, (context, source, tag));
        if self.wild > 0 {
            for key in [
                (context, ANY_SOURCE, tag),
                (context, source, ANY_TAG),
                (context, ANY_SOURCE, ANY_TAG),
            ] {
                let other = self.index.front(0, key);
                best = self.older(best, other);
            }
            for key in [(context, source, MASKED), (context, ANY_SOURCE, MASKED)] {
                let mut other = self.index.front(0, key);
                while let Some(id) = other {
                    let takes = self
                        .index
                        .get(id)
                        .is_some_and(|e| e.0.takes(context, source, tag));
                    if takes {
                        break;
                    }
                    other = self.index.after(0, id);
                }
                best = self.older(best, other);
            }
        }
        self.remove(best?)
    }

    fn older(&self, one: Option<u32>, other: Option<u32>) -> Option<u32> {
        match (one, other) {
            (Some(a), Some(b)) if self.index.age(b) < self.index.age(a) => Some(b),
            (Some(a), _) => Some(a),
            (None, b) => b,
        }
    }

    /// Returns the messages that a receive selects.
    pub fn select(&self, id: u32) -> Option<Select> {
        if id & RUN_BIT != 0 {
            return Some(self.run.select);
        }
        self.index.get(id).map(|(select, _)| *select)
    }

    /// Withdraws a receive and returns its owner, if it is still posted.
    pub fn remove(&mut self, id: u32) -> Option<T> {
        if id & RUN_BIT != 0 {
            return self.run.remove(id);
        }
        let (select, owner) = self.index.remove(id)?;
        self.wild -= is_wild(&select) as usize;
        Some(owner)
    }

    /// Returns all posted receives.
    pub fn iter(&self) -> impl Iterator<Item = (u32, (Select, T))> {
        let run = &self.run;
        let first = run.iter().map(|(id, owner)| (id, (run.select, owner)));
        first.chain(self.index.iter().map(|(id, &both)| (id, both)))
    }
}

/// A message that arrived before its receive.
#[derive(Debug)]
pub struct Waiting<T> {
    /// Its sender.
    pub source: Peer,
    /// Its context.
    pub context: u32,
    /// Its tag.
    pub tag: i32,
    /// The message, or its location.
    pub body: T,
}

/// Messages that arrived before their receive.
///
/// A message is *passed over* when a later one has been received while it still waits. Interfaces that notice one message after the other (PVM's
/// `pvm_nrecv`) know of passed-over messages already.
pub struct Unexpected<T> {
    index: Index<4, Waiting<T>>,
    /// Messages older than this were passed over.
    passed: u64,
}

impl<T> Default for Unexpected<T> {
    fn default() -> Self {
        Unexpected {
            index: Index::default(),
            passed: 0,
        }
    }
}

impl<T> Unexpected<T> {
    /// Memory overhead of a message here, in bytes, if the two lists that depend on its tag contain no other message.
    pub(crate) const MESSAGE_OVERHEAD_BYTES: usize =
        Index::<4, Waiting<T>>::ENTRY + 2 * Index::<4, Waiting<T>>::LIST;

    /// Returns whether no message waits.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the number of waiting messages.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Adds a message.
    pub fn push(&mut self, message: Waiting<T>) {
        let Waiting {
            context,
            source,
            tag,
            ..
        } = message;
        let keys = [
            (context, source, tag),
            (context, source, ANY_TAG),
            (context, ANY_SOURCE, tag),
            (context, ANY_SOURCE, ANY_TAG),
        ];
        self.index.insert(keys, message);
    }

    /// Returns the number of the oldest message that a receive selects, without removing it.
    pub fn find(&self, select: &Select) -> Option<u32> {
        let source = select.source.unwrap_or(ANY_SOURCE);
        let from_any = 2 * select.source.is_none() as usize;
        match select.tag {
            TagSelect::Exactly(tag) => self.index.front(from_any, (select.context, source, tag)),
            TagSelect::Any => self
                .index
                .front(from_any + 1, (select.context, source, ANY_TAG)),
            TagSelect::Masked { wanted, mask } => {
                let list = from_any + 1;
                let mut next = self.index.front(list, (select.context, source, ANY_TAG));
                while let Some(id) = next {
                    let tag = self.index.get(id).map(|message| message.tag);
                    if tag.is_some_and(|tag| tag & mask == wanted & mask) {
                        return Some(id);
                    }
                    next = self.index.after(list, id);
                }
                None
            }
        }
    }

    /// Does the same as `find`, for a selection of one source and one tag, among the messages for which `is` returns true.
    pub fn find_where(&self, select: &Select, is: impl Fn(&T) -> bool) -> Option<u32> {
        let mut next = self.find(select);
        while let Some(id) = next {
            if self.index.get(id).is_some_and(|message| is(&message.body)) {
                break;
            }
            next = self.index.after(0, id);
        }
        next
    }

    /// Returns a message.
    pub fn get(&self, id: u32) -> Option<&Waiting<T>> {
        self.index.get(id)
    }

    /// Returns a message, to change its data.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Waiting<T>> {
        self.index.get_mut(id)
    }

    /// Removes and returns a message that a receive selects. Older messages are then passed over.
    pub fn receive(&mut self, id: u32) -> Option<Waiting<T>> {
        let message = self.index.remove(id)?;
        self.passed = self.passed.max(self.index.age(id));
        Some(message)
    }

    /// Returns the index in `contexts` of the context whose oldest message arrived first.
    pub fn oldest_of(&self, contexts: &[u32]) -> Option<usize> {
        let fronts = contexts.iter().enumerate().filter_map(|(at, &context)| {
            let id = self.index.front(3, (context, ANY_SOURCE, ANY_TAG))?;
            Some((self.index.age(id), at))
        });
        fronts.min().map(|(_, at)| at)
    }

    /// Marks all waiting messages as passed over, since a later message was received without waiting.
    #[inline(always)]
    pub fn pass_over(&mut self) {
        self.passed = self.index.next_age();
    }

    /// Returns whether this message was passed over.
    pub fn is_passed(&self, id: u32) -> bool {
        self.index.age(id) < self.passed
    }

    /// Returns the age of a message: the number of messages that arrived before it.
    pub(crate) fn age(&self, id: u32) -> u64 {
        self.index.age(id)
    }

    /// Returns the number of messages that have arrived here so far.
    pub(crate) fn next_age(&self) -> u64 {
        self.index.next_age()
    }

    /// Removes a message that no receive takes.
    pub fn remove(&mut self, id: u32) -> Option<Waiting<T>> {
        self.index.remove(id)
    }

    /// Returns all messages, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Waiting<T>)> {
        self.index.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn select() -> impl Strategy<Value = Select> {
        let tag = prop_oneof![
            (0..3i32).prop_map(TagSelect::Exactly),
            Just(TagSelect::Any),
            (0..4i32, 0..4i32).prop_map(|(wanted, mask)| TagSelect::Masked { wanted, mask }),
        ];
        (0..2u32, prop::option::of(0..3u32), tag).prop_map(|(context, source, tag)| Select {
            context,
            source,
            tag,
        })
    }

    #[derive(Clone, Debug)]
    enum Step {
        Receive(Select),
        Message(u32, Peer, i32),
        Withdraw(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => select().prop_map(Step::Receive),
            4 => (0..2u32, 0..3u32, 0..4i32).prop_map(|(c, s, t)| Step::Message(c, s, t)),
            1 => any::<usize>().prop_map(Step::Withdraw),
        ]
    }

    /// A number of steps of one kind in a row, so that runs are filled beyond their capacity, wrap around, and lose receives from their middle.
    #[derive(Clone, Debug)]
    enum Many {
        Alike(u32, Peer, i32),
        Other(Select),
        Message(u32, Peer, i32),
        Oldest,
        Withdraw(usize),
    }

    fn many() -> impl Strategy<Value = (Many, usize)> {
        let message = || (0..2u32, 0..2u32, 0..2i32);
        let step = prop_oneof![
            6 => message().prop_map(|(c, s, t)| Many::Alike(c, s, t)),
            1 => select().prop_map(Many::Other),
            4 => message().prop_map(|(c, s, t)| Many::Message(c, s, t)),
            2 => Just(Many::Oldest),
            2 => any::<usize>().prop_map(Many::Withdraw),
        ];
        (step, 1..MAX_RUN_RECEIVES + 6)
    }

    /// Posted receives, and a plain list that must behave the same.
    #[derive(Default)]
    struct Both {
        posted: Posted<usize>,
        list: Vec<(Select, usize, u32)>,
        next: usize,
    }

    impl Both {
        fn post(&mut self, select: Select) {
            self.next += 1;
            let id = self.posted.post(select, self.next);
            self.list.push((select, self.next, id));
        }

        fn post_alike(&mut self, context: u32, source: Peer, tag: i32) {
            let select = Select {
                context,
                source: Some(source),
                tag: TagSelect::Exactly(tag),
            };
            let posted = self.posted.post_alike(context, source, tag, self.next + 1);
            let Some(id) = posted else {
                return self.post(select);
            };
            let alike = self.list.iter().all(|other| other.0 == select);
            assert!(alike && self.list.len() < MAX_RUN_RECEIVES);
            self.next += 1;
            self.list.push((select, self.next, id));
        }

        fn step(&mut self, step: &Many, turn: usize) {
            match *step {
                Many::Alike(context, source, tag) => self.post_alike(context, source, tag),
                Many::Other(select) => self.post(select),
                Many::Message(context, source, tag) => {
                    let takes = |other: &(Select, usize, u32)| other.0.takes(context, source, tag);
                    let at = self.list.iter().position(takes);
                    let expected = at.map(|at| self.list.remove(at).1);
                    assert_eq!(self.posted.take(context, source, tag), expected);
                }
                Many::Oldest => {
                    let Some((_, _, _, owner)) = self.posted.oldest() else {
                        return;
                    };
                    self.posted.take_oldest();
                    assert_eq!(self.list.remove(0).1, owner);
                }
                Many::Withdraw(which) if !self.list.is_empty() => {
                    let at = which.wrapping_add(turn * 7919) % self.list.len();
                    let (select, owner, id) = self.list.remove(at);
                    assert_eq!(self.posted.select(id), Some(select));
                    assert_eq!(self.posted.remove(id), Some(owner));
                    assert_eq!(self.posted.remove(id), None, "it is stale");
                }
                Many::Withdraw(_) => {}
            }
        }
    }

    proptest! {
        #[test]
        fn runs_are_like_a_plain_list(steps in prop::collection::vec(many(), 0..60)) {
            let mut both = Both::default();
            for (step, times) in steps {
                (0..times).for_each(|turn| both.step(&step, turn));
                let mut all: Vec<usize> = both.posted.iter().map(|(_, (_, owner))| owner).collect();
                all.sort_unstable();
                prop_assert_eq!(all, both.list.iter().map(|other| other.1).collect::<Vec<_>>());
            }
        }

        /// Compares with the reference matcher: two plain queues that are searched from the front.
        #[test]
        fn agrees_with_two_plain_queues(steps in prop::collection::vec(step(), 0..200)) {
            let (mut posted, mut unexpected) = (Posted::default(), Unexpected::default());
            let mut receives: Vec<(Select, usize, u32)> = vec![];
            let mut messages: Vec<(u32, Peer, i32, usize)> = vec![];
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Receive(select) => {
                        let expected = messages.iter().position(|m| select.takes(m.0, m.1, m.2));
                        let got = unexpected.find(&select).and_then(|id| unexpected.remove(id));
                        prop_assert_eq!(got.map(|m| m.body), expected.map(|at| messages[at].3));
                        match expected {
                            Some(at) => { messages.remove(at); }
                            None => receives.push((select, n, posted.post(select, n))),
                        }
                    }
                    Step::Message(context, source, tag) => {
                        let expected = receives.iter().position(|r| r.0.takes(context, source, tag));
                        let got = posted.take(context, source, tag);
                        prop_assert_eq!(got, expected.map(|at| receives[at].1));
                        match expected {
                            Some(at) => { receives.remove(at); }
                            None => {
                                unexpected.push(Waiting { source, context, tag, body: n });
                                messages.push((context, source, tag, n));
                            }
                        }
                    }
                    Step::Withdraw(which) if !receives.is_empty() => {
                        let (_, n, id) = receives.remove(which % receives.len());
                        prop_assert_eq!(posted.remove(id), Some(n));
                    }
                    Step::Withdraw(_) => {}
                }
                prop_assert_eq!(unexpected.len(), messages.len());
                prop_assert_eq!(posted.is_empty(), receives.is_empty());
            }
        }
    }
}
