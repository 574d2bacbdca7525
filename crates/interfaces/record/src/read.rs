//! A record, read. Nothing in it is believed: lengths and numbers are checked, and times that make no sense are none.

use crate::layout::*;
use crate::{CALLS, Call};

/// A record, as it was found.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Whose it is, times and totals.
    pub head: Head,
    /// The parts of threads that were used.
    pub threads: Vec<Thread>,
    /// Marks and toggles.
    pub names: Vec<Name>,
    /// Files that were mapped as code.
    pub modules: Vec<Module>,
    /// Where the processor was seen outside of calls.
    pub samples: Vec<Sample>,
    /// The newest events, by their beginning.
    pub events: Vec<Event>,
}

/// The head of a record.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The process.
    pub pid: u32,
    /// The task; none: the process never joined a job.
    pub task: Option<u32>,
    /// The boot of its host.
    pub boot: u64,
    /// Monotonic time of the beginning, in nanoseconds, as all times.
    pub began: u64,
    /// That moment as time since 1970.
    pub began_real: u64,
    /// When it had joined.
    pub joined: Option<u64>,
    /// When it had left.
    pub left: Option<u64>,
    /// When the process had ended by itself.
    pub ended: Option<u64>,
    /// The last moment known of it.
    pub last: u64,
    /// Nanoseconds of processor time between two samples; 0: none were taken.
    pub period: u64,
    /// Samples taken.
    pub samples: u64,
    /// Samples for which there was no room.
    pub samples_lost: u64,
    /// Events that were overwritten by later ones.
    pub events_lost: u64,
    /// How long nothing was recorded.
    pub off: u64,
    /// Calls of threads for which there was no room.
    pub unrecorded: u64,
    /// Marks and toggles for which there was no room.
    pub names_lost: u64,
    /// Processor time, as far as it is known.
    pub processor: u64,
    /// The host.
    pub host: String,
    /// The program.
    pub program: String,
}

/// The part of a thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// How long threads have had it, from their first call on.
    pub life: u64,
    /// When the first one began.
    pub began: u64,
    /// Calls that were made.
    pub calls: Vec<CallRecord>,
    /// The call in which it was at the end, since when, and with which peer.
    pub current: Option<(Call, u64, Option<u32>)>,
    /// Messages sent, by class of length.
    pub sent: Sizes,
    /// Messages received.
    pub received: Sizes,
    /// By peer.
    pub peers: Vec<Peer>,
}

/// Count and bytes of messages by class of length.
pub type Sizes = Vec<(u64, u64)>;

/// A call's numbers.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord {
    /// Which.
    pub call: Call,
    /// How often.
    pub count: u64,
    /// Nanoseconds.
    pub time: u64,
    /// The longest.
    pub longest: u64,
    /// Bytes.
    pub bytes: u64,
    /// How often it failed.
    pub failed: u64,
    /// Samples in it.
    pub busy: u64,
}

/// Messages with a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The task; none: all for which there was no room.
    pub task: Option<u32>,
    /// Messages to it.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Messages from it.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
}

/// A mark or a toggle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// Its number, by which events name it.
    pub number: usize,
    /// Its text.
    pub text: String,
    /// How often it was marked.
    pub marks: u64,
    /// How often it was on.
    pub times: u64,
    /// How long.
    pub time: u64,
}

/// A file, mapped as code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// First address.
    pub begin: u64,
    /// The address behind it.
    pub end: u64,
    /// Difference between addresses there and those in the file's tables.
    pub base: u64,
    /// Its path.
    pub path: String,
}

/// An address, and how often the processor was seen there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The address.
    pub address: u64,
    /// How often.
    pub count: u64,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its kind.
    pub kind: EventKind,
    /// The part of the thread.
    pub thread: u8,
    /// When it began.
    pub began: u64,
    /// When it ended; not before that.
    pub ended: u64,
    /// A message was sent.
    pub sent: bool,
    /// A message was received.
    pub received: bool,
    /// The call failed.
    pub failed: bool,
    /// Bytes.
    pub bytes: u64,
    /// The task at the other end.
    pub peer: Option<u32>,
    /// The message's tag.
    pub tag: i32,
    /// The number of the message among those between the two with this tag, from 1; 0: not known.
    pub sequence: u32,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A call.
    Call(Call),
    /// A message of a call that has several.
    Message,
    /// A mark, by the number of its name.
    Mark(usize),
    /// A toggle that was on.
    Toggle(usize),
}

/// Why a file is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not begin like one.
    Strange,
    /// Another version wrote it.
    Version,
    /// Its size is not the one that it says.
    Size,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fault::Strange => "it is no record of a profile",
            Fault::Version => "another version of Regatta has written it",
            Fault::Size => "it is cut, or its size was changed",
        })
    }
}

impl Record {
    /// The record in this file.
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

    /// A word; 0 behind the end.
    fn at(&self, at: usize) -> u64 {
        let bytes = self.0.get(at * 8..at * 8 + 8);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or_default())
    }

    /// A text, as far as its end, or the end of its room.
    fn text(&self, at: usize, words: usize) -> String {
        let bytes = self.0.get(at * 8..(at + words) * 8).unwrap_or_default();
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// A time, if there is one.
    fn time(&self, at: usize) -> Option<u64> {
        Some(self.at(at)).filter(|&time| time != 0)
    }

    /// A task, of which the number and 1 is written.
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

/// Each line has two addresses and a base, as hexadecimal numbers, and a path.
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

/// The events that are there, and how many were overwritten.
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
