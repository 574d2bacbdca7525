//! A change of a record's layout requires a new version.

use regatta_record::{VERSION, call, event, head, name, peer, thread, words};

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
        (VERSION, now),
        (
            4,
            [
                82837, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                32, 48, 64, 8, 968, 1232, 2517, 6, 5, 12, 5
            ]
        ),
        "the layout of a record has changed: raise VERSION in crates/interfaces/record/src/layout.rs if this is intended, and write these places here"
    );
}
