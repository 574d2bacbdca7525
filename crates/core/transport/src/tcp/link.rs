//! All that is between this task and one peer on another host. It outlives the connections it uses.

mod chunks;
mod streams;

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};

use regatta_memory::views::Views;
use regatta_wire::Frame;
use regatta_wire::bypass::Offer;
use regatta_wire::deadlock_probe::DeadlockProbe;
use regatta_wire::link::{HEAD, Head, Parcel};

use super::bypass::{Bypass, FRAMES_BEFORE_OFFER};
use super::deadlock_probe::{self, Heard};
use super::ending::Farewell;
use super::inbox::Inbox;
use super::outbox::{Outbox, RETAIN};
use super::phase::Phase;
use super::stall::Stall;
use super::stream::{self, InStream, OutStream};
use super::stream_limit::{Noticed, Opened};
use chunks::InChunk;
use regatta_connection::channel::Channel;

/// Maximum size of a frame's payload, in bytes.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 16 << 10;
/// Number of bytes received behind the end of a chunk, together with it: the next head, with luck a small frame.
const TAIL_BYTES: usize = 4 << 10;
/// Size of a read of an encrypted connection where nothing is known of what comes, in bytes: room for any frame, and for little of a
/// large message behind its offer, as that would have to be copied once more.
const SMALL_READ_BYTES: usize = HEAD + MAX_PAYLOAD_BYTES;
/// Number of polls for a frame, while a chunk that somebody drains is in front of it, after which the chunk is put aside.
const MAX_CHUNK_POLLS: u32 = 64;

/// The reason of a peer that says [`Parcel::Closed`].
pub(crate) const CLOSED: &str =
    "it has closed the connection, because what came from this task made no sense to it";

/// Why nothing more can be done on a connection.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It is lost; another one will do.
    Lost,
    /// The peer broke the protocol.
    Corrupt(&'static str),
    /// The peer's table says that this task is dead.
    Disowned,
}

impl From<std::io::Error> for Trouble {
    fn from(_: std::io::Error) -> Trouble {
        Trouble::Lost
    }
}

impl From<&'static str> for Trouble {
    fn from(what: &'static str) -> Trouble {
        Trouble::Corrupt(what)
    }
}

/// One peer on another host: what was said and heard, over however many connections.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) phase: Phase,
    pub(crate) outbox: Outbox,
    pub(crate) inbox: Inbox,
    pub(crate) outs: Vec<OutStream>,
    pub(crate) ins: Vec<InStream>,
    /// Streams that either side has opened to send, counted as both sides count them.
    opened: Opened,
    noticed: Noticed,
    /// Bare parcels that found no room in the outbox, in their order. As many as streams can end at a time: the peer has a
    /// bounded number, and this task its own.
    late: VecDeque<(Parcel, u32)>,
    chunk: Option<InChunk>,
    /// The last look for parcels has filled all its room.
    gushes: bool,
    /// Vain looks at a chunk in the way.
    waited: u32,
    next_out: u32,
    next_in: u32,
    /// The newest stream the peer has opened.
    newest: u32,
    /// Position of the peer's bytes it has last been told of.
    pub(super) told: u64,
    /// Number of the byte with which the next numbered parcel on the connection begins: less than what has come, if that came by a bypass.
    stream_at: u64,
    /// A bypass beside the connection, the peer's offer of one, and whether there is something to do about these.
    pub(crate) bypass: Option<Box<Bypass>>,
    pub(crate) offer: Option<Offer>,
    pub(crate) wants_bypass: bool,
    /// Frames that have come on the connection.
    frames: u32,
    /// The poller has been asked to tell when the socket takes more.
    pub(crate) waits_for_room: bool,
    /// Something may be there to be received.
    pub(crate) hint: bool,
    /// The connection takes nothing more. Bytes from before its end can still be received, and then its end.
    pub(crate) mute: bool,
    /// This task has said that nothing more comes; and the peer has.
    pub(crate) said_bye: bool,
    pub(crate) bye: bool,
    /// It broke the protocol.
    pub(crate) fault: Option<&'static str>,
    /// This task neither sends nor receives any more here.
    pub(crate) closed: bool,
    /// The engine has been told of the fault.
    pub(crate) reported: bool,
    /// The table of the job says it is gone, and all that it sent is here (see [`super::ending`]).
    pub(crate) gone: bool,
    /// There has been another link, which has been freed (see [`super::freeing`]).
    pub(crate) forgotten: bool,
    /// Bytes that have come on any connection.
    pub(super) heard_bytes: u64,
    /// How long more may come, since the table has said so.
    pub(super) farewell: Option<Farewell>,
    /// It lives, but the table of its host says that this task is dead. Nothing more comes from it.
    pub(crate) disowned: bool,
    /// The engine is done with it, because the table says that it is dead. Should it live, it is told so.
    pub(crate) parted: bool,
    /// The connection has ended, and nobody has looked after it yet.
    pub(crate) lost: bool,
    /// Attempts to connect since the last connection, and whether the last one was refused.
    pub(crate) attempts: u32,
    pub(crate) refused: bool,
    pub(crate) stall: Stall,
    /// The peer's probes that nobody has handled yet.
    pub(crate) probes: Vec<DeadlockProbe>,
    /// The last answer of the peer, and the question it has not answered.
    pub(crate) heard: Heard,
    pub(crate) owes: u32,
}

