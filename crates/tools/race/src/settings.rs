//! The settings with which environments are raced, and the measurement behind each. The peers define the settings
//! themselves.
//!
//! Peers race with their best settings: for every kind of operation, those that were fastest when tried on 2 cores of
//! an AMD EPYC (Zen 5, one socket, virtual machine). That is more than a user could do in one job, since settings apply
//! to the whole job, so no peer is slower for want of a setting. An environment whose name ends in `-default` runs with
//! its defaults.

use crate::network::Network;
use crate::operations::{self, Operation, Pattern};
use crate::peers::Peer;
use crate::results::Setting;

/// Reason of a setting that several peers share.
pub const PINNED: &str =
    "all environments alike: tasks get the processors of their host, and are not bound further";
/// Reason of a setting that several peers share.
pub const ON_NETWORK: &str = "the network of the race, and no other";

/// The condition for a setting, by numbers of tasks and processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// There is a processor for each task.
    Fits,
    /// More tasks than processors.
    Crowded,
}

/// The networks for which a setting is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkScope {
    /// One host, shared memory.
    Local,
    /// Over 127.0.0.1.
    Loopback,
    /// Between hosts.
    Hosts,
    /// Both over 127.0.0.1 and between hosts.
    Network,
}

/// A setting's value.
#[derive(Debug, Clone, Copy)]
pub enum Set {
    /// Arguments of the launcher.
    Arguments(&'static [&'static str]),
    /// An environment variable of the tasks.
    Variable(&'static str, &'static str),
}

/// A setting of a peer.
#[derive(Debug, Clone, Copy)]
pub struct Tuning {
    /// The networks on which it is set.
    pub place: NetworkScope,
    /// The numbers of tasks with which it is set.
    pub when: When,
    /// The patterns of messages with which it is set. If empty, all of them.
    pub patterns: &'static [Pattern],
    /// Whether it is also set for environments with default settings, because without it they would not cross this
    /// network.
    pub default_too: bool,
    /// Whether the adapter makes the setting in the program, since there is no launcher for it.
    pub in_program: bool,
    /// The setting.
    pub set: Set,
    /// The measurement behind it.
    pub reason: &'static str,
}

impl Tuning {
    /// Returns a setting on one host.
    pub const fn local(
        when: When,
        patterns: &'static [Pattern],
        set: Set,
        reason: &'static str,
    ) -> Tuning {
        Tuning {
            place: NetworkScope::Local,
            when,
            patterns,
            default_too: false,
            in_program: false,
            set,
            reason,
        }
    }

    /// Returns a setting between hosts, or over 127.0.0.1.
    pub const fn network(
        place: NetworkScope,
        when: When,
        set: Set,
        reason: &'static str,
    ) -> Tuning {
        Tuning {
            place,
            ..Tuning::local(when, &[], set, reason)
        }
    }

    /// Returns a setting without which the environment would not cross networks as the others do.
    pub const fn all_networks(set: Set, reason: &'static str) -> Tuning {
        Tuning {
            default_too: true,
            ..Tuning::network(NetworkScope::Network, When::Always, set, reason)
        }
    }

    fn is_of(&self, tuned: bool, network: Network) -> bool {
        let here = match self.place {
            NetworkScope::Local => network == Network::Local,
            NetworkScope::Loopback => network == Network::Loopback,
            NetworkScope::Hosts => !matches!(network, Network::Local | Network::Loopback),
            NetworkScope::Network => network != Network::Local,
        };
        here && (tuned || self.default_too)
    }

    fn applies(&self, pattern: Pattern, crowded: bool) -> bool {
        let fits = match self.when {
            When::Always => true,
            When::Fits => !crowded,
            When::Crowded => crowded,
        };
        fits && match self.patterns {
            // Trials were made between tasks of one launch, which say nothing about tasks that one of them starts.
            [] => pattern != Pattern::Spawning,
            patterns => patterns.contains(&pattern),
        }
    }

