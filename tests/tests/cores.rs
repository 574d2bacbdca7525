//! Hosts that are one machine divide its cores among their tasks (`tests/programs/core.c`).

use regatta_tests::lan::{APART, AS_ROOT, make_hosts};
use regatta_tests::{Job, skip};

/// Script that runs after the hosts h0 and h1 were created: starts the launcher on h0, from which it reaches both
/// hosts.
const WORLD: &str = r#"export REGATTA_RSH='env XDG_RUNTIME_DIR=/run/user.{host} ip netns exec {host}'
exec env XDG_RUNTIME_DIR=/run/user.h0 ip netns exec h0 "$@"
"#;

/// Creates a job of one task on each of two hosts, both network namespaces of this machine.
fn on_two_hosts(how: &str) -> Job {
    let script = make_hosts(2) + WORLD;
    let shell = ["sh", "-ec", &script, "sh"];
    let around = [&["unshare"], &AS_ROOT[..], &APART, &shell].concat();
    Job::new(2, "core", &["different-cores", how])
        .option("--host=h0:1,h1:1")
        .around(&around)
}

fn has_two_cores() -> bool {
    let two = std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 2);
    if !two {
        skip("one core cannot be shared out");
    }
    two
}

#[test]
fn tasks_of_two_network_namespaces_of_one_machine_get_different_cores() {
    if has_two_cores() {
        on_two_hosts("bound").option("--bind=core").run().passed();
    }
}

/// Without `--bind`. The claims of these namespaces are separate, so claims of other jobs are not seen there.
#[test]
fn tasks_of_two_network_namespaces_get_different_cores_without_being_asked() {
    if has_two_cores() {
        on_two_hosts("bound").run().passed();
    }
}

#[test]
fn tasks_of_two_hosts_that_are_pretended_get_different_cores() {
    if has_two_cores() {
        let job = |how| Job::new(2, "core", &["different-cores", how]).across("alpha:1,beta:1");
        job("bound").option("--bind=core").run().passed();
        // Another job may hold claims on the cores.
        job("bound-or-not").run().passed();
    }
}
