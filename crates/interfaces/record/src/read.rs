//! Reading of records. The file is untrusted, so lengths and numbers are checked.

use crate::layout::*;
use crate::{CALLS, Call};

/// A record that was read from a file.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Process and task, times and totals.
    pub head: Head,
    /// The parts of threads that were used.
    pub threads: Vec<Thread>,
    /// Marks and toggles.
    pub names: Vec<Name>,
    /// Files that were mapped as code.
    pub modules: Vec<Module>,
    /// Code addresses that were sampled outside of calls.
    pub samples: Vec<Sample>,
    /// The newest events, ordered by their beginning.
    pub events: Vec<Event>,
}

/// The head of a record.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Process id.
    pub pid: u32,
    /// Task id, or `None` if the process never joined a job.
    pub task: Option<u32>,
    /// Identifies the host's boot; see [`head::BOOT`].
    pub boot: u64,
    /// Monotonic time of the beginning, in nanoseconds. All times are monotonic and in nanoseconds unless stated otherwise.
    pub began: u64,
    /// Time of the beginning since 1970, in nanoseconds.
    pub began_real: u64,
    /// Time when the process had joined the job.
    pub joined: Option<u64>,
    /// Time when the process had left the job.
    pub left: Option<u64>,
    /// Time when the process exited, or `None` if it was killed or ended without the C library's `exit`.
    pub ended: Option<u64>,
    /// The latest time in the record.
    pub last: u64,
    /// Processor time between two samples, in nanoseconds, or 0 if none were taken.
    pub period: u64,
    /// Number of samples taken.
    pub samples: u64,
    /// Number of samples for which there was no room.
    pub samples_lost: u64,
    /// Number of events that were overwritten by later ones.
    pub events_lost: u64,
    /// Total time for which recording was off.
    pub off: u64,
    /// Number of calls of threads for which there was no room.
    pub unrecorded: u64,
    /// Number of marks and toggles for which there was no room.
    pub names_lost: u64,
    /// Processor time of the process when it was last updated, in nanoseconds.
    pub processor: u64,
    /// Name of the host.
    pub host: String,
    /// Path of the program.
    pub program: String,
}

/// The part of a record that one thread at a time has used.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Total time for which threads used the part: the main thread from the start of the program, others from their first call on.
    pub life: u64,
    /// Time when the last thread began to use the part.
    pub began: u64,
    /// The functions that were called.
    pub calls: Vec<CallRecord>,
    /// The call that the thread was in at the end, the time when it began, and its peer.
    pub current: Option<(Call, u64, Option<u32>)>,
    /// Messages sent, by class of length.
    pub sent: Sizes,
    /// Messages received, by class of length.
    pub received: Sizes,
    /// Messages by peer.
    pub peers: Vec<Peer>,
}

/// Count and bytes of messages, by class of length.
pub type Sizes = Vec<(u64, u64)>;

/// The numbers of a called function.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord {
    /// The function.
    pub call: Call,
    /// Number of calls.
    pub count: u64,
    /// Total time, in nanoseconds.
    pub time: u64,
    /// Duration of the longest call, in nanoseconds.
    pub longest: u64,
    /// Total bytes of this task's data in the calls.
    pub bytes: u64,
    /// Number of failed calls.
    pub failed: u64,
    /// Number of samples taken during the calls.
    pub busy: u64,
}

/// Messages with a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Task id of the peer, or `None` for all peers for which there was no room.
    pub task: Option<u32>,
    /// Number of messages sent to the peer.
    pub sent: u64,
    /// Bytes sent to the peer.
    pub sent_bytes: u64,
    /// Number of messages received from the peer.
    pub received: u64,
    /// Bytes received from the peer.
    pub received_bytes: u64,
}

/// A mark or a toggle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// Number of the name, by which events refer to it.
    pub number: usize,
    /// The name.
    pub text: String,
    /// Number of marks.
    pub marks: u64,
    /// Number of times that the toggle was switched on.
    pub times: u64,
    /// Total time for which the toggle was on, in nanoseconds.
    pub time: u64,
}

/// A file that is mapped as code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// First address of the mapping.
    pub begin: u64,
    /// Address after the mapping.
    pub end: u64,
    /// Difference between addresses in the mapping and those in the file's tables.
    pub base: u64,
    /// Path of the file.
    pub path: String,
}

/// A sampled code address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The address.
    pub address: u64,
    /// Number of samples at the address.
    pub count: u64,
}

/// An event of a thread: a call, a message, a mark or an interval of a toggle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind of the event.
    pub kind: EventKind,
    /// Number of the thread's part.
    pub thread: u8,
    /// Time when the event began.
    pub began: u64,
    /// Time when the event ended, not before it began.
    pub ended: u64,
    /// Whether a message was sent.
    pub sent: bool,
    /// Whether a message was received.
    pub received: bool,
    /// Whether the call failed.
    pub failed: bool,
    /// Length of the message in bytes, or for a call without a message the bytes of its data.
    pub bytes: u64,
    /// Task id of the message's peer.
    pub peer: Option<u32>,
    /// Tag of the message.
    pub tag: i32,
    /// Number of the message among those from this sender to this receiver with this tag, from 1, or 0 if it is unknown.
    pub sequence: u32,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A call.
    Call(Call),
    /// A further message of a call that has several.
    Message,
    /// A mark, with the number of its name.
    Mark(usize),
    /// An interval during which a toggle was on, with the number of its name.
    Toggle(usize),
}

