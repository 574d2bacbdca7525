//! Records of profiled tasks: rejected, or read as consistent numbers.

use regatta_record::{EVENTS_AT, MAGIC, Record, head, words};

/// Number of events for which the records made here have room.
const EVENTS: usize = 4;

/// Reads the bytes as a record, and as changes of words of a record that has the right size: four bytes are the
/// position, eight the word.
pub fn profile(bytes: &[u8]) {
    let _ = Record::read(bytes);
    let mut whole = vec![0u64; words(EVENTS)];
    for change in bytes.chunks_exact(12) {
        let (place, word) = change.split_at(4);
        let place = u32::from_le_bytes(place.try_into().expect("four bytes")) as usize;
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        // A quarter of the changes are in the header, and a quarter in the events.
        let at = match place % 4 {
            0 => place / 4 % head::WORDS,
            1 => EVENTS_AT + place / 4 % (words(EVENTS) - EVENTS_AT),
            _ => place / 4 % words(EVENTS),
        };
        whole[at] = word;
    }
    whole[head::MAGIC] = MAGIC;
    whole[head::SIZE] = words(EVENTS) as u64;
    whole[head::EVENTS] = EVENTS as u64;
    let whole: Vec<u8> = whole.iter().flat_map(|word| word.to_le_bytes()).collect();
    let found = Record::read(&whole).expect("a record");
    assert!(found.events.len() <= EVENTS);
    assert!(found.events.is_sorted_by_key(|event| event.began));
    for event in &found.events {
        assert!(event.began <= event.ended);
    }
    for module in &found.modules {
        assert!(module.begin < module.end && !module.path.is_empty());
    }
    assert!(found.head.last >= found.head.began);
    assert!(Record::read(&whole[..whole.len() - 1]).is_err());
}
