//! Jobs that outlive the host of their launcher, and then the host of its successor.
//!
//! The hosts are the network namespaces h0 to h3, connected to a bridge, with one task each; the job is started from
//! h0. A host is lost because its link goes down, or because all its processes are killed at once. A shell beside the
//! hosts drives the test, and the tasks tell it when to act.

use regatta_tests::lan::{APART, AS_ROOT, SEES, make_hosts};
use regatta_tests::{Ended, Job, command};

/// Script that runs after the hosts were created. Arguments: the command, then the command line to run on h0.
const BEGIN: &str = r#"mkdir -p /run/everywhere/job
export REGATTA_RSH='env XDG_RUNTIME_DIR=/run/user.{host} ip netns exec {host}'
unset REGATTA_VM
on() { host=$1; shift; env XDG_RUNTIME_DIR=/run/user.$host ip netns exec $host "$@"; }
regatta=$1
shift
cd /run/everywhere/job
mkfifo plug
on h0 $regatta up --as h0:1 h1:1 h2:1 h3:1 >/dev/null
# Waits until all hosts' cores are known.
sees h0 '"cores":1.*"cores":1.*"cores":1.*"cores":1'
on h0 "$@" &
job=$!
# Reads the next line of a task. If the previous writer still has the pipe open, its close may end this read, which is then repeated.
next_line() { until read -r "$@" <plug; do :; done; }
# Waits for a task's line, and takes down the host that it names.
pull() {
    next_line host how
    echo "pulling $host: $how"
    case $how in
    cut) ip link set v${host#h} down ;;
    kill) ip netns pids $host | xargs kill -9 2>/dev/null || true ;;
    daemon) signal KILL $host regatta-daemon ;;
    stop) signal STOP $host regatta-daemon ;;
    launcher) signal STOP $host regatta-job ;;
    esac
}
# signal NAME HOST PROCESS: sends a signal to the processes of a host with this name.
signal() {
    for pid in $(ip netns pids $2); do
        # Some processes end meanwhile.
        case $(cat /proc/$pid/comm 2>/dev/null) in $3) kill -$1 $pid ;; esac
    done
}
# await PATTERN FILE: waits until a line of the file matches.
await() { tail -n +1 -F "$2" 2>/dev/null | grep -q -m 1 "$1"; }
# Sets `output` to the file that the next launcher will write; asks on this host.
name_output() {
    output=regatta-$(on $1 $regatta ps --json | sed 's/.*"job":"\([^"]*\)".*/\1/; s/:/-/').out
}
# Waits for the end of the launcher, and prints its status.
launcher_ends() {
    status=0
    wait $job || status=$?
    echo "the launcher's status: $status"
}
# Waits until the last launcher reports success, then shuts the machine down from this host.
job_ends_on() {
    await 'has ended with status 0' $output
    cat $output
    launcher_ends
    finish $1
}
# Shuts down the machine of the remaining hosts from this host, and checks that nothing of it still runs.
finish() {
    on $1 $regatta ps
    on $1 $regatta down || echo "some hosts did not answer"
    for host in h0 h1 h2 h3; do
        for pid in $(ip netns pids $host); do
            # A daemon that was cut off is in no machine; the others may be about to end.
            case $(cat /proc/$pid/comm) in regatta-daemon) kill $pid || true ;; *) echo "FAIL left on $host: $(cat /proc/$pid/comm)" ;; esac
        done
    done
}
"#;

fn outlive(scenario: &str, how: &str, then: &str) -> Job {
    outlive_with(&[scenario, how], then)
}

fn outlive_with(arguments: &[&str], then: &str) -> Job {
    let regatta = command().display().to_string();
    let script = make_hosts(4) + SEES + BEGIN + then;
    let shell = ["sh", "-ec", &script, "sh", &regatta];
    let around = [&["unshare"], &AS_ROOT[..], &APART, &shell].concat();
    Job::new(4, "outlive", arguments)
        .option("--on-failure=continue")
        .option("--map=round")
        .option("--label")
        .around(&around)
        .limit(100)
}

