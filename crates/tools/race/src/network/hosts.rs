//! The hosts of a race, and the traffic between them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Network;
use crate::speed;

/// Maximum number of hosts that take part.
pub const MAX_HOSTS: u32 = 8;
const NAMES: [&str; MAX_HOSTS as usize] = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta",
];
const SCRIPT: &str = include_str!("hosts.sh");

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name, which all hosts can resolve.
    pub name: &'static str,
    /// Its address.
    pub address: String,
    /// The processors of this machine that the host uses.
    pub processors: Vec<usize>,
}

/// All hosts, connected by a network.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// The network that connects them.
    pub network: Network,
    /// The hosts, in the order of ranks.
    pub each: Vec<Host>,
}

/// Bytes and packets that have passed between hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Bytes, including the headers of all layers.
    pub bytes: u64,
    /// Packets as the kernel counts them. A large one may be sent as several packets.
    pub packets: u64,
}

impl Passed {
    /// Returns the traffic since `before`.
    pub fn since(self, before: Passed) -> Passed {
        Passed {
            bytes: self.bytes.saturating_sub(before.bytes),
            packets: self.packets.saturating_sub(before.packets),
        }
    }
}

/// Returns this many hosts, each with a share of `processors`. Hosts share a processor if there are too few.
fn plan(network: Network, number: u32, processors: &[usize]) -> Vec<Host> {
    let number = number.clamp(1, MAX_HOSTS) as usize;
    let share = (processors.len() / number).max(1);
    let host = |index: usize| Host {
        name: NAMES[index],
        address: match network {
            Network::Loopback => "127.0.0.1".to_owned(),
            _ => format!("10.77.0.{}", index + 1),
        },
        processors: (0..share)
            .map(|one| processors[(index * share + one) % processors.len()])
            .collect(),
    };
    (0..number).map(host).collect()
}

impl Hosts {
    /// Folder of the hosts' files, in memory in this race's own namespaces.
    pub const FOLDER: &'static str = "/run/race";

    /// Creates the hosts. It mounts over /run, so it may be called only inside namespaces of this race.
    pub fn make(network: Network, number: u32) -> Result<Hosts> {
        let processors = speed::allowed();
        if processors.is_empty() {
            bail!("the processors this race may use are unknown");
        }
        let hosts = Hosts {
            network,
            each: plan(network, number, &processors),
        };
        let slowed = network.slowed();
        let text = |value: Option<String>| value.unwrap_or_default();
        let output = Command::new("sh")
            .args(["-c", SCRIPT])
            .env("HOSTS", hosts.words(true))
            .env("RATE", text(slowed.map(|s| s.rate.to_owned())))
            .env("BURST", text(slowed.map(|s| s.burst.to_string())))
            .env("LIMIT", text(slowed.map(|s| s.limit.to_string())))
            .env("MTU", network.mtu().to_string())
            .env(
                "LOOPBACK",
                if network == Network::Loopback {
                    "1"
                } else {
                    ""
                },
            )
            .stdin(Stdio::null())
            .output()
            .context("cannot run sh")?;
        if !output.status.success() {
            bail!(
                "the hosts of the race cannot be created: {}. They need the commands ip and tc (package iproute2), and a kernel with veth, bridge and tbf",
                String::from_utf8_lossy(&output.stderr)
                    .trim()
                    .replace('\n', "; ")
            );
        }
        Ok(hosts)
    }

