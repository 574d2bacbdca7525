//! Channels between launchers and hosts: byte streams with messages as frames. The bytes arrive in pieces of any size,
//! in order, with different delays for each channel, so messages on different channels overtake each other. A channel
//! may be cut after any byte.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use regatta_wire::fields::Message;
use regatta_wire::framing::{self, FrameReader};

use super::{Down, Life, Sim, Up, What};

/// The two ends of a channel: a launcher and a host.
pub type Ends = (usize, u32);

/// One direction of a channel.
#[derive(Default)]
struct Stream {
    /// The time at which the last byte arrives.
    last: Duration,
    sent: usize,
    arrived: usize,
    /// Number of bytes that arrive in all, if the stream was cut.
    limit: Option<usize>,
    /// Bytes that have arrived.
    frames: FrameReader,
    /// Messages whose last byte has not arrived. They must arrive in this order, and no others.
    expected: VecDeque<Vec<u8>>,
}

impl Stream {
    /// Returns how many of the sent bytes are still to arrive.
    fn coming(&self) -> usize {
        self.limit.unwrap_or(self.sent).min(self.sent) - self.arrived
    }

    fn next<M: Message + Debug>(&mut self) -> Result<Option<M>, String> {
        let wrong = || "a channel carries nonsense".to_owned();
        let message: Option<M> = self.frames.next_message().map_err(|_| wrong())?;
        let Some(message) = message else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        match self.expected.pop_front() {
            Some(expected) if expected == bytes => Ok(Some(message)),
            other => Err(format!("{message:?} comes in the place of {other:?}")),
        }
    }
}

pub struct Channel {
    /// Differs after the channel was opened again, when everything in flight is lost.
    number: u64,
    /// To the host, and to the launcher.
    streams: [Stream; 2],
    /// Factor by which its messages are slower than others.
    slow: u64,
}

impl Sim {
    pub fn open_channel(&mut self, launcher: usize, host: u32) {
        self.order += 1;
        let channel = Channel {
            number: self.order,
            streams: Default::default(),
            slow: if self.random(4) == 0 { 4 } else { 1 },
        };
        self.channels.insert((launcher, host), channel);
    }

    pub fn close_channel(&mut self, launcher: usize, host: u32) {
        self.channels.remove(&(launcher, host));
    }

    /// Cuts a channel, in each direction after any of the bytes in flight.
    pub fn cut_channel(&mut self, ends: Ends) {
        for up in [false, true] {
            let Some(channel) = self.channels.get(&ends) else {
                return;
            };
            let coming = channel.streams[usize::from(up)].coming();
            let still = self.random(coming as u64 + 1) as usize;
            let channel = self.channels.get_mut(&ends);
            let stream = channel.map(|one| &mut one.streams[usize::from(up)]);
            stream.into_iter().for_each(|stream| {
                stream.limit = Some(stream.arrived + still);
            });
        }
    }

    /// Holds everything that a launcher sends to a host from now on: it stays in flight until the launcher is lost.
    pub fn hold(&mut self, ends: Ends) {
        let down = self.channels.get_mut(&ends).map(|one| &mut one.streams[0]);
        down.into_iter()
            .for_each(|stream| stream.limit = Some(stream.sent));
    }

    /// Returns the number of a channel, if it exists.
    pub fn number_of(&self, ends: Ends) -> Option<u64> {
        self.channels.get(&ends).map(|channel| channel.number)
    }

    /// Returns the time at which the last bytes of a channel arrive, and its number.
    pub fn end_of(&self, ends: Ends) -> (Duration, u64) {
        let channel = &self.channels[&ends];
        let last = channel.streams.iter().map(|stream| stream.last);
        (last.fold(self.now, Duration::max), channel.number)
    }

    /// Cuts all channels of a host that is lost.
    pub fn cut_channels(&mut self, host: u32) {
        let launchers = &self.launchers;
        let of_host = |(launcher, to): &Ends| *to == host || launchers[*launcher].host == host;
        let all = self.channels.keys().filter(|ends| of_host(ends));
        let all: Vec<Ends> = all.copied().collect();
        all.into_iter().for_each(|ends| self.cut_channel(ends));
    }

