//! Times and sizes, all derived from one: how long a host may be silent.

use std::num::{NonZeroU8, NonZeroUsize};
use std::time::Duration;

use foca::{Config, PeriodicParams};

/// Settings on which all daemons of one machine must agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Time after which a silent host is declared dead, approximately.
    pub silence: Duration,
    /// Distinguishes machines that share a network. Datagrams with another number are dropped.
    pub machine: u32,
    /// Maximum size of a datagram, in bytes. The minimum is 1100, which also replaces smaller values; the default,
    /// 1200, passes a tunnel over Ethernet unfragmented.
    pub datagram: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            silence: Duration::from_secs(2),
            machine: 0,
            datagram: 1200,
        }
    }
}

/// Minimum datagram size, in bytes: room for a vote on the largest change, and for the suspects that are compared in
/// one message.
const MIN_DATAGRAM_BYTES: usize = 1100;

impl Settings {
    /// Returns these settings with invalid values replaced.
    pub(crate) fn sane(self) -> Settings {
        let silence = self.silence.max(Duration::from_millis(100));
        Settings {
            silence,
            datagram: self.datagram.max(MIN_DATAGRAM_BYTES),
            ..self
        }
    }

    /// Returns the period in which each host probes one other and does its periodic work.
    ///
    /// 3/40 of the silence, 150 ms by default. All hosts together probe at random, so a dead host is first probed after
    /// 1.6 periods on average and after 5 in one case of a hundred, whatever the number of hosts; the missing answer
    /// takes one more period. With the suspicion that is 1.1 to 1.9 s of the 2 s, and the rest is for spreading the
    /// verdict.
    pub fn period(&self) -> Duration {
        self.silence * 3 / 40
    }

    /// Returns how long a suspect has to object: 11/20 of the silence, 1.1 s by default. A process that was stopped for
    /// a second is suspected for at most 0.85 s, then objects, and has a quarter of a second left for its objection to
    /// arrive.
    pub fn suspicion(&self) -> Duration {
        self.silence * 11 / 20
    }

    /// Returns how long a suspect has in a machine of this many hosts. In a machine of a few, all of which probe each
    /// other all the time, a dead host is noticed sooner, so that its suspicion may last longer: 1.55 s with two hosts
    /// by default, 1.33 s with three, 1.25 s with four. A link that was down for a second then leaves a quarter of a
    /// second or more for the suspect's objection.
    fn suspicion_among(&self, hosts: usize) -> Duration {
        match hosts {
            2..=4 => self.suspicion() + self.period() * 3 / (hosts as u32 - 1),
            _ => self.suspicion(),
        }
    }

    /// Returns the time after a host's answer to a probe in which a daemon passes no verdict on it: 3/4 of the silence,
    /// 1.5 s by default. So a suspicion that began because a host was slow does not count against an outage that came
    /// after it.
    pub(crate) fn verdict(&self) -> Duration {
        self.silence * 3 / 4
    }

    /// Returns the delay of a timer above which this process did not run meanwhile, so that it knows nothing about that
    /// time.
    pub(crate) fn stall(&self) -> Duration {
        self.period()
    }

    /// Returns the minimum time between two decisions about the roll. The leader counts the votes of all, so its work
    /// grows with the number of hosts. To limit that, large machines decide on more changes at once, less often.
    pub(crate) fn pace(&self, hosts: usize) -> Duration {
        self.period().max(Duration::from_micros(500) * hosts as u32)
    }

    /// Returns foca's configuration for a machine of this many hosts.
    pub(crate) fn foca(&self, hosts: usize, room: usize) -> Config {
        let one = NonZeroUsize::MIN;
        let every = |frequency, num_members| {
            Some(PeriodicParams {
                frequency,
                num_members,
            })
        };
        Config {
            probe_period: self.period(),
            probe_rtt: self.period() * 2 / 5,
            num_indirect_probes: NonZeroUsize::new(3).expect("three"),
            max_transmissions: transmissions(hosts),
            suspect_to_down_after: self.suspicion_among(hosts),
            remove_down_after: Some(self.silence * 300),
            max_packet_size: NonZeroUsize::new(room).unwrap_or(one),
            notify_down_members: true,
            periodic_announce: None,
            periodic_announce_to_down_members: every(self.silence / 2, one),
            periodic_gossip: every(self.period(), NonZeroUsize::new(2).expect("two")),
        }
    }
}

/// Returns how often each host passes on an update: a few times the logarithm of the number of hosts, so that by chance
/// all but a few receive it (the roll tells those few), and often enough that a lossy network of three hosts does not
/// lose it.
fn transmissions(hosts: usize) -> NonZeroU8 {
    let times = 4.0 * (hosts as f64 + 1.0).log10();
    NonZeroU8::new(times.clamp(6.0, 40.0) as u8).unwrap_or(NonZeroU8::MIN)
}
