//! Failures of a virtual machine's environment: full disks, firewalls, names in use, daemons killed at the wrong
//! moment. The user reads a sentence with the cause, nothing stays of what failed, and what existed before goes on.

mod support;

use rustix::process::Signal;
use support::lan::{Lan, state_of};
use support::{REGATTA, Running, Scratch, await_ends, run, told};

fn pair() -> Lan {
    let lan = Lan::new(&["alpha", "beta", "gamma", "delta"]);
    lan.good("alpha", &["up", "--as", "alpha", "beta"]);
    lan
}

/// Runs a command that must fail with all these parts in its error.
#[track_caller]
fn refused(lan: &Lan, host: &str, arguments: &[&str], parts: &[&str]) {
    let (status, output, said) = lan.regatta(host, arguments);
    assert_eq!((status, output.as_str()), (125, ""), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}

/// Checks that only the daemons of these hosts run, in one machine.
#[track_caller]
fn only(lan: &Lan, hosts: &[&str]) {
    for host in hosts {
        lan.await_whole(host, hosts.len() - 1);
    }
    let daemons: Vec<_> = hosts.iter().map(|host| lan.daemon(host).pid).collect();
    let mut others = lan.processes();
    others.retain(|process| !daemons.contains(&process.pid));
    await_ends(&others);
}

/// Makes a host drop packets, as firewalls do.
fn drops(lan: &Lan, host: &str, rules: &str) {
    let rules: String = rules
        .lines()
        .map(|rule| format!("add rule inet wall {}\n", rule.trim()))
        .collect();
    lan.sh(&format!(
        "PATH=$PATH:/usr/sbin:/sbin ip netns exec {host} nft -f - <<'END'
add table inet wall
flush table inet wall
add chain inet wall arriving {{ type filter hook input priority 0; }}
add chain inet wall leaving {{ type filter hook output priority 0; }}
{rules}END"
    ));
}

#[test]
fn a_firewall_that_drops_packets_is_told_by_what_it_stops() {
    let lan = pair();
    let add = ["add", "gamma"];
    drops(&lan, "gamma", "arriving meta l4proto tcp drop");
    let stopped = ["the host gamma cannot be reached from", "firewall"];
    refused(&lan, "alpha", &add, &stopped);
    for udp in [
        "arriving meta l4proto udp drop",
        "leaving meta l4proto udp drop",
        "arriving meta l4proto udp drop\nleaving meta l4proto udp drop",
    ] {
        drops(&lan, "gamma", udp);
        refused(
            &lan,
            "alpha",
            &add,
            &["datagrams do not arrive (UDP", "firewall"],
        );
        // Its farewell is dropped as well, so the daemon begun there takes a moment to end.
        only(&lan, &["alpha", "beta"]);
    }
    // The new host cannot reach another host of the machine.
    drops(
        &lan,
        "beta",
        "arriving ip saddr 10.77.0.3 meta l4proto tcp drop",
    );
    drops(&lan, "gamma", "");
    let stopped = ["gamma cannot connect to the host beta at 10.77.0.2:"];
    refused(&lan, "alpha", &add, &stopped);
    only(&lan, &["alpha", "beta"]);
    drops(&lan, "beta", "");
    lan.good("alpha", &add);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_firewall_that_comes_up_later_cuts_a_host_off_until_it_goes() {
    let lan = pair();
    lan.good("alpha", &["add", "gamma"]);
    // In one direction only: messages from gamma are still received.
    drops(&lan, "gamma", "arriving meta l4proto { tcp, udp } drop");
    let mut watch = lan.watch("alpha");
    let report = watch.until(|report| state_of(report, "gamma") == "dead");
    let gone = report["hosts"].to_string();
    assert!(gone.contains("silent for too long"), "{gone}");
    drop(watch);
    lan.good("beta", &["run", "true"]);
    drops(&lan, "gamma", "");
    only(&lan, &["alpha", "beta", "gamma"]);
    lan.good("gamma", &["run", "true"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_full_disk_where_the_daemons_socket_goes_is_told() {
    let lan = pair();
    // First there is no room at all, then only for the directory: a socket needs an entry as well.
    for (entries, what) in [
        (1, "cannot create the directory"),
        (2, "cannot create a socket in"),
    ] {
        for host in ["gamma", "delta"] {
            lan.sh(&format!(
                "mount -t tmpfs -o size=4k,nr_inodes={entries},mode=700 tmpfs /run/of/{host}"
            ));
        }
        let parts = ["No space left on device", "XDG_RUNTIME_DIR", what];
        refused(&lan, "alpha", &["add", "gamma"], &parts);
        refused(&lan, "delta", &["up", "--as", "delta"], &parts);
        for host in ["gamma", "delta"] {
            lan.sh(&format!("umount /run/of/{host}"));
        }
    }
    only(&lan, &["alpha", "beta"]);
    lan.good("alpha", &["add", "gamma"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

/// Runs the bootstrap on a host whose folders are all small disks, after the commands `more`.
fn where_disks_are_small(name: &str, more: &str) -> (i32, String) {
    support::needs::namespaces();
    let scratch = Scratch::new(name);
    let script = format!(
        "#!/bin/sh
shift
export TMPDIR= XDG_RUNTIME_DIR= HOME=/var/tmp
exec unshare --user --map-root-user --mount sh -c '
    for folder in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o size=1m tmpfs $folder; done
    {more}
    exec \"$@\"' sh \"$@\"
"
    );
    let path = scratch.file("reach", 0o755, script.as_bytes());
    let rsh = format!("{path} {{host}}");
    let output = run(&[
        "--host",
        "alpha:1",
        "--rsh",
        &rsh,
        "--directory",
        "/",
        "--send-agent",
        "true",
    ]);
    let (status, _, said) = told(&output);
    (status, said)
}

#[test]
fn a_full_disk_where_the_program_is_sent_is_told() {
    let (status, said) = where_disks_are_small("disks", "");
    assert_eq!(status, 125, "{said}");
    assert!(
        said.contains("the host alpha") && said.contains("no directory there has"),
        "{said}"
    );
    // The disk fills up while the program is being sent, after df reported enough space.
    let lie = "mkdir /tmp/bin && printf \"#!/bin/sh\\necho title; echo disk 9 9 99999999 x /\\n\" >/tmp/bin/df \
               && chmod 755 /tmp/bin/df && export PATH=/tmp/bin:$PATH";
    let (status, said) = where_disks_are_small("filling", lie);
    assert_eq!(status, 125, "{said}");
    assert!(
        said.contains("could not be written") && said.contains("is the disk full?"),
        "{said}"
    );
}

#[test]
fn a_host_of_another_machine_and_a_second_machine_of_the_name_are_refused() {
    let lan = pair();
    let taken = [
        "the virtual machine default is already running",
        "--vm NAME",
    ];
    refused(&lan, "alpha", &["up", "gamma"], &taken);
    // Another machine of the same name is started elsewhere, and tries to add a host of the first.
    lan.good("gamma", &["up", "--as", "gamma", "delta"]);
    let taken = [
        "on the host beta: a daemon of a virtual machine default of the same user already runs",
        "`--vm` gives this machine another name",
        "no host was added",
    ];
    refused(&lan, "gamma", &["add", "beta"], &taken);
    for host in ["alpha", "beta", "gamma", "delta"] {
        lan.await_whole(host, 1);
    }
    // Two machines with different names share it.
    lan.good("gamma", &["down"]);
    lan.good("gamma", &["up", "--vm", "second", "--as", "gamma", "beta"]);
    lan.good("beta", &["run", "--vm", "second", "true"]);
    lan.good("beta", &["run", "true"]);
    lan.good("beta", &["down", "--vm", "second"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

/// Runs `regatta add gamma delta` on alpha, which takes long because datagrams to and from delta are dropped. Returns
/// when gamma has joined.
fn adding(lan: &Lan) -> Running {
    let udp = "arriving meta l4proto udp drop\nleaving meta l4proto udp drop";
    drops(lan, "delta", udp);
    let mut watch = lan.watch("beta");
    let words = [REGATTA, "add", "gamma", "delta"];
    let attempt = Running::start_command(&mut lan.on("alpha", &words));
    watch.until(|report| state_of(report, "gamma") == "up");
    attempt
}

#[test]
fn a_daemon_that_is_killed_while_it_adds_hosts_is_a_lost_host_and_no_more() {
    let lan = pair();
    let attempt = adding(&lan);
    lan.daemon("alpha").signal(Signal::KILL);
    let (status, said) = attempt.end();
    assert_eq!(status, 125, "{said}");
    assert!(said.contains("no host was added"), "{said}");
    lan.await_report("beta", |report| {
        state_of(report, "alpha") == "dead" && state_of(report, "gamma") == "left"
    });
    only(&lan, &["beta"]);
    drops(&lan, "delta", "");
    lan.good("beta", &["add", "alpha", "gamma", "delta"]);
    lan.good("alpha", &["run", "true"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_daemon_that_is_killed_while_it_is_added_is_told() {
    let lan = pair();
    let attempt = adding(&lan);
    lan.daemon("gamma").signal(Signal::KILL);
    let (status, said) = attempt.end();
    assert_eq!(status, 125, "{said}");
    assert!(said.contains("no host was added"), "{said}");
    only(&lan, &["alpha", "beta"]);
    drops(&lan, "delta", "");
    lan.good("alpha", &["add", "gamma", "delta"]);
    lan.good("gamma", &["down"]);
    lan.assert_clean();
}

#[test]
fn an_agent_that_may_open_too_few_files_says_so() {
    let scratch = Scratch::new("files");
    let script = b"#!/bin/sh\nulimit -n 60\nshift\nexec \"$@\"\n";
    let path = scratch.file("reach", 0o755, script);
    let rsh = format!("{path} {{host}}");
    let (status, output, said) = told(&run(&["--host", "alpha:50", "--rsh", &rsh, "true"]));
    assert_eq!((status, output.as_str()), (125, ""), "{said}");
    assert!(
        said.contains("on the host alpha") && said.contains("RLIMIT_NOFILE"),
        "{said}"
    );
}

#[test]
fn a_daemon_that_gets_no_more_threads_asks_the_other_hosts_in_turn() {
    let others = ["beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];
    let lan = Lan::new(&[&["alpha"], &others[..]].concat());
    lan.good("alpha", &[&["up", "--as", "alpha"], &others[..]].concat());
    let daemon = lan.daemon("alpha");
    // The memory of a thread that has answered serves the next connection. There is no room for another thread.
    lan.good("alpha", &["hosts"]);
    let pid = daemon.pid.as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let size = size.and_then(|size| size.split_whitespace().next()?.parse::<u64>().ok());
    let room = (size.expect("a size") + 1500) << 10;
    lan.sh(&format!("prlimit --pid {pid} --as={room}:"));
    lan.good("alpha", &["hosts"]);
    let listed = lan.good("alpha", &["ps", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("a list");
    assert_eq!(listed["silent"], serde_json::json!([]), "{listed}");
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}