    fn send(&mut self, ends: Ends, up: bool, message: &impl Message) {
        let Some(channel) = self.channels.get(&ends) else {
            return;
        };
        let (number, slow) = (channel.number, channel.slow);
        let (mut bytes, mut body) = (Vec::new(), Vec::new());
        framing::put(message, &mut bytes).expect("a frame");
        message.encode(&mut body);
        // Most messages arrive in one piece.
        let cut = match self.random(4) {
            0 => self.random(bytes.len() as u64 + 1) as usize,
            _ => bytes.len(),
        };
        let rest = bytes.split_off(cut);
        let mut pieces = Vec::new();
        for piece in [bytes, rest] {
            if !piece.is_empty() {
                let at = self.after(0, slow * self.slowest);
                pieces.push((at, piece));
            }
        }
        let channel = self.channels.get_mut(&ends).expect("a channel");
        let stream = &mut channel.streams[usize::from(up)];
        stream.expected.push_back(body);
        for (at, piece) in &mut pieces {
            stream.last = stream.last.max(*at);
            *at = stream.last;
            stream.sent += piece.len();
        }
        for (at, piece) in pieces {
            self.at(at, What::Bytes(number, ends, up, piece));
        }
    }

    pub fn send_down(&mut self, launcher: usize, host: u32, message: Down) {
        let from = self.launchers[launcher].host;
        if self.life(from) == Life::Up {
            self.send((launcher, host), false, &message);
            self.burn(from);
        }
    }

    pub fn send_up(&mut self, launcher: usize, host: u32, message: Up) {
        if self.life(host) == Life::Up {
            self.send((launcher, host), true, &message);
        }
    }

    /// Delivers bytes to an end of a channel, which may not exist any more, or belong to another channel by now.
    pub fn bytes_arrive(&mut self, number: u64, ends: Ends, up: bool, bytes: &[u8]) {
        let (launcher, host) = ends;
        let at = match up {
            true => self.launchers[launcher].host,
            false => host,
        };
        let is_there = self.life(at) == Life::Up;
        let channel = self.channels.get_mut(&ends);
        let Some(channel) = channel.filter(|one| one.number == number) else {
            return;
        };
        let stream = &mut channel.streams[usize::from(up)];
        let bytes = &bytes[..bytes.len().min(stream.coming())];
        stream.arrived += bytes.len();
        stream.frames.push(bytes);
        if !is_there {
            return;
        }
        match up {
            true => self.read_messages(number, ends, up, |sim, message| {
                sim.take_up(launcher, host, message);
            }),
            false => self.read_messages(number, ends, up, |sim, message| {
                sim.take_down(launcher, host, message);
            }),
        }
    }

    /// Handles the messages that have arrived completely, as long as the channel exists.
    fn read_messages<M: Message + Debug>(
        &mut self,
        number: u64,
        ends: Ends,
        up: bool,
        take: impl Fn(&mut Sim, M),
    ) {
        loop {
            let channel = self.channels.get_mut(&ends);
            let Some(channel) = channel.filter(|one| one.number == number) else {
                return;
            };
            match channel.streams[usize::from(up)].next() {
                Ok(Some(message)) => take(self, message),
                Ok(None) => return,
                Err(wrong) => return self.note_wrong(true, || wrong),
            }
            let at = if up {
                self.launchers[ends.0].host
            } else {
                ends.1
            };
            if self.life(at) != Life::Up {
                return;
            }
        }
    }

    /// Returns whether no bytes from the launcher to a host are in flight.
    pub fn is_quiet(&self, launcher: usize, host: u32) -> bool {
        let channel = self.channels.get(&(launcher, host));
        channel.is_none_or(|one| one.streams[0].coming() == 0)
    }

    /// Counts one more message of the launcher on this host, which may be lost before the next one.
    pub fn burn(&mut self, host: u32) {
        let Some(left) = &mut self.fuse else { return };
        if *left > 0 {
            *left -= 1;
            return;
        }
        self.fuse = None;
        if self.can_lose(host) {
            let cut = self.random(2) == 0;
            self.lose(host, if cut { Life::Cut } else { Life::Gone });
        }
    }
}
