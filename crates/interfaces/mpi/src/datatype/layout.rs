//! The layout of a datatype's bytes: nested loops over runs of bytes.
//!
//! A layout begins at offset 0; its owner has its displacement. Adjacent runs are merged, and so are loops over
//! adjacent runs. Any range of the bytes is found by division or bisection, without reading from the start.

use std::sync::Arc;

/// Bytes of a datatype in the order of its type map.
#[derive(Debug)]
pub enum Layout {
    /// This many contiguous bytes; 0 for an empty datatype.
    Run(usize),
    /// A layout several times, with a constant stride.
    Repeat {
        /// Number of repetitions, at least 2.
        count: usize,
        /// Stride in bytes.
        stride: isize,
        /// The layout, which is not empty.
        body: Arc<Layout>,
    },
    /// A layout at several offsets.
    Same {
        /// The offsets in bytes.
        offsets: Box<[isize]>,
        /// The layout, which is not empty.
        body: Arc<Layout>,
    },
    /// Runs of several lengths, and their total length in bytes.
    Runs(Box<[RunStart]>, usize),
    /// Several layouts, and their total length in bytes.
    List(Box<[Part]>, usize),
}

/// Offset of a run, and number of bytes before it. Its length follows from the next run.
#[derive(Clone, Copy, Debug)]
pub struct RunStart {
    offset: isize,
    start: usize,
}

/// A layout in a list.
#[derive(Debug)]
pub struct Part {
    offset: isize,
    start: usize,
    body: Arc<Layout>,
}

/// A layout and its offset.
pub type Placed = (isize, Arc<Layout>);

/// `count` blocks of bytes; block k is at `offset + k * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset from the address to which the type map is relative.
    pub offset: isize,
    /// Length of a block in bytes.
    pub block: usize,
    /// Number of blocks.
    pub count: usize,
    /// Stride in bytes.
    pub stride: isize,
}

impl Piece {
    /// Returns a single block.
    pub fn one(offset: isize, block: usize) -> Piece {
        Piece {
            offset,
            block,
            count: 1,
            stride: 0,
        }
    }
}

/// Minimum average number of runs per loop for a long list of runs to be turned into loops.
const MIN_RUNS_PER_LOOP: usize = 16;
/// Maximum number of parts of a list that is inlined into a list that contains it, so that adjacent runs are merged.
const FLAT: usize = 64;

impl Layout {
    /// Returns its number of bytes.
    #[inline]
    pub fn size(&self) -> usize {
        match self {
            Layout::Run(size) | Layout::Runs(_, size) | Layout::List(_, size) => *size,
            Layout::Repeat { count, body, .. } => count * body.size(),
            Layout::Same { offsets, body } => offsets.len() * body.size(),
        }
    }

    /// Returns its length in bytes if it is one run.
    #[inline]
    pub fn run(&self) -> Option<usize> {
        match self {
            Layout::Run(length) => Some(*length),
            _ => None,
        }
    }

    /// Returns a layout repeated `count` times.
    pub fn repeated(body: &Arc<Layout>, count: usize, stride: isize) -> Arc<Layout> {
        match **body {
            _ if count == 1 => body.clone(),
            _ if count == 0 || body.size() == 0 => Arc::new(Layout::Run(0)),
            Layout::Run(length) if length as isize == stride => {
                Arc::new(Layout::Run(length * count))
            }
            Layout::Repeat {
                count: inner,
                stride: distance,
                ref body,
            } if (inner as isize).checked_mul(distance) == Some(stride) => {
                Layout::repeated(body, inner * count, distance)
            }
            _ => Arc::new(Layout::Repeat {
                count,
                stride,
                body: body.clone(),
            }),
        }
    }

    /// Calls `visit` with the pieces that make up bytes `from .. to`, in order.
    #[inline]
    pub fn walk(&self, at: isize, from: usize, to: usize, visit: &mut impl FnMut(Piece)) {
        if from == 0 && to == self.size() {
            return self.walk_all(at, visit);
        }
        match self {
            Layout::Run(_) => {
                if from < to {
                    visit(Piece::one(at + from as isize, to - from));
                }
            }
            Layout::Repeat {
                stride,
                body,
                count: _,
            } => walk_repeated(body, *stride, at, from, to, visit),
            Layout::Same { offsets, body } => {
                let size = body.size();
                chunks(size, from, to, |index, from, to| {
                    body.walk(at + offsets[index], from, to, visit);
                });
            }
            Layout::Runs(starts, size) => {
                let first = starts.partition_point(|it| it.start <= from);
                for index in first.saturating_sub(1)..starts.len() {
                    let RunStart { offset, start } = starts[index];
                    let end = starts.get(index + 1).map_or(*size, |next| next.start);
                    if start >= to {
                        break;
                    }
                    let (low, high) = (from.max(start), to.min(end));
                    let offset = at + offset + (low - start) as isize;
                    visit(Piece::one(offset, high - low));
                }
            }
            Layout::List(parts, _) => {
                let first = parts.partition_point(|it| it.start <= from);
                for part in &parts[first.saturating_sub(1)..] {
                    if part.start >= to {
                        break;
                    }
                    let low = from.max(part.start) - part.start;
                    let high = (to - part.start).min(part.body.size());
                    part.body.walk(at + part.offset, low, high, visit);
                }
            }
        }
    }

