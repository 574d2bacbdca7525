//! The messages between the processes of a job and the daemons of its virtual machine.
//!
//! A process connects to the local socket of its host's daemon, which takes commands of people there, too: these begin with `{`, a process of
//! a job with [`PREAMBLE`]. Then messages follow as frames ([`crate::framing`]). The first message each way is `Hello`, with the protocol and the
//! identity of the program; where they differ both sides know both. One request comes next, and says what the connection is for:
//!
//! ```text
//! job                                     daemon
//! Watch        who is there?            >
//!                                       < Membership     at once and after each change; the latest counts
//!
//! Unreachable  who cannot reach whom    >                again at each change; counts as long as the connection
//!
//! Open         a shell on a host        >
//!                                       < Opened         or Refused, or NotOpened
//! Data, EndOfInput                     <>                ChannelMessage from here on
//!                                       < Errors, Closed
//!
//! Claim        the agent on a host      >                by a launcher that comes after another one
//!                                       < Opened         with the hosts that the agent names as successors, or as above
//! Lead         it is to follow me       >                or GiveUp: I will not lead after all
//! Data, EndOfInput                     <>
//!
//! OwnerLost    my launcher's host is    >                by an agent; again when its successors change
//!                                       < GivenUp        the host of this run will not lead
//!                                       < Led            the host of this run leads; with it comes a descriptor: the channel to it
//! ```
//!
//! Daemons pass messages of a channel on to each other as they are. A channel has a connection of its own, so who does not read holds up nobody
//! else: its daemon keeps some frames, and then leaves the rest to the kernels on the way, to the sender.

use std::net::SocketAddr;

use crate::{fields, framing, messages};

/// Raised when a message changes.
pub const PROTOCOL: u32 = 2;
/// The first bytes of a process of a job.
pub const PREAMBLE: [u8; 8] = *b"\0regatta";
/// Maximum size of the piece of a stream in one message of a channel, in bytes.
pub const MAX_PIECE_BYTES: usize = 64 << 10;
/// Maximum size of a channel's message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = MAX_PIECE_BYTES + 64;
/// The first byte of [`ChannelMessage::Closed`].
const CLOSED: u8 = 6;
/// Maximum size of a request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 1 << 20;

messages! {
    /// From a process of a job to the daemon of its host.
    pub FromJob {
        /// The first message.
        1 Hello { protocol: u32, identity: String }
        /// Report the membership, now and after each change.
        2 Watch {}
        /// These tasks of this job cannot reach each other; what was said before does not count any more.
        3 Unreachable { job: String, pairs: Vec<UnreachablePair> }
        /// A new shell on a host, for this job. Whether it stays, for another launcher, when this host is lost.
        4 Open { host: String, job: String, detachable: bool }
        /// The channel of this job's agent on a host, whose launcher's host is lost.
        5 Claim { host: String, job: String }
        /// The launcher's host is lost to the agent in this session; these runs of hosts may take it over.
        6 OwnerLost { session: u64, successors: Vec<String> }
    }
}

messages! {
    /// From a daemon to a process of a job of its host.
    pub FromDaemon {
        /// The first message.
        1 Hello { protocol: u32, identity: String }
        /// It cannot be done.
        2 Refused { sentence: String }
        /// The membership, as it is now.
        3 Membership { membership: Membership }
        /// The channel is there. Of a claimed one: the runs that its agent names.
        4 Opened { successors: Vec<String> }
        /// The host of this run leads from now on, at the other end of the descriptor that comes with this.
        5 Led { run: String }
        /// The host of this run will not lead.
        6 GivenUp { run: String }
        /// The channel has ended before it was there.
        7 NotOpened { end: ChannelEnd }
    }
}

messages! {
    /// On a channel to a shell on another host, in either direction.
    pub ChannelMessage {
        /// For the shell's input, or from its output; at most [`MAX_PIECE_BYTES`] bytes.
        1 Data { bytes: Vec<u8> }
        /// From its standard error.
        2 Errors { bytes: Vec<u8> }
        /// The launcher says no more.
        3 EndOfInput {}
        /// The agent of a claimed channel is to follow the host of this run.
        4 Lead { run: String }
        /// The host of this run, which has claimed the channel, will not lead.
        5 GiveUp { run: String }
        /// The channel has ended: the last message.
        6 Closed { end: ChannelEnd }
    }
}

