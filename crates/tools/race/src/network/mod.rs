//! Races between hosts: network namespaces of this race alone, at full speed or slowed to networks of other times.
//!
//! [`inside`] takes the race into namespaces of its own, so that whatever it makes there is gone with it, however it
//! ends; nothing outside has a name, and nothing is left to clean up. [`hosts`] makes the hosts there and counts what passes between them,
//! and [`crossing`] says what must have passed if no message took a short cut through shared memory. How environments are started on the
//! hosts, and with which settings, the peers say.

pub mod crossing;
pub mod hosts;
pub mod inside;

use clap::ValueEnum;

/// The network that messages cross.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum Network {
    /// Nothing: one host, shared memory.
    #[default]
    Local,
    /// TCP within one host, over 127.0.0.1.
    Loopback,
    /// Hosts joined at full speed.
    Hosts,
    /// As `Hosts`, at 1 Gbit/s.
    Gigabit,
    /// As `Hosts`, at 100 Mbit/s, in frames of FDDI's size.
    Fddi100,
    /// As `Hosts`, at 10 Mbit/s.
    Ethernet10,
}

/// How a link is slowed.
#[derive(Debug, Clone, Copy)]
pub struct Slowed {
    /// As tc writes it.
    pub rate: &'static str,
    /// Bytes that may pass at once: as few as keep the rate.
    pub burst: u32,
    /// Bytes that may wait.
    pub limit: u32,
}

impl Network {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Network::Local => "local",
            Network::Loopback => "loopback",
            Network::Hosts => "hosts",
            Network::Gigabit => "gigabit",
            Network::Fddi100 => "fddi100",
            Network::Ethernet10 => "ethernet10",
        }
    }

    /// How it is slowed, if it is.
    pub fn slowed(self) -> Option<Slowed> {
        let slowed = |rate, burst, limit| Some(Slowed { rate, burst, limit });
        match self {
            Network::Local | Network::Loopback | Network::Hosts => None,
            Network::Gigabit => slowed("1gbit", 16_000, 4_000_000),
            Network::Fddi100 => slowed("100mbit", 4_500, 1_000_000),
            Network::Ethernet10 => slowed("10mbit", 1_600, 500_000),
        }
    }

    /// Longest packet.
    pub fn mtu(self) -> u32 {
        match self {
            Network::Fddi100 => 4352,
            _ => 1500,
        }
    }

    /// The most bytes that one operation may move, so that a launch ends in time.
    pub fn largest(self) -> u64 {
        match self {
            Network::Ethernet10 => 128 << 10,
            Network::Fddi100 => 1 << 20,
            Network::Gigabit => 16 << 20,
            _ => u64::MAX,
        }
    }

    /// Is it one host only, whose tasks share memory?
    pub fn is_local(self) -> bool {
        self == Network::Local
    }
}