/// Both hosts are lost. The tasks on the others go on as before.
const BOTH: &str = r#"
pull
# Until the machine has agreed on having three hosts, two are no majority.
sees h2 '"known":3'
pull
# A launcher that was cut off may report that it has given up.
await 'has ended with status 0' regatta-h0-*.out
cat regatta-h0-*.out
wait $job || echo "the launcher's status: $?"
finish h2
"#;

#[test]
fn a_job_outlives_its_launchers_host_and_the_next_one_that_are_killed() {
    outlive("both", "kill", BOTH)
        .run()
        .passed()
        .said("the host h0 is lost: its daemon has ended")
        .said("h1 takes over")
        .said("h2 takes over")
        .said("[2] task 2 has outlived both")
        .said("[3] task 3 has outlived both");
}

/// Runs a job whose launchers stay alive when their hosts are lost. Both must notice that, and leave the job.
fn both_leave_the_job(how: &str, cause: &str) {
    let look = "cat regatta-h0-*.out\n";
    let left = format!("await 'h1 has left the job' regatta-h0-*.out\n{look}");
    let ended = outlive("both", how, &BOTH.replace(look, &left)).run();
    let ended = ended
        .passed()
        .said(cause)
        .said("the launcher's status: 125")
        .said("h1 takes over")
        .said("h2 takes over")
        .said("[2] task 2 has outlived both")
        .said("[3] task 3 has outlived both");
    // Only the last launcher may report the end of the job.
    let ends = ended.story().matches("\nregatta: the job h0:").count();
    assert_eq!(ends, 1, "{}", ended.story());
}

#[test]
fn a_job_outlives_its_launchers_host_and_the_next_one_that_are_cut_off() {
    both_leave_the_job("cut", "the host h0 is lost: it has been silent");
}

#[test]
fn a_job_outlives_the_daemons_of_its_launchers_host_and_of_the_next_one() {
    both_leave_the_job("daemon", "the host h0 is lost: its daemon has ended");
}

/// The launcher's host is cut off. The part of the job on that host ends, and the rest goes on.
const SPLIT: &str = r#"
pull
launcher_ends
for pid in $(ip netns pids h0); do
    case $(cat /proc/$pid/comm || true) in
    regatta-daemon) ;;
    # The launcher's guard ends when it notices the launcher's end.
    *) timeout 20 tail --pid=$pid -f /dev/null || echo "FAIL still on h0: $(cat /proc/$pid/comm)" ;;
    esac
done
next_line word
await 'has ended with status' regatta-h0-*.out
cat regatta-h0-*.out
# The network is repaired: h0 joins as a new host, and has nothing of the job.
ip link set v0 up
sees h0 '"known":4.*"reason":null'
finish h0
"#;

#[test]
fn a_launcher_that_is_cut_off_from_a_majority_ends_its_tasks_and_says_why() {
    outlive("split", "cut", SPLIT)
        .run()
        .passed()
        .said("only 1 of 4 hosts answer, which is not a majority")
        .said("The job ends on this host")
        .said("the launcher's status: 125")
        .said("[1] task 1 goes on")
        .said("[3] task 3 goes on")
        .said("has ended with status 137");
}

/// The job goes on, is listed, and is ended from a host that does not lead it.
const KILLED: &str = r#"
pull
next_line word
listed=$(on h3 $regatta ps --json)
name=$(echo "$listed" | sed 's/.*"job":"\([^"]*\)".*/\1/')
echo "listed $(echo "$listed" | grep -o '"rank":' | wc -l) tasks"
on h2 $regatta ps
on h3 $regatta kill $name
await 'has ended with status' regatta-h0-*.out
cat regatta-h0-*.out
wait $job || true
finish h2
"#;