messages! {
    /// Why a channel has ended.
    pub ChannelEnd {
        /// Its shell has, with this status.
        1 ShellEnded { status: i32 }
        /// The host at its other end is lost.
        2 HostLost { cause: String }
        /// The host at its other end has left, or its daemon has hung up.
        3 HostGone { sentence: String }
        /// The daemon of this host cuts it.
        4 Cut { sentence: String }
        /// The other hosts had declared this one dead, for this reason, and it goes on as another one.
        5 Renewed { why: String }
    }
}

/// A host of the machine that is not gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineHost {
    /// Its name; empty: it has not said it yet.
    pub name: String,
    /// The run of its daemon: another one after the host has been gone.
    pub run: String,
    /// Where its daemon is.
    pub address: SocketAddr,
    /// It has said what it is.
    pub described: bool,
    /// It is silent, and the verdict is still to come.
    pub suspected: bool,
}

fields!(MachineHost {
    name,
    run,
    address,
    described,
    suspected
});

/// The membership, as one host sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The run of this host.
    pub own: String,
    /// The hosts that are not gone, this one among them.
    pub hosts: Vec<MachineHost>,
    /// The latest runs of hosts that are gone, and why.
    pub gone: Vec<(String, String)>,
    /// Why this host may not take on work, if it may not.
    pub hindrance: Option<String>,
    /// The daemon ends, so nothing else follows.
    pub ending: bool,
}

fields!(Membership {
    own,
    hosts,
    gone,
    hindrance,
    ending
});

/// Tasks on two hosts that cannot reach each other: the first of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreachablePair {
    /// The host of the task that gets no answer.
    pub host: String,
    /// The other host.
    pub peer: String,
    /// The task that gets no answer.
    pub task: u32,
    /// The other task.
    pub peer_task: u32,
    /// Since when, in milliseconds before now.
    pub since_ms: u64,
    /// Each counts as dead for the other.
    pub given_up: bool,
}

fields!(UnreachablePair {
    host,
    peer,
    task,
    peer_task,
    since_ms,
    given_up
});

/// One of the streams of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// See [`ChannelMessage::Data`].
    Data = 1,
    /// See [`ChannelMessage::Errors`].
    Errors = 2,
}

/// Puts a piece of a stream behind what is there, as a frame, without a copy of it in between. At most [`MAX_PIECE_BYTES`] bytes are taken; how many.
pub fn put_piece(stream: Stream, bytes: &[u8], to: &mut Vec<u8>) -> usize {
    let bytes = &bytes[..bytes.len().min(MAX_PIECE_BYTES)];
    let length = bytes.len() as u32;
    to.extend_from_slice(&(length + 5).to_le_bytes());
    to.push(stream as u8);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(bytes);
    bytes.len()
}

/// Puts a message of a channel behind what is there, as a frame. Sentences of a daemon fit.
pub fn put(message: &ChannelMessage, to: &mut Vec<u8>) {
    let _ = framing::put(message, to);
}

/// The whole frames at the beginning of bytes of a channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WholeFrames {
    /// How many bytes they are.
    pub bytes: usize,
    /// The last one closes the channel. Bytes that follow it count for nothing.
    pub closes: bool,
    /// Bytes follow that begin no frame.
    pub then_nonsense: bool,
}

