//! Keeps the encodings on connections in step with their version: examples of every encoding, as bytes.

use std::fmt::Write;

use regatta_connection::handshake::VERSION;
use regatta_wire::bypass::{self, Word};
use regatta_wire::deadlock_probe::DeadlockProbe;
use regatta_wire::hello::{Hello, Welcome};
use regatta_wire::link::{Head, Parcel};
use regatta_wire::{Clear, Frame, Kind, Loan, Offer, Token, Withdrawn};

const EXAMPLES: &str = "\
version 13
hello 72656761747461020100000002000000030000000400000001000000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
welcome 726567617474610201000000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
frame 010000000300000001000000feffffff0400000000000000
kinds 1013111220212225262324272b28292a
offer 010000000000000002000000000000000300000000000000bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
clear 0100000000000000bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
token 0100000000000000
loan 01000000000000000200000000000000
withdrawn 01000000000000000300000000000000
ask 01000000010000000000000000000000
state 0200000001000000020000000000000003000000
circle 030000000000000001000000000000000200000003000000
bypass 020000000002dc050300000004000000
front 02000000000202000000000188b500000003040000000500000000000000
group-front 03000000000602000000000188b5000000060000000000000003000000000000000000000000000000000000000000000000
entry 040005000600000000000000
word 01000000000000000200000000000000030000000000000004000000000000000b00000000000000
";

/// Returns one line for each example: its name and its bytes.
fn examples() -> String {
    let mut lines = format!("version {VERSION}\n");
    let mut example = |name: &str, bytes: &[u8]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(lines, "{name} {hex}");
    };
    let (nonce, route) = ([0xaa; 32], [0xbb; 24]);
    let hello = Hello {
        version: 1,
        tasks: 2,
        from: 3,
        to: 4,
        encrypted: true,
        nonce,
    };
    example("hello", &hello.encode());
    example("welcome", &Welcome { version: 1, nonce }.encode());
    let frame = Frame {
        kind: Kind::Eager,
        context: 1,
        tag: -2,
    };
    example("frame", &Head::frame(frame, 3, 4).encode());
    let kinds = [
        Parcel::Cancelled,
        Parcel::Retracted,
        Parcel::Complete,
        Parcel::Bye,
        Parcel::Chunk,
        Parcel::Taken,
        Parcel::Credit,
        Parcel::DeadlockProbe,
        Parcel::Released,
        Parcel::Resume,
        Parcel::Closed,
        Parcel::Disowned,
        Parcel::Shortage,
        Parcel::Bypass,
        Parcel::BypassKey,
        Parcel::Place,
    ];
    let kinds = kinds.map(|kind| Head::bare(kind, 0, 0).encode()[0]);
    example("kinds", &kinds);
    let offer = Offer {
        total: 1,
        token: 2,
        route,
        synchronous: true,
        streaming: true,
    };
    example("offer", &offer.encode());
    example("clear", &Clear { token: 1, route }.encode());
    example("token", &Token(1).encode());
    example("loan", &Loan { total: 1, place: 2 }.encode());
    let withdrawn = Withdrawn {
        token: 1,
        whole: true,
        asks: true,
    };
    example("withdrawn", &withdrawn.encode());
    example("ask", &DeadlockProbe::Ask(1).encode());
    let state = DeadlockProbe::State {
        number: 1,
        word: 2,
        looks: 3,
    };
    example("state", &state.encode());
    let circle = DeadlockProbe::Circle {
        word: 1,
        members: vec![2, 3],
    };
    example("circle", &circle.encode());
    let own = [2, 0, 0, 0, 0, 1];
    let offer = bypass::Offer {
        mac: [2, 0, 0, 0, 0, 2],
        mtu: 1500,
        tag: 3,
        slot: 4,
    };
    example("bypass", &offer.encode());
    let mut front = offer.front(&own);
    bypass::set_number(&mut front, 5);
    example("front", &front);
    let mut front = bypass::group_front(6, &own);
    bypass::set_receiver(&mut front, 1, 3);
    example("group-front", &front);
    example("entry", &bypass::entry(4, 5, 6));
    let word = Word {
        position: 1,
        after: 2,
        reached: 3,
        heard: 4,
        got: 5,
        asks: true,
    };
    example("word", &word.encode());
    lines
}

#[test]
fn what_flows_on_connections_of_this_version_has_these_bytes() {
    let now = examples();
    assert_eq!(
        now, EXAMPLES,
        "what flows on connections has changed: raise VERSION in crates/core/connection/src/handshake.rs if this is intended, and write these lines into EXAMPLES:\n{now}"
    );
}
