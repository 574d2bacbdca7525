//! A peer that has the key but may be malicious: anything that it may send.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use regatta_memory::views::Views;
use regatta_wire::link::{HEAD, Head, MAX_CHUNK_BYTES, Parcel};
use regatta_wire::{Frame, Kind};

use super::link::{Link, MAX_PAYLOAD_BYTES, Trouble};
use super::outbox::RETAIN_BYTES;
use super::stream_limit::MAX_HELD_STREAMS;
use regatta_connection::channel::Channel;

const EMPTY: Frame = Frame {
    kind: Kind::Eager,
    context: 0,
    tag: 0,
};

/// Returns an open link, and the peer's end of its connection.
fn open() -> (Link, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    (Link::over(Channel::plain(OwnedFd::from(ours))), theirs)
}

/// Returns two links with one connection between them.
fn pair() -> [Link; 2] {
    let (ours, theirs) = UnixStream::pair().unwrap();
    [ours, theirs].map(|socket| Link::over(Channel::plain(OwnedFd::from(socket))))
}

/// Ends the streams whose receivers have received everything.
fn end_complete(link: &mut Link) {
    let complete = |link: &Link| {
        let mut outs = link.streams.outs().iter();
        outs.find(|stream| stream.complete).map(|stream| stream.id)
    };
    while let Some(id) = complete(link) {
        link.end_out(id);
    }
}

/// Lets both links write and read until everything that can be written has arrived. Only the second link takes
/// frames.
fn exchange(links: &mut [Link; 2]) {
    for _ in 0..4 {
        for link in links.iter_mut() {
            link.pump(16);
            link.receive();
        }
        let taker = &mut links[1];
        while let Some(head) = taker.front() {
            taker.take(&head);
        }
    }
}

/// Sends these bytes to the link, and takes all frames that it receives.
fn feed(link: &mut Link, theirs: &mut UnixStream, mut bytes: &[u8]) {
    let mut idle = 0;
    while idle < 3 && link.is_open() {
        idle += 1;
        if let Ok(n) = theirs.write(bytes)
            && n > 0
        {
            bytes = &bytes[n..];
            idle = 0;
        }
        link.receive();
        while let Some(head) = link.front() {
            let _ = link.inbox.payload(&head);
            link.take(&head);
            idle = 0;
        }
    }
}

fn frame(length: usize, word: u64) -> Head {
    let frame = Frame {
        kind: Kind::Eager,
        context: 0,
        tag: 0,
    };
    Head::frame(frame, length as u32, word)
}

fn chunk(stream: u32, offset: u64, length: usize) -> Vec<u8> {
    let mut head = Head::bare(Parcel::Chunk, stream, offset);
    head.length = length as u32;
    let mut bytes = head.encode().to_vec();
    bytes.resize(HEAD + length, 1);
    bytes
}

fn fault(bytes: &[u8]) -> Option<&'static str> {
    let (mut link, mut theirs) = open();
    feed(&mut link, &mut theirs, bytes);
    link.state.fault()
}

#[test]
fn what_breaks_the_protocol_is_a_fault() {
    let bare = |parcel| Head::bare(parcel, 0, 0).encode();
    let cases: [(Vec<u8>, &str); 9] = [
        (bare(Parcel::Closed).to_vec(), "invalid data from this task"),
        (vec![0; HEAD], "a header that is not valid"),
        (
            frame(MAX_PAYLOAD_BYTES + 1, 0).encode().to_vec(),
            "longer than the limit",
        ),
        (
            frame(0, 1).encode().to_vec(),
            "acknowledges data that was not sent",
        ),
        (bare(Parcel::Resume).to_vec(), "begins twice"),
        (chunk(2, 1, 1), "has a gap"),
        (chunk(2, 0, MAX_CHUNK_BYTES), "exceeds its length"),
        (chunk(2, u64::MAX, 1), "exceeds its length"),
        (chunk(1 << 20, 0, 1), "more streams than it may"),
    ];
    for (bytes, what) in cases {
        let found = fault(&bytes).unwrap_or("nothing");
        assert!(found.contains(what), "{found}, not {what}");
    }
}