impl Link {
    pub(crate) fn new() -> Link {
        Link {
            phase: Phase::Idle,
            outbox: Outbox::new(),
            inbox: Inbox::new(),
            outs: Vec::new(),
            ins: Vec::new(),
            opened: Opened::default(),
            noticed: Noticed::default(),
            late: VecDeque::new(),
            chunk: None,
            gushes: false,
            waited: 0,
            next_out: 2,
            next_in: 1,
            newest: 0,
            told: 0,
            stream_at: 0,
            bypass: None,
            offer: None,
            wants_bypass: false,
            frames: 0,
            waits_for_room: false,
            hint: false,
            mute: false,
            said_bye: false,
            bye: false,
            fault: None,
            closed: false,
            reported: false,
            gone: false,
            forgotten: false,
            heard_bytes: 0,
            farewell: None,
            disowned: false,
            parted: false,
            lost: false,
            attempts: 0,
            refused: false,
            stall: Stall::default(),
            probes: Vec::new(),
            heard: Heard::default(),
            owes: 0,
        }
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// The connection ended, or must. A peer that broke the protocol is told, if a parcel can begin now.
    pub(crate) fn trouble(&mut self, trouble: Trouble) {
        if let (Trouble::Corrupt(_), Phase::Open(channel)) = (&trouble, &mut self.phase)
            && channel.is_flushed()
            && self.outbox.is_between()
        {
            let _ = send_first(channel, &Head::bare(Parcel::Closed, 0, 0).encode());
        }
        self.forget_connection();
        self.phase = Phase::Idle;
        self.lost = true;
        if !matches!(trouble, Trouble::Lost) {
            self.bypass = None;
        }
        match trouble {
            Trouble::Lost => {}
            Trouble::Corrupt(what) => _ = self.fault.get_or_insert(what),
            Trouble::Disowned => self.disowned = true,
        }
    }

    /// The engine is done with a peer that is dead by the table: neither side says anything more. A peer that lives after all
    /// (its host was cut off) hears why.
    pub(crate) fn part(&mut self) {
        if self.parted {
            return;
        }
        self.parted = true;
        if let Phase::Open(channel) = &mut self.phase
            && channel.is_flushed()
            && self.outbox.is_between()
        {
            // If that does not arrive, the next connection begins with it.
            let _ = send_first(channel, &Head::bare(Parcel::Disowned, 0, 0).encode());
        }
        self.trouble(Trouble::Lost);
    }

    /// Is there nobody to connect to, whatever is left to be said?
    pub(crate) fn is_cut_for_good(&self) -> bool {
        self.parted || self.disowned
    }

    /// Parcels that were on their way on a connection come again on the next one.
    pub(crate) fn forget_connection(&mut self) {
        self.note_end_for_bypass();
        self.inbox.cut();
        self.outbox.forget_connection();
        self.chunk = None;
        self.hint = false;
        self.mute = false;
        self.waits_for_room = false;
        self.told = self.inbox.taken;
        self.stream_at = self.inbox.reached;
        (self.offer, self.wants_bypass, self.frames) = (None, false, 0);
        // A question, or its answer, may be lost with it.
        self.owes = 0;
    }

    /// Is there something to look after that no event will tell of?
    #[inline]
    pub(crate) fn is_restless(&self) -> bool {
        self.lost || self.is_blocked() || !self.probes.is_empty()
    }

    /// Is something begun that the socket did not take?
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        let unsent = matches!(&self.phase, Phase::Open(channel) if !channel.is_flushed());
        unsent || !self.outbox.is_written()
    }

