//! Frames of the bypass between two tasks on one Ethernet segment, and the message that offers a bypass.
//!
//! ```text
//! 0  Ethernet: destination (6) | source (6) | type (2)
//! 14 tag of the receiver (4) | its bypass (1) | zero (3)
//! 22 number of the frame under the bypass's keys (8)
//! 30 sealed: [`Word`] (40) | nothing, or a parcel | the cipher's tag (16)
//! ```
//!
//! A frame for several tasks of a job goes to the job's group of interfaces and has an entry for each:
//!
//! ```text
//! 0  Ethernet: the group (6) | source (6) | type (2)
//! 14 tag of the group (4)
//! 18 tags of the receivers (8 times 4), zero where there is none
//! 50 entries in this order: the receiver's bypass (1) | zero (1) | length of the sealed part (2) | number (8) |
//! sealed, as above
//! ```
//!
//! No frame is so short that Ethernet would pad it: a frame is received with the length with which it was sent. Until a
//! frame has been opened, its contents are not trusted: anybody on the segment can send one.

use crate::Malformed;
use crate::fields::{joined, whole};

/// Type of the Ethernet frames: the first of those that are free for local use.
pub const ETHER_TYPE: u16 = 0x88b5;
/// Size of an Ethernet header, in bytes.
pub const ETHERNET_HEAD_BYTES: usize = 14;
/// Size of what precedes the sealed part, in bytes.
pub const FRONT_BYTES: usize = ETHERNET_HEAD_BYTES + 16;
/// Maximum number of receivers of a frame for several tasks.
pub const MAX_RECEIVERS: usize = 8;
/// Offset of the receivers' tags in a frame for several tasks, in bytes.
pub const RECEIVERS_AT: usize = ETHERNET_HEAD_BYTES + 4;
/// Size of what precedes the entries of a frame for several tasks, in bytes.
pub const GROUP_FRONT_BYTES: usize = RECEIVERS_AT + 4 * MAX_RECEIVERS;
/// Size of what precedes the sealed part of an entry, in bytes.
pub const ENTRY_FRONT_BYTES: usize = 12;
/// Size of a [`Word`], in bytes.
pub const WORD_BYTES: usize = 40;
/// Size of an [`Offer`], in bytes.
pub const OFFER_BYTES: usize = 16;

/// Minimum packet size for which a bypass is worth using, in bytes.
pub const MIN_MTU: u16 = 256;

/// An address of an Ethernet interface.
pub type Mac = [u8; 6];

/// An offer of a bypass to the task that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// MAC address of the offering task's interface.
    pub mac: Mac,
    /// MTU of that interface: its maximum packet size without the Ethernet header.
    pub mtu: u16,
    /// Identifies the offering task to itself.
    pub tag: u32,
    /// Identifies the bypass within the offering task.
    pub slot: u8,
}

impl Offer {
    /// Returns the encoded offer.
    pub fn encode(&self) -> [u8; OFFER_BYTES] {
        let (mtu, tag) = (self.mtu.to_le_bytes(), self.tag.to_le_bytes());
        joined(&[&self.mac, &mtu, &tag, &[self.slot, 0, 0, 0]])
    }

    /// Decodes an offer.
    pub fn decode(bytes: &[u8]) -> Result<Offer, Malformed> {
        let (mac, mtu, tag, [slot, zeros @ ..]): (Mac, u16, u32, [u8; 4]) = whole(bytes)?;
        let offer = Offer {
            mac,
            mtu,
            tag,
            slot,
        };
        // The address must be that of one interface (no multicast, broadcast or zero), and a short message must fit
        // into a packet.
        let is_one = mac[0] & 1 == 0 && mac != [0; 6];
        let sound = zeros == [0; 3] && is_one && mtu >= MIN_MTU;
        sound.then_some(offer).ok_or(Malformed)
    }

    /// Returns the front of frames from interface `from` to the task that made this offer. The frame's number is filled
    /// in when the frame is sealed.
    pub fn front(&self, from: &Mac) -> [u8; FRONT_BYTES] {
        let (kind, tag) = (ETHER_TYPE.to_be_bytes(), self.tag.to_be_bytes());
        joined(&[&self.mac, from, &kind, &tag, &[self.slot, 0, 0, 0], &[0; 8]])
    }
}

/// Writes a frame's number into its front.
#[inline]
pub fn set_number(front: &mut [u8; FRONT_BYTES], number: u64) {
    front[ETHERNET_HEAD_BYTES + 8..].copy_from_slice(&number.to_le_bytes());
}

/// Returns the bypass, the number and the sealed part of a frame, or `None` if the frame cannot belong to a bypass. The
/// cipher decides whether it does.
#[inline]
pub fn split(frame: &[u8]) -> Option<(u8, u64, &[u8])> {
    let (front, sealed) = frame.split_first_chunk::<FRONT_BYTES>()?;
    let number = *front[ETHERNET_HEAD_BYTES + 8..].first_chunk()?;
    let sound =
        front[12..ETHERNET_HEAD_BYTES] == ETHER_TYPE.to_be_bytes() && front[19..22] == [0; 3];
    sound.then_some((front[18], u64::from_le_bytes(number), sealed))
}