/// The reason why a file cannot be read as a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The file does not begin with the mark of a record.
    Strange,
    /// Another version of Regatta has written the file.
    Version,
    /// The size of the file is not the one that its head states.
    Size,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fault::Strange => "it is not a record of a profile",
            Fault::Version => "it was written by another version of Regatta",
            Fault::Size => "it is truncated, or its size was changed",
        })
    }
}

impl Record {
    /// Reads a record from the contents of its file.
    pub fn read(file: &[u8]) -> Result<Record, Fault> {
        let words = Words::new(file);
        let magic = words.at(head::MAGIC).to_le_bytes();
        if magic != MAGIC.to_le_bytes() {
            return Err(match magic.starts_with(&MARK) {
                true => Fault::Version,
                false => Fault::Strange,
            });
        }
        let events = words.at(head::EVENTS);
        let room = usize::try_from(events)
            .ok()
            .filter(|&events| events.is_power_of_two() && events <= MAX_EVENTS);
        let room = room.ok_or(Fault::Size)?;
        let size = crate::layout::words(room);
        if words.at(head::SIZE) != size as u64 || file.len() != size * 8 {
            return Err(Fault::Size);
        }
        let (events, lost) = events_of(&words, room);
        let head = head_of(&words, lost);
        Ok(Record {
            threads: (0..THREADS)
                .filter_map(|number| thread_of(&words, number, head.last))
                .collect(),
            names: (0..NAMES)
                .filter_map(|number| name_of(&words, number, head.last))
                .collect(),
            modules: modules_of(&words),
            samples: samples_of(&words),
            events,
            head,
        })
    }
}

/// The words of a file.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn new(file: &'a [u8]) -> Self {
        Words(file)
    }

    /// Returns a word, or 0 if it is after the end of the file.
    fn at(&self, at: usize) -> u64 {
        let bytes = self.0.get(at * 8..at * 8 + 8);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or_default())
    }

    /// Returns a text, up to its NUL or the end of its words.
    fn text(&self, at: usize, words: usize) -> String {
        let bytes = self.0.get(at * 8..(at + words) * 8).unwrap_or_default();
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Returns a time, or `None` if it is 0.
    fn time(&self, at: usize) -> Option<u64> {
        Some(self.at(at)).filter(|&time| time != 0)
    }

    /// Returns a task id, which is stored plus 1.
    fn task(&self, at: usize) -> Option<u32> {
        u32::try_from(self.at(at).checked_sub(1)?).ok()
    }
}

fn head_of(words: &Words, events_lost: u64) -> Head {
    let began = words.at(head::BEGAN);
    let ended = words.time(head::ENDED);
    let last = ended.unwrap_or(0).max(words.at(head::LAST)).max(began);
    let since = words.time(head::OFF_SINCE);
    let off = since.map_or(0, |since| last.saturating_sub(since));
    Head {
        pid: words.at(head::PID) as u32,
        task: words.task(head::TASK),
        boot: words.at(head::BOOT),
        began,
        began_real: words.at(head::BEGAN_REAL),
        joined: words.time(head::JOINED),
        left: words.time(head::LEFT),
        ended,
        last,
        period: words.at(head::PERIOD),
        samples: words.at(head::SAMPLES),
        samples_lost: words.at(head::SAMPLES_LOST),
        events_lost,
        off: words.at(head::OFF).saturating_add(off),
        unrecorded: words.at(head::UNRECORDED),
        names_lost: words.at(head::NAMES_LOST),
        processor: words.at(head::PROCESSOR),
        host: words.text(head::HOST, head::TEXT),
        program: words.text(head::PROGRAM, head::TEXT),
    }
}

