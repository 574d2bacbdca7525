//! Frames of the bypass between two tasks on one Ethernet segment, and the word by which a bypass is offered.
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
//! 50 entries in this order: the receiver's bypass (1) | zero (1) | length of what is sealed (2) | number (8) | sealed, as above
//! ```
//!
//! Nothing is as short as Ethernet would fill up: a frame ends where it ended when it was sent. Before it has been opened, nothing of a
//! frame is more than a guess: anybody on the segment can send one.

use crate::Malformed;
use crate::fields::{joined, whole};

/// Type of the Ethernet frames: the first of those that are free for local use.
pub const ETHER_TYPE: u16 = 0x88b5;
/// Size of an Ethernet head, in bytes.
pub const ETHERNET_HEAD_BYTES: usize = 14;
/// Size of what precedes the sealed part, in bytes.
pub const FRONT_BYTES: usize = ETHERNET_HEAD_BYTES + 16;
/// Maximum number of receivers of a frame for several tasks.
pub const MAX_RECEIVERS: usize = 8;
/// Offset of the receivers' tags in such a frame, in bytes.
pub const RECEIVERS_AT: usize = ETHERNET_HEAD_BYTES + 4;
/// Size of what precedes the entries of such a frame, in bytes.
pub const GROUP_FRONT_BYTES: usize = RECEIVERS_AT + 4 * MAX_RECEIVERS;
/// Size of what precedes the sealed part of an entry, in bytes.
pub const ENTRY_FRONT_BYTES: usize = 12;
/// Size of a [`Word`], in bytes.
pub const WORD_BYTES: usize = 40;
/// Size of an [`Offer`], in bytes.
pub const OFFER_BYTES: usize = 16;

/// Minimum packet size, in bytes, that a bypass is worth while for.
pub const MIN_MTU: u16 = 256;

/// An address of an Ethernet interface.
pub type Mac = [u8; 6];

/// The way to a task by a bypass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Interface of the task that offers.
    pub mac: Mac,
    /// Longest packet of that interface, without its Ethernet head.
    pub mtu: u16,
    /// Names the task to itself.
    pub tag: u32,
    /// Names the bypass to that task.
    pub slot: u8,
}

impl Offer {
    /// As bytes.
    pub fn encode(&self) -> [u8; OFFER_BYTES] {
        let (mtu, tag) = (self.mtu.to_le_bytes(), self.tag.to_le_bytes());
        joined(&[&self.mac, &mtu, &tag, &[self.slot, 0, 0, 0]])
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Result<Offer, Malformed> {
        let (mac, mtu, tag, [slot, zeros @ ..]): (Mac, u16, u32, [u8; 4]) = whole(bytes)?;
        let offer = Offer {
            mac,
            mtu,
            tag,
            slot,
        };
        // One interface, and not all of a segment or a group of it; packets that a short message fits into.
        let is_one = mac[0] & 1 == 0 && mac != [0; 6];
        let sound = zeros == [0; 3] && is_one && mtu >= MIN_MTU;
        sound.then_some(offer).ok_or(Malformed)
    }

    /// The front of frames from an interface to who has made this offer; their number comes into it when they are sealed.
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

/// The bypass, the number and the sealed part of a frame, if this can be one; what it is taken for is for the cipher to say.
#[inline]
pub fn split(frame: &[u8]) -> Option<(u8, u64, &[u8])> {
    let (front, sealed) = frame.split_first_chunk::<FRONT_BYTES>()?;
    let number = *front[ETHERNET_HEAD_BYTES + 8..].first_chunk()?;
    let sound =
        front[12..ETHERNET_HEAD_BYTES] == ETHER_TYPE.to_be_bytes() && front[19..22] == [0; 3];
    sound.then_some((front[18], u64::from_le_bytes(number), sealed))
}

/// The address of the interfaces whose tasks are of the group with this tag.
pub fn group_address(tag: u32) -> Mac {
    // Of a group, and not given by any maker of interfaces.
    joined(&[&[0x03, 0x00], &tag.to_be_bytes()])
}

/// The front of frames from an interface to a group, without receivers yet.
#[inline]
pub fn group_front(tag: u32, from: &Mac) -> [u8; GROUP_FRONT_BYTES] {
    let (group, kind) = (group_address(tag), ETHER_TYPE.to_be_bytes());
    let none = [0; 4 * MAX_RECEIVERS];
    joined(&[&group, from, &kind, &tag.to_be_bytes(), &none])
}

/// Writes the tag of a receiver into the front of a frame to a group; its entry is the one at this place.
#[inline]
pub fn set_receiver(front: &mut [u8; GROUP_FRONT_BYTES], place: usize, tag: u32) {
    let (tags, _) = front[RECEIVERS_AT..].as_chunks_mut::<4>();
    tags[place] = tag.to_be_bytes();
}

/// The head of an entry: frame `number` of this bypass of the receiver's, with `length` bytes that are sealed.
#[inline]
pub fn entry(slot: u8, length: u16, number: u64) -> [u8; ENTRY_FRONT_BYTES] {
    joined(&[&[slot, 0], &length.to_le_bytes(), &number.to_le_bytes()])
}

/// The bypass, the number and the sealed part for the task with tag `receiver`, if this can be a frame for group `group` that has
/// an entry for it; as [`split`] of a frame for one.
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

/// How far the sender of a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Place of the frame's parcel in the order of numbered parcels: the number of its first byte.
    pub position: u64,
    /// The frame's parcel comes after this many bytes of the connection.
    pub after: u64,
    /// This many bytes of numbered parcels have come from the other side, by whichever way.
    pub reached: u64,
    /// This many bytes have come on the connection.
    pub heard: u64,
    /// The number behind that of the last frame that has come.
    pub got: u64,
    /// The sender waits for an answer.
    pub asks: bool,
}

/// The numbers of frames are below this: one bit of the place is another word's.
pub const END_OF_NUMBERS: u64 = 1 << 62;

impl Word {
    /// As bytes.
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

    /// From what a frame was opened to: the word, and the parcel behind it.
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
