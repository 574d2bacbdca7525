//! The layout of a record is held to its magic word.

use regatta_record::{CALLS, MAGIC, call, event, head, name, peer, thread, words};

#[test]
fn a_record_of_this_version_has_its_words_in_these_places() {
    let now = [
        words(1),
        head::SIZE,
        head::EVENTS,
        head::PID,
        head::TASK,
        head::BOOT,
        head::BEGAN,
        head::BEGAN_REAL,
        head::JOINED,
        head::LEFT,
        head::ENDED,
        head::PERIOD,
        head::SAMPLES,
        head::SAMPLES_LOST,
        head::EVENT_COUNT,
        head::OFF_SINCE,
        head::OFF,
        head::UNRECORDED,
        head::NAMES_LOST,
        head::MODULE_BYTES,
        head::PROCESSOR,
        head::LAST,
        head::HOST,
        head::PROGRAM,
        head::WORDS,
        thread::CALLS,
        thread::SENT_SIZES,
        thread::PEERS_AT,
        thread::WORDS,
        call::WORDS,
        peer::WORDS,
        name::WORDS,
        event::WORDS,
    ];
    assert_eq!(
        (MAGIC.to_le_bytes(), now),
        (
            *b"RGprof03",
            [
                82837, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                32, 48, 64, 8, 968, 1232, 2517, 6, 5, 12, 5
            ]
        ),
        "the layout of a record has changed: raise the version in MAGIC in crates/core/record/src/layout.rs if this is intended, and write these places here"
    );
}

/// Calls stand in records by number, so their order belongs to the version.
#[test]
fn calls_of_this_version_have_these_numbers() {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let names = CALLS.iter().flat_map(|(name, ..)| name.bytes().chain([0]));
    let now = names.fold(0xcbf2_9ce4_8422_2325, fnv);
    assert_eq!(
        (CALLS.len(), now),
        (128, 10_786_755_457_762_406_132),
        "the list of recorded calls or its order has changed: raise the version in MAGIC in crates/core/record/src/layout.rs, and write this hash here"
    );
}
