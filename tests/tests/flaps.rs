//! Jobs on hosts whose links go down and up again. No outage lasts as long as a host may be silent.
//!
//! The hosts are network namespaces connected to a bridge; the job is started from h0. A shell beside the hosts drives
//! the test.

use regatta_tests::lan::{APART, AS_ROOT, SEES, make_hosts};
use regatta_tests::{Job, command};

/// Script that runs after the hosts were created. Arguments: the command, the number of hosts, the host whose link goes
/// down, the duration of an outage, then the command line to run on h0.
const FLAPS: &str = r#"mkdir /run/job
export REGATTA_RSH='env XDG_RUNTIME_DIR=/run/user.{host} ip netns exec {host}'
unset REGATTA_VM
on() { host=$1; shift; env XDG_RUNTIME_DIR=/run/user.$host ip netns exec $host "$@"; }
regatta=$1
all=$2
flapping=$3
down=$4
shift 4
cd /run/job
mkfifo begun
: >there
others=
for number in $(seq $((all - 1))); do others="$others h$number:1"; done
on h0 $regatta up --as h0:1 $others >/dev/null
sees h0 "\"known\":$all,.*\"seen\":$all,"
on h0 "$@" &
job=$!
read -r word <begun || true
for time in $(seq 10); do
    ip -n $flapping link set eth0 down
    sleep $down
    ip -n $flapping link set eth0 up
    sleep 0.7
done
rm there
status=0
wait $job || status=$?
sees h0 "\"known\":$all,.*\"seen\":$all,"
sees h1 "\"known\":$all,.*\"seen\":$all,"
on h0 $regatta down >/dev/null
exit $status
"#;

fn a_job_on(hosts: u32, flapping: &str, down: &str) {
    let (regatta, all) = (command().display().to_string(), hosts.to_string());
    let script = make_hosts(hosts) + SEES + FLAPS;
    let shell = ["sh", "-ec", &script, "sh", &regatta, &all, flapping, down];
    let around = [&["unshare"], &AS_ROOT[..], &APART, &shell].concat();
    Job::new(2, "traffic_ways", &["while-there", "there", "begun"])
        .option("--on-failure=continue")
        .option("--map=round")
        .around(&around)
        .limit(100)
        .run()
        .passed()
        .said("all arrived in their order");
}

/// With fewer hosts, a suspected host has more time to object.
#[test]
fn a_job_on_two_hosts_outlives_a_link_that_flaps() {
    a_job_on(2, "h1", "1");
}

#[test]
fn a_job_on_three_hosts_outlives_a_link_that_flaps() {
    a_job_on(3, "h1", "0.7");
}

/// From the launcher's host, all others appear silent at the same time.
#[test]
fn a_job_on_two_hosts_outlives_its_launchers_link_that_flaps() {
    a_job_on(2, "h0", "1");
}

#[test]
fn a_job_on_three_hosts_outlives_its_launchers_link_that_flaps() {
    a_job_on(3, "h0", "0.7");
}