#[test]
fn who_breaks_the_protocol_is_told() {
    let (mut link, mut theirs) = open();
    feed(&mut link, &mut theirs, &[0; HEAD]);
    let mut head = [0; HEAD];
    theirs.read_exact(&mut head).unwrap();
    let told = Head::decode(&head).unwrap();
    assert_eq!(told.parcel, Parcel::Closed);
    // The parcel is sent again if the peer connects again.
    assert_eq!(
        Head::decode(&link.first_head()).unwrap().parcel,
        Parcel::Closed
    );
}

/// Credit is handled when it arrives, but the frame that names a stream only when the engine takes it. So the initial
/// window must need no credit parcel.
#[test]
fn a_stream_its_receiver_has_opened_flows_without_a_word() {
    let (mut receiver, _theirs) = open();
    let id = receiver.streams.open_in();
    let (mut sender, _theirs) = open();
    sender.attach_out(id).unwrap();
    let mut bytes = vec![0; 1 << 20];
    // SAFETY: the bytes outlive the stream, and nothing else uses them.
    let message = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
    sender.streams.out(id).unwrap().message = Some(message);
    let granted = receiver.streams.in_stream(id).unwrap().limit;
    assert_eq!(
        sender.streams.outs()[0].sendable().map(|(_, left)| left),
        Some(1 << 20)
    );
    assert!(granted >= 1 << 20 && !receiver.streams.in_stream(id).unwrap().announce);
}

#[test]
fn a_frame_cut_short_is_waited_for() {
    let whole = [&frame(100, 0).encode()[..], &[7; 100]].concat();
    for cut in [0, 1, HEAD - 1, HEAD, HEAD + 1, whole.len() - 1] {
        let (mut link, mut theirs) = open();
        theirs.write_all(&whole[..cut]).unwrap();
        assert!(link.front().is_none());
        theirs.write_all(&whole[cut..]).unwrap();
        assert_eq!(link.front(), Some(frame(100, 0)));
    }
}

#[test]
fn finished_streams_that_nobody_drains_are_bounded_and_no_fault() {
    let mut links = pair();
    let mut bytes = vec![7; 20_000];
    // SAFETY: the bytes outlive the streams, and nothing else uses them.
    let message = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
    let mut told = Vec::new();
    for _ in 0..5 {
        while let Some(id) = links[0].open_out(&message) {
            told.push(id);
            exchange(&mut links);
            end_complete(&mut links[0]);
            assert!(told.len() as u64 <= MAX_HELD_STREAMS);
        }
        assert!(
            links[0].streams.outs().is_empty(),
            "a short stream needs no receive"
        );
        assert_eq!(told.len() as u64, MAX_HELD_STREAMS);
        for id in told.drain(..) {
            links[1].attach_in(id).unwrap();
            assert_eq!(
                links[1]
                    .streams
                    .in_stream(id)
                    .unwrap()
                    .release(&Views::none()),
                20_000
            );
            links[1].streams.release_in(id);
        }
        exchange(&mut links);
        assert_eq!(
            links.each_ref().map(|link| link.state.fault()),
            [None, None]
        );
    }
}

#[test]
fn streams_of_this_side_are_none_of_the_peers() {
    let (mut link, mut theirs) = open();
    (0..4 * MAX_HELD_STREAMS).for_each(|_| {
        link.streams.open_in();
    });
    feed(&mut link, &mut theirs, &chunk(2, 0, 1));
    assert_eq!(link.state.fault(), None);
}

/// A peer sends on streams with even numbers and receives on streams with odd ones. A stream of the other parity
/// would be mistaken for one of this task.
#[test]
fn a_stream_of_the_wrong_side_is_refused() {
    let (mut link, _theirs) = open();
    let mine = link.streams.open_in();
    let refused = |done| matches!(done, Err(Trouble::Corrupt(_)));
    assert!(refused(link.attach_in(mine)) && refused(link.attach_in(7)));
    assert!(refused(link.decline(mine)) && refused(link.decline(7)));
    assert!(refused(link.attach_out(2)) && refused(link.attach_out(8)));
    assert_eq!(
        (link.streams.ins_mut().len(), link.streams.outs().len()),
        (1, 0)
    );
}

