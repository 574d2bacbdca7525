//! Bytes that tasks and launchers send each other: rejected, or decoded so that encoding gives the same bytes.

use regatta_segment::job::JoinToken;
use regatta_wire::bypass::{Offer as BypassOffer, Word, split};
use regatta_wire::control::{Ask, Tell};
use regatta_wire::deadlock_probe::DeadlockProbe;
use regatta_wire::fields::Message;
use regatta_wire::framing::FrameReader;
use regatta_wire::hello::{Hello, Welcome};
use regatta_wire::link::Head;
use regatta_wire::session::{self, ChannelMessage, FromDaemon, FromJob};
use regatta_wire::{Clear, Kind, Loan, Offer, Token, Withdrawn};

/// Checks bodies of frames: each decoder rejects them, or its result is encoded to the same bytes.
pub fn decoders(bytes: &[u8]) {
    if let Ok(offer) = Offer::decode(bytes) {
        assert_eq!(offer.encode(), bytes);
    }
    if let Ok(clear) = Clear::decode(bytes) {
        assert_eq!(clear.encode(), bytes);
    }
    if let Ok(token) = Token::decode(bytes) {
        assert_eq!(token.encode(), bytes);
    }
    if let Ok(loan) = Loan::decode(bytes) {
        assert_eq!(loan.encode(), bytes);
    }
    if let Ok(withdrawn) = Withdrawn::decode(bytes) {
        assert_eq!(withdrawn.encode(), bytes);
    }
    if let Ok(probe) = DeadlockProbe::decode(bytes) {
        assert_eq!(probe.encode(), bytes);
    }
    if let Some(Ok(head)) = bytes.first_chunk().map(Head::decode) {
        assert_eq!(Some(&head.encode()), bytes.first_chunk());
    }
    if let Some(Ok(hello)) = bytes.first_chunk().map(Hello::decode) {
        assert_eq!(Some(&hello.encode()), bytes.first_chunk());
    }
    if let Some(Ok(welcome)) = bytes.first_chunk().map(Welcome::decode) {
        assert_eq!(Some(&welcome.encode()), bytes.first_chunk());
    }
    if let Ok(offer) = BypassOffer::decode(bytes) {
        assert_eq!(offer.encode(), bytes);
    }
    if let Ok((word, parcel)) = Word::decode(bytes) {
        assert_eq!([&word.encode()[..], parcel].concat(), bytes);
    }
    if let Some((_, _, sealed)) = split(bytes) {
        assert!(bytes.ends_with(sealed));
    }
    for byte in bytes {
        if let Some(kind) = Kind::from_byte(*byte) {
            assert_eq!(kind as u8, *byte);
        }
    }
}

/// Checks messages between tasks and launchers: rejected, or decoded and encoded to the same bytes.
pub fn control(bytes: &[u8]) {
    let mut frames = FrameReader::default();
    frames.push(bytes);
    while let Ok(Some(body)) = frames.next_bytes() {
        let mut again = Vec::new();
        if let Ok(ask) = Ask::decode(body) {
            ask.encode(&mut again);
            assert_eq!(again, body);
            again.clear();
        }
        if let Ok(tell) = Tell::decode(body) {
            tell.encode(&mut again);
            assert_eq!(again, body);
        }
    }
}

/// Checks messages between processes of a job and daemons: rejected, or decoded and encoded to the same bytes. The
/// frames of a channel that a daemon forwards undecoded must be those that the channel's end reads.
pub fn session(bytes: &[u8]) {
    fn read<M: Message>(body: &[u8]) -> bool {
        let Ok(message) = M::decode(body) else {
            return false;
        };
        let mut again = Vec::new();
        message.encode(&mut again);
        assert_eq!(again, body);
        true
    }
    let mut frames = FrameReader::default();
    frames.push(bytes);
    let (mut passed, mut closes) = (0, false);
    while let Ok(Some(body)) = frames.next_bytes_within(session::MAX_MESSAGE_BYTES) {
        read::<FromJob>(body);
        read::<FromDaemon>(body);
        passed += 4 + body.len();
        let closed = matches!(
            ChannelMessage::decode(body),
            Ok(ChannelMessage::Closed { .. })
        );
        closes = read::<ChannelMessage>(body) && closed;
    }
    let whole = session::whole_frames(bytes);
    // After a frame that closes the channel, nothing counts, even if it is malformed.
    assert!(whole.bytes == passed || whole.closes && whole.bytes < passed);
    assert!(whole.closes || !closes);
}

/// Checks the launcher's join token: the result is a rank of the job, or an error message.
pub fn join_token(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match JoinToken::parse(text) {
        Ok(token) => {
            assert!(token.size > 0 && token.fd >= 0);
            assert!(token.rank < token.size || token.control.is_some());
            let again = JoinToken::parse(&token.to_string());
            assert_eq!(again.ok(), Some(token));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