    #[inline]
    fn walk_all(&self, at: isize, visit: &mut impl FnMut(Piece)) {
        match self {
            Layout::Run(0) => {}
            Layout::Run(length) => visit(Piece::one(at, *length)),
            Layout::Repeat {
                count,
                stride,
                body,
            } => walk_all_repeated(body, *count, *stride, at, visit),
            Layout::Same { offsets, body } => {
                for &offset in offsets {
                    match **body {
                        Layout::Run(length) => visit(Piece::one(at + offset, length)),
                        _ => body.walk_all(at + offset, visit),
                    }
                }
            }
            Layout::Runs(starts, size) => {
                for (offset, length) in runs(starts, *size) {
                    visit(Piece::one(at + offset, length));
                }
            }
            Layout::List(parts, _) => {
                for part in parts {
                    part.body.walk_all(at + part.offset, visit);
                }
            }
        }
    }
}

/// Calls `visit` with the pieces that make up bytes `from .. to` of a layout that is repeated often enough.
#[inline]
pub fn walk_repeated(
    body: &Layout,
    stride: isize,
    at: isize,
    from: usize,
    to: usize,
    visit: &mut impl FnMut(Piece),
) {
    let size = body.size();
    let Layout::Run(block) = *body else {
        return chunks(size, from, to, |index, from, to| {
            body.walk(at + index as isize * stride, from, to, visit);
        });
    };
    if from >= to {
        return;
    }
    let place = |index: usize| at + index as isize * stride;
    let (mut first, skipped) = (from / block, from % block);
    let (last, end) = (to / block, to % block);
    if first == last {
        return visit(Piece::one(place(first) + skipped as isize, to - from));
    }
    if skipped != 0 {
        visit(Piece::one(place(first) + skipped as isize, block - skipped));
        first += 1;
    }
    if first < last {
        visit(Piece {
            offset: place(first),
            block,
            count: last - first,
            stride,
        });
    }
    if end != 0 {
        visit(Piece::one(place(last), end));
    }
}

#[inline]
fn walk_all_repeated(
    body: &Layout,
    count: usize,
    stride: isize,
    at: isize,
    visit: &mut impl FnMut(Piece),
) {
    if let Layout::Run(block) = *body {
        return visit(Piece {
            offset: at,
            block,
            count,
            stride,
        });
    }
    for index in 0..count {
        body.walk_all(at + index as isize * stride, visit);
    }
}

/// Splits bytes `from .. to` at multiples of `size`. Calls `each` with the index of each part, and the range in it.
#[inline]
fn chunks(size: usize, from: usize, to: usize, mut each: impl FnMut(usize, usize, usize)) {
    if from >= to {
        return;
    }
    let (mut index, mut low, mut left) = (from / size, from % size, to - from);
    while left != 0 {
        let length = left.min(size - low);
        each(index, low, low + length);
        (index, low, left) = (index + 1, 0, left - length);
    }
}

fn runs(starts: &[RunStart], size: usize) -> impl Iterator<Item = (isize, usize)> {
    let ends = starts.iter().skip(1).map(|next| next.start);
    let ends = ends.chain(std::iter::once(size));
    let pairs = starts.iter().zip(ends);
    pairs.map(|(run, end)| (run.offset, end - run.start))
}

/// Layouts that are to be combined into one, in order.
#[derive(Default)]
pub struct LayoutList(Vec<(isize, Body)>);

/// A layout in a list. A run, of which long lists have many, needs no allocation.
#[derive(Clone)]
enum Body {
    Run(usize),
    Of(Arc<Layout>),
}

impl Body {
    fn run(&self) -> Option<usize> {
        match self {
            Body::Run(length) => Some(*length),
            Body::Of(_) => None,
        }
    }

