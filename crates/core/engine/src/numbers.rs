//! Contexts and tags: which numbers are whose.
//!
//! A group has two contexts: its own, even, for the program's messages, and the next one for all that its members do together.
//!
//! | contexts | of |
//! |---|---|
//! | 0, 1 | a task's world |
//! | 2 to `FIRST_SURVIVOR_CONTEXT` | groups whose members have agreed on them ([`making`](crate::making)) |
//! | `FIRST_SURVIVOR_CONTEXT` to `FIRST_CHANNEL_CONTEXT` | groups of survivors ([`shrink`](crate::shrink)) |
//! | from `FIRST_CHANNEL_CONTEXT` | channels |
//!
//! | tags in the second context | of |
//! |---|---|
//! | 0 to `LAST_COLLECTIVE` | collectives, by number |
//! | `EPOCH_TAG` | words on epochs, in the world only ([`epoch`](crate::epoch)) |
//! | `FORGET_TAG`, `DONE_TAG` | ends of freed groups ([`closing`](crate::closing)) |
//! | `REVOKED_TAG` | revocations ([`revoke`](crate::revoke)) |
//! | from `FIRST_AGREEMENT_TAG` | agreements, by number ([`agreement`](crate::agreement)) |
//! | from `FIRST_MAKING_TAG` | words of makings, by call |

/// The first context of groups of survivors.
pub(crate) const FIRST_SURVIVOR_CONTEXT: u32 = 1 << 30;
/// Number of contexts set aside for each number of a group of survivors. The context of the group that was shrunk, modulo this, picks one of
/// them: groups that are shrunk at the same time may have the same number.
pub(crate) const CONTEXTS_PER_SURVIVORS: u32 = 1 << 11;
/// The first context of channels.
pub(crate) const FIRST_CHANNEL_CONTEXT: u32 = 1 << 31;

/// The last number of a collective; then they begin again.
pub(crate) const LAST_COLLECTIVE: i32 = 0x3fff_ffff;
/// A word on epochs: the first of the tags that are no collective's.
pub(crate) const EPOCH_TAG: i32 = FIRST_AGREEMENT_TAG - 4;
/// The last word of the end of a freed group.
pub(crate) const FORGET_TAG: i32 = FIRST_AGREEMENT_TAG - 3;
/// The first word of that end.
pub(crate) const DONE_TAG: i32 = FIRST_AGREEMENT_TAG - 2;
/// The word that a group is revoked.
pub(crate) const REVOKED_TAG: i32 = FIRST_AGREEMENT_TAG - 1;

const FIRST_AGREEMENT_TAG: i32 = 0x5000_0000;
const FIRST_MAKING_TAG: i32 = 0x6000_0000;
/// Tags of agreements, and of makings, are used again after so many.
const TAGS_PER_KIND: i32 = 1 << 28;

const _: () =
    assert!(LAST_COLLECTIVE < EPOCH_TAG && FIRST_MAKING_TAG - FIRST_AGREEMENT_TAG >= TAGS_PER_KIND);

/// Returns the tag of an agreement of this number.
pub(crate) fn of_agreement(number: u64) -> i32 {
    FIRST_AGREEMENT_TAG + (number % TAGS_PER_KIND as u64) as i32
}

/// Returns the tag of a making by the call with this word.
pub(crate) fn of_making(word: u64) -> i32 {
    FIRST_MAKING_TAG + (word % TAGS_PER_KIND as u64) as i32
}

/// Returns whether a message is what members tell each other so that they agree, make a group, or end one. It is taken in even where the buffer
/// for messages is full: it is little, and others wait for the answer.
pub(crate) fn is_word(context: u32, tag: i32) -> bool {
    context % 2 == 1 && (EPOCH_TAG..=FIRST_MAKING_TAG + (TAGS_PER_KIND - 1)).contains(&tag)
}

/// Returns whether a word is of a making.
pub(crate) fn is_of_making(tag: i32) -> bool {
    (FIRST_MAKING_TAG..=FIRST_MAKING_TAG + (TAGS_PER_KIND - 1)).contains(&tag)
}

/// Returns whether a message is of an agreement or of the end of a group: it goes on when the group is revoked.
pub(crate) fn is_kept(context: u32, tag: i32) -> bool {
    is_word(context, tag) && !is_of_making(tag)
}

/// Returns whether all of a word is its tag and a few numbers. Others wait for the operation that reads them.
pub(crate) fn is_short_word(tag: i32) -> bool {
    (EPOCH_TAG..FIRST_AGREEMENT_TAG).contains(&tag)
}
