//! Events as messages: the bytes that `rg_event` in `regatta.h` describes.

use regatta_wire::control::{Ending, Event};

/// The first word of an event, which tells it from other messages.
pub const MARK: u32 = u32::from_le_bytes(*b"RGev");
/// Bytes for the name of a host or a program, with its end.
pub const NAME: usize = 64;
/// Bytes of an event.
pub const BYTES: usize = 32 + NAME;

/// The bytes of an event of the watch with this number.
pub(crate) fn bytes(watch: u32, event: &Event) -> [u8; BYTES] {
    let (kind, task, host, name) = match event {
        Event::TaskEnded { task, host, .. } => (1, *task as i32, *host, &[][..]),
        Event::HostLost { host, name } => (2, -1, *host, name.as_bytes()),
        Event::HostAdded { host, name } => (3, -1, *host, name.as_bytes()),
        Event::TaskCame {
            task,
            host,
            program,
            ..
        } => (4, *task as i32, *host, &program[..]),
    };
    let (ending, value) = match event {
        Event::TaskEnded { ending, .. } => match *ending {
            Ending::Exited(status) => (1, status),
            Ending::Signalled(signal) => (2, signal),
            Ending::Lost => (3, 0),
            Ending::Unknown => (4, 0),
        },
        Event::TaskCame { parent, .. } => {
            (0, parent.map_or(crate::state::NONE, |parent| parent as i32))
        }
        _ => (0, 0),
    };
    let words = [
        MARK as i32,
        kind,
        task,
        host as i32,
        ending,
        value,
        watch as i32,
        0,
    ];
    let mut bytes = [0; BYTES];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    let length = name.len().min(NAME - 1);
    bytes[32..32 + length].copy_from_slice(&name[..length]);
    bytes
}

/// The event in a message, and the number of its watch; none if it is another message.
pub fn read(bytes: &[u8]) -> Option<(u32, Event)> {
    let word = |at: usize| {
        Some(i32::from_ne_bytes(
            bytes.get(4 * at..)?.first_chunk().copied()?,
        ))
    };
    if bytes.len() != BYTES || word(0)? as u32 != MARK {
        return None;
    }
    let host = word(3)? as u32;
    let name = bytes[32..].split(|&byte| byte == 0).next()?;
    let program = name.to_vec();
    let name = String::from_utf8_lossy(name).into_owned();
    let event = match word(1)? {
        1 => Event::TaskEnded {
            task: word(2)? as u32,
            host,
            ending: match (word(4)?, word(5)?) {
                (1, status) => Ending::Exited(status),
                (2, signal) => Ending::Signalled(signal),
                (3, _) => Ending::Lost,
                _ => Ending::Unknown,
            },
        },
        2 => Event::HostLost { host, name },
        3 => Event::HostAdded { host, name },
        4 => Event::TaskCame {
            task: word(2)? as u32,
            host,
            parent: u32::try_from(word(5)?).ok(),
            program,
        },
        _ => return None,
    };
    Some((word(6)? as u32, event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        let events = [
            Event::TaskEnded {
                task: 7,
                host: 2,
                ending: Ending::Signalled(9),
            },
            Event::TaskCame {
                task: 9,
                host: 2,
                parent: None,
                program: b"./worker".to_vec(),
            },
            Event::HostLost {
                host: 3,
                name: "alpha".into(),
            },
            Event::HostAdded {
                host: 4,
                name: "beta".into(),
            },
        ];
        for event in events {
            assert_eq!(read(&bytes(5, &event)), Some((5, event)));
        }
        assert_eq!(read(&[0; BYTES]), None);
        assert_eq!(read(b"RGev"), None);
    }
}
