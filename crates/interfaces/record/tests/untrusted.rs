//! Arbitrary files are read without harm, and what a task writes is read back unchanged.

use proptest::prelude::*;
use regatta_record::{Call, EventKind, Fault, MAGIC, Record, event, head, name, thread, words};
use regatta_record::{EVENTS_AT, NAMES_AT, SAMPLES_AT, THREADS_AT, call, peer};

const EVENT_CAPACITY: usize = 4;

/// Returns a record with these words set.
fn record(written: &[(usize, u64)]) -> Vec<u8> {
    let mut all = vec![0u64; words(EVENT_CAPACITY)];
    all[head::MAGIC] = MAGIC;
    all[head::SIZE] = words(EVENT_CAPACITY) as u64;
    all[head::EVENTS] = EVENT_CAPACITY as u64;
    for &(at, word) in written {
        all[at] = word;
    }
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn an_empty_record_is_one_of_no_task() {
    let found = Record::read(&record(&[])).expect("a record");
    assert_eq!(found.head.task, None);
    assert!(found.threads.is_empty() && found.events.is_empty() && found.names.is_empty());
}

#[test]
fn numbers_are_read_where_they_were_written() {
    let calls = THREADS_AT + thread::CALLS + usize::from(Call::named("rg_recv").0) * call::WORDS;
    let peers = THREADS_AT + thread::PEERS_AT;
    let name = NAMES_AT + 3 * name::WORDS;
    let event = EVENTS_AT + 2 * event::WORDS;
    let text = u64::from_le_bytes(*b"step\0\0\0\0");
    let number = Call::named("rg_recv").0;
    let found = Record::read(&record(&[
        (head::TASK, 8),
        (head::LAST, 1000),
        (head::EVENT_COUNT, 7),
        (THREADS_AT + thread::USED, 1),
        (THREADS_AT + thread::TAKEN, 1),
        (THREADS_AT + thread::BEGAN, 400),
        (calls + call::COUNT, 5),
        (calls + call::TIME, 77),
        (peers + peer::TASK, 3),
        (peers + peer::RECEIVED, 5),
        (peers + peer::RECEIVED_BYTES, 40),
        (name, text),
        (name + regatta_record::name::MARKS, 2),
        (SAMPLES_AT + 20, 0x1234),
        (SAMPLES_AT + 21, 9),
        (event, event::pack(number, event::RECEIVED, 0, 6)),
        (event + event::BEGAN, 500),
        (event + event::ENDED, 600),
        (event + event::BYTES, 8),
        (event + event::PEER, 2 | (11 << 32)),
    ]))
    .expect("a record");
    assert_eq!((found.head.task, found.head.events_lost), (Some(7), 3));
    let part = &found.threads[0];
    assert_eq!(
        (part.life, part.calls[0].count, part.calls[0].time),
        (600, 5, 77)
    );
    assert_eq!(part.calls[0].call.name(), "rg_recv");
    assert_eq!(
        (part.peers[0].task, part.peers[0].received_bytes),
        (Some(2), 40)
    );
    assert_eq!((found.names[0].number, &*found.names[0].text), (3, "step"));
    assert_eq!(
        (found.samples[0].address, found.samples[0].count),
        (0x1234, 9)
    );
    let event = found.events[0];
    assert_eq!(event.kind, EventKind::Call(Call::named("rg_recv")));
    assert_eq!((event.began, event.ended, event.bytes), (500, 600, 8));
    assert_eq!((event.peer, event.tag, event.sequence), (Some(2), 11, 6));
    assert!(event.received && !event.sent && !event.failed);
}

#[test]
fn files_of_others_and_cut_ones_are_none() {
    let whole = record(&[]);
    assert_eq!(Record::read(b"").err(), Some(Fault::Strange));
    assert_eq!(Record::read(&[7; 100]).err(), Some(Fault::Strange));
    assert_eq!(
        Record::read(&whole[..whole.len() - 8]).err(),
        Some(Fault::Size)
    );
    assert_eq!(Record::read(&whole[..20]).err(), Some(Fault::Size));
    let other = u64::from_le_bytes(*b"RGprof99");
    assert_eq!(
        Record::read(&record(&[(head::MAGIC, other)])).err(),
        Some(Fault::Version)
    );
    for room in [0, 3, 8, 1 << 40, u64::MAX] {
        let fault = Record::read(&record(&[(head::EVENTS, room)])).err();
        assert_eq!(fault, Some(Fault::Size), "{room}");
    }
}

/// Damages each word of a time or a count separately.
#[test]
fn numbers_that_the_job_had_no_time_for_do_not_fit_it() {
    let call = THREADS_AT + thread::CALLS + usize::from(Call::named("rg_recv").0) * call::WORDS;
    let name = NAMES_AT + 3 * name::WORDS;
    let sound = [
        (head::BEGAN, 5_000_000),
        (head::LAST, 6_000_000),
        (head::SAMPLES, 3),
        (head::PERIOD, 1000),
        (head::PROCESSOR, 900_000),
        (THREADS_AT + thread::USED, 1),
        (THREADS_AT + thread::TAKEN, 1),
        (THREADS_AT + thread::BEGAN, 5_000_000),
        (call + call::COUNT, 5),
        (call + call::TIME, 77),
        (call + call::MAX_TIME, 70),
        (call + call::FAILED, 1),
        (name + regatta_record::name::TIMES, 2),
        (name + regatta_record::name::TIME, 20),
        (THREADS_AT + thread::PEERS_AT + peer::SENT, 3),
        (THREADS_AT + thread::SENT_SIZES, 3),
    ];
    let whole = Record::read(&record(&sound)).expect("a record");
    assert!(whole.fits(1_000_000) && !whole.fits(500_000));
    let more = [
        (head::OFF, 0),
        (call + call::BUSY, 0),
        (name + regatta_record::name::MARKS, 0),
        (THREADS_AT + thread::LIFE, 0),
        (THREADS_AT + thread::RECEIVED_SIZES + 1, 0),
        (SAMPLES_AT + 1, 0),
    ];
    for (at, _) in sound.into_iter().chain(more) {
        if [THREADS_AT + thread::USED, THREADS_AT + thread::TAKEN].contains(&at) {
            continue;
        }
        let damaged = [&sound[..], &[(at, 1 << 60)]].concat();
        let damaged = Record::read(&record(&damaged)).expect("a record");
        // A thread that began later has less time, so a large value here is possible.
        let late = at == THREADS_AT + thread::BEGAN;
        assert_eq!(damaged.fits(1_000_000), late, "word {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A record of the right size with arbitrary words has only ordered times and non-empty ranges after it is read.
    #[test]
    fn any_words_are_read_without_harm(
        seed in any::<u64>(),
        dense in any::<bool>(),
    ) {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut all = record(&[]);
        for at in 3..all.len() / 8 {
            if dense || next() % 8 == 0 {
                let word = match next() % 3 {
                    0 => u64::MAX,
                    1 => next() % 300,
                    _ => next(),
                };
                all[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
            }
        }
        let found = Record::read(&all).expect("a record");
        prop_assert!(found.events.len() <= EVENT_CAPACITY);
        prop_assert!(found.events.iter().all(|event| event.began <= event.ended));
        prop_assert!(found.modules.iter().all(|module| module.begin < module.end));
        prop_assert!(found.head.last >= found.head.began);
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = Record::read(&bytes);
        let mut begun = MAGIC.to_le_bytes().to_vec();
        begun.extend(bytes);
        prop_assert_eq!(Record::read(&begun).err(), Some(Fault::Size));
    }
}