/// The frame that names a stream may still wait when the stream is abandoned, and must be handled first.
#[test]
fn a_stream_is_given_up_behind_the_frame_that_names_it() {
    let given_up = |parcel| {
        let (mut link, mut theirs) = open();
        feed(&mut link, &mut theirs, &chunk(2, 0, 1000));
        feed(&mut link, &mut theirs, &Head::bare(parcel, 2, 0).encode());
        assert_eq!(link.state.fault(), None);
        link
    };
    let mut named = given_up(Parcel::Cancelled);
    assert!(named.attach_in(2).is_ok());
    named.abandon_in(2);
    assert!(named.streams.ins_mut().is_empty());
    assert!(given_up(Parcel::Retracted).streams.ins_mut().is_empty());
    let mut declined = given_up(Parcel::Cancelled);
    assert!(declined.decline(2).is_ok() && declined.streams.ins_mut().is_empty());
}

#[test]
fn whoever_takes_no_frames_may_send_streams_on_and_on() {
    let mut links = pair();
    let mut bytes = vec![7; 20_000];
    // SAFETY: the bytes outlive the streams, and nothing else uses them.
    let message = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
    // SAFETY: the block is empty.
    let nothing = unsafe { Views::block(bytes.as_mut_ptr(), 0) };
    let frame = Frame {
        kind: Kind::Eager,
        context: 0,
        tag: 0,
    };
    let mut frames = 0;
    while links[1].outbox.has_room(0) {
        links[1].send(frame, &nothing);
        frames += 1;
        exchange(&mut links);
    }
    let mut sent = 0;
    for _ in 0..20_000 {
        let Some(id) = links[0].open_out(&message) else {
            break;
        };
        sent += 1;
        exchange(&mut links);
        end_complete(&mut links[0]);
        links[1].attach_in(id).unwrap();
        links[1]
            .streams
            .in_stream(id)
            .unwrap()
            .release(&Views::none());
        links[1].streams.release_in(id);
    }
    exchange(&mut links);
    assert_eq!(
        links.each_ref().map(|link| link.state.fault()),
        [None, None]
    );
    assert!((1000..10_000).contains(&sent), "{sent} streams");
    // Once it takes them, it may open streams again.
    for _ in 0..frames {
        let head = links[0].front().expect("all have come");
        links[0].take(&head);
        exchange(&mut links);
    }
    assert!(links[0].streams.outs().is_empty() && links[0].open_out(&message).is_some());
}

/// A peer may learn late of a connection that was made long ago. The connection is then lost, but that is no fault.
#[test]
fn a_connection_heard_of_late_is_only_lost() {
    let (mut link, mut theirs) = open();
    link.send(
        Frame {
            kind: Kind::Eager,
            context: 0,
            tag: 0,
        },
        &Views::none(),
    );
    feed(&mut link, &mut theirs, &frame(0, HEAD as u64).encode());
    // A position from before the peer received that frame.
    let begins = |untaken, word| Head::bare(Parcel::Resume, untaken, word);
    assert!(matches!(link.resume(&begins(0, 0)), Err(Trouble::Lost)));
    let size = HEAD as u64;
    assert!(link.resume(&begins(0, size)).is_ok());
    for (untaken, word) in [(0, 2 * size), (HEAD as u32, 2 * size), (HEAD as u32, 0)] {
        let nonsense = link.resume(&begins(untaken, word));
        assert!(matches!(nonsense, Err(Trouble::Corrupt(_))), "{nonsense:?}");
    }
}