    /// Is there something to write as soon as the socket takes it?
    pub(crate) fn wants_room(&self) -> bool {
        self.is_blocked() || self.outs.iter().any(|stream| stream.sendable().is_some())
    }

    /// Does anything wait for a connection?
    pub(crate) fn needs_connection(&self) -> bool {
        !self.outbox.is_settled() || !self.outs.is_empty()
    }

    /// A new connection is there, which the peer has begun with this head.
    pub(crate) fn resume(&mut self, head: &Head) -> Result<(), Trouble> {
        let taken = head.word.checked_sub(head.context.into());
        let taken = taken.ok_or("a connection begins before what was taken")?;
        if !self.outbox.rewind(head.word, taken)? {
            return Err(Trouble::Lost);
        }
        self.outs.iter_mut().for_each(OutStream::rewind);
        for stream in &mut self.ins {
            stream.announce = stream.total.is_none();
        }
        self.noticed.reconnected();
        self.keep_late();
        self.told = self.inbox.taken;
        self.attempts = 0;
        self.hint = true;
        Ok(())
    }

    // Sending.

    /// Keep a frame, and write it if that can be done at once.
    #[inline]
    pub(crate) fn send(&mut self, frame: Frame, payload: &Views) {
        let head = Head::frame(frame, payload.len() as u32, self.inbox.taken);
        let by_bypass = self.bypass.is_some() && self.is_bypass_free(head.size());
        self.outbox.keep(&head, payload);
        self.told = self.inbox.taken;
        if by_bypass && self.send_by_bypass() {
            return;
        }
        if self.bypass.is_some() {
            self.passes_by_bypass();
        }
        let Phase::Open(channel) = &mut self.phase else {
            return;
        };
        if self.mute {
            return;
        }
        if self.outs.last().is_some_and(OutStream::is_fresh) {
            // Its offer goes with its front, by one system call.
            return self.pump(1);
        }
        match self.outbox.write_now(channel) {
            Ok(true) => {}
            Ok(false) => self.pump(0),
            Err(_) => self.fall_mute(),
        }
    }

    /// The connection takes nothing more. Not every failure ends it for the other side, or for the receiving here, as one
    /// that comes from there does: a key that cannot be changed, or a kernel without memory. So it is ended here.
    fn fall_mute(&mut self) {
        if let Phase::Open(channel) = &self.phase {
            channel.end();
        }
        (self.mute, self.hint) = (true, true);
    }

    /// Keep a numbered parcel that is only a head.
    fn keep(&mut self, parcel: Parcel, context: u32) {
        if !self.outbox.has_spare() {
            // A peer whose buffer is full takes no frames and may send on all the same.
            return self.late.push_back((parcel, context));
        }
        let head = Head::bare(parcel, context, self.inbox.taken);
        self.outbox.keep(&head, &Views::none());
    }

    /// The peer has taken everything up to `position`, which may make room.
    #[inline]
    fn acknowledged(&mut self, position: u64) -> Result<(), Trouble> {
        self.outbox.acknowledged(position)?;
        if !self.late.is_empty() {
            self.keep_late();
        }
        Ok(())
    }

    /// A frame of the bypass acknowledges so much. One that comes after its connection says nothing about the next one.
    #[inline]
    pub(super) fn acknowledge_by_bypass(&mut self, position: u64) -> Result<(), Trouble> {
        match self.is_open() {
            true => self.acknowledged(position),
            false => Ok(()),
        }
    }

