//! Peers, tags, and the status of messages.

use regatta_process as process;

use crate::error::{Error, Result};

/// The receiver of a message. Made from a rank, or from an `Option` of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The member of the group with this rank.
    Rank(usize),
    /// No receiver: the send completes at once, as with `MPI_PROC_NULL`. Programs then need no special cases at the edge of
    /// a grid.
    Nobody,
}

/// The sender that a receive takes messages from. Made from a rank, or from an `Option` of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The member of the group with this rank.
    Rank(usize),
    /// Any member.
    Any,
    /// No sender: the receive completes at once, empty.
    Nobody,
}

/// The tags that a receive matches. Made from a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagMatch {
    /// This tag.
    Exact(u32),
    /// Any tag.
    Any,
    /// Tags that agree with `tag` in the bits of `mask`.
    Masked {
        /// The value of the bits to compare.
        tag: u32,
        /// The bits to compare.
        mask: u32,
    },
}

/// The result of a send or receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The sender's rank in the group. `None` for sends, and for receives from [`Source::Nobody`].
    pub source: Option<usize>,
    /// The tag of the message; 0 without a source.
    pub tag: u32,
    /// Length of the message in bytes, even if it was truncated; 0 without a source.
    pub length: usize,
}

impl Status {
    /// Returns the number of whole elements of type `T` in the message.
    pub fn count<T>(&self) -> usize {
        self.length.checked_div(size_of::<T>()).unwrap_or(0)
    }

    pub(crate) fn of(status: &process::Status) -> Status {
        let source = usize::try_from(status.source).ok();
        Status {
            source,
            tag: source.map_or(0, |_| status.tag as u32),
            length: status.length,
        }
    }
}

impl From<usize> for To {
    fn from(rank: usize) -> To {
        To::Rank(rank)
    }
}

impl From<Option<usize>> for To {
    fn from(rank: Option<usize>) -> To {
        rank.map_or(To::Nobody, To::Rank)
    }
}

impl From<usize> for Source {
    fn from(rank: usize) -> Source {
        Source::Rank(rank)
    }
}

impl From<Option<usize>> for Source {
    fn from(rank: Option<usize>) -> Source {
        rank.map_or(Source::Nobody, Source::Rank)
    }
}

impl From<u32> for TagMatch {
    fn from(tag: u32) -> TagMatch {
        TagMatch::Exact(tag)
    }
}

/// Converts a rank to the engine's type. A rank that does not fit becomes `i32::MAX`, which no group has.
pub(crate) fn rank_number(rank: usize) -> i32 {
    i32::try_from(rank).unwrap_or(i32::MAX)
}

/// Converts a tag to the engine's type. Fails if it is above the maximum.
pub(crate) fn tag_number(tag: u32) -> Result<i32> {
    i32::try_from(tag).map_err(|_| Error::of(process::Error::Tag(tag.into())))
}

impl To {
    pub(crate) fn number(self) -> i32 {
        match self {
            To::Rank(rank) => rank_number(rank),
            To::Nobody => process::NONE,
        }
    }
}

impl Source {
    pub(crate) fn number(self) -> i32 {
        match self {
            Source::Rank(rank) => rank_number(rank),
            Source::Any => process::ANY,
            Source::Nobody => process::NONE,
        }
    }
}

impl TagMatch {
    pub(crate) fn select(self) -> Result<process::TagSelect> {
        Ok(match self {
            TagMatch::Exact(tag) => process::TagSelect::Exactly(tag_number(tag)?),
            TagMatch::Any => process::TagSelect::Any,
            TagMatch::Masked { tag, mask } => process::TagSelect::Masked {
                wanted: tag as i32,
                mask: mask as i32,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn numbers_that_do_not_exist_stay_wrong() {
        assert_eq!(To::from(usize::MAX).number(), i32::MAX);
        let error = TagMatch::from(1 << 31).select().unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Tag(1 << 31));
        assert_eq!(Source::from(None).number(), process::NONE);
    }
}
