//! Records of a stream that is cut, changed, reordered, or written by a peer that has the keys and breaks the rules.

use std::io::{self, IoSlice, IoSliceMut};

use proptest::prelude::*;

use crate::cipher::Cipher;
use crate::opener::Opener;
use crate::record::MAX_BODY_BYTES;
use crate::{Bounds, Callee, Caller, HEAD, MAX_CONTENT_BYTES, Session, TAG};

/// Limits with which keys change often.
const SMALL: Bounds = Bounds {
    least: 3,
    most: 9,
    bytes: 6 * MAX_BODY_BYTES as u64,
};

/// Returns both ends of a channel, each with its limits. The caller changes its key after this many records.
fn pair(bounds: [Bounds; 2], records: u64) -> [Session; 2] {
    let (caller, first) = Caller::begin(&[7; 32], b"test").unwrap();
    let (callee, second) = Callee::answer(&[7; 32], b"test", &first).unwrap();
    let (ours, third) = caller.finish(&second, bounds[0], records).unwrap();
    [ours, callee.finish(&third, bounds[1], u64::MAX).unwrap()]
}

/// Returns the two ciphers of one direction.
pub(crate) fn ciphers() -> [Cipher; 2] {
    [(); 2].map(|()| Cipher::new(&[7; 32]))
}

/// Sends `parts` in one call, and returns the sealed bytes.
fn sealed(session: &mut Session, parts: &[&[u8]]) -> io::Result<Vec<u8>> {
    let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut out = vec![];
    let sent = session.send(&slices, |bytes| {
        out.extend_from_slice(bytes);
        Ok(Some(bytes.len()))
    })?;
    assert_eq!(sent, parts.iter().map(|part| part.len()).sum::<usize>());
    assert!(session.is_flushed());
    Ok(out)
}

/// Seals this many messages, each as a record of its own.
fn sealed_one_by_one(session: &mut Session, messages: u64) -> Vec<u8> {
    let seal = |number: u64| sealed(session, &[&number.to_le_bytes()]).unwrap();
    (0..messages).flat_map(seal).collect()
}

/// Receives all of `bytes`, at most `piece` at a time, into two parts of `room` bytes together.
fn opened(session: &mut Session, bytes: &[u8], piece: usize, room: usize) -> io::Result<Vec<u8>> {
    let mut all = vec![];
    open_into(session, bytes, piece, room, &mut all).map(|()| all)
}

fn open_into(
    session: &mut Session,
    mut bytes: &[u8],
    piece: usize,
    room: usize,
    all: &mut Vec<u8>,
) -> io::Result<()> {
    let mut place = vec![0; room];
    while !bytes.is_empty() || session.holds_back() {
        let recv = |into: &mut [u8]| {
            let n = bytes.len().min(piece).min(into.len());
            into[..n].copy_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            Ok((n > 0).then_some(n))
        };
        let (one, two) = place.split_at_mut(room / 2);
        let mut parts = [IoSliceMut::new(one), IoSliceMut::new(two)];
        let n = session.recv(&mut parts, recv)?.unwrap_or(0);
        all.extend_from_slice(&place[..n]);
    }
    Ok(())
}

/// Sends a text from one end to the other.
pub(crate) fn exchange(from: &mut Session, to: &mut Session, text: &[u8]) {
    let bytes = sealed(from, &[text]).unwrap();
    assert_eq!(
        opened(to, &bytes, usize::MAX, 2 * text.len()).unwrap(),
        text
    );
}

/// Cuts a stream into its records.
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![];
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() {
        let length = usize::from(u16::from_be_bytes(*head));
        all.push(bytes[..HEAD + length].to_vec());
        bytes = &rest[length..];
    }
    all
}

fn is_change(record: &[u8]) -> bool {
    record.len() == HEAD + TAG
}