/// Not every failure to send is caused by an end that the receiving side would notice by itself.
#[test]
fn a_connection_that_takes_nothing_more_comes_to_its_end() {
    let (mut link, mut theirs) = open();
    theirs.write_all(&frame(0, 0).encode()).unwrap();
    link.state.channel().expect("it is open").close_sending();
    let head = frame(0, 0);
    let Parcel::Frame(kind) = head.parcel else {
        panic!("it is a frame");
    };
    let (context, tag) = (head.context, head.tag);
    link.send(Frame { kind, context, tag }, &Views::none());
    // The frame that had arrived is returned before the loss is noticed.
    assert_eq!(link.front(), Some(head));
    link.take(&head);
    assert_eq!(link.front(), None);
    assert!(!link.is_open() && link.state.is_lost() && link.needs_connection());
}

#[test]
fn who_only_sends_is_held_up() {
    let (mut link, mut theirs) = open();
    let one = [
        &frame(MAX_PAYLOAD_BYTES, 0).encode()[..],
        &vec![7; MAX_PAYLOAD_BYTES],
    ]
    .concat();
    let mut sent = 0usize;
    for _ in 0..1000 {
        // The frames are not taken.
        while let Ok(n) = theirs.write(&one[sent % one.len()..]) {
            sent += n;
        }
        link.receive();
    }
    assert!(link.is_open() && link.state.fault().is_none());
    assert!(sent < 4 << 20, "{sent} bytes went in");
    // Each chunk is on its own stream, which it ends.
    let (mut link, mut theirs) = open();
    for stream in 1..20_000 {
        let mut last = chunk(2 * stream, 0, 1);
        last[1] = 1;
        feed(&mut link, &mut theirs, &last);
    }
    assert!(link.state.fault().is_some());
}

/// Parcels for the peer wait: the newest of each kind.
#[test]
fn whoever_sends_and_reads_nothing_is_told_no_more_than_fits() {
    let (mut link, mut theirs) = open();
    let mut sent = 0;
    while !link.is_blocked() {
        link.send(EMPTY, &Views::none());
        sent += 1;
    }
    for _ in 0..100 {
        link.streams.open_in();
    }
    let one = [
        &frame(MAX_PAYLOAD_BYTES, 0).encode()[..],
        &vec![7; MAX_PAYLOAD_BYTES],
    ]
    .concat();
    let many = 1000;
    for _ in 0..many {
        feed(&mut link, &mut theirs, &one);
        link.streams
            .ins_mut()
            .iter_mut()
            .for_each(|stream| stream.announce = true);
    }
    assert!(link.is_open() && link.outbox.urged() < 2 << 10);
    // When it reads at last, it receives the present positions.
    let (mut frames, mut taken, mut streams) = (0, 0, HashSet::new());
    while frames < sent || taken < link.inbox.taken - RETAIN_BYTES as u64 / 4 || streams.len() < 100
    {
        link.pump(0);
        let mut head = [0; HEAD];
        theirs.read_exact(&mut head).unwrap();
        let head = Head::decode(&head).unwrap();
        theirs
            .read_exact(&mut vec![0; head.length as usize])
            .unwrap();
        match head.parcel {
            Parcel::Frame(_) => frames += 1,
            Parcel::Taken => taken = head.word,
            Parcel::Credit => _ = streams.insert(head.context),
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        fault(&bytes);
    }

    #[test]
    fn any_parcels_are_taken_or_refused(
        parcels in prop::collection::vec((0u8..40, any::<bool>(), 0u32..70_000, 0u32..9, 0u64..3), 0..40),
    ) {
        let mut bytes = vec![];
        for (kind, last, length, context, word) in parcels {
            let length = if kind == 34 { 8 } else { length };
            let mut head = Head::bare(Parcel::Taken, context, word * 30_000).encode();
            (head[0], head[1]) = (kind, (last && kind == 32) as u8);
            let bare = matches!(kind, 16..=19 | 33 | 35);
            let length = if bare { 0 } else { length };
            head[4..8].copy_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&head);
            bytes.resize(bytes.len() + length as usize, 3);
        }
        fault(&bytes);
    }
}