    /// Does a bare parcel wait for room?
    #[inline]
    pub(super) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Is no chunk under way?
    #[inline]
    pub(super) fn chunk_is_over(&self) -> bool {
        self.chunk.is_none()
    }

    /// No frame overtakes what is late: there is room for bare parcels before there is any for frames.
    #[cold]
    fn keep_late(&mut self) {
        while self.outbox.has_spare()
            && let Some((parcel, context)) = self.late.pop_front()
        {
            self.keep(parcel, context);
        }
    }

    /// Say something about being blocked, behind all that has been sent before. False: something of that is not written.
    pub(crate) fn send_probe(&mut self, probe: &DeadlockProbe) -> bool {
        if !self.is_open() || self.is_blocked() {
            return false;
        }
        let body = probe.encode();
        let mut head = Head::bare(Parcel::DeadlockProbe, 0, self.inbox.taken);
        head.length = body.len() as u32;
        self.told = self.inbox.taken;
        self.outbox.urge(&head, &body);
        self.pump(0);
        true
    }

    /// The last words.
    pub(crate) fn send_bye(&mut self) {
        self.keep(Parcel::Bye, 0);
        self.pump(0);
    }

    /// Write what can be written.
    pub(crate) fn pump(&mut self, budget: usize) {
        if let Err(trouble) = self.try_pump(budget) {
            self.trouble(trouble);
        }
    }

    pub(crate) fn try_pump(&mut self, budget: usize) -> Result<bool, Trouble> {
        if !self.is_open() || self.mute {
            return Ok(false);
        }
        let (mut moved, mut budget) = (false, budget);
        loop {
            let all = self.urge_what_is_due();
            let Phase::Open(channel) = &mut self.phase else {
                return Ok(moved);
            };
            match self.outbox.pump(channel, &mut self.outs, budget) {
                Ok(some) => moved |= some,
                Err(_) => {
                    self.fall_mute();
                    return Ok(false);
                }
            }
            if all || !self.outbox.has_room_to_urge() {
                return Ok(moved);
            }
            budget = 0;
        }
    }

    /// Tells the peer how far this side is, where it must know. False: there is more to say than there is room for now.
    fn urge_what_is_due(&mut self) -> bool {
        let taken = self.inbox.taken;
        if taken - self.told >= RETAIN as u64 / 4 {
            if !self.outbox.has_room_to_urge() {
                return false;
            }
            self.told = taken;
            self.outbox.urge(&Head::bare(Parcel::Taken, 0, taken), &[]);
        }
        for stream in self.ins.iter_mut().filter(|stream| stream.announce) {
            if !self.outbox.has_room_to_urge() {
                return false;
            }
            stream.announce = false;
            let mut head = Head::bare(Parcel::Credit, stream.id, stream.limit);
            head.length = 8;
            self.outbox.urge(&head, &stream.received.to_le_bytes());
        }
        // A peer that does not take what it is told of its streams opens no more of them.
        if self.noticed.is_due() && self.outbox.is_acknowledged() {
            if !self.outbox.has_room_to_urge() {
                return false;
            }
            let head = Head::bare(Parcel::Released, 0, self.noticed.take_count());
            self.outbox.urge(&head, &[]);
        }
        true
    }

    // Receiving.