/// Returns the multicast address of the interfaces whose tasks belong to the group with this tag.
pub fn group_address(tag: u32) -> Mac {
    // The multicast and the locally-administered bit are set.
    joined(&[&[0x03, 0x00], &tag.to_be_bytes()])
}

/// Returns the front of frames from interface `from` to a group, without receivers.
#[inline]
pub fn group_front(tag: u32, from: &Mac) -> [u8; GROUP_FRONT_BYTES] {
    let (group, kind) = (group_address(tag), ETHER_TYPE.to_be_bytes());
    let none = [0; 4 * MAX_RECEIVERS];
    joined(&[&group, from, &kind, &tag.to_be_bytes(), &none])
}

/// Writes the tag of the receiver of entry `place` into the front of a frame to a group.
#[inline]
pub fn set_receiver(front: &mut [u8; GROUP_FRONT_BYTES], place: usize, tag: u32) {
    let (tags, _) = front[RECEIVERS_AT..].as_chunks_mut::<4>();
    tags[place] = tag.to_be_bytes();
}

/// Returns the header of an entry: frame `number` of the receiver's bypass `slot`, with `length` sealed bytes.
#[inline]
pub fn entry(slot: u8, length: u16, number: u64) -> [u8; ENTRY_FRONT_BYTES] {
    joined(&[&[slot, 0], &length.to_le_bytes(), &number.to_le_bytes()])
}

/// Returns the bypass, the number and the sealed part for the task with tag `receiver`, or `None` if this cannot be a
/// frame for group `group` with an entry for that task. See [`split`], which does this for a frame to one task.
#[inline]
pub fn entry_for(frame: &[u8], group: u32, receiver: u32) -> Option<(u8, u64, &[u8])> {
    let (front, mut entries) = frame.split_first_chunk::<GROUP_FRONT_BYTES>()?;
    if front[12..ETHERNET_HEAD_BYTES] != ETHER_TYPE.to_be_bytes()
        || front[ETHERNET_HEAD_BYTES..RECEIVERS_AT] != group.to_be_bytes()
    {
        return None;
    }
    let (tags, _) = front[RECEIVERS_AT..].as_chunks::<4>();
    for tag in tags {
        let (head, rest) = entries.split_first_chunk::<ENTRY_FRONT_BYTES>()?;
        let [slot, _, low, high, number @ ..] = *head;
        let (sealed, others) = rest.split_at_checked(u16::from_le_bytes([low, high]).into())?;
        if u32::from_be_bytes(*tag) == receiver {
            return Some((slot, u64::from_le_bytes(number), sealed));
        }
        entries = others;
    }
    None
}

/// Progress of a frame's sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Position of the frame's parcel in the stream of numbered parcels: the number of its first byte.
    pub position: u64,
    /// The frame's parcel follows this many bytes of the connection.
    pub after: u64,
    /// Bytes of numbered parcels that the sender has received from the peer, over the connection or the bypass.
    pub reached: u64,
    /// Bytes that the sender has received on the connection.
    pub heard: u64,
    /// One more than the number of the last frame received by the sender.
    pub got: u64,
    /// Whether the sender waits for an answer.
    pub asks: bool,
}

/// Exclusive upper bound of frame numbers: one bit of the field carries `asks`.
pub const END_OF_NUMBERS: u64 = 1 << 62;