#[test]
fn a_job_that_has_outlived_its_launcher_is_listed_and_ended_from_any_host() {
    outlive("wait-for-the-end", "kill", KILLED)
        .run()
        .passed()
        .said("listed 3 tasks")
        .said("and h1 has taken over; its output since then is in /run/everywhere/job/regatta-h0-")
        .said("[1] task 1 goes on")
        .said("has ended with status 137");
}

/// Only the daemon of the launcher's host ends. The launcher must leave the job to the others, and not report how it
/// ends.
const DAEMON: &str = r#"
pull
launcher_ends
for pid in $(ip netns pids h0); do
    # The launcher's guard ends when it notices the launcher's end.
    timeout 20 tail --pid=$pid -f /dev/null || echo "FAIL still on h0: $(cat /proc/$pid/comm)"
done
next_line word
await 'has ended with status' regatta-h0-*.out
cat regatta-h0-*.out
finish h2
"#;

/// Checks that the launcher says why it leaves the job to the others, and does not report how the job ends.
fn left_to_others(ended: Ended, why: &str) -> Ended {
    let ended = ended
        .passed()
        .said(why)
        .said("The job ends on this host")
        .said("the launcher's status: 125")
        .said("h1 takes over")
        .said("[1] task 1 goes on")
        .said("[3] task 3 goes on")
        .said("has ended with status 137");
    for host in ["h1", "h2", "h3"] {
        let verdict = format!("the host {host} is lost");
        assert!(!ended.story().contains(&verdict), "{}", ended.story());
    }
    ended
}

#[test]
fn a_launcher_whose_daemon_is_killed_leaves_the_job_to_another_host() {
    let ended = outlive("split", "daemon", DAEMON).run();
    let ended = left_to_others(ended, "the daemon of this host has ended");
    for host in ["h1", "h2", "h3"] {
        let twice = format!("{host}: regatta: ");
        assert!(!ended.story().contains(&twice), "{}", ended.story());
    }
}

/// The daemon of the launcher's host is stopped until another host leads the job. The launcher then has no say in the
/// job any more.
const STOPPED: &str = r#"
pull
# The others go on.
next_line word
signal CONT h0 regatta-daemon
launcher_ends
await 'has ended with status' regatta-h0-*.out
cat regatta-h0-*.out
sees h0 '"known":4.*"reason":null'
finish h0
"#;

#[test]
fn a_launcher_whose_daemon_was_stopped_until_others_led_the_job_leaves_it_to_them() {
    let ended = outlive("split", "stop", STOPPED).run();
    left_to_others(
        ended,
        "this host rejoins as a new host. The job ends on this host",
    );
}

/// The next launcher waits for an agent that is stopped. Its host is lost while another agent waits for it.
const MEANWHILE: &str = r#"
next_line host how
name_output h2
signal STOP h3 regatta-agent
ip link set v0 down
await 'the agent on the host h2 waits for this launcher' $output
ip link set v1 down
sees h2 '"known":2'
await 'only 1 of 3 hosts answer.* The job ends on this host' $output
signal CONT h3 regatta-agent
job_ends_on h2
"#;

#[test]
fn a_job_outlives_the_next_host_too_that_is_lost_while_it_takes_over() {
    outlive_with(&["two", "cut", "1"], MEANWHILE)
        .option("--verbose")
        .run()
        .passed()
        .said("only 1 of 3 hosts answer")
        .said("h2 takes over")
        .said("[2] task 2 has outlived both")
        .said("[3] task 3 has outlived both");
}

/// The next launcher waits for an agent that is stopped. Then the daemon on the next launcher's host ends.
const ALONE: &str = r#"
next_line host how
name_output h2
signal STOP h3 regatta-agent
ip link set v0 down
await 'the agent on the host h2 waits for this launcher' $output
signal KILL h1 regatta-daemon
await 'the daemon of this host has ended.* The job ends on this host' $output
signal CONT h3 regatta-agent
job_ends_on h2
"#;