#[test]
fn keys_change_and_nothing_is_lost() {
    let expected: Vec<u8> = (0..2000u64).flat_map(u64::to_le_bytes).collect();
    for limit in [0, SMALL.least + 1, SMALL.most - 1, u64::MAX] {
        for (piece, room) in [(7, 5), (1000, 300), (usize::MAX, 1 << 20)] {
            let [mut ours, mut theirs] = pair([SMALL; 2], limit);
            let all = sealed_one_by_one(&mut ours, 2000);
            assert!(opened(&mut theirs, &all, piece, room).unwrap() == expected);
            // The other direction has its own keys, whatever this direction has changed.
            exchange(&mut theirs, &mut ours, b"answer");
        }
    }
}

#[test]
fn a_key_is_changed_when_it_is_told_to_and_within_the_bounds() {
    // The third message of the handshake is the first record under the first key.
    for (limit, first, then) in [(0, 2, 3), (5, 3, 4), (u64::MAX, 7, 8)] {
        let [mut ours, _] = pair([SMALL; 2], limit);
        let all = records(&sealed_one_by_one(&mut ours, 30));
        let runs: Vec<usize> = all
            .split(|record| is_change(record))
            .map(<[_]>::len)
            .collect();
        assert_eq!(runs[..2], [first, then]);
    }
}

#[test]
fn no_key_seals_more_bytes_than_it_may() {
    let [mut ours, mut theirs] = pair([SMALL; 2], u64::MAX);
    let text = vec![3; 100 * MAX_CONTENT_BYTES];
    let all = sealed(&mut ours, &[&text]).unwrap();
    assert!(opened(&mut theirs, &all, usize::MAX, 1 << 18).unwrap() == text);
    let sealed = |run: &[Vec<u8>]| run.iter().map(|one| (one.len() - HEAD) as u64).sum::<u64>();
    let all = records(&all);
    // The change itself is sealed as well.
    for run in all.split(|record| is_change(record)) {
        assert!(sealed(run) + TAG as u64 <= SMALL.bytes);
    }
    assert!(all.iter().filter(|one| is_change(one)).count() >= 100 / 6);
}

#[test]
fn what_cannot_be_sealed_does_not_go_out() {
    let used_up = Bounds { most: 0, ..SMALL };
    // A key that may seal no more, and may not be changed yet.
    let too_few_bytes = Bounds { bytes: 50, ..SMALL };
    for bounds in [used_up, too_few_bytes] {
        let [mut ours, _] = pair([bounds, SMALL], u64::MAX);
        let mut out = vec![];
        let mut send = |bytes: &[u8]| {
            out.extend_from_slice(bytes);
            Ok(Some(bytes.len()))
        };
        let secret = IoSlice::new(b"a secret that has more bytes");
        for _ in 0..2 {
            assert!(ours.send(&[secret], &mut send).is_err());
            assert!(ours.flush(&mut send).unwrap() && ours.is_flushed());
        }
        assert_eq!(out, []);
    }
}

#[test]
fn a_key_that_is_not_changed_in_time_opens_no_more() {
    let longer = Bounds { most: 12, ..SMALL };
    let [mut ours, mut theirs] = pair([longer, SMALL], u64::MAX);
    // With the third message of the handshake there are nine records under the first key.
    let all = records(&sealed_one_by_one(&mut ours, 9));
    let (last, before) = all.split_last().unwrap();
    assert_eq!(
        opened(&mut theirs, &before.concat(), 100, 100)
            .unwrap()
            .len(),
        8 * 8
    );
    assert!(opened(&mut theirs, last, 100, 100).is_err());
    // The bytes are limited, too.
    let longer = Bounds {
        bytes: SMALL.bytes + 1000,
        ..SMALL
    };
    let [mut ours, mut theirs] = pair([longer, SMALL], u64::MAX);
    let text = vec![3; 6 * MAX_CONTENT_BYTES];
    let all = sealed(&mut ours, &[&text]).unwrap();
    assert!(records(&all).iter().all(|record| !is_change(record)));
    assert!(opened(&mut theirs, &all, usize::MAX, 1 << 20).is_err());
}

