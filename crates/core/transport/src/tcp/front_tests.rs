//! The beginning of a large message: system calls, parcels and copies that it must not need.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use regatta_connection::channel::Channel;
use regatta_memory::views::Views;
use regatta_secure::{Bounds, Callee, Caller, Session};
use regatta_wire::{Frame, Kind};

use super::link::Link;
use super::stream::FIRST_WINDOW_BYTES;

const OFFER: Frame = Frame {
    kind: Kind::Offer,
    context: 0,
    tag: 0,
};

/// Returns both ends of an encrypted session, whose keys change after `records` records.
pub(super) fn sessions(records: u64) -> [Session; 2] {
    let (key, bounds) = ([7; 32], Bounds::CONNECTION);
    let (caller, first) = Caller::begin(&key, b"test").unwrap();
    let (callee, second) = Callee::answer(&key, b"test", &first).unwrap();
    let (ours, third) = caller.finish(&second, bounds, records).unwrap();
    [ours, callee.finish(&third, bounds, records).unwrap()]
}

/// Returns both ends of a connection over these sockets.
pub(super) fn channels(sockets: [UnixStream; 2], is_secure: bool) -> [Channel; 2] {
    let mut channels = sockets.map(|socket| {
        socket.set_nonblocking(true).unwrap();
        Channel::plain(OwnedFd::from(socket))
    });
    if is_secure {
        for (channel, session) in channels.iter_mut().zip(sessions(u64::MAX)) {
            channel.secure(session);
        }
    }
    channels
}

fn links(is_secure: bool) -> [Link; 2] {
    let (ours, theirs) = UnixStream::pair().unwrap();
    channels([ours, theirs], is_secure).map(Link::over)
}

/// Returns the memory of a message or of its destination.
fn views(bytes: &mut [u8]) -> Views {
    // SAFETY: the tests keep the bytes for as long as a link uses them.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

/// Offers a message, and lets the other link poll once.
fn offer(links: &mut [Link; 2], message: &Views) -> u32 {
    let id = links[0].open_out(message).unwrap();
    links[0].send(OFFER, &views(&mut [1; 50]));
    links[1].receive();
    assert!(links[1].front().is_some());
    id
}

#[test]
fn the_front_of_a_message_goes_with_its_offer() {
    let (mut links, mut bytes) = (links(false), vec![7; 20_000]);
    let id = offer(&mut links, &views(&mut bytes));
    assert_eq!(links[1].streams.in_stream(id).unwrap().received, 20_000);
}

#[test]
fn what_comes_encrypted_goes_straight_to_its_place() {
    let mut links = links(true);
    let (mut bytes, mut place) = (
        vec![7; FIRST_WINDOW_BYTES as usize],
        vec![0; FIRST_WINDOW_BYTES as usize],
    );
    let (message, into) = (views(&mut bytes), views(&mut place));
    let id = offer(&mut links, &message);
    assert_eq!(links[1].streams.in_stream(id).unwrap().received, 0);
    links[1].attach_in(id).unwrap();
    while links[1].streams.in_stream(id).unwrap().received < FIRST_WINDOW_BYTES {
        assert!(links[1].pull(id, &into).unwrap());
        let stream = links[1].streams.in_stream(id).unwrap();
        assert!(stream.is_empty(), "nothing is held");
    }
    assert!(place == bytes);
}

#[test]
fn a_sender_is_told_to_go_on_only_where_it_would_stop() {
    let (mut links, mut bytes) = (links(false), vec![7; 20_000]);
    let id = offer(&mut links, &views(&mut bytes));
    links[1].attach_in(id).unwrap();
    let [mut short, mut long] = [2, 4].map(super::stream::InStream::new);
    short.extend(FIRST_WINDOW_BYTES);
    long.extend(FIRST_WINDOW_BYTES + 1);
    assert_eq!([short.announce, long.announce], [false, true]);
    assert!(!links[1].streams.in_stream(id).unwrap().announce);
}