    /// Returns the hosts for the programs, as `NAME=ADDRESS=PROCESSOR...` words. On the loopback network the names are
    /// empty unless `named`.
    pub fn words(&self, named: bool) -> String {
        let word = |host: &Host| {
            let processors: Vec<String> = host.processors.iter().map(usize::to_string).collect();
            let name = match named || self.network != Network::Loopback {
                true => host.name,
                false => "",
            };
            format!("{name}={}={}", host.address, processors.join(","))
        };
        self.each.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// Returns the hosts for launchers: `alpha:4,beta:4`.
    pub fn slots(&self, tasks: u32) -> String {
        let per_host = tasks.div_ceil(self.number());
        let each = self
            .each
            .iter()
            .map(|host| format!("{}:{per_host}", host.name));
        each.collect::<Vec<_>>().join(",")
    }

    /// Returns the number of hosts.
    pub fn number(&self) -> u32 {
        self.each.len() as u32
    }

    /// Returns the number of processors of each host.
    pub fn processors(&self) -> u32 {
        self.each[0].processors.len() as u32
    }

    /// Returns the path of a command or file of the hosts.
    pub fn file(&self, name: &str) -> PathBuf {
        Path::new(Self::FOLDER).join(name)
    }

    /// Removes the marks that the last launch made for its turns. Called before each launch.
    pub fn reset(&self) {
        for turn in 0.. {
            if fs::remove_dir(self.file(&format!("turn.{turn}"))).is_err() {
                break;
            }
        }
    }

    /// Returns the traffic so far, from the kernel's counters.
    pub fn passed(&self) -> Passed {
        count(
            &fs::read_to_string("/proc/net/dev").unwrap_or_default(),
            self.network == Network::Loopback,
        )
    }

    /// Returns a description for readers.
    pub fn describe(&self) -> String {
        let number = self.number();
        let name = self.network.name();
        let share = match self.processors() {
            1 => "a processor each".to_owned(),
            n => format!("{n} processors each"),
        };
        let shared = self.each.iter().enumerate().any(|(index, host)| {
            let others = &self.each[..index];
            others
                .iter()
                .any(|other| other.processors == host.processors)
        });
        let share = if shared {
            "sharing processors".to_owned()
        } else {
            share
        };
        match self.network {
            Network::Local => String::new(),
            Network::Loopback => format!(
                "network {name}: one host, TCP over 127.0.0.1, no shared memory between tasks"
            ),
            Network::Hosts => format!(
                "network {name}: {number} network namespaces of one machine, {share}, joined by veth and a bridge at full speed"
            ),
            _ => format!(
                "network {name}: {number} network namespaces of one machine, {share}, joined by veth and a bridge; every link passes {} each way (tc tbf). No latency is added (that needs netem), and packets within the burst of {} bytes are not delayed: a single small message is as fast as at full speed",
                self.network.slowed().map_or("", |s| s.rate),
                self.network.slowed().map_or(0, |s| s.burst),
            ),
        }
    }
}

/// Returns the traffic received by all hosts, from the text of /proc/net/dev.
fn count(text: &str, loopback: bool) -> Passed {
    let mut passed = Passed::default();
    for line in text.lines() {
        let Some((name, counters)) = line.split_once(':') else {
            continue;
        };
        let wanted = match loopback {
            true => name.trim() == "lo",
            false => name.trim().starts_with("to-"),
        };
        let mut counters = counters
            .split_whitespace()
            .map_while(|word| word.parse::<u64>().ok());
        if let (true, Some(bytes), Some(packets)) = (wanted, counters.next(), counters.next()) {
            passed.bytes += bytes;
            passed.packets += packets;
        }
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_share_the_processors_among_them() {
        let processors = |number, of: &[usize]| {
            plan(Network::Hosts, number, of)
                .into_iter()
                .map(|host| host.processors)
                .collect::<Vec<_>>()
        };
        assert_eq!(processors(2, &[0, 1]), [vec![0], vec![1]]);
        assert_eq!(processors(2, &[4, 5, 6, 7]), [vec![4, 5], vec![6, 7]]);
        assert_eq!(processors(4, &[0, 1]), [vec![0], vec![1], vec![0], vec![1]]);
    }

    #[test]
    fn hosts_are_written_as_programs_and_launchers_read_them() {
        let hosts = |network| Hosts {
            network,
            each: plan(network, 2, &[0, 1]),
        };
        assert_eq!(
            hosts(Network::Hosts).words(false),
            "alpha=10.77.0.1=0 beta=10.77.0.2=1"
        );
        assert_eq!(
            hosts(Network::Loopback).words(false),
            "=127.0.0.1=0 =127.0.0.1=1"
        );
        assert_eq!(hosts(Network::Hosts).slots(8), "alpha:4,beta:4");
    }

    #[test]
    fn only_what_comes_from_hosts_is_counted() {
        let text = "Inter-|   Receive\n face |bytes packets\n    lo:     100   1 0\nto-alpha: 1000 10 0 0\n bridge: 7 7\nto-beta: 2000 20 0\n";
        assert_eq!(
            count(text, false),
            Passed {
                bytes: 3000,
                packets: 30
            }
        );
        assert_eq!(
            count(text, true),
            Passed {
                bytes: 100,
                packets: 1
            }
        );
    }
}