    /// The oldest frame, as far as has been received.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<Head> {
        let front = self.inbox.front();
        if front.is_some() || !self.is_open() {
            return front;
        }
        if !self.hint
            && let Some(bypass) = &mut self.bypass
            && bypass.spares_look()
        {
            return None;
        }
        self.receive();
        self.inbox.front()
    }

    /// Be done with the front frame.
    #[inline]
    pub(crate) fn take(&mut self, head: &Head) {
        self.inbox.take(head);
        if self.inbox.taken - self.told >= RETAIN as u64 / 4 {
            self.pump(0);
        }
    }

    /// Receive what is there. A chunk that somebody drains is left to him for a while.
    #[inline]
    pub(crate) fn receive(&mut self) {
        if self.chunk.is_some() && self.leave_chunk() {
            self.hint = false;
            return;
        }
        if let Err(trouble) = self.try_receive() {
            self.trouble(trouble);
        }
    }

    pub(super) fn try_receive(&mut self) -> Result<bool, Trouble> {
        let sips = !self.gushes && self.comes_in_pieces();
        self.receive_some(if sips { SMALL_READ_BYTES } else { usize::MAX })
    }

    /// Are small pieces received as cheaply as large ones? An encrypted connection holds what it has received; of another one
    /// each piece is a system call, and the kernel's word to the peer that there is room again.
    fn comes_in_pieces(&self) -> bool {
        matches!(&self.phase, Phase::Open(channel) if channel.is_secure())
    }

    /// Receive so much at most, where no chunk is under way.
    fn receive_some(&mut self, most: usize) -> Result<bool, Trouble> {
        let Phase::Open(channel) = &mut self.phase else {
            return Ok(false);
        };
        let Some(room) = self.inbox.room() else {
            self.hint = false;
            return Ok(false);
        };
        let most = self.chunk.map_or(most, |chunk| chunk.left);
        let asked = most.min(room.len());
        let room = &mut room[..asked];
        let Some(n) = channel.recv(&mut [IoSliceMut::new(room)])? else {
            self.hint = false;
            return Ok(false);
        };
        self.hint = n == asked || channel.holds_back();
        self.heard_bytes += n as u64;
        self.arrived(n)?;
        if self.has_early() {
            self.go_on_with_early()?;
        }
        self.gushes = n == asked && n >= SMALL_READ_BYTES && self.chunk.is_none();
        if !self.hint {
            self.has_read();
        }
        Ok(true)
    }

    /// So many bytes have come into the inbox's room.
    fn arrived(&mut self, n: usize) -> Result<(), Trouble> {
        if self.chunk.is_some() {
            // Not kept there: they go on into the stream.
            let at = self.inbox.end;
            self.absorb(at, n)?;
            if self.chunk.is_none() {
                self.try_pump(0)?;
            }
            return Ok(());
        }
        self.inbox.end += n;
        self.scan()
    }

    /// Look at what has come.
    fn scan(&mut self) -> Result<(), Trouble> {
        let mut answer = false;
        while let Some(bytes) = self.inbox.head_at(self.inbox.scanned) {
            let head = Head::decode(bytes)
                .map_err(|_| "a connection carries a head that makes no sense")?;
            let there = self.inbox.end - self.inbox.scanned - HEAD;
            if head.parcel == Parcel::Chunk {
                let n = there.min(head.length as usize);
                self.chunk = Some(self.begin_chunk(&head)?);
                self.absorb(self.inbox.scanned + HEAD, n)?;
                self.inbox.pass(HEAD + n);
                answer = true;
                continue;
            }
            if matches!(head.parcel, Parcel::Frame(_)) && head.length as usize > MAX_PAYLOAD_BYTES {
                return Err("a frame is longer than frames may be".into());
            }
            if there < head.length as usize {
                break;
            }
            answer |= self.parcel(&head)?;
        }
        // A stream that has come to its end lets its sender go on.
        if answer {
            self.try_pump(0)?;
        }
        Ok(())
    }

    /// A whole parcel that is no chunk; whether there may be something to say to it.
    #[inline]
    fn parcel(&mut self, head: &Head) -> Result<bool, Trouble> {
        if self.stream_at != self.inbox.reached && head.parcel.is_numbered() {
            return self.pass_repeated(head);
        }
        match head.parcel {
            Parcel::Credit => {
                let body = self.inbox.body(head);
                stream::credit(&mut self.outs, head.context, body, head.word)?;
                self.inbox.pass(head.size());
                return Ok(true);
            }
            Parcel::Taken => {
                self.acknowledged(head.word)?;
                self.inbox.pass(head.size());
                // There may be room now for a word that was held back.
                return Ok(self.noticed.is_due());
            }
            Parcel::Released => {
                self.opened.told(head.word)?;
                self.inbox.pass(head.size());
                return Ok(false);
            }
            Parcel::DeadlockProbe => return self.deadlock_probe(head),
            Parcel::Resume | Parcel::Chunk | Parcel::Shortage => {
                return Err("a connection begins twice".into());
            }
            Parcel::Bypass | Parcel::BypassKey | Parcel::Place => return self.bypass_parcel(head),
            Parcel::Closed => return Err(CLOSED.into()),
            Parcel::Disowned => return Err(Trouble::Disowned),
            Parcel::Frame(_) => self.count_frame(),
            Parcel::Complete => {
                let mut outs = self.outs.iter_mut();
                if let Some(stream) = outs.find(|stream| stream.id == head.context) {
                    stream.complete = true;
                }
            }
            Parcel::Cancelled => {
                self.notice(head.context)?;
                // The frame that names it may wait to be dealt with, and finds it then.
                match self.in_stream(head.context) {
                    Some(stream) if !stream.discarded => stream.cancel(),
                    _ => self.release_in(head.context),
                }
            }
            Parcel::Retracted => {
                self.notice(head.context)?;
                match self.in_stream(head.context) {
                    Some(stream) if stream.attached && !stream.discarded => stream.cancel(),
                    _ => self.release_in(head.context),
                }
            }
            Parcel::Bye => self.bye = true,
        }
        self.acknowledged(head.word)?;
        self.inbox.hold(head);
        self.stream_at = self.inbox.reached;
        Ok(false)
    }

    #[inline]
    fn count_frame(&mut self) {
        self.frames = self.frames.wrapping_add(1);
        self.wants_bypass |= self.frames == FRAMES_BEFORE_OFFER;
    }

    fn deadlock_probe(&mut self, head: &Head) -> Result<bool, Trouble> {
        deadlock_probe::read(&mut self.probes, self.inbox.body(head))?;
        self.acknowledged(head.word)?;
        self.inbox.pass(head.size());
        Ok(false)
    }

    /// A numbered parcel that has come by the bypass comes again on the connection.
    #[cold]
    fn pass_repeated(&mut self, head: &Head) -> Result<bool, Trouble> {
        self.stream_at += head.size() as u64;
        if self.stream_at > self.inbox.reached {
            return Err("a connection repeats something else than came".into());
        }
        self.inbox.pass(head.size());
        Ok(false)
    }

    /// A word of the connection about the bypass.
    #[cold]
    fn bypass_parcel(&mut self, head: &Head) -> Result<bool, Trouble> {
        match head.parcel {
            Parcel::Place if !(self.stream_at..=self.inbox.reached).contains(&head.word) => {
                return Err("a connection goes on where it cannot".into());
            }
            Parcel::Place => self.stream_at = head.word,
            Parcel::BypassKey => self.bypass_key_changed(head.word)?,
            _ => {
                let offer = Offer::decode(self.inbox.body(head));
                self.offer = Some(offer.map_err(|_| "the offer of a bypass makes no sense")?);
                self.wants_bypass = true;
            }
        }
        self.inbox.pass(head.size());
        Ok(false)
    }

    /// The first parcel of a connection: how far this side has come, or that it will not go on. Bytes that have come and are not
    /// taken are told apart: the peer sends them no more, and they still fill the room that it counts with.
    pub(crate) fn first_head(&self) -> [u8; HEAD] {
        let parcel = match self.fault {
            _ if self.stall.refuses => Parcel::Shortage,
            _ if self.is_cut_for_good() => Parcel::Disowned,
            None => Parcel::Resume,
            Some(_) => Parcel::Closed,
        };
        let untaken = self.inbox.reached - self.inbox.taken;
        Head::bare(parcel, untaken as u32, self.inbox.reached).encode()
    }
}

/// Send the first parcel of a connection.
pub(crate) fn send_first(channel: &mut Channel, bytes: &[u8]) -> Result<(), Trouble> {
    match channel.send(&[IoSlice::new(bytes)])? {
        n if n == bytes.len() => Ok(()),
        _ => Err(Trouble::Lost),
    }
}
