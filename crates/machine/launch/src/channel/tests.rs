//! A channel over two pipes, or over a connection.

use std::net::TcpListener;
use std::os::fd::OwnedFd;

use regatta_connection::calls::{Call, CallListener, Greeting, Keys};

use regatta_job::{End, Ended};
use regatta_segment::job::{Cause, TaskState};
use regatta_wire::control::RequestError;
use regatta_wire::world::World;

use super::messages::{Hello, Message, Order, Report, Token, VERSION};
use super::*;

fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe().expect("a pipe")
}

/// Returns both ends of a channel.
fn channel() -> (Link, Link) {
    let ((left_in, right_out), (right_in, left_out)) = (pipe(), pipe());
    (
        Link::new(left_in, left_out).expect("a link"),
        Link::new(right_in, right_out).expect("a link"),
    )
}

fn output(bytes: &[u8]) -> Report {
    Report::Output {
        rank: 3,
        stream: 1,
        bytes: bytes.to_vec(),
    }
}

#[test]
fn messages_arrive_whole_and_in_order_whatever_fits_at_once() {
    let (mut here, mut there) = channel();
    let reports: Vec<Report> = (0..40_u8).map(|n| output(&vec![n; 20_000])).collect();
    for report in &reports {
        here.send(report).expect("a short message");
    }
    let mut got = Vec::new();
    while got.len() < reports.len() {
        here.flush();
        there.read();
        while let Some(report) = there.next::<Report>().expect("a message") {
            got.push(report);
        }
    }
    assert!(got == reports);
    assert!(!there.is_ended());
    drop(here);
    there.read();
    assert!(there.is_ended());
}

#[test]
fn noise_before_the_greeting_is_skipped_and_what_follows_is_kept() {
    let (mut here, mut there) = channel();
    here.send_raw(b"Welcome!\nno newline here");
    here.send_raw(b"\nregatta-agent 1.2\n");
    here.send(&Report::Settled { starts: 0 })
        .expect("a short message");
    there.read();
    assert_eq!(
        there.line("regatta-"),
        Ok(Some("regatta-agent 1.2".to_owned()))
    );
    assert_eq!(
        there.next::<Report>(),
        Ok(Some(Report::Settled { starts: 0 }))
    );
    assert_eq!(there.next::<Report>(), Ok(None));
}

#[test]
fn endless_noise_is_refused() {
    let (mut here, mut there) = channel();
    here.send_raw(&vec![b'x'; 2 * MAX_NOISE_BYTES]);
    let ended = std::iter::from_fn(|| {
        here.flush();
        there.read();
        Some(there.line("regatta-"))
    });
    let answer = ended.take(1000).find(|line| *line != Ok(None));
    assert_eq!(answer, Some(Err(Malformed)));
}

#[test]
fn a_frame_that_is_too_long_is_refused_by_both_sides() {
    let (mut here, mut there) = channel();
    let bytes = vec![0; MAX_FRAME_BYTES];
    assert_eq!(here.send(&output(&bytes)), Err(Malformed));
    here.send_raw(&(MAX_FRAME_BYTES as u32 + 1).to_le_bytes());
    there.read();
    assert_eq!(there.next::<Order>(), Err(Malformed));
}

/// Returns both ends of a connection: the caller's and the called one's.
fn connection() -> (Link, Link) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    let mut listener = CallListener::new(listener.into()).expect("a listener");
    let keys = Keys::new(&[7; 32]);
    let mut call = Some(Call::to(address).expect("a call"));
    let (mut here, mut there) = (None, None);
    while here.is_none() || there.is_none() {
        there = listener.attend(&keys).pop().or(there);
        here = match call.take().map(|call| call.advance(&keys)) {
            Some(Greeting::Authenticated(conversation)) => Some(conversation),
            Some(Greeting::Pending(under)) => {
                call = Some(under);
                None
            }
            None => here,
            Some(_) => panic!("nobody answers"),
        };
    }
    let link = |end: Option<Conversation>| Link::of_call(end.expect("an end"));
    (link(here), link(there))
}

#[test]
fn a_connection_carries_what_pipes_carry() {
    let (mut launcher, mut agent) = connection();
    let bytes = vec![7; 1 << 20];
    agent
        .send(&Report::Answer { bytes: vec![1] })
        .expect("room");
    launcher.send(&Order::Charge { bytes }).expect("room");
    launcher.send(&Order::Beat {}).expect("room");
    let (mut heard, mut answered) = (Vec::new(), None);
    while heard.len() < 2 || answered.is_none() {
        launcher.flush();
        agent.flush();
        agent.read();
        launcher.read();
        heard.extend(agent.next::<Order>().expect("an order"));
        answered = answered.or(launcher.next::<Report>().expect("a report"));
    }
    assert_eq!(heard[1], Order::Beat {});
    assert!(matches!(&heard[0], Order::Charge { bytes } if bytes.len() == 1 << 20));
    launcher.close();
    while !agent.is_ended() {
        agent.read();
    }
}

const EXAMPLES: &str = "\
hello 0101000000010000000200000001000000610100000068000000000100000000000000000000ffff0a000001030000000000000000000000000000000000
prepared 03010000000100000000000000000000000000ffff0a0000010200
output 060300000001000000010000006f
ended 070100000002000000020000000900000001000000
entered 0e0100000001030100000073
beat 0b
gone 0401000000010200000000000000
enter 0e01000000010200000000010000000300000000
copy 1301010000000100
beat 08
";

#[test]
fn messages_of_this_version_have_these_bytes() {
    fn line(name: &str, message: &impl Message) -> String {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{name} {hex}\n")
    }
    let hello = Hello {
        cores: 1,
        allowed: vec![2],
        architecture: "a".to_owned(),
        host: "h".to_owned(),
        candidates: Vec::new(),
        launcher: Some([10, 0, 0, 1].into()),
        port: 3,
        token: Token::default(),
    };
    let prepared = Report::Prepared {
        addresses: vec![(1, ([10, 0, 0, 1], 2).into())],
    };
    let ended = Ended {
        rank: 1,
        pid: 2,
        end: End::Signalled {
            signal: 9,
            core: true,
        },
        state: TaskState::Joined,
    };
    let entered = Report::Entered {
        first: 1,
        refused: Some((RequestError::Memory, "s".to_owned())),
    };
    let world = World {
        first: 1,
        parent: Some(2),
        request: None,
        places: vec![(3, None)],
    };
    let gone = Order::Gone {
        rank: 1,
        cause: Some(Cause::Lost),
    };
    let copy = Order::Copy {
        change: true,
        bytes: vec![1],
        last: false,
    };
    let now = [
        line("hello", &Report::Hello { hello }),
        line("prepared", &prepared),
        line("output", &output(b"o")),
        line("ended", &Report::Ended { task: ended }),
        line("entered", &entered),
        line("beat", &Report::Beat {}),
        line("gone", &gone),
        line("enter", &Order::Enter { world }),
        line("copy", &copy),
        line("beat", &Order::Beat {}),
    ]
    .concat();
    assert_eq!(
        now, EXAMPLES,
        "what launchers and agents say to each other has changed: raise VERSION in crates/machine/launch/src/channel/messages.rs (now {VERSION}) if this is intended, and write these lines into EXAMPLES:\n{now}"
    );
}
