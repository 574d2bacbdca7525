//! Channels between launchers and hosts. Each delivers in order, with delays of its own, so messages of different channels overtake each
//! other; one that is cut has delivered a prefix of what was sent.

use std::time::Duration;

use super::{Down, Life, Sim, Up, What};

pub struct Channel {
    /// Another one after it was opened again: what is on its way then is lost.
    number: u64,
    /// When the last message arrives, down and up.
    last: [Duration; 2],
    /// Its messages take so many times as long as others.
    slow: u64,
    /// One of its ends is lost: this is when the last message arrives that still does.
    cut: Option<Duration>,
}

impl Sim {
    pub fn open_channel(&mut self, launcher: usize, host: u32) {
        self.order += 1;
        let channel = Channel {
            number: self.order,
            last: [Duration::ZERO; 2],
            slow: if self.random(4) == 0 { 4 } else { 1 },
            cut: None,
        };
        self.channels.insert((launcher, host), channel);
    }

    pub fn close_channel(&mut self, launcher: usize, host: u32) {
        self.channels.remove(&(launcher, host));
    }

    /// Of each channel of a host that is lost some messages still arrive.
    pub fn cut_channels(&mut self, host: u32) {
        let launchers = &self.launchers;
        let of_host =
            |(launcher, to): &(usize, u32)| *to == host || launchers[*launcher].host == host;
        let keys = self.channels.keys().filter(|key| of_host(key));
        for key in keys.copied().collect::<Vec<_>>() {
            let at = self.after(0, self.slowest);
            let cut = self.channels.get_mut(&key).map(|one| &mut one.cut);
            cut.into_iter().for_each(|cut| *cut = cut.or(Some(at)));
        }
    }

    /// A launcher ends in good order: all that it has sent arrives.
    pub fn end_channels(&mut self, launcher: usize) {
        let all = self.channels.iter_mut();
        let own = all.filter(|((by, _), _)| *by == launcher);
        own.for_each(|(_, channel)| channel.cut = Some(Duration::MAX));
    }

    /// When a message that is sent now arrives, behind those before it, and on which channel.
    fn arrival(&mut self, key: (usize, u32), up: bool) -> Option<(Duration, u64)> {
        let slow = self.channels.get(&key)?.slow;
        let at = self.after(0, slow * self.slowest);
        let channel = self.channels.get_mut(&key)?;
        let last = &mut channel.last[usize::from(up)];
        *last = at.max(*last);
        Some((*last, channel.number))
    }

    pub fn send_down(&mut self, launcher: usize, host: u32, message: Down) {
        let from = self.launchers[launcher].host;
        if self.life(from) != Life::Up {
            return;
        }
        if let Some((at, number)) = self.arrival((launcher, host), false) {
            self.at(at, What::Down(number, launcher, host, message));
        }
        self.burn(from);
    }

    pub fn send_up(&mut self, launcher: usize, host: u32, message: Up) {
        if self.life(host) != Life::Up {
            return;
        }
        if let Some((at, number)) = self.arrival((launcher, host), true) {
            self.at(at, What::Up(number, launcher, host, message));
        }
    }

    /// Whether nothing that the launcher has sent is on its way to a host.
    pub fn is_quiet(&self, launcher: usize, host: u32) -> bool {
        let channel = self.channels.get(&(launcher, host));
        channel.is_none_or(|one| one.cut.map_or(one.last[0], |cut| cut.min(one.last[0])) < self.now)
    }

    /// Whether a message arrives now, at this end of the channel of this number.
    pub fn arrives(&self, number: u64, key: (usize, u32), at: u32) -> bool {
        let channel = self.channels.get(&key);
        let is_there = |channel: &Channel| {
            channel.number == number && channel.cut.is_none_or(|cut| self.now <= cut)
        };
        self.life(at) == Life::Up && channel.is_some_and(is_there)
    }

    /// The launcher on this host has done one more thing: perhaps its host is lost before the next one.
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