impl Word {
    /// Returns the encoded word.
    #[inline]
    pub fn encode(&self) -> [u8; WORD_BYTES] {
        let last = self.got << 1 | u64::from(self.asks);
        let mut bytes = [0; WORD_BYTES];
        let (words, _) = bytes.as_chunks_mut::<8>();
        for (place, word) in
            words
                .iter_mut()
                .zip([self.position, self.after, self.reached, self.heard, last])
        {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// Decodes an opened frame into the word and the parcel that follows it.
    #[inline]
    pub fn decode(content: &[u8]) -> Result<(Word, &[u8]), Malformed> {
        let (bytes, parcel) = content.split_first_chunk::<WORD_BYTES>().ok_or(Malformed)?;
        let (words, _) = bytes.as_chunks::<8>();
        let [position, after, reached, heard, last] =
            [0, 1, 2, 3, 4].map(|at: usize| u64::from_le_bytes(words[at]));
        let word = Word {
            position,
            after,
            reached,
            heard,
            got: last >> 1,
            asks: last & 1 == 1,
        };
        let sound = word.got <= END_OF_NUMBERS;
        sound.then_some((word, parcel)).ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn offers_and_words_round_trip(mac: Mac, mtu: u16, tag: u32, slot: u8, words: [u64; 4], got in 0..=END_OF_NUMBERS, asks: bool) {
            let offer = Offer { mac, mtu, tag, slot };
            let sound = mac[0] & 1 == 0 && mac != [0; 6] && mtu >= MIN_MTU;
            prop_assert_eq!(Offer::decode(&offer.encode()), sound.then_some(offer).ok_or(Malformed));
            let [position, after, reached, heard] = words;
            let word = Word { position, after, reached, heard, got, asks };
            let content = [&word.encode()[..], b"parcel"].concat();
            prop_assert_eq!(Word::decode(&content), Ok((word, &b"parcel"[..])));
        }

        #[test]
        fn any_bytes_are_an_offer_a_word_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(offer) = Offer::decode(&bytes) {
                prop_assert_eq!(&offer.encode()[..], &bytes[..]);
            }
            if let Ok((word, parcel)) = Word::decode(&bytes) {
                prop_assert_eq!([&word.encode()[..], parcel].concat(), bytes);
            }
        }

        #[test]
        fn any_bytes_are_a_frame_or_none(mut bytes in prop::collection::vec(any::<u8>(), 0..60), like: bool) {
            if like && bytes.len() > FRONT_BYTES {
                bytes[12..ETHERNET_HEAD_BYTES].copy_from_slice(&ETHER_TYPE.to_be_bytes());
                bytes[19..22].fill(0);
            }
            if let Some((slot, number, sealed)) = split(&bytes) {
                prop_assert!(sealed.len() == bytes.len() - FRONT_BYTES && slot == bytes[18]);
                prop_assert_eq!(&number.to_le_bytes()[..], &bytes[22..30]);
            } else {
                prop_assert!(!like || bytes.len() <= FRONT_BYTES);
            }
        }
    }

    proptest! {
        #[test]
        fn each_receiver_finds_its_entry(sealed in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..=MAX_RECEIVERS)) {
            let mut front = group_front(7, &[2; 6]);
            (0..sealed.len()).for_each(|place| set_receiver(&mut front, place, place as u32 + 100));
            let mut frame = front.to_vec();
            for (place, sealed) in sealed.iter().enumerate() {
                frame.extend(entry(place as u8 + 1, sealed.len() as u16, 70 + place as u64));
                frame.extend(sealed);
            }
            for (place, sealed) in sealed.iter().enumerate() {
                let found = entry_for(&frame, 7, place as u32 + 100);
                prop_assert_eq!(found, Some((place as u8 + 1, 70 + place as u64, &sealed[..])));
            }
            prop_assert_eq!(entry_for(&frame, 7, 99), None);
            prop_assert_eq!(entry_for(&frame, 8, 100), None, "another group");
            prop_assert!(group_address(7)[0] & 1 == 1);
        }

        #[test]
        fn any_bytes_have_an_entry_or_none(mut bytes in prop::collection::vec(any::<u8>(), 0..120), like: bool, receiver in 0u32..3) {
            if like && bytes.len() > GROUP_FRONT_BYTES + ENTRY_FRONT_BYTES {
                let mut front = group_front(7, &[2; 6]);
                set_receiver(&mut front, 0, 1);
                bytes[..GROUP_FRONT_BYTES].copy_from_slice(&front);
                bytes[GROUP_FRONT_BYTES + 3] = 0;
            }
            if let Some((.., sealed)) = entry_for(&bytes, 7, receiver) {
                prop_assert!(sealed.len() + GROUP_FRONT_BYTES + ENTRY_FRONT_BYTES <= bytes.len());
            }
        }
    }

    #[test]
    fn offers_of_more_than_one_interface_are_refused() {
        let sound = Offer {
            mac: [2; 6],
            mtu: 1500,
            tag: 7,
            slot: 0,
        };
        assert!(Offer::decode(&sound.encode()).is_ok());
        for mac in [[0xff; 6], [1, 0, 0x5e, 0, 0, 1], [0; 6]] {
            assert_eq!(
                Offer::decode(&Offer { mac, ..sound }.encode()),
                Err(Malformed)
            );
        }
        assert_eq!(
            Offer::decode(&Offer { mtu: 0, ..sound }.encode()),
            Err(Malformed)
        );
    }

    #[test]
    fn a_front_says_where_a_frame_goes() {
        let offer = Offer {
            mac: [1; 6],
            mtu: 1500,
            tag: 0x0102_0304,
            slot: 5,
        };
        let mut front = offer.front(&[2; 6]);
        set_number(&mut front, 77);
        let frame = [&front[..], b"sealed"].concat();
        assert_eq!(split(&frame), Some((5, 77, &b"sealed"[..])));
        assert_eq!(frame[..6], [1; 6]);
        assert_eq!(
            frame[ETHERNET_HEAD_BYTES..ETHERNET_HEAD_BYTES + 4],
            [1, 2, 3, 4]
        );
    }
}
