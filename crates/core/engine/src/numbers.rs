//! Contexts and tags, and the use of their ranges.
//!
//! A group has two contexts: its own, which is even, for the program's messages, and the next one for everything that its members do together.
//!
//! | contexts | use |
//! |---|---|
//! | 0, 1 | a task's world |
//! | 2 to `FIRST_SURVIVOR_CONTEXT` | groups whose members have agreed on them ([`making`](crate::making)) |
//! | `FIRST_SURVIVOR_CONTEXT` to `FIRST_CHANNEL_CONTEXT` | groups of survivors ([`shrink`](crate::shrink)) |
//! | from `FIRST_CHANNEL_CONTEXT` | channels |
//!
//! | tags in the second context | use |
//! |---|---|
//! | 0 to `LAST_COLLECTIVE` | collectives, by number |
//! | `EPOCH_TAG` | epoch messages, in the world only ([`epoch`](crate::epoch)) |
//! | `FORGET_TAG`, `DONE_TAG` | ends of freed groups ([`closing`](crate::closing)) |
//! | `REVOKED_TAG` | revocations ([`revoke`](crate::revoke)) |
//! | from `FIRST_AGREEMENT_TAG` | agreements, by number ([`agreement`](crate::agreement)) |
//! | from `FIRST_MAKING_TAG` | messages that make groups, by call ([`making`](crate::making)) |

/// The first context of groups of survivors.
pub(crate) const FIRST_SURVIVOR_CONTEXT: u32 = 1 << 30;
/// Number of contexts reserved for each number of a group of survivors. The context of the group that was shrunk, modulo this, selects one of them,
/// since groups that are shrunk at the same time may have the same number.
pub(crate) const CONTEXTS_PER_SURVIVORS: u32 = 1 << 11;
/// The first context of channels.
pub(crate) const FIRST_CHANNEL_CONTEXT: u32 = 1 << 31;

/// The last number of a collective. Then the numbers start again at 0.
pub(crate) const LAST_COLLECTIVE: i32 = 0x3fff_ffff;
/// Tag of epoch messages. The first tag that is not a collective's.
pub(crate) const EPOCH_TAG: i32 = FIRST_AGREEMENT_TAG - 4;
/// Tag of the message that ends a freed group.
pub(crate) const FORGET_TAG: i32 = FIRST_AGREEMENT_TAG - 3;
/// Tag of the message that a task has freed a group and is done with its agreements.
pub(crate) const DONE_TAG: i32 = FIRST_AGREEMENT_TAG - 2;
/// Tag of the message that a group is revoked.
pub(crate) const REVOKED_TAG: i32 = FIRST_AGREEMENT_TAG - 1;

const FIRST_AGREEMENT_TAG: i32 = 0x5000_0000;
const FIRST_MAKING_TAG: i32 = 0x6000_0000;
/// Tags of agreements and of makings are reused after this many.
const TAGS_PER_KIND: i32 = 1 << 28;

const _: () =
    assert!(LAST_COLLECTIVE < EPOCH_TAG && FIRST_MAKING_TAG - FIRST_AGREEMENT_TAG >= TAGS_PER_KIND);

/// Returns the tag of the agreement with this number.
pub(crate) fn of_agreement(number: u64) -> i32 {
    FIRST_AGREEMENT_TAG + (number % TAGS_PER_KIND as u64) as i32
}

/// Returns the tag of messages that make a group, for the call with this encoding.
pub(crate) fn of_making(word: u64) -> i32 {
    FIRST_MAKING_TAG + (word % TAGS_PER_KIND as u64) as i32
}

/// Returns whether a message is one by which members agree, make a group, or end one. Such messages are accepted even if the message buffer is full:
/// they are small, and other members wait for the answer.
pub(crate) fn is_word(context: u32, tag: i32) -> bool {
    context % 2 == 1 && (EPOCH_TAG..=FIRST_MAKING_TAG + (TAGS_PER_KIND - 1)).contains(&tag)
}

/// Returns whether a tag is that of messages that make groups.
pub(crate) fn is_of_making(tag: i32) -> bool {
    (FIRST_MAKING_TAG..=FIRST_MAKING_TAG + (TAGS_PER_KIND - 1)).contains(&tag)
}

/// Returns whether a message belongs to an agreement or to the end of a group. Such messages are handled even if the group is revoked.
pub(crate) fn is_kept(context: u32, tag: i32) -> bool {
    is_word(context, tag) && !is_of_making(tag)
}

/// Returns whether a message consists only of its tag and a few numbers. Other operations wait for the one that reads it.
pub(crate) fn is_short_word(tag: i32) -> bool {
    (EPOCH_TAG..FIRST_AGREEMENT_TAG).contains(&tag)
}