/// Opens what a peer has sealed that has the keys but ignores the limits. Each content is a record; an empty one
/// changes the key.
fn forged(contents: &[&[u8]]) -> io::Result<usize> {
    let [mut ours, theirs] = ciphers();
    let mut all = vec![];
    for content in contents {
        let mut place = vec![0; content.len() + TAG];
        ours.seal(content, &mut place);
        all.extend_from_slice(&(place.len() as u16).to_be_bytes());
        all.extend_from_slice(&place);
        if content.is_empty() {
            ours.change();
        }
    }
    let (mut opener, mut bytes) = (Opener::new(theirs, SMALL), &all[..]);
    let mut done = 0;
    while !bytes.is_empty() || opener.holds_back() {
        let recv = |room: &mut [u8]| {
            room[..bytes.len()].copy_from_slice(bytes);
            Ok(Some(std::mem::take(&mut bytes).len()).filter(|&n| n > 0))
        };
        let mut place = [0; 100];
        let n = opener.recv(&mut [IoSliceMut::new(&mut place)], recv)?;
        done += n.unwrap_or(0);
    }
    Ok(done)
}

#[test]
fn changes_of_keys_out_of_place_are_refused() {
    let (data, change): (&[u8], &[u8]) = (b"data", b"");
    assert_eq!(
        forged(&[data, data, data, change, data, data, data, change, data]).unwrap(),
        28
    );
    for refused in [
        &[change][..],
        &[data, data, change],
        &[data, data, data, change, change],
        &[data, data, data, change, data, data, change],
        // The ninth record could only have changed the key.
        &[data, data, data, data, data, data, data, data, data, data],
    ] {
        assert!(forged(refused).is_err(), "{refused:?}");
    }
}

#[test]
fn a_peer_that_changes_its_keys_too_often_is_refused() {
    let hasty = Bounds { least: 2, ..SMALL };
    let [mut ours, mut theirs] = pair([hasty, SMALL], 0);
    let all = records(&sealed_one_by_one(&mut ours, 9));
    assert!(is_change(&all[1]) && is_change(&all[4]));
    assert!(opened(&mut theirs, &all[0], 100, 100).is_ok());
    assert!(opened(&mut theirs, &all[1], 100, 100).is_err());
}

/// A record from before the change that is received after it.
#[test]
fn the_key_before_opens_nothing_any_more() {
    let [mut ours, mut theirs] = ciphers();
    let sealed = [(); 2].map(|()| {
        let mut place = [0; 20];
        ours.seal(b"data", &mut place);
        place
    });
    assert!(theirs.open(&sealed[0], &mut [0; 4]));
    theirs.change();
    assert!(!theirs.open(&sealed[1], &mut [0; 4]));
    assert!(!theirs.open(&sealed[0], &mut [0; 4]));
}

#[test]
fn an_end_that_has_refused_something_takes_nothing_more() {
    let [mut ours, mut theirs] = pair([SMALL; 2], u64::MAX);
    let mut all = records(&sealed_one_by_one(&mut ours, 3));
    all[1][5] ^= 1;
    let mut got = vec![];
    assert!(open_into(&mut theirs, &all[..2].concat(), 100, 8, &mut got).is_err());
    assert_eq!(got, 0u64.to_le_bytes());
    assert!(
        theirs.holds_back(),
        "whoever looks must be told to look again"
    );
    all[1][5] ^= 1;
    assert!(opened(&mut theirs, &all[1..].concat(), 100, 8).is_err());
}

