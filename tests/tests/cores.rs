//! Hosts that are one machine share out its cores (`tests/programs/core.c`).

use regatta_tests::lan::{APART, AS_ROOT, make_hosts};
use regatta_tests::{Job, skip};

/// After the hosts h0 and h1 were made: the launcher runs on h0 and reaches both.
const WORLD: &str = r#"export REGATTA_RSH='env XDG_RUNTIME_DIR=/run/user.{host} ip netns exec {host}'
exec env XDG_RUNTIME_DIR=/run/user.h0 ip netns exec h0 "$@"
"#;

/// Two hosts of one task each, both network namespaces of this machine.
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

/// These namespaces have claims of their own: no other job is seen from there.
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
        // Another job may have claimed the cores.
        job("bound-or-not").run().passed();
    }
}
