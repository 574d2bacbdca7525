//! Jobs on hosts that have a network between them: namespaces, created for one test and removed with its last process.

mod support;

use std::process::{Command, Output};

use support::{REGATTA, Running, await_ends, text, told};

/// Three hosts at a bridge. The first two also have an address in common, which each considers its own, like hosts with
/// containers. The following script is run where the bridge is.
const NETWORK: &str = "set -e
mount -t tmpfs tmpfs /run
mkdir /run/netns
ip link set lo up
ip link add br0 type bridge
ip address add 10.77.0.254/24 dev br0
ip link set br0 up
number=0
for host in alpha beta gamma; do
    number=$((number + 1))
    ip netns add $host
    ip link add v$number type veth peer name eth0 netns $host
    ip link set v$number master br0 up
    ip -n $host link set lo up
    ip -n $host link add br-twin type bridge
    ip -n $host address add 172.17.0.1/16 dev br-twin
    ip -n $host link set br-twin up
    ip -n $host address add 10.77.0.$number/24 dev eth0
    ip -n $host link set eth0 up
done
";
const IN_HOST: [&str; 2] = ["--rsh", "ip netns exec {host}"];

/// Returns a command that runs `regatta` with these arguments beside the hosts, after `more` has changed the network.
fn beside_hosts(more: &str, arguments: &[&str]) -> Command {
    support::needs::namespaces();
    let mut command = Command::new("unshare");
    let script = format!("{NETWORK}{more}\nexec \"$@\"");
    command
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "--net",
            "sh",
            "-c",
            &script,
            "sh",
            REGATTA,
        ])
        .args(arguments)
        .stdin(std::process::Stdio::null());
    command
}

fn run(more: &str, arguments: &[&str]) -> (i32, String, String) {
    let output: Output = beside_hosts(more, &[&["run"], &IN_HOST[..], arguments].concat())
        .output()
        .expect("unshare");
    told(&output)
}

#[test]
fn tasks_run_on_their_hosts_at_the_address_that_the_others_reach() {
    let addresses = [
        "sh",
        "-c",
        "ip -o -4 address show dev eth0 | awk '{print $4}'",
    ];
    let (status, output, said) = run(
        "",
        &[
            &["--verbose", "--label", "--host", "alpha:1,beta:1,gamma:1"],
            &addresses[..],
        ]
        .concat(),
    );
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(status, 0, "{said}");
    assert_eq!(
        lines,
        ["[0] 10.77.0.1/24", "[1] 10.77.0.2/24", "[2] 10.77.0.3/24"]
    );
    for (host, address) in [
        ("alpha", "10.77.0.1"),
        ("beta", "10.77.0.2"),
        ("gamma", "10.77.0.3"),
    ] {
        assert!(said.contains(&format!("on the host {host},")), "{said}");
        assert!(
            said.contains(&format!("reached at {address} of the interface eth0")),
            "{said}"
        );
    }
}

#[test]
fn an_address_that_two_hosts_have_is_not_taken_for_either() {
    // With the twin network, each host would connect to itself and seem to have reached the other.
    let (status, _, said) = run(
        "",
        &["--interface", "br-twin", "--host", "alpha:1,beta:1", "true"],
    );
    assert_eq!(status, 125);
    assert!(
        said.contains("no connection to a port at 172.17.0.1"),
        "{said}"
    );
    let (status, _, said) = run(
        "",
        &[
            "--interface",
            "10.77.0.0/24",
            "--host",
            "alpha:1,beta:1",
            "true",
        ],
    );
    assert_eq!(status, 0, "{said}");
}

#[test]
fn the_right_one_of_several_networks_is_found() {
    // The first address of beta cannot be reached from alpha.
    let more = "ip -n beta link add aside0 type bridge
ip -n beta address add 10.99.0.2/24 dev aside0
ip -n beta link set aside0 up
ip -n beta address del 10.77.0.2/24 dev eth0
ip -n beta address add 10.77.0.2/24 dev eth0
";
    let (status, _, said) = run(more, &["--verbose", "--host", "alpha:1,beta:1", "true"]);
    assert_eq!(status, 0, "{said}");
    assert!(
        said.contains("on the host beta, ") && said.contains("reached at 10.77.0.2"),
        "{said}"
    );
}

#[test]
fn a_host_without_a_way_to_the_others_is_named() {
    let more = "ip -n gamma link set eth0 down";
    let (status, output, said) = run(
        more,
        &["--host", "alpha:1,beta:1,gamma:1", "echo", "started"],
    );
    assert_eq!((status, output.as_str()), (125, ""), "{said}");
    assert!(
        said.contains("cannot be reached from") && said.contains("gamma"),
        "{said}"
    );
}

/// A command `ssh` that leads to the namespaces, for jobs in which this host takes part.
const SSH: &str = "mkdir /run/bin
cat >/run/bin/ssh <<'END'
#!/bin/sh
while [ \"$1\" != -- ]; do shift; done
shift
exec ip netns exec \"$@\"
END
chmod 755 /run/bin/ssh
PATH=/run/bin:$PATH
";

#[test]
fn this_host_takes_part_without_a_channel() {
    let body = "r=$(echo $REGATTA_JOB | cut -d: -f3); [ $r = 0 ] && exec cat; ip -o -4 address | grep -c 10.77.0.254";
    let arguments = [
        "run",
        "--verbose",
        "--label",
        "--host",
        "localhost:2,beta:2",
        "sh",
        "-c",
        body,
    ];
    let output = beside_hosts(SSH, &arguments).output().expect("unshare");
    let (_, output, said) = told(&output);
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[1] 1", "[2] 0", "[3] 0"], "{said}");
    assert!(
        said.contains("tasks 0-1 on the host localhost, ")
            && said.contains("reached at 10.77.0.254"),
        "{said}"
    );
    // A failure on this host ends the other host's tasks, and the other way round.
    for failing in ["0", "3"] {
        let body =
            format!("[ $(echo $REGATTA_JOB | cut -d: -f3) = {failing} ] && exit 9; exec sleep 600");
        let arguments = [
            "run",
            "--grace",
            "0",
            "--host",
            "localhost:2,beta:2",
            "sh",
            "-c",
            &body,
        ];
        let (status, _, said) = told(&beside_hosts(SSH, &arguments).output().expect("unshare"));
        assert_eq!(status, 9, "{said}");
    }
}

#[test]
fn nothing_is_left_on_any_host_when_the_launcher_is_killed() {
    let command = ["sh", "-c", "setsid sleep 600 & echo up; wait"];
    let mut job = Running::start_command(&mut beside_hosts(
        "",
        &[
            &["run"],
            &IN_HOST[..],
            &["--host", "alpha:2,beta:2"],
            &command[..],
        ]
        .concat(),
    ));
    job.read_lines(4, "up");
    let processes = job.processes();
    job.signal(rustix::process::Signal::KILL);
    await_ends(&processes);
    assert!(job.processes().is_empty());
    job.end();
}

#[test]
fn the_doctor_says_which_address_each_host_has() {
    let output = beside_hosts("", &["doctor", "--rsh", IN_HOST[1], "--host", "alpha,beta"])
        .output()
        .expect("unshare");
    let report = text(&output.stdout);
    assert!(
        report.contains("10.77.0.1 of the interface eth0"),
        "{report}"
    );
    assert!(
        report.contains("10.77.0.2 of the interface eth0"),
        "{report}"
    );
}
