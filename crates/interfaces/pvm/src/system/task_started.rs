//! The message that notifies a tracer of single tasks that a task has started. The tracer's library converts it to the
//! messages that a daemon would send.

use crate::send::{destination, send_bytes};

/// First word of the message.
const MARK: u32 = 0x6274_4752;
/// Number of words before the name.
const WORDS: usize = 4;

/// A traced task that has started.
#[derive(Debug, PartialEq, Eq)]
pub struct TaskStarted<'a> {
    pub task: i32,
    pub parent: i32,
    /// The flags of `pvm_spawn`.
    pub flags: i32,
    pub name: &'a [u8],
}

impl<'a> TaskStarted<'a> {
    fn write(&self) -> Vec<u8> {
        let words = [
            MARK,
            self.task as u32,
            self.parent as u32,
            self.flags as u32,
        ];
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        words.chain(self.name.iter().copied()).collect()
    }

    /// Parses such a message. Returns `None` if these bytes are not such a message.
    pub fn read(bytes: &'a [u8]) -> Option<TaskStarted<'a>> {
        let (head, name) = bytes.split_at_checked(4 * WORDS)?;
        let word = |at: usize| Some(i32::from_ne_bytes(*head.get(4 * at..)?.first_chunk()?));
        let (task, parent, flags) = (word(1)?, word(2)?, word(3)?);
        (word(0)? as u32 == MARK).then_some(TaskStarted {
            task,
            parent,
            flags,
            name,
        })
    }

    /// Sends the message to the tracer. A tracer that is gone is ignored.
    pub fn send_to_tracer(&self, (to, tag, context): (i32, i32, i32)) {
        if let Ok(to) = destination(to, tag, context) {
            send_bytes(&self.write(), to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_half_of_it_is_nothing() {
        let started = TaskStarted {
            task: 0x40003,
            parent: -35,
            flags: 64,
            name: b"",
        };
        let bytes = started.write();
        assert_eq!(TaskStarted::read(&bytes), Some(started));
        for end in 0..bytes.len() {
            assert_eq!(TaskStarted::read(&bytes[..end]), None);
        }
        let named = [&bytes[..], b"hello"].concat();
        assert_eq!(
            TaskStarted::read(&named).map(|started| started.name),
            Some(&b"hello"[..])
        );
        assert_eq!(TaskStarted::read(&[0; 20]), None);
    }
}