/// A change of the key that comes too early is a valid record, and other valid records may follow it.
#[test]
fn an_end_that_has_refused_a_change_takes_nothing_more() {
    let [mut ours, theirs] = ciphers();
    let mut all = vec![];
    for content in [&b"data"[..], b"", b"more"] {
        let mut place = vec![0; content.len() + TAG];
        ours.seal(content, &mut place);
        all.extend_from_slice(&(place.len() as u16).to_be_bytes());
        all.extend_from_slice(&place);
    }
    let mut opener = Opener::new(theirs, SMALL);
    let mut bytes = &all[..];
    let mut take = || {
        let recv = |room: &mut [u8]| {
            room[..bytes.len()].copy_from_slice(bytes);
            Ok(Some(std::mem::take(&mut bytes).len()).filter(|&n| n > 0))
        };
        opener.recv(&mut [IoSliceMut::new(&mut [0; 4])], recv)
    };
    assert_eq!(take().unwrap(), Some(4));
    for _ in 0..3 {
        assert!(take().is_err());
    }
}

#[test]
fn a_head_that_no_record_has_is_not_waited_for() {
    let [mut ours, mut theirs] = pair([SMALL; 2], u64::MAX);
    let mut bytes = sealed(&mut ours, &[b"data"]).unwrap();
    bytes.extend_from_slice(&[0, TAG as u8 - 1]);
    let mut take = |bytes: &[u8]| {
        let taken = theirs.recv(&mut [IoSliceMut::new(&mut [0; 4])], |room| {
            room[..bytes.len()].copy_from_slice(bytes);
            Ok((!bytes.is_empty()).then_some(bytes.len()))
        });
        (taken, theirs.holds_back())
    };
    // The socket does not become readable again, so the caller must be told to receive again.
    assert!(matches!(take(&bytes), (Ok(Some(4)), true)));
    assert!(take(&[]).0.is_err());
}

#[test]
fn records_are_taken_in_their_order_only() {
    let orders: [&[usize]; 7] = [
        &[1],
        &[0, 2],
        &[0, 0],
        &[0, 1, 0],
        &[0, 1, 2, 7],
        &[0, 1, 2, 3, 4, 5, 6, 8],
        &[0, 1, 2, 3, 4, 5, 6, 7, 7],
    ];
    // A handshake cannot be repeated: each order has its own channel, whose records are sent in that order.
    for order in orders {
        let [mut ours, mut theirs] = pair([SMALL; 2], u64::MAX);
        let all = records(&sealed_one_by_one(&mut ours, 20));
        assert!(is_change(&all[7]));
        let bytes: Vec<u8> = order.iter().flat_map(|&at| all[at].clone()).collect();
        assert!(
            opened(&mut theirs, &bytes, usize::MAX, 1000).is_err(),
            "{order:?}"
        );
    }
}

#[test]
fn records_of_another_direction_or_channel_are_refused() {
    let [mut ours, mut theirs] = pair([SMALL; 2], u64::MAX);
    let [mut others, _] = pair([SMALL; 2], u64::MAX);
    let back = sealed(&mut theirs, &[b"back"]).unwrap();
    assert!(opened(&mut theirs, &back, 100, 100).is_err());
    let other = sealed(&mut others, &[b"other"]).unwrap();
    let [_, mut theirs] = pair([SMALL; 2], u64::MAX);
    assert!(opened(&mut theirs, &other, 100, 100).is_err());
    assert!(opened(&mut ours, &other, 100, 100).is_err());
}

/// A stream that takes a few bytes at a time, or none now.
#[test]
fn what_is_not_taken_goes_later_and_sealing_waits_for_it() {
    let [mut ours, mut theirs] = pair([SMALL; 2], u64::MAX);
    let text: Vec<u8> = (0..300_000u32).map(|at| ((at * 7) >> 3) as u8).collect();
    let (mut done, mut out, mut turn) = (0, vec![], 0);
    while done < text.len() || !ours.is_flushed() {
        let send = |bytes: &[u8]| {
            turn += 1;
            let n = if turn % 3 == 0 {
                0
            } else {
                bytes.len().min(5000)
            };
            out.extend_from_slice(&bytes[..n]);
            Ok((n > 0).then_some(n))
        };
        done += ours.send(&[IoSlice::new(&text[done..])], send).unwrap();
    }
    assert!(opened(&mut theirs, &out, 3000, 1 << 20).unwrap() == text);
}

