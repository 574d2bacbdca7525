//! Two links whose connection is cut while a message is in transit.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use regatta_connection::channel::Channel;
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};

use super::link::{Link, Trouble};

const EMPTY: Frame = Frame {
    kind: Kind::Eager,
    context: 0,
    tag: 0,
};
/// Size of the message in bytes, more than the buffers of a socket hold.
const SIZE: usize = 1 << 20;

/// Gives two links a new connection, which replaces the one they may have.
fn connect(links: &mut [Link; 2]) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    for (link, socket) in links.iter_mut().zip([ours, theirs]) {
        socket.set_nonblocking(true).unwrap();
        let channel = Channel::plain(OwnedFd::from(socket));
        link.adopt(channel, true).unwrap();
    }
    for link in links.iter_mut() {
        link.begin().unwrap();
        assert!(link.is_open());
    }
}

fn connected() -> [Link; 2] {
    let mut links = [Link::new(), Link::new()];
    connect(&mut links);
    links
}

/// Returns the memory of a message or of its destination.
fn views(bytes: &mut [u8]) -> Views {
    // SAFETY: the tests keep the bytes for as long as a link uses them.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

/// Sends and receives a part of the first link's stream. Returns whether it is complete.
fn flow(links: &mut [Link; 2], id: u32, into: &Views) -> bool {
    links[0].pump(1);
    links[1].pull(id, into).unwrap();
    links[1].pump(0);
    let stream = links[1].streams.in_stream(id).unwrap();
    stream.release(into);
    stream.extend(into.len() as u64);
    stream.total.is_some()
}

#[test]
fn nothing_is_sent_from_the_memory_of_a_message_that_its_receiver_has() {
    let mut links = connected();
    let (mut bytes, mut place) = (vec![7; SIZE], vec![0; SIZE]);
    let (message, into) = (views(&mut bytes), views(&mut place));
    let id = links[0].open_out(&message).unwrap();
    links[1].attach_in(id).unwrap();
    links[1].streams.in_stream(id).unwrap().extend(SIZE as u64);
    links[1].pump(0);
    links[0].receive();
    let enough = (0..10_000).any(|_| flow(&mut links, id, &into));
    assert!(enough, "all has come");
    links[1].streams.release_in(id);
    // The receiver's confirmation of the whole message is lost, so the sender begins again; then the confirmation
    // arrives.
    links
        .iter_mut()
        .for_each(|link| link.trouble(Trouble::Lost));
    connect(&mut links);
    links[0].pump(1);
    assert!(links[0].outbox.reads(&bytes.as_ptr_range()));
    links[1].pump(0);
    links[0].receive();
    assert!(links[0].streams.outs()[0].complete);
    links[0].end_out(id);
    assert!(!links[0].outbox.reads(&bytes.as_ptr_range()));
}

/// A receiver has room for the frames that its sender keeps, however often the connection is cut before they are
/// taken.
#[test]
fn frames_that_wait_leave_room_for_a_message_after_any_number_of_cuts() {
    let mut links = connected();
    let (mut bytes, mut place) = (vec![7; SIZE], vec![0; SIZE]);
    let (message, into) = (views(&mut bytes), views(&mut place));
    let mut payload = vec![1; 8 << 10];
    let payload = views(&mut payload);
    let id = links[0].open_out(&message).unwrap();
    links[1].attach_in(id).unwrap();
    for _ in 0..4 {
        for _ in 0..1000 {
            while links[0].outbox.has_room(payload.len()) {
                links[0].send(EMPTY, &payload);
            }
            links[0].pump(0);
            links[1].receive();
        }
        connect(&mut links);
    }
    let enough = (0..10_000).any(|_| {
        links[0].receive();
        flow(&mut links, id, &into)
    });
    assert!(enough, "{:?}", links[1].streams.in_stream(id));
    assert!(place == bytes);
    assert_eq!(
        links.each_ref().map(|link| link.state.fault()),
        [None, None]
    );
}
