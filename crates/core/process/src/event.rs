//! Events as messages. `rg_event` in `regatta.h` describes their bytes.

use std::mem::offset_of;

use regatta_abi as abi;
use regatta_wire::control::{Ending, Event};

/// The first word of an event, which distinguishes it from other messages.
pub const MARK: u32 = abi::EVENT_MARK;
/// Size of the header before the name, in bytes.
const HEAD: usize = offset_of!(abi::Event, name);
/// Size of the name of a host or a program, including the terminating NUL, in bytes.
pub const NAME: usize = BYTES - HEAD;
/// Size of an event, in bytes.
pub const BYTES: usize = size_of::<abi::Event>();

/// Returns the bytes of an event of the watch with this number.
pub(crate) fn bytes(watch: u32, event: &Event) -> [u8; BYTES] {
    let (kind, task, host, name) = match event {
        Event::TaskEnded { task, host, .. } => (abi::TASK_EXIT, *task as i32, *host, &[][..]),
        Event::HostLost { host, name } => (abi::HOST_LOST, -1, *host, name.as_bytes()),
        Event::HostAdded { host, name } => (abi::HOST_ADDED, -1, *host, name.as_bytes()),
        Event::TaskCame {
            task,
            host,
            program,
            ..
        } => (abi::TASKS, *task as i32, *host, &program[..]),
    };
    let (ending, value) = match event {
        Event::TaskEnded { ending, .. } => match *ending {
            Ending::Exited(status) => (abi::BY_EXIT, status),
            Ending::Signalled(signal) => (abi::BY_SIGNAL, signal),
            Ending::Lost => (abi::BY_HOST, 0),
            Ending::Unknown => (abi::UNKNOWN, 0),
        },
        Event::TaskCame { parent, .. } => {
            (0, parent.map_or(crate::state::NONE, |parent| parent as i32))
        }
        _ => (0, 0),
    };
    let words = [
        (offset_of!(abi::Event, mark), MARK as i32),
        (offset_of!(abi::Event, kind), kind),
        (offset_of!(abi::Event, tid), task),
        (offset_of!(abi::Event, host), host as i32),
        (offset_of!(abi::Event, how), ending),
        (offset_of!(abi::Event, value), value),
        (offset_of!(abi::Event, watch), watch as i32),
    ];
    let mut bytes = [0; BYTES];
    for (at, word) in words {
        bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    let length = name.len().min(NAME - 1);
    bytes[HEAD..HEAD + length].copy_from_slice(&name[..length]);
    bytes
}

/// Returns the number of the watch and the event in a message, or `None` if it is another message.
pub fn read(bytes: &[u8]) -> Option<(u32, Event)> {
    let word = |at: usize| Some(i32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    if bytes.len() != BYTES || word(offset_of!(abi::Event, mark))? as u32 != MARK {
        return None;
    }
    let task = word(offset_of!(abi::Event, tid))? as u32;
    let host = word(offset_of!(abi::Event, host))? as u32;
    let how = word(offset_of!(abi::Event, how))?;
    let value = word(offset_of!(abi::Event, value))?;
    let name = bytes[HEAD..].split(|&byte| byte == 0).next()?;
    let program = name.to_vec();
    let name = String::from_utf8_lossy(name).into_owned();
    let event = match word(offset_of!(abi::Event, kind))? {
        abi::TASK_EXIT => Event::TaskEnded {
            task,
            host,
            ending: match how {
                abi::BY_EXIT => Ending::Exited(value),
                abi::BY_SIGNAL => Ending::Signalled(value),
                abi::BY_HOST => Ending::Lost,
                _ => Ending::Unknown,
            },
        },
        abi::HOST_LOST => Event::HostLost { host, name },
        abi::HOST_ADDED => Event::HostAdded { host, name },
        abi::TASKS => Event::TaskCame {
            task,
            host,
            parent: u32::try_from(value).ok(),
            program,
        },
        _ => return None,
    };
    Some((word(offset_of!(abi::Event, watch))? as u32, event))
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