/// If the receiver asks for the same parts as the sender, every record is opened in place and none in the separate
/// buffer.
#[test]
fn a_record_that_fits_is_opened_in_its_place_and_ends_with_it() {
    let [mut ours, mut theirs] = pair([SMALL; 2], u64::MAX);
    let parts = [vec![1; 24], vec![2; 200_000], vec![3; 24]];
    let all = sealed(&mut ours, &[&parts[0], &parts[1], &parts[2]]).unwrap();
    let mut bytes = &all[..];
    let mut recv = |room: &mut [u8]| {
        let n = bytes.len().min(room.len());
        room[..n].copy_from_slice(&bytes[..n]);
        bytes = &bytes[n..];
        Ok((n > 0).then_some(n))
    };
    // A part with more room than the record: the next record does not fit into the rest, and waits for the next call.
    let mut head = vec![0; 25_000];
    let n = theirs
        .recv(&mut [IoSliceMut::new(&mut head)], &mut recv)
        .unwrap();
    assert_eq!((n, &head[..24]), (Some(24), &parts[0][..]));
    assert!(theirs.holds_back());
    let (mut body, mut tail) = (vec![0; 200_000], [9; 100]);
    let (mut done, mut looks) = (0, 0);
    while done < body.len() + 24 {
        let mut parts = [
            IoSliceMut::new(&mut body[done.min(200_000)..]),
            IoSliceMut::new(&mut tail[done.saturating_sub(200_000)..]),
        ];
        done += theirs.recv(&mut parts, &mut recv).unwrap().unwrap();
        looks += 1;
    }
    assert!(looks <= 2 && body == parts[1]);
    assert_eq!(tail[..24], parts[2]);
    assert_eq!(
        tail[24..],
        [9; 76],
        "nothing is written behind what has come"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_sealed_is_opened(
        sizes in prop::collection::vec(0usize..150_000, 1..4), piece in 1usize..400_000, room in 2usize..100_000, limit in 0u64..20,
    ) {
        let [mut ours, mut theirs] = pair([SMALL; 2], limit);
        let parts: Vec<Vec<u8>> = sizes.iter().map(|&n| (0..n).map(|i| (i * 7 + n) as u8).collect()).collect();
        let slices: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        let all = sealed(&mut ours, &slices).unwrap();
        prop_assert!(opened(&mut theirs, &all, piece, room).unwrap() == parts.concat());
    }

    /// A length that was increased makes the receiver wait for more; nothing of that record has been returned then.
    #[test]
    fn a_changed_bit_anywhere_ends_the_stream(
        sizes in prop::collection::vec(1usize..3000, 1..40), at in any::<prop::sample::Index>(), bit in 0u32..8,
    ) {
        let [mut ours, mut theirs] = pair([SMALL; 2], u64::MAX);
        let parts: Vec<Vec<u8>> = sizes.iter().map(|&size| vec![size as u8; size]).collect();
        let slices: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        let mut all = sealed(&mut ours, &slices).unwrap();
        let at = at.index(all.len());
        all[at] ^= 1 << bit;
        // More bytes follow, so that the receiver does not wait for ever.
        let more = sealed(&mut ours, &[&vec![9; 2 * MAX_CONTENT_BYTES]]).unwrap();
        let (mut got, mut before, mut place) = (vec![], 0, 0);
        let ended = open_into(&mut theirs, &[&all[..], &more].concat(), 1000, 2000, &mut got).is_err();
        all[at] ^= 1 << bit;
        for record in records(&all) {
            place += record.len();
            if place <= at {
                before += record.len() - HEAD - TAG;
            }
        }
        prop_assert!(ended);
        prop_assert!(got.len() <= before && parts.concat().starts_with(&got));
    }

    #[test]
    fn any_bytes_are_refused_or_waited_for(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        let [_, mut theirs] = pair([SMALL; 2], u64::MAX);
        let opened = opened(&mut theirs, &bytes, 1000, 500);
        prop_assert!(opened.is_err() || opened.is_ok_and(|got| got.is_empty()));
    }
}
