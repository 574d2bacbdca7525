//! How foca's messages are written down.

use bytes::{Buf, BufMut};
use foca::{Header, Member, Message, State};

use crate::bytes::{Reader, Short};
use crate::host::HostId;

/// Little-endian words; a host takes [`HostId::BYTES`], a piece of news 27 bytes.
pub(crate) struct Codec;

impl foca::Codec<HostId> for Codec {
    type Error = Short;

    fn encode_header(&mut self, header: &Header<HostId>, buf: impl BufMut) -> Result<(), Short> {
        let mut bytes = Vec::with_capacity(80);
        header.src.encode(&mut bytes);
        header.dst.encode(&mut bytes);
        bytes.extend_from_slice(&header.src_incarnation.to_le_bytes());
        encode_message(&header.message, &mut bytes);
        put(buf, &bytes)
    }

    fn decode_header(&mut self, buf: impl Buf) -> Result<Header<HostId>, Short> {
        take(buf, |from| {
            Ok(Header {
                src: HostId::decode(from)?,
                dst: HostId::decode(from)?,
                src_incarnation: from.u16()?,
                message: decode_message(from)?,
            })
        })
    }

    fn encode_member(&mut self, member: &Member<HostId>, buf: impl BufMut) -> Result<(), Short> {
        let mut bytes = Vec::with_capacity(32);
        member.id().encode(&mut bytes);
        bytes.extend_from_slice(&member.incarnation().to_le_bytes());
        bytes.push(match member.state() {
            State::Alive => 0,
            State::Suspect => 1,
            State::Down => 2,
        });
        put(buf, &bytes)
    }

    fn decode_member(&mut self, buf: impl Buf) -> Result<Member<HostId>, Short> {
        take(buf, |from| {
            let (id, incarnation) = (HostId::decode(from)?, from.u16()?);
            let state = match from.u8()? {
                0 => State::Alive,
                1 => State::Suspect,
                2 => State::Down,
                _ => return Err(Short),
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
        host.encode(to);
    }
}

fn decode_message(from: &mut Reader<'_>) -> Result<Message<HostId>, Short> {
    let (kind, probe_number) = (from.u8()?, from.u8()?);
    Ok(match kind {
        0 => Message::Ping(probe_number),
        1 => Message::Ack(probe_number),
        2 => Message::PingReq {
            target: HostId::decode(from)?,
            probe_number,
        },
        3 => Message::IndirectPing {
            origin: HostId::decode(from)?,
            probe_number,
        },
        4 => Message::IndirectAck {
            target: HostId::decode(from)?,
            probe_number,
        },
        5 => Message::ForwardedAck {
            origin: HostId::decode(from)?,
            probe_number,
        },
        6 => Message::Announce,
        7 => Message::Feed,
        8 => Message::Gossip,
        9 => Message::Broadcast,
        10 => Message::TurnUndead,
        _ => return Err(Short),
    })
}

fn put(mut buf: impl BufMut, bytes: &[u8]) -> Result<(), Short> {
    if buf.remaining_mut() < bytes.len() {
        return Err(Short);
    }
    buf.put_slice(bytes);
    Ok(())
}

/// Foca hands in slices, whose first chunk is all of them.
fn take<T>(
    mut buf: impl Buf,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, Short>,
) -> Result<T, Short> {
    let mut reader = Reader(buf.chunk());
    let value = read(&mut reader)?;
    let used = buf.chunk().len() - reader.0.len();
    buf.advance(used);
    Ok(value)
}