fn thread_of(words: &Words, number: usize, end: u64) -> Option<Thread> {
    let at = THREADS_AT + number * thread::WORDS;
    let word = |offset| words.at(at + offset);
    if word(thread::USED) == 0 {
        return None;
    }
    let began = word(thread::BEGAN);
    let current = word(thread::CURRENT).checked_sub(1);
    let current = current.and_then(|call| u16::try_from(call).ok());
    let current = current.filter(|&call| usize::from(call) < CALLS.len());
    let taken = word(thread::TAKEN) != 0;
    let calls = (0..CALLS.len() as u16).map(|number| {
        let at = at + thread::CALLS + usize::from(number) * call::WORDS;
        CallRecord {
            call: Call(number),
            count: words.at(at + call::COUNT),
            time: words.at(at + call::TIME),
            longest: words.at(at + call::MAX_TIME),
            bytes: words.at(at + call::BYTES),
            failed: words.at(at + call::FAILED),
            busy: words.at(at + call::BUSY),
        }
    });
    let peers = (0..=PEERS).map(|number| {
        let at = at + thread::PEERS_AT + number * peer::WORDS;
        Peer {
            task: words.task(at + peer::TASK),
            sent: words.at(at + peer::SENT),
            sent_bytes: words.at(at + peer::SENT_BYTES),
            received: words.at(at + peer::RECEIVED),
            received_bytes: words.at(at + peer::RECEIVED_BYTES),
        }
    });
    Some(Thread {
        life: match taken {
            true => word(thread::LIFE).saturating_add(end.saturating_sub(began)),
            false => word(thread::LIFE),
        },
        began,
        calls: calls
            .filter(|call| call.count != 0 || call.busy != 0)
            .collect(),
        current: current.map(|call| {
            let since = word(thread::CURRENT_BEGAN);
            (Call(call), since, words.task(at + thread::CURRENT_PEER))
        }),
        sent: sizes_of(words, at + thread::SENT_SIZES),
        received: sizes_of(words, at + thread::RECEIVED_SIZES),
        peers: peers
            .filter(|peer| peer.sent != 0 || peer.received != 0)
            .collect(),
    })
}

fn sizes_of(words: &Words, at: usize) -> Sizes {
    (0..SIZES)
        .map(|class| (words.at(at + 2 * class), words.at(at + 2 * class + 1)))
        .collect()
}

fn name_of(words: &Words, number: usize, end: u64) -> Option<Name> {
    let at = NAMES_AT + number * name::WORDS;
    let text = words.text(at + name::TEXT, name::TEXT_WORDS);
    let since = words.time(at + name::SINCE);
    let open = since.map_or(0, |since| end.saturating_sub(since));
    let found = Name {
        number,
        text,
        marks: words.at(at + name::MARKS),
        times: words.at(at + name::TIMES),
        time: words.at(at + name::TIME).saturating_add(open),
    };
    (found.marks != 0 || found.times != 0).then_some(found)
}

/// Reads the list of modules. Each line has two addresses and a base, as hexadecimal numbers, and a path.
fn modules_of(words: &Words) -> Vec<Module> {
    let bytes = words.at(head::MODULE_BYTES).min(MODULE_WORDS as u64 * 8) as usize;
    let text = words.0.get(MODULES_AT * 8..MODULES_AT * 8 + bytes);
    let text = String::from_utf8_lossy(text.unwrap_or_default());
    let module = |line: &str| {
        let mut parts = line.splitn(4, ' ');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (begin, end, base) = (number()?, number()?, number()?);
        let path = parts.next()?.to_owned();
        let module = Module {
            begin,
            end,
            base,
            path,
        };
        (begin < end && !module.path.is_empty()).then_some(module)
    };
    text.lines().filter_map(module).collect()
}

fn samples_of(words: &Words) -> Vec<Sample> {
    let sample = |number: usize| Sample {
        address: words.at(SAMPLES_AT + 2 * number),
        count: words.at(SAMPLES_AT + 2 * number + 1),
    };
    let samples = (0..SAMPLES).map(sample);
    samples.filter(|sample| sample.count != 0).collect()
}

/// Returns the events in the record, and the number of those that were overwritten.
fn events_of(words: &Words, room: usize) -> (Vec<Event>, u64) {
    let mut events: Vec<Event> = (0..room)
        .filter_map(|number| event_of(words, EVENTS_AT + number * event::WORDS))
        .collect();
    events.sort_by_key(|event| (event.began, event.ended));
    let written = words.at(head::EVENT_COUNT);
    (events, written.saturating_sub(room as u64))
}

fn event_of(words: &Words, at: usize) -> Option<Event> {
    let what = words.at(at + event::WHAT);
    let kind = u16::try_from((what >> 48).checked_sub(1)?).ok()?;
    let flags = (what >> 40) as u8;
    let bytes = words.at(at + event::BYTES);
    let name = || usize::try_from(bytes).ok().filter(|&number| number < NAMES);
    let kind = match kind {
        event::MESSAGE => EventKind::Message,
        event::MARK => EventKind::Mark(name()?),
        event::TOGGLE => EventKind::Toggle(name()?),
        call if usize::from(call) < CALLS.len() => EventKind::Call(Call(call)),
        _ => return None,
    };
    let began = words.at(at + event::BEGAN);
    let peer = words.at(at + event::PEER);
    Some(Event {
        kind,
        thread: (what >> 32) as u8,
        began,
        ended: words.at(at + event::ENDED).max(began),
        sent: flags & event::SENT != 0,
        received: flags & event::RECEIVED != 0,
        failed: flags & event::FAILED != 0,
        bytes,
        peer: u32::try_from(peer as u32 as i32).ok(),
        tag: (peer >> 32) as i32,
        sequence: what as u32,
    })
}