#[test]
fn a_host_whose_daemon_ends_while_it_takes_a_job_over_leaves_the_job_to_another() {
    outlive_with(&["two", "cut", "1"], ALONE)
        .option("--verbose")
        .run()
        .passed()
        .said("h2 takes over")
        .said("[2] task 2 has outlived both")
        .said("[3] task 3 has outlived both");
}

/// A host was given back to the machine. After another host has taken the job over, one more host leaves the machine
/// and is added again.
const BACK: &str = r#"
pull
next_line host how
on h1 $regatta remove h2
on h1 $regatta add h2
await 'has ended with status' regatta-h0-*.out
cat regatta-h0-*.out
wait $job || true
finish h1
"#;

#[test]
fn a_host_that_was_given_back_is_not_taken_in_by_the_next_launcher() {
    outlive("back", "kill", BACK)
        .run()
        .passed()
        .said("h1 takes over")
        .said("[1] the host that came is of the job");
}

/// The launcher and the first candidate cannot reach each other.
const GIVEN_UP: &str = r#"
next_line host how
name_output h2
on h0 nft 'add table ip cut; add chain ip cut in { type filter hook input priority 0; }; add chain ip cut out { type filter hook output priority 0; }'
on h0 nft 'add rule ip cut in ip saddr 10.78.0.2 drop'
on h0 nft 'add rule ip cut out ip daddr 10.78.0.2 drop'
pull
await 'the launcher had given this host up' $output
job_ends_on h2
"#;

#[test]
fn a_host_that_its_launcher_has_given_up_does_not_lead_although_it_is_alive() {
    regatta_tests::needs::program("nft", "nftables");
    outlive("given-up", "cut", GIVEN_UP)
        .option("--host-timeout=4")
        .run()
        .passed()
        .said("reports that the launcher had given this host up")
        .said("h2 takes over")
        .said("[2] task 2 goes on without the host that was given up")
        .said("[3] task 3 goes on without the host that was given up");
}

/// The task prints its line after the next launcher has begun to write to its output file.
const AGAIN: &str = r#"
pull
next_line host how
await 'has ended with status' regatta-h0-*.out
cat regatta-h0-*.out
wait $job || true
finish h1
"#;

#[test]
fn a_host_that_a_task_has_added_again_outlives_the_launcher_as_others_do() {
    outlive("again", "kill", AGAIN)
        .run()
        .passed()
        .said("h1 takes over")
        .said("[1] the task on the host that was added again goes on");
}

/// The launcher is stopped while a host of the job is removed from the machine and added again. It therefore knows of
/// neither when its own host is lost.
const ANOTHER: &str = r#"
next_line host how
name_output h3
signal STOP h0 regatta-job
on h3 $regatta remove h2
on h3 $regatta add h2
ip link set v0 down
await 'has ended with status 0' $output
cat $output
signal CONT h0 regatta-job
wait $job || echo "the launcher's status: $?"
finish h3
"#;

#[test]
fn a_job_is_taken_over_although_one_of_its_hosts_has_come_back_as_another() {
    outlive_with(&["two", "cut", "2"], ANOTHER)
        .run()
        .passed()
        .said_one_of(&[
            "the host h2 is lost: it is no longer in the machine",
            "the host h2 is lost: it was removed or ended",
        ])
        .said("[1] task 1 has outlived both")
        .said("[3] task 3 has outlived both");
}

/// The launcher is stopped for longer than its agents wait for a launcher whose host nothing is known about.
const STILL: &str = r#"
pull
next_line host how
signal CONT h0 regatta-job
launcher_ends
finish h0
"#;

#[test]
fn a_launcher_that_stood_still_on_a_host_that_lives_loses_nobody() {
    let ended = outlive("still", "launcher", STILL)
        .option("--host-timeout=2")
        .run()
        .passed();
    for task in 0..4 {
        let all = format!("[{task}] task {task} has all others");
        assert!(ended.text.contains(&all), "{}", ended.story());
    }
    assert!(!ended.text.contains("is lost"), "{}", ended.story());
}
