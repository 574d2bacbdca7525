//! Races between hosts: network namespaces of this race, at full speed or slowed to older networks.
//!
//! [`inside`] runs the race in its own namespaces, so that everything it creates there is removed when it ends for any
//! reason. [`hosts`] creates the hosts and counts the traffic between them. [`crossing`] computes the minimum traffic
//! if no message passed through shared memory. The peers define how environments are started on the hosts, and with
//! which settings.

pub mod crossing;
pub mod hosts;
pub mod inside;

use clap::ValueEnum;

/// The network that messages cross.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum Network {
    /// No network: one host, shared memory.
    #[default]
    Local,
    /// TCP within one host, over 127.0.0.1.
    Loopback,
    /// Hosts connected at full speed.
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
    /// The rate, in the notation of tc.
    pub rate: &'static str,
    /// Number of bytes that may pass at once: the smallest that keeps the rate.
    pub burst: u32,
    /// Number of bytes that may be queued.
    pub limit: u32,
}

impl Network {
    /// Returns its name in results.
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

    /// Returns how its links are slowed, or `None` if they are not.
    pub fn slowed(self) -> Option<Slowed> {
        let slowed = |rate, burst, limit| Some(Slowed { rate, burst, limit });
        match self {
            Network::Local | Network::Loopback | Network::Hosts => None,
            Network::Gigabit => slowed("1gbit", 16_000, 4_000_000),
            Network::Fddi100 => slowed("100mbit", 4_500, 1_000_000),
            Network::Ethernet10 => slowed("10mbit", 1_600, 500_000),
        }
    }

    /// Returns the maximum size of a packet in bytes.
    pub fn mtu(self) -> u32 {
        match self {
            Network::Fddi100 => 4352,
            _ => 1500,
        }
    }

    /// Returns the maximum number of bytes that one operation may move, so that a launch ends in time.
    pub fn largest(self) -> u64 {
        match self {
            Network::Ethernet10 => 128 << 10,
            Network::Fddi100 => 1 << 20,
            Network::Gigabit => 16 << 20,
            _ => u64::MAX,
        }
    }

    /// Returns whether all tasks are on one host and share memory.
    pub fn is_local(self) -> bool {
        self == Network::Local
    }
}
