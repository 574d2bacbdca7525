//! The output of started tasks, as messages. `rg_output` in `regatta.h` describes their bytes.

use regatta_abi as abi;
use regatta_engine::ReceiptCredit;
use regatta_wire::control::{OutputFormat, StreamState};

use crate::state::Process;

/// The first word of such a message, which distinguishes it from others.
pub const MARK: u32 = abi::OUTPUT_MARK;
/// Size of the header before the text, in bytes.
pub const HEAD: usize = std::mem::offset_of!(abi::Output, text);
/// Maximum size of the text in one message, in bytes. A longer line is sent in pieces.
pub const MAX_TEXT_BYTES: usize = abi::OUTPUT_MOST as usize;

/// Stands for a stream: the task was started, and the text is the number of its parent, or `RG_NONE`.
const BORN: u32 = 0;

/// Output of a task.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) task: u32,
    pub(crate) stream: u32,
    pub(crate) manner: OutputFormat,
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: StreamState,
}

fn message(task: u32, stream: u32, text: &[u8]) -> Vec<u8> {
    // The streams have the numbers of their descriptors.
    let words = [MARK, task, stream + 1, text.len() as u32];
    let head = words.iter().flat_map(|word| word.to_ne_bytes());
    head.chain(text.iter().copied()).collect()
}

/// Returns the message that a task was started, by `parent` or by the launcher.
fn birth(task: u32, parent: Option<u32>) -> Vec<u8> {
    let parent = parent
        .map_or(abi::NONE, |parent| parent as i32)
        .to_ne_bytes();
    let words = [MARK, task, BORN, parent.len() as u32];
    let head = words.iter().flat_map(|word| word.to_ne_bytes());
    head.chain(parent).collect()
}

/// Returns the task, the stream (1 or 2) and the text of a message, or `None` if it is another message. An empty text means that the stream has
/// ended. Stream 0 means that the task was started.
pub fn read(bytes: &[u8]) -> Option<(u32, u32, &[u8])> {
    let (head, text) = bytes.split_at_checked(HEAD)?;
    let word = |at: usize| Some(u32::from_ne_bytes(*head.get(4 * at..)?.first_chunk()?));
    let fits = word(0)? == MARK && word(3)? as usize == text.len();
    fits.then_some(())?;
    Some((word(1)?, word(2)?, text))
}

/// Cuts output into the texts of messages: lines with their newlines, or all that there is. Calls `each` with each text and with the number of
/// `bytes` that it contains. Returns how many of `bytes` wait in `begun` for the end of their line.
fn cut(
    begun: &mut Vec<u8>,
    mut bytes: &[u8],
    lines: bool,
    mut each: impl FnMut(&[u8], usize),
) -> usize {
    while !bytes.is_empty() {
        let room = bytes.len().min(MAX_TEXT_BYTES - begun.len());
        let newline = bytes[..room].iter().position(|&byte| byte == b'\n');
        let end = newline.filter(|_| lines).map(|at| at + 1);
        let (now, rest) = bytes.split_at(end.unwrap_or(room));
        if lines && end.is_none() && begun.len() + now.len() < MAX_TEXT_BYTES {
            begun.extend_from_slice(now);
            return now.len();
        }
        if begun.is_empty() {
            each(now, now.len());
        } else {
            begun.extend_from_slice(now);
            each(begun, now.len());
            begun.clear();
        }
        bytes = rest;
    }
    0
}

impl Process {
    /// Sends this task the message that a task was started whose output this task receives.
    pub(crate) fn born(&mut self, task: u32, parent: Option<u32>, manner: OutputFormat) {
        let message = birth(task, parent);
        let credit = ReceiptCredit {
            of: task,
            amount: 0,
        };
        self.engine
            .notify_self(manner.context, manner.tag, &message, credit);
    }

    /// Sends this task output of another task, as messages.
    pub(crate) fn wrote(&mut self, piece: Piece) {
        let (task, stream, manner) = (piece.task, piece.stream, piece.manner);
        let key = (task, stream);
        let Some(control) = &mut self.control else {
            return;
        };
        let mut begun = control.begun.remove(&key).unwrap_or_default();
        let engine = &mut self.engine;
        let mut tell = |text: &[u8], paid: usize| {
            let credit = ReceiptCredit {
                of: task,
                amount: paid as u32,
            };
            let message = message(task, stream, text);
            engine.notify_self(manner.context, manner.tag, &message, credit);
        };
        let kept = cut(&mut begun, &piece.bytes, manner.lines, &mut tell);
        if piece.then != StreamState::More && !begun.is_empty() {
            tell(&begun, 0);
            begun.clear();
        }
        if piece.then == StreamState::Closed {
            tell(&[], 0);
        }
        // An unfinished line is short, and delays no task, so its credit is returned now.
        engine.receipt_credits().pay(ReceiptCredit {
            of: task,
            amount: kept as u32,
        });
        if !begun.is_empty() {
            control.begun.insert(key, begun);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        for text in [&b"a line\n"[..], b""] {
            assert_eq!(read(&message(7, 1, text)), Some((7, 2, text)));
        }
        assert_eq!(read(b"RGou"), None);
        assert_eq!(read(&[0; HEAD]), None);
        assert_eq!(read(&message(7, 1, b"text")[..HEAD + 3]), None);
    }

    #[test]
    fn the_text_of_a_birth_is_the_number_of_the_parent_or_that_of_nobody() {
        for (parent, number) in [(Some(3), 3), (None, abi::NONE)] {
            let text = i32::to_ne_bytes(number);
            assert_eq!(read(&birth(7, parent)), Some((7, BORN, &text[..])));
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_lines_are_lines(
            pieces in prop::collection::vec("[ab\n]{0,9}", 0..9),
            repeat in prop::sample::select(vec![1_usize, 1000]),
            lines: bool,
        ) {
            let (mut begun, mut texts, mut paid, mut all) = (Vec::new(), Vec::new(), 0, Vec::new());
            for piece in pieces {
                let piece = piece.repeat(repeat).into_bytes();
                paid += cut(&mut begun, &piece, lines, |text, new| {
                    texts.push(text.to_vec());
                    paid += new;
                });
                all.extend(piece);
            }
            prop_assert_eq!(paid, all.len());
            prop_assert!(lines || begun.is_empty());
            for text in &texts {
                prop_assert!(!text.is_empty() && text.len() <= MAX_TEXT_BYTES);
                let newline = text.iter().position(|&byte| byte == b'\n');
                prop_assert!(!lines || newline == Some(text.len() - 1) || text.len() == MAX_TEXT_BYTES && newline.is_none());
            }
            texts.push(begun);
            prop_assert_eq!(texts.concat(), all);
        }
    }
}
