//! The messages between the processes of a job and the daemons of its virtual machine.
//!
//! A process connects to the local socket of its host's daemon, which takes commands of people there, too. Those begin
//! with `{`, a process of a job with [`PREAMBLE`]. Messages follow as frames ([`crate::framing`]). The first message in
//! each direction is `Hello`, with the protocol and the identity of the program, so both sides notice a difference.
//! Then one request states the purpose of the connection:
//!
//! ```text
//! job                                     daemon
//! Watch        the hosts of the machine >
//!                                       < Membership     at once and after each change; the latest counts
//!
//! Unreachable  who cannot reach whom    >                again at each change; valid while the connection lasts
//!
//! Open         a shell on a host        >
//!                                       < Opened         or Refused, or NotOpened
//! Data, EndOfInput                     <>                ChannelMessage from here on
//!                                       < Errors, Closed
//!
//! Claim        the agent on a host      >                by a launcher that follows another one
//!                                       < Opened         with the hosts that the agent names as successors, or as above
//! Lead         the agent has to follow  >                or GiveUp: the launcher will not lead
//! Data, EndOfInput                     <>
//!
//! OwnerLost    launcher's host lost     >                by an agent; again when its successors change
//!                                       < GivenUp        the host of this run will not lead
//!                                       < Led            the host of this run leads; carries the descriptor of the channel to it
//! ```
//!
//! Daemons forward messages of a channel to each other unchanged. Each channel has a connection of its own, so a
//! receiver that does not read delays no other channel: its daemon buffers a few frames and leaves the rest in the
//! kernels' buffers on the way, which stops the sender.

use std::net::SocketAddr;

use crate::{fields, framing, messages};

/// Version of these messages.
pub const PROTOCOL: u32 = 2;
/// The first bytes that a process of a job sends.
pub const PREAMBLE: [u8; 8] = *b"\0regatta";
/// Maximum size of a chunk of a stream in one message of a channel, in bytes.
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
        /// Report the membership now and after each change.
        2 Watch {}
        /// These tasks of this job cannot reach each other. Replaces the pairs that were reported before.
        3 Unreachable { job: String, pairs: Vec<UnreachablePair> }
        /// Open a new shell on a host for this job. If `detachable`, the shell is kept for another launcher when this
        /// host is lost.
        4 Open { host: String, job: String, detachable: bool }
        /// Claim the channel of this job's agent on a host; the host of that agent's launcher is lost.
        5 Claim { host: String, job: String }
        /// The host of the launcher is lost to the agent in this session; these runs of hosts may take over.
        6 OwnerLost { session: u64, successors: Vec<String> }
    }
}

messages! {
    /// From a daemon to a process of a job of its host.
    pub FromDaemon {
        /// The first message.
        1 Hello { protocol: u32, identity: String }
        /// The request is refused.
        2 Refused { sentence: String }
        /// The current membership.
        3 Membership { membership: Membership }
        /// The channel is open. For a claimed channel, `successors` are the runs that its agent has named.
        4 Opened { successors: Vec<String> }
        /// The host of this run leads from now on; the message carries the descriptor of the channel to it.
        5 Led { run: String }
        /// The host of this run will not lead.
        6 GivenUp { run: String }
        /// The channel ended before it was open.
        7 NotOpened { end: ChannelEnd }
    }
}

messages! {
    /// On a channel to a shell on another host, in either direction.
    pub ChannelMessage {
        /// For the shell's standard input, or from its standard output; at most [`MAX_PIECE_BYTES`] bytes.
        1 Data { bytes: Vec<u8> }
        /// From the shell's standard error.
        2 Errors { bytes: Vec<u8> }
        /// The launcher sends no more input.
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
        /// The shell has ended, with this status.
        1 ShellEnded { status: i32 }
        /// The host at its other end is lost.
        2 HostLost { cause: String }
        /// The host at its other end has left, or its daemon has closed the connection.
        3 HostGone { sentence: String }
        /// The daemon of this host has cut the channel.
        4 Cut { sentence: String }
        /// The other hosts had declared this one dead, for this reason, and it has rejoined under a new identity.
        5 Renewed { why: String }
    }
}

/// A host of the machine that is not gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineHost {
    /// Its name; empty until the host has sent it.
    pub name: String,
    /// The run of its daemon: a new one after the host was gone.
    pub run: String,
    /// Address of its daemon.
    pub address: SocketAddr,
    /// Whether the host has sent its description.
    pub described: bool,
    /// Whether it is silent and the others have not yet decided.
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
    /// The hosts that are not gone, including this one.
    pub hosts: Vec<MachineHost>,
    /// The latest runs of hosts that are gone, with the cause.
    pub gone: Vec<(String, String)>,
    /// Reason why this host may not accept work, if there is one.
    pub hindrance: Option<String>,
    /// Whether the daemon is ending; nothing else follows.
    pub ending: bool,
}

fields!(Membership {
    own,
    hosts,
    gone,
    hindrance,
    ending
});

/// Two tasks on two hosts that cannot reach each other, as the first of them reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreachablePair {
    /// The host of the task that gets no answer.
    pub host: String,
    /// The host of the other task.
    pub peer: String,
    /// The task that gets no answer.
    pub task: u32,
    /// The other task.
    pub peer_task: u32,
    /// Duration of the silence, in milliseconds.
    pub since_ms: u64,
    /// Whether each counts as dead for the other.
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

/// Appends a chunk of a stream to `to` as a frame, without an intermediate copy. Takes at most [`MAX_PIECE_BYTES`]
/// bytes, and returns how many it took.
pub fn put_piece(stream: Stream, bytes: &[u8], to: &mut Vec<u8>) -> usize {
    let bytes = &bytes[..bytes.len().min(MAX_PIECE_BYTES)];
    let length = bytes.len() as u32;
    to.extend_from_slice(&(length + 5).to_le_bytes());
    to.push(stream as u8);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(bytes);
    bytes.len()
}

/// Appends a message of a channel to `to` as a frame. Texts of a daemon are short enough.
pub fn put(message: &ChannelMessage, to: &mut Vec<u8>) {
    let _ = framing::put(message, to);
}

/// The complete frames at the beginning of a channel's bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WholeFrames {
    /// Their size, in bytes.
    pub bytes: usize,
    /// Whether the last one closes the channel. Bytes after it are ignored.
    pub closes: bool,
    /// Whether bytes follow that cannot begin a frame.
    pub then_nonsense: bool,
}

/// Counts the complete frames at the beginning of a channel's bytes, up to the first bytes that cannot begin a frame.
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

    /// Complete frames of this size, and no special case.
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
        // Whatever follows the closing frame is ignored.
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
            // More bytes of the stream do not change what was counted before.
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