    fn size(&self) -> usize {
        match self {
            Body::Run(length) => *length,
            Body::Of(layout) => layout.size(),
        }
    }

    fn is_same(&self, other: &Body) -> bool {
        match (self, other) {
            (Body::Run(length), Body::Run(other)) => length == other,
            (Body::Of(layout), Body::Of(other)) => Arc::ptr_eq(layout, other),
            _ => false,
        }
    }

    fn layout(&self) -> Arc<Layout> {
        match self {
            Body::Run(length) => Arc::new(Layout::Run(*length)),
            Body::Of(layout) => layout.clone(),
        }
    }
}

impl LayoutList {
    /// Returns an empty list with capacity for `count` layouts.
    pub fn with_capacity(count: usize) -> LayoutList {
        LayoutList(Vec::with_capacity(count))
    }

    /// Adds a run of bytes, or extends the last run if they touch.
    pub fn add_run(&mut self, offset: isize, length: usize) {
        match self.0.last_mut() {
            _ if length == 0 => {}
            Some((before, Body::Run(known))) if *before + *known as isize == offset => {
                *known += length;
            }
            _ => self.0.push((offset, Body::Run(length))),
        }
    }

    /// Adds a layout.
    pub fn add(&mut self, offset: isize, layout: &Arc<Layout>) {
        match &**layout {
            Layout::Run(length) => self.add_run(offset, *length),
            Layout::List(inner, _) if inner.len() <= FLAT => {
                for part in inner {
                    self.add(part.offset + offset, &part.body);
                }
            }
            Layout::Runs(starts, size) if starts.len() <= FLAT => {
                for (within, length) in runs(starts, *size) {
                    self.add_run(within + offset, length);
                }
            }
            _ => self.0.push((offset, Body::Of(layout.clone()))),
        }
    }

    /// Returns the layout of all of them, in the shortest form.
    pub fn finish(mut self) -> Placed {
        self.group();
        let [(first, body), others @ ..] = &self.0[..] else {
            return (0, Arc::new(Layout::Run(0)));
        };
        if others.is_empty() {
            return (*first, body.layout());
        }
        if others.iter().all(|(_, it)| it.is_same(body)) {
            let offsets = self.0.iter().map(|(offset, _)| *offset).collect();
            let body = body.layout();
            return (0, Arc::new(Layout::Same { offsets, body }));
        }
        let mut size = 0;
        let mut place = |offset: isize, body: &Body| {
            let start = size;
            size += body.size();
            RunStart { offset, start }
        };
        if self.0.iter().all(|(_, body)| body.run().is_some()) {
            let starts = self.0.iter().map(|(offset, body)| place(*offset, body));
            let starts = starts.collect();
            return (0, Arc::new(Layout::Runs(starts, size)));
        }
        let parts = self.0.iter().map(|(offset, body)| {
            let RunStart { offset, start } = place(*offset, body);
            let body = body.layout();
            Part {
                offset,
                start,
                body,
            }
        });
        let parts = parts.collect();
        (0, Arc::new(Layout::List(parts, size)))
    }

    /// Replaces runs of the same length with a constant stride by loops, if that makes the list much shorter.
    fn group(&mut self) {
        let list = &self.0;
        let mut groups: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        while at < list.len() {
            if groups.len() >= 16 && (groups.len() + 1) * MIN_RUNS_PER_LOOP > list.len() {
                return;
            }
            let length = regular(&list[at..]);
            groups.push((at, length));
            at += length;
        }
        if groups.len() == list.len() {
            return;
        }
        let grouped = groups.iter().map(|&(first, count)| {
            let (offset, body) = &list[first];
            match count {
                1 => (*offset, body.clone()),
                _ => {
                    let stride = list[first + 1].0 - offset;
                    let layout = Layout::repeated(&body.layout(), count, stride);
                    (*offset, Body::Of(layout))
                }
            }
        });
        self.0 = grouped.collect();
    }
}

/// Returns the number of runs at the front that have the same length and a constant stride.
fn regular(list: &[(isize, Body)]) -> usize {
    let [(first, body), (second, _), ..] = list else {
        return 1;
    };
    let length = body.run();
    let stride = second.wrapping_sub(*first);
    let expected = |index: usize| first.wrapping_add((index as isize).wrapping_mul(stride));
    let fits = |&(index, (offset, it)): &(usize, &(isize, Body))| {
        length.is_some() && it.run() == length && *offset == expected(index)
    };
    match list.iter().enumerate().take_while(fits).count() {
        0..3 if list.len() != 2 => 1,
        0 => 1,
        count => count,
    }
}
