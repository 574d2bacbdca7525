//! The settings each environment is raced with between hosts, and the reason for each.

use super::Network;
use crate::results::Setting;
use crate::settings::{Family, Resolved};

enum Set {
    Arguments(&'static [&'static str]),
    Variable(&'static str, &'static str),
}

struct Tuning {
    families: &'static [Family],
    /// Only within one host, over 127.0.0.1; or only between hosts; or both.
    loopback: Option<bool>,
    /// Also for environments that run as they come: without it they would not cross this network at all.
    always: bool,
    /// Only with more tasks than processors, or only without.
    crowded: Option<bool>,
    set: Set,
    reason: &'static str,
}

const PINNED: &str =
    "all environments alike: tasks get the processors of their host, and are not bound further";
const ON_NETWORK: &str = "the network of the race, and no other";
/// The variable of MPICH that names its network module.
const NETMOD: &str = "MPIR_CVAR_CH4_NETMOD";

const TUNINGS: &[Tuning] = &[
    Tuning {
        families: &[Family::Regatta],
        loopback: None,
        always: true,
        crowded: None,
        set: Set::Arguments(&["--bind", "none"]),
        reason: PINNED,
    },
    Tuning {
        families: &[Family::OpenMpi],
        loopback: None,
        always: true,
        crowded: None,
        set: Set::Arguments(&["--bind-to", "none"]),
        reason: PINNED,
    },
    Tuning {
        families: &[Family::OpenMpi],
        loopback: Some(false),
        always: true,
        crowded: None,
        set: Set::Arguments(&["--mca", "btl_tcp_if_include", "10.77.0.0/24"]),
        reason: ON_NETWORK,
    },
    Tuning {
        families: &[Family::Mpich, Family::Mpich4],
        loopback: None,
        always: true,
        crowded: None,
        set: Set::Variable("UCX_TLS", "self,tcp"),
        reason: "UCX sees that both hosts are one machine, and would take its shared memory instead of the network",
    },
    Tuning {
        families: &[Family::Mpich],
        loopback: Some(true),
        always: true,
        crowded: None,
        set: Set::Variable(NETMOD, "ofi"),
        reason: "UCX reaches nobody over 127.0.0.1",
    },
    Tuning {
        families: &[Family::Mpich],
        loopback: Some(false),
        always: false,
        crowded: None,
        set: Set::Variable(NETMOD, "ofi"),
        reason: "8 B between hosts 11.4 us instead of 14, 64 KiB 41 to 89 us instead of 90 to 107 with UCX",
    },
    Tuning {
        families: &[Family::Mpich],
        loopback: None,
        always: false,
        crowded: None,
        set: Set::Variable("FI_PROVIDER", "tcp"),
        reason: "stated, not left to libfabric's guess; its provider sockets takes 16 us instead of 9 over 127.0.0.1",
    },
    Tuning {
        families: &[Family::OpenMpi],
        loopback: None,
        always: false,
        crowded: Some(true),
        set: Set::Arguments(&["--mca", "mpi_yield_when_idle", "1"]),
        reason: "its launcher does not see that hosts have fewer processors than slots: barrier of 4 tasks on each of 2 hosts with a processor each 58 us instead of 68 ms",
    },
    Tuning {
        families: &[Family::Mpich],
        loopback: None,
        always: false,
        crowded: Some(true),
        set: Set::Variable("MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD", "1000000000"),
        reason: "its shared-memory collectives never yield: the same barrier 0.2 ms instead of 24 ms without them",
    },
    Tuning {
        families: &[Family::Mpich, Family::Mpich4],
        loopback: Some(true),
        always: true,
        crowded: None,
        set: Set::Variable("MPIR_CVAR_NOLOCAL", "1"),
        reason: "no shared memory of MPICH's own, which this race is not about",
    },
    Tuning {
        families: &[Family::OpenMpi],
        loopback: Some(true),
        always: true,
        crowded: None,
        set: Set::Arguments(&[
            "--mca",
            "btl",
            "self,tcp",
            "--mca",
            "btl_tcp_if_include",
            "lo",
        ]),
        reason: "TCP instead of shared memory, which is what this race is about",
    },
];

fn applies(tuning: &Tuning, family: Family, tuned: bool, network: Network) -> bool {
    tuning.families.contains(&family)
        && (tuned || tuning.always)
        && tuning
            .loopback
            .is_none_or(|wanted| wanted == (network == Network::Loopback))
}

/// Which way messages go by these settings, for libraries that do not tell.
pub fn path(family: Family, network: Network, settings: &Resolved) -> &'static str {
    let by_ofi = settings.variables.iter().any(|(name, _)| name == NETMOD);
    match (family, network) {
        (Family::OpenMpi, Network::Loopback) => "ob1 over btl tcp",
        (Family::OpenMpi, _) => "ob1 over btl tcp between hosts, btl sm within one",
        (Family::Mpich, _) if by_ofi => "ch4 over OFI tcp between hosts",
        (Family::Mpich | Family::Mpich4, _) => "ch4 over UCX tcp between hosts",
        _ => "",
    }
}

/// The settings of an environment on a network.
pub fn resolve(family: Family, tuned: bool, network: Network, crowded: bool) -> Resolved {
    let mut resolved = Resolved::default();
    let now = |tuning: &&Tuning| {
        applies(tuning, family, tuned, network) && tuning.crowded.is_none_or(|when| when == crowded)
    };
    for tuning in TUNINGS.iter().filter(now) {
        match tuning.set {
            Set::Arguments(arguments) => resolved
                .arguments
                .extend(arguments.iter().map(|a| (*a).to_owned())),
            Set::Variable(name, value) => {
                resolved.variables.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    resolved
}

/// The settings of an environment on a network, for people.
pub fn describe(family: Family, tuned: bool, network: Network) -> Vec<Setting> {
    TUNINGS
        .iter()
        .filter(|t| applies(t, family, tuned, network))
        .map(|tuning| Setting {
            setting: match tuning.set {
                Set::Arguments(arguments) => arguments.join(" "),
                Set::Variable(name, value) => format!("{name}={value}"),
            },
            when: match tuning.crowded {
                None => "always",
                Some(false) => "tasks <= cores",
                Some(true) => "tasks > cores",
            }
            .to_owned(),
            reason: tuning.reason.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_is_kept_from_shared_memory_between_hosts() {
        for family in [Family::Mpich, Family::Mpich4] {
            for tuned in [false, true] {
                let variables = resolve(family, tuned, Network::Hosts, false).variables;
                assert!(variables.contains(&("UCX_TLS".to_owned(), "self,tcp".to_owned())));
            }
        }
        let alone = resolve(Family::OpenMpi, false, Network::Loopback, false).arguments;
        assert!(alone.contains(&"self,tcp".to_owned()));
    }

    #[test]
    fn crowded_hosts_have_settings_of_their_own() {
        let calm = resolve(Family::OpenMpi, true, Network::Hosts, false);
        let crowded = resolve(Family::OpenMpi, true, Network::Hosts, true);
        assert!(crowded.arguments.len() > calm.arguments.len());
        assert_eq!(
            crowded,
            resolve(Family::OpenMpi, true, Network::Ethernet10, true)
        );
        assert!(
            describe(Family::Mpich, true, Network::Hosts)
                .iter()
                .any(|setting| setting.when == "tasks > cores" && !setting.reason.is_empty())
        );
    }
}