    fn text(&self) -> String {
        match self.set {
            Set::Arguments(arguments) => arguments.join(" "),
            Set::Variable(name, value) => format!("{name}={value}"),
        }
    }

    fn when_text(&self) -> String {
        let when = match self.when {
            When::Always => "always",
            When::Fits => "tasks <= cores",
            When::Crowded => "tasks > cores",
        };
        match self.patterns {
            [] => when.to_owned(),
            patterns => format!("{when}; {}", operations::named(patterns)),
        }
    }
}

/// All settings of one launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Resolved {
    /// Arguments of the launcher.
    pub arguments: Vec<String>,
    /// Variables of the tasks.
    pub variables: Vec<(String, String)>,
}

impl Resolved {
    /// Returns whether this variable is set.
    pub fn sets(&self, variable: &str) -> bool {
        self.variables.iter().any(|(name, _)| name == variable)
    }

    fn add(&mut self, arguments: &[&str]) {
        let arguments = arguments.iter().map(|one| (*one).to_owned());
        self.arguments.extend(arguments);
    }
}

/// Returns the settings for one operation. `crowded` says that there are more tasks than processors.
pub fn resolve(
    peer: &dyn Peer,
    tuned: bool,
    network: Network,
    operation: &Operation,
    crowded: bool,
) -> Resolved {
    let (facts, mut resolved) = (peer.facts(), Resolved::default());
    resolved.add(match operation.pattern {
        // Between hosts, pinning is one of the tunings.
        _ if !network.is_local() => &[],
        Pattern::Spawning => facts.unpinned,
        // Regatta's launcher binds the host and the nodes that the host starts, each on its own.
        _ if operation.host && facts.loads_nodes => &[],
        Pattern::BroadcastsInTurn if crowded && !facts.dealt.is_empty() => facts.dealt,
        _ => facts.pinning[usize::from(crowded)],
    });
    let tunings = facts.tunings.iter();
    for tuning in tunings.filter(|one| one.is_of(tuned, network) && !one.in_program) {
        match tuning.set {
            _ if !tuning.applies(operation.pattern, crowded) => {}
            Set::Arguments(arguments) => resolved.add(arguments),
            Set::Variable(name, value) => {
                resolved.variables.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    resolved
}

/// Returns all settings of an environment on a network, for the results file and the table.
pub fn describe(peer: &dyn Peer, tuned: bool, network: Network) -> Vec<Setting> {
    let facts = peer.facts();
    let setting = |arguments: &[&str], when: &str, reason: &str| {
        (network.is_local() && !arguments.is_empty()).then(|| Setting {
            setting: arguments.join(" "),
            when: when.to_owned(),
            reason: reason.to_owned(),
        })
    };
    let alike = "all environments alike: a core per task";
    let alone = format!("{} only", operations::named(&[Pattern::Spawning]));
    let bound = [
        setting(facts.pinning[0], "tasks <= cores", alike),
        setting(facts.pinning[1], "tasks > cores", "best of those tried"),
        setting(
            facts.dealt,
            &format!(
                "tasks > cores; {}",
                operations::named(&[Pattern::BroadcastsInTurn])
            ),
            "the task whose turn is next has another core than the one before: scattered columns, 8 tasks, up to a third faster",
        ),
        setting(
            facts.unpinned,
            &alone,
            "tasks bound to the core of the one that starts them take three times as long",
        ),
    ];
    let tunings = facts.tunings.iter();
    let tunings = tunings.filter(|one| one.is_of(tuned, network));
    let described = tunings.map(|tuning| Setting {
        setting: tuning.text(),
        when: tuning.when_text(),
        reason: tuning.reason.to_owned(),
    });
    bound.into_iter().flatten().chain(described).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::interfaces::NX;
    use crate::peers::mpich::Mpich;
    use crate::peers::mpich_debian::MpichDebian;
    use crate::peers::openmpi::OpenMpi;
    use crate::peers::regatta::Regatta;

    fn on(network: Network, peer: &dyn Peer, name: &str, crowded: bool) -> Resolved {
        let operation = operations::find(name).expect("it is in the table");
        resolve(peer, true, network, operation, crowded)
    }

    fn here(peer: &dyn Peer, name: &str, crowded: bool) -> Resolved {
        on(Network::Local, peer, name, crowded)
    }

    #[test]
    fn an_environment_as_it_comes_has_only_its_pinning() {
        let broadcast = operations::find("broadcast").expect("it is in the table");
        let resolved = resolve(&OpenMpi, false, Network::Local, broadcast, false);
        assert_eq!(resolved.arguments, ["--bind-to", "core"]);
        assert_eq!(describe(&OpenMpi, false, Network::Local).len(), 4);
    }

    #[test]
    fn settings_follow_operation_and_crowding() {
        let broadcast = here(&OpenMpi, "broadcast", false);
        assert_ne!(broadcast, here(&OpenMpi, "barrier", false));
        assert!(broadcast.arguments.contains(&"coll_sm_priority".to_owned()));
        let crowded = here(&Mpich, "barrier", true);
        assert!(crowded.sets("MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD"));
        let described = describe(&Mpich, true, Network::Local);
        let named = operations::named(&[Pattern::Messages]);
        let when = format!("tasks <= cores; {named}");
        assert!(described.iter().any(|setting| setting.when == when));
    }

    #[test]
    fn tasks_that_broadcast_in_turn_are_dealt_to_cores_only_in_a_crowd() {
        for (peer, argument) in [
            (&OpenMpi as &dyn Peer, "slot:OVERSUBSCRIBE"),
            (&Regatta, "core"),
        ] {
            let name = "gauss-column-scattered";
            assert!(
                here(peer, name, true)
                    .arguments
                    .contains(&argument.to_owned())
            );
            assert_eq!(here(peer, name, false), here(peer, "barrier", false));
        }
    }

    #[test]
    fn a_task_that_starts_others_has_settings_of_its_own() {
        let spawn = here(&OpenMpi, "spawn", true).arguments;
        assert!(spawn.contains(&"self,sm,tcp".to_owned()) && spawn.contains(&"none".to_owned()));
        assert!(!spawn.contains(&"self,sm".to_owned()), "{spawn:?}");
        for operation in ["spawn", "host-broadcast"] {
            assert_eq!(here(&Regatta, operation, false), Resolved::default());
        }
        let barrier = here(&NX, "barrier", false);
        assert_eq!(barrier.arguments, ["--bind", "core"]);
    }

    #[test]
    fn every_peer_is_kept_from_shared_memory_between_hosts() {
        let barrier = operations::find("barrier").expect("it is in the table");
        let peers: [&dyn Peer; 2] = [&Mpich, &MpichDebian];
        for peer in peers {
            for tuned in [false, true] {
                let variables = resolve(peer, tuned, Network::Hosts, barrier, false).variables;
                assert!(variables.contains(&("UCX_TLS".to_owned(), "self,tcp".to_owned())));
            }
        }
        let alone = resolve(&OpenMpi, false, Network::Loopback, barrier, false).arguments;
        assert!(alone.contains(&"self,tcp".to_owned()));
    }

    #[test]
    fn crowded_hosts_have_settings_of_their_own() {
        let calm = on(Network::Hosts, &OpenMpi, "barrier", false);
        let crowded = on(Network::Hosts, &OpenMpi, "barrier", true);
        assert!(crowded.arguments.len() > calm.arguments.len());
        assert_eq!(crowded, on(Network::Ethernet10, &OpenMpi, "barrier", true));
        let described = describe(&Mpich, true, Network::Hosts);
        let of_crowds = |one: &&Setting| one.when == "tasks > cores" && !one.reason.is_empty();
        assert!(described.iter().any(|setting| of_crowds(&setting)));
    }
}
