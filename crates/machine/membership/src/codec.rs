//! The encoding of foca's messages.

use bytes::{Buf, BufMut};
use foca::{Header, Member, Message, State};
use regatta_wire::Malformed;
use regatta_wire::fields::{Bytes, Field};

use crate::host::HostId;

/// An encoding in little-endian words; a host takes [`HostId::BYTES`], an update about a member 27 bytes.
pub(crate) struct Codec;

impl foca::Codec<HostId> for Codec {
    type Error = Malformed;

    fn encode_header(
        &mut self,
        header: &Header<HostId>,
        buf: impl BufMut,
    ) -> Result<(), Malformed> {
        let mut bytes = Vec::with_capacity(80);
        (header.src, header.dst, header.src_incarnation).put(&mut bytes);
        encode_message(&header.message, &mut bytes);
        put(buf, &bytes)
    }

    fn decode_header(&mut self, buf: impl Buf) -> Result<Header<HostId>, Malformed> {
        take(buf, |from| {
            let (src, dst, src_incarnation) = Field::take(from)?;
            Ok(Header {
                src,
                dst,
                src_incarnation,
                message: decode_message(from)?,
            })
        })
    }

    fn encode_member(
        &mut self,
        member: &Member<HostId>,
        buf: impl BufMut,
    ) -> Result<(), Malformed> {
        let mut bytes = Vec::with_capacity(32);
        (*member.id(), member.incarnation()).put(&mut bytes);
        bytes.push(match member.state() {
            State::Alive => 0,
            State::Suspect => 1,
            State::Down => 2,
        });
        put(buf, &bytes)
    }

    fn decode_member(&mut self, buf: impl Buf) -> Result<Member<HostId>, Malformed> {
        take(buf, |from| {
            let (id, incarnation, state) = <(_, _, [u8; 1])>::take(from)?;
            let state = match state {
                [0] => State::Alive,
                [1] => State::Suspect,
                [2] => State::Down,
                _ => return Err(Malformed),
            };
            Ok(Member::new(id, incarnation, state))
        })
    }
}

fn encode_message(message: &Message<HostId>, to: &mut Vec<u8>) {
    let (kind, number, host) = match message {
        Message::Ping(number) => (0, *number, None),
        Message::Ack(number) => (1, *number, None),
        Message::PingReq {
            target,
            probe_number,
        } => (2, *probe_number, Some(target)),
        Message::IndirectPing {
            origin,
            probe_number,
        } => (3, *probe_number, Some(origin)),
        Message::IndirectAck {
            target,
            probe_number,
        } => (4, *probe_number, Some(target)),
        Message::ForwardedAck {
            origin,
            probe_number,
        } => (5, *probe_number, Some(origin)),
        Message::Announce => (6, 0, None),
        Message::Feed => (7, 0, None),
        Message::Gossip => (8, 0, None),
        Message::Broadcast => (9, 0, None),
        Message::TurnUndead => (10, 0, None),
    };
    to.extend_from_slice(&[kind, number]);
    if let Some(host) = host {
        host.put(to);
    }
}

fn decode_message(from: &mut Bytes<'_>) -> Result<Message<HostId>, Malformed> {
    let [kind, probe_number] = <[u8; 2]>::take(from)?;
    Ok(match kind {
        0 => Message::Ping(probe_number),
        1 => Message::Ack(probe_number),
        2 => Message::PingReq {
            target: Field::take(from)?,
            probe_number,
        },
        3 => Message::IndirectPing {
            origin: Field::take(from)?,
            probe_number,
        },
        4 => Message::IndirectAck {
            target: Field::take(from)?,
            probe_number,
        },
        5 => Message::ForwardedAck {
            origin: Field::take(from)?,
            probe_number,
        },
        6 => Message::Announce,
        7 => Message::Feed,
        8 => Message::Gossip,
        9 => Message::Broadcast,
        10 => Message::TurnUndead,
        _ => return Err(Malformed),
    })
}

fn put(mut buf: impl BufMut, bytes: &[u8]) -> Result<(), Malformed> {
    if buf.remaining_mut() < bytes.len() {
        return Err(Malformed);
    }
    buf.put_slice(bytes);
    Ok(())
}

/// Reads a value. Foca passes slices, whose first chunk is the whole slice.
fn take<T>(
    mut buf: impl Buf,
    read: impl FnOnce(&mut Bytes<'_>) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let mut reader = Bytes(buf.chunk());
    let value = read(&mut reader)?;
    let used = buf.chunk().len() - reader.0.len();
    buf.advance(used);
    Ok(value)
}
