//! The basic elements of a datatype, in order.

use std::sync::Arc;

use super::builtin::Basic;

/// A sequence of basic elements.
#[derive(Debug)]
pub enum Signature {
    /// Elements of one basic type, and their number.
    Of(&'static Basic, usize),
    /// Elements of several basic types, each with their number.
    Elements(Box<[(&'static Basic, usize)]>, Totals),
    /// A sequence repeated several times.
    Repeat(Arc<Signature>, usize, Totals),
    /// Several sequences.
    List(Box<[Arc<Signature>]>, Totals),
}

/// Totals of a sequence.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Size in memory, in bytes.
    pub bytes: usize,
    /// Number of elements.
    pub elements: usize,
    /// Size in external32, in bytes.
    pub external: usize,
}

impl Signature {
    /// Returns the empty sequence.
    pub fn none() -> Arc<Signature> {
        Arc::new(Signature::List(Box::default(), Totals::default()))
    }

    /// Returns its totals.
    pub fn totals(&self) -> Totals {
        match self {
            Signature::Of(basic, count) => Totals {
                bytes: basic.size * count,
                elements: *count,
                external: basic.external * count,
            },
            Signature::Elements(_, totals)
            | Signature::Repeat(_, _, totals)
            | Signature::List(_, totals) => *totals,
        }
    }

    /// Appends elements of one basic type to a list for [`Signature::of_elements`].
    pub fn append(list: &mut Vec<(&'static Basic, usize)>, basic: &'static Basic, count: usize) {
        match list.last_mut() {
            Some((last, before)) if std::ptr::eq(*last, basic) => *before += count,
            _ => list.push((basic, count)),
        }
    }

    /// Returns the sequence of these elements, of which there is at least one.
    pub fn of_elements(list: Vec<(&'static Basic, usize)>) -> Arc<Signature> {
        if let [(basic, count)] = list[..] {
            return Arc::new(Signature::Of(basic, count));
        }
        let mut totals = Totals::default();
        for (basic, count) in &list {
            totals.bytes += basic.size * count;
            totals.elements += count;
            totals.external += basic.external * count;
        }
        Arc::new(Signature::Elements(list.into(), totals))
    }

    /// Returns a sequence repeated `count` times.
    pub fn repeated(body: &Arc<Signature>, count: usize) -> Arc<Signature> {
        match **body {
            _ if count == 0 => Signature::none(),
            _ if count == 1 => body.clone(),
            Signature::Of(basic, inner) => Arc::new(Signature::Of(basic, inner * count)),
            _ => {
                let one = body.totals();
                let totals = Totals {
                    bytes: one.bytes * count,
                    elements: one.elements * count,
                    external: one.external * count,
                };
                Arc::new(Signature::Repeat(body.clone(), count, totals))
            }
        }
    }

    /// Returns several sequences as one.
    pub fn listed(parts: impl IntoIterator<Item = Arc<Signature>>) -> Arc<Signature> {
        let mut list: Vec<Arc<Signature>> = Vec::new();
        // Number of elements to add to the last sequence in the list, which have the same basic type.
        let mut more = 0;
        let prolong = |list: &mut Vec<Arc<Signature>>, more: &mut usize| {
            if let (1.., Some(last)) = (*more, list.last_mut())
                && let Signature::Of(basic, count) = **last
            {
                *last = Arc::new(Signature::Of(basic, count + *more));
            }
            *more = 0;
        };
        for part in parts {
            match (list.last().map(|last| &**last), &*part) {
                (_, it) if it.totals().bytes == 0 => continue,
                (Some(&Signature::Of(basic, _)), &Signature::Of(other, count))
                    if std::ptr::eq(basic, other) =>
                {
                    more += count;
                }
                _ => {
                    prolong(&mut list, &mut more);
                    list.push(part);
                }
            }
        }
        prolong(&mut list, &mut more);
        if let [one] = &list[..] {
            return one.clone();
        }
        let mut totals = Totals::default();
        for it in list.iter().map(|it| it.totals()) {
            totals.bytes += it.bytes;
            totals.elements += it.elements;
            totals.external += it.external;
        }
        Arc::new(Signature::List(list.into(), totals))
    }

    /// Returns the number of elements in the first `bytes` bytes. Returns `None` if the bytes end within an element.
    pub fn elements_in(&self, bytes: usize) -> Option<usize> {
        let whole = self.totals();
        if bytes >= whole.bytes {
            return (bytes == whole.bytes).then_some(whole.elements);
        }
        match self {
            Signature::Of(basic, _) => {
                (bytes.is_multiple_of(basic.size)).then_some(bytes / basic.size)
            }
            Signature::Elements(list, _) => {
                let (mut left, mut elements) = (bytes, 0);
                for (basic, count) in list {
                    let here = (*count).min(left / basic.size);
                    elements += here;
                    left -= here * basic.size;
                    if here < *count {
                        break;
                    }
                }
                (left == 0).then_some(elements)
            }
            Signature::Repeat(body, ..) => {
                let one = body.totals();
                let rest = body.elements_in(bytes % one.bytes)?;
                Some(bytes / one.bytes * one.elements + rest)
            }
            Signature::List(list, _) => {
                let (mut left, mut elements) = (bytes, 0);
                for part in list {
                    let one = part.totals();
                    if left < one.bytes {
                        return Some(elements + part.elements_in(left)?);
                    }
                    left -= one.bytes;
                    elements += one.elements;
                }
                (left == 0).then_some(elements)
            }
        }
    }

    /// Returns the size in bytes of the first `elements` elements. The sequence has at least as many.
    pub fn bytes_of(&self, elements: usize) -> usize {
        match self {
            Signature::Of(basic, _) => basic.size * elements,
            Signature::Elements(list, _) => {
                let (mut left, mut bytes) = (elements, 0);
                for (basic, count) in list {
                    let here = left.min(*count);
                    left -= here;
                    bytes += here * basic.size;
                }
                bytes
            }
            Signature::Repeat(body, ..) => {
                let one = body.totals();
                elements / one.elements * one.bytes + body.bytes_of(elements % one.elements)
            }
            Signature::List(list, _) => {
                let (mut left, mut bytes) = (elements, 0);
                for part in list {
                    let one = part.totals();
                    if left < one.elements {
                        return bytes + part.bytes_of(left);
                    }
                    left -= one.elements;
                    bytes += one.bytes;
                }
                bytes
            }
        }
    }

    /// Calls `visit` with the elements of `count` such sequences, several of the same basic type at a time.
    pub fn walk(&self, count: usize, visit: &mut impl FnMut(&'static Basic, usize)) {
        if let Signature::Of(basic, inner) = self {
            return visit(basic, inner * count);
        }
        for _ in 0..count {
            match self {
                Signature::Elements(list, _) => {
                    list.iter().for_each(|&(it, count)| visit(it, count))
                }
                Signature::Repeat(body, count, _) => body.walk(*count, visit),
                Signature::List(list, _) => list.iter().for_each(|part| part.walk(1, visit)),
                Signature::Of(..) => {}
            }
        }
    }
}