/// Counts the whole frames at the beginning of these bytes of a channel, also of those that come before nonsense.
pub fn whole_frames(bytes: &[u8]) -> WholeFrames {
    let mut whole = WholeFrames::default();
    while let Some(length) = bytes[whole.bytes..].first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_MESSAGE_BYTES {
            whole.then_nonsense = true;
            break;
        }
        let Some(body) = bytes[whole.bytes + 4..].get(..length) else {
            break;
        };
        whole.bytes += 4 + length;
        if body.first() == Some(&CLOSED) {
            whole.closes = true;
            break;
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Malformed;
    use crate::fields::Message;
    use crate::framing::FrameReader;

    fn returns<M: Message + PartialEq + std::fmt::Debug>(message: M) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        assert_eq!(M::decode(&bytes).as_ref(), Ok(&message));
        for cut in 0..bytes.len() {
            assert_eq!(M::decode(&bytes[..cut]), Err(Malformed), "{message:?}");
        }
        bytes.push(0);
        assert_eq!(M::decode(&bytes), Err(Malformed), "{message:?}");
    }

    fn text(text: &str) -> String {
        text.to_owned()
    }

    /// This many bytes of whole frames, and nothing special.
    fn counted(bytes: usize) -> WholeFrames {
        WholeFrames {
            bytes,
            ..WholeFrames::default()
        }
    }

    #[test]
    fn messages_of_jobs_round_trip_and_half_of_one_is_none() {
        returns(FromJob::Hello {
            protocol: PROTOCOL,
            identity: text("0.1"),
        });
        returns(FromJob::Watch {});
        returns(FromJob::Unreachable {
            job: text("alpha:1"),
            pairs: vec![UnreachablePair {
                host: text("beta"),
                peer: text("gamma"),
                task: 1,
                peer_task: 2,
                since_ms: 1 << 40,
                given_up: true,
            }],
        });
        returns(FromJob::Open {
            host: text("beta"),
            job: text("alpha:1"),
            detachable: true,
        });
        returns(FromJob::Claim {
            host: text("beta"),
            job: text("alpha:1"),
        });
        returns(FromJob::OwnerLost {
            session: 7,
            successors: vec![text("r1"), text("r2")],
        });
    }

    #[test]
    fn messages_of_daemons_round_trip_and_half_of_one_is_none() {
        returns(FromDaemon::Hello {
            protocol: PROTOCOL,
            identity: text("0.1"),
        });
        returns(FromDaemon::Refused {
            sentence: text("no"),
        });
        returns(FromDaemon::Opened {
            successors: vec![text("r1")],
        });
        returns(FromDaemon::Led { run: text("r1") });
        returns(FromDaemon::GivenUp { run: text("r1") });
        returns(FromDaemon::NotOpened {
            end: ChannelEnd::HostLost { cause: text("x") },
        });
        returns(FromDaemon::Membership {
            membership: Membership {
                own: text("r1"),
                hosts: vec![MachineHost {
                    name: text("beta"),
                    run: text("r2"),
                    address: "10.0.0.2:9".parse().expect("an address"),
                    described: true,
                    suspected: false,
                }],
                gone: vec![(text("r3"), text("it has been silent"))],
                hindrance: Some(text("alone")),
                ending: true,
            },
        });
    }

    #[test]
    fn messages_of_channels_round_trip_and_half_of_one_is_none() {
        returns(ChannelMessage::EndOfInput {});
        returns(ChannelMessage::Lead { run: text("r1") });
        returns(ChannelMessage::GiveUp { run: text("r1") });
        for end in [
            ChannelEnd::ShellEnded { status: -1 },
            ChannelEnd::HostLost { cause: text("x") },
            ChannelEnd::HostGone {
                sentence: text("x"),
            },
            ChannelEnd::Cut {
                sentence: text("x"),
            },
            ChannelEnd::Renewed { why: text("x") },
        ] {
            returns(ChannelMessage::Closed { end });
        }
    }

    #[test]
    fn pieces_are_messages_and_none_is_longer_than_one_may_be() {
        let bytes = vec![7; MAX_PIECE_BYTES + 1];
        let mut frame = Vec::new();
        assert_eq!(put_piece(Stream::Data, &bytes, &mut frame), MAX_PIECE_BYTES);
        assert_eq!(whole_frames(&frame), counted(frame.len()));
        assert_eq!(put_piece(Stream::Errors, b"oh", &mut frame), 2);
        let mut frames = FrameReader::default();
        frames.push(&frame);
        let piece = ChannelMessage::Data {
            bytes: bytes[..MAX_PIECE_BYTES].to_vec(),
        };
        assert_eq!(frames.next_message(), Ok(Some(piece)));
        let bytes = b"oh".to_vec();
        assert_eq!(
            frames.next_message(),
            Ok(Some(ChannelMessage::Errors { bytes }))
        );
    }

    #[test]
    fn the_last_message_of_a_channel_is_known_before_it_is_decoded() {
        let mut bytes = Vec::new();
        put_piece(Stream::Data, b"x", &mut bytes);
        let first = bytes.len();
        let end = ChannelEnd::ShellEnded { status: 0 };
        put(&ChannelMessage::Closed { end }, &mut bytes);
        for cut in 0..bytes.len() {
            let whole_ones = if cut < first { 0 } else { first };
            assert_eq!(whole_frames(&bytes[..cut]), counted(whole_ones));
        }
        let closed = WholeFrames {
            closes: true,
            ..counted(bytes.len())
        };
        assert_eq!(whole_frames(&bytes), closed);
        // Nothing follows it.
        put_piece(Stream::Data, b"x", &mut bytes);
        assert_eq!(whole_frames(&bytes), closed);
    }

    #[test]
    fn frames_that_come_together_with_nonsense_are_counted() {
        let nonsense = (MAX_MESSAGE_BYTES as u32 + 1).to_le_bytes();
        let mut bytes = Vec::new();
        for count in 0..3 {
            let whole = WholeFrames {
                then_nonsense: true,
                ..counted(bytes.len())
            };
            assert_eq!(whole_frames(&[&bytes[..], &nonsense].concat()), whole);
            put_piece(Stream::Data, &vec![7; count], &mut bytes);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages_of_a_session_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = FromJob::decode(&bytes);
            let _ = FromDaemon::decode(&bytes);
            let _ = ChannelMessage::decode(&bytes);
            let whole = whole_frames(&bytes);
            prop_assert!(whole.bytes <= bytes.len());
            // More of the stream changes nothing of what was counted.
            prop_assert_eq!(whole_frames(&bytes[..whole.bytes]).bytes, whole.bytes);
        }
    }

    const EXAMPLES: &str = "\
hello 01010000000100000069
open 040100000068010000006a01
lost 060100000000000000010000000100000072
opened 04010000000100000072
ended 070101000000
membership 030100000072010000000100000068010000007200000000000000000000ffff0a00000209000100010000000100000067010000007301010000006101
data 010100000001
";

    #[test]
    fn messages_of_this_protocol_have_these_bytes() {
        fn line(name: &str, message: &impl Message) -> String {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{name} {hex}\n")
        }
        let hello = FromJob::Hello {
            protocol: 1,
            identity: text("i"),
        };
        let open = FromJob::Open {
            host: text("h"),
            job: text("j"),
            detachable: true,
        };
        let lost = FromJob::OwnerLost {
            session: 1,
            successors: vec![text("r")],
        };
        let opened = FromDaemon::Opened {
            successors: vec![text("r")],
        };
        let ended = FromDaemon::NotOpened {
            end: ChannelEnd::ShellEnded { status: 1 },
        };
        let host = MachineHost {
            name: text("h"),
            run: text("r"),
            address: "10.0.0.2:9".parse().expect("an address"),
            described: true,
            suspected: false,
        };
        let membership = FromDaemon::Membership {
            membership: Membership {
                own: text("r"),
                hosts: vec![host],
                gone: vec![(text("g"), text("s"))],
                hindrance: Some(text("a")),
                ending: true,
            },
        };
        let data = ChannelMessage::Data { bytes: vec![1] };
        let now = [
            line("hello", &hello),
            line("open", &open),
            line("lost", &lost),
            line("opened", &opened),
            line("ended", &ended),
            line("membership", &membership),
            line("data", &data),
        ]
        .concat();
        assert_eq!(
            now, EXAMPLES,
            "what jobs and daemons say to each other has changed: raise PROTOCOL in crates/core/wire/src/session.rs (now {PROTOCOL}) if this is intended, and write these lines into EXAMPLES:\n{now}"
        );
    }
}
