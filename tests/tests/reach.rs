//! Networks that fail partly or for a moment, and launchers that are stopped: nothing may be lost, and the output must
//! say what is wrong.
//!
//! The hosts h0 to h5 are network namespaces connected to a bridge. Tasks 1 and 2, on h1 and h2, exchange messages all
//! the time (`tests/programs/reach.c`).

use regatta_tests::lan::{APART, AS_ROOT, SEES, make_hosts};
use regatta_tests::{Ended, Job, command, mpi, needs};

/// Script that runs after the hosts were created. Arguments: the command, then the command line to run. `heard` waits
/// until the job's output contains a text.
const BEGIN: &str = r#"unset REGATTA_VM
on() { host=$1; shift; env XDG_RUNTIME_DIR=/run/user.$host ip netns exec $host "$@"; }
regatta=$1
shift
: >/run/said
heard() { tail -n +1 -F /run/said 2>/dev/null | grep -q -m 1 -e "$1" -e FAIL -e HUNG -e 'is lost'; }
now() { echo $(($(date +%s%N) / 1000000)); }
# cut HOST ADDRESS [in|out]: drops packets on HOST from ADDRESS (in), to it (out), or both.
cut() {
    on $1 nft 'add table ip cut; add chain ip cut in { type filter hook input priority 0; }; add chain ip cut out { type filter hook output priority 0; }'
    case ${3:-in} in in) on $1 nft "add rule ip cut in ip saddr $2 drop" ;; esac
    case ${3:-out} in out) on $1 nft "add rule ip cut out ip daddr $2 drop" ;; esac
    # Also drops the frames of bypasses, of all hosts; the connections deliver those messages.
    on $1 nft 'add table netdev cut; add chain netdev cut in { type filter hook ingress device eth0 priority 0; }; add chain netdev cut out { type filter hook egress device eth0 priority 0; }'
    case ${3:-in} in in) on $1 nft 'add rule netdev cut in ether type 0x88b5 drop' ;; esac
    case ${3:-out} in out) on $1 nft 'add rule netdev cut out ether type 0x88b5 drop' ;; esac
}
# Waits until the cut is reported; `start` is when it was made.
named() {
    heard 'cannot reach'
    echo "named after $(($(now) - start)) ms"
}
mend() { on $1 nft 'delete table ip cut; delete table netdev cut'; }
# Starts a virtual machine of h0 and these hosts, with one core each, and waits until all know each other.
machine() {
    export REGATTA_RSH='env XDG_RUNTIME_DIR=/run/user.{host} ip netns exec {host}'
    others= all='"cores":1'
    for host in "$@"; do
        others="$others $host:1" all="$all.*\"cores\":1"
    done
    on h0 $regatta up --as h0:1 $others >/dev/null
    sees h0 "$all"
}
# Starts the job, and waits until it has begun.
begin() {
    "$@" >/run/said 2>&1 &
    job=$!
    heard begun
}
end() {
    status=0
    wait $job || status=$?
    cat /run/said
    exit $status
}
"#;

fn on_hosts(job: Job, then: &str) -> Ended {
    needs::program("nft", "nftables");
    let regatta = command().display().to_string();
    let script = make_hosts(6) + SEES + BEGIN + then;
    let shell = ["sh", "-ec", &script, "sh", &regatta];
    let around = [&["unshare"], &AS_ROOT[..], &APART, &shell].concat();
    job.around(&around).limit(150).run()
}

/// Creates a job with a task on each of three hosts. The launcher does not use their network to reach them.
fn across(arguments: &[&str]) -> Job {
    on_three(Job::new(3, "reach", arguments))
}

fn on_three(job: Job) -> Job {
    job.option("--host")
        .option("h0:1,h1:1,h2:1")
        .option("--interface")
        .option("10.78.0.0/24")
        .option("--rsh")
        .option("ip netns exec {host}")
}

/// Returns the number that follows `words`.
#[track_caller]
fn number(ended: &Ended, words: &str) -> u64 {
    let found = ended.text.split(words).nth(1);
    let found = found.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    found.unwrap_or_else(|| panic!("no {words:?} with a number in\n{}", ended.story()))
}

#[track_caller]
fn named_in_time(ended: &Ended) {
    let named = number(ended, "named after ");
    println!("named after {named} ms");
    assert!(named <= 2000, "{}", ended.story());
}

#[track_caller]
fn healed_in_time(ended: &Ended) {
    let healed = number(ended, "healed after ");
    println!("healed after {healed} ms");
    assert!(healed < 4000, "{}", ended.story());
}

#[test]
fn a_cut_between_two_tasks_is_named_and_healed_without_loss() {
    let job = across(&["pair", "14"]).option("--on-failure=continue");
    let ended = on_hosts(
        job,
        r#"
begin "$@"
start=$(now)
cut h1 10.78.0.3
named
sleep 6
mend h1
start=$(now)
heard 'reach each other again'
echo "healed after $(($(now) - start)) ms"
end
"#,
    )
    .passed()
    .said("(10.78.0.")
    .said("waiting (--unreachable=SECONDS gives up)")
    .said("reach each other again, after")
    .said("all is well");
    named_in_time(&ended);
    healed_in_time(&ended);
}

/// The task computes without a call. Its kernel has accepted the other task's connection, but the task has not, and no
/// data is in flight. The cut must be reported and repaired all the same.
#[test]
fn a_cut_from_a_task_that_computes_is_named_and_healed_too() {
    let job = across(&["away", "12"]).option("--on-failure=continue");
    let ended = on_hosts(
        job,
        r#"
begin "$@"
start=$(now)
cut h1 10.78.0.3
named
mend h1
start=$(now)
heard 'reach each other again'
echo "healed after $(($(now) - start)) ms"
end
"#,
    )
    .passed()
    .said("all is well");
    named_in_time(&ended);
    healed_in_time(&ended);
    assert_eq!(
        ended.text.matches("cannot reach").count(),
        1,
        "{}",
        ended.story()
    );
}

/// Task 0 reaches both others, so all three could form the group. But tasks 1 and 2 could not communicate in it, so one
/// of them must be left out.
#[test]
fn of_two_tasks_that_have_given_each_other_up_one_is_of_the_group_of_survivors() {
    let job = across(&["shrunk"])
        .option("--on-failure=continue")
        .option("--unreachable")
        .option("3");
    let then = r#"
begin "$@"
cut h1 10.78.0.3
end
"#;
    on_hosts(job, then)
        .passed()
        .said("task 0 is one of 2")
        .said("task 1 is one of 2")
        .said("task 2 is left out: the other members treated this task as dead");
}

/// Runs a job whose tasks 1 and 2 are cut off from each other in `direction`, as seen from h1. They must give each
/// other up.
fn give_up(direction: &str) {
    let job = across(&["given-up"])
        .option("--on-failure=continue")
        .option("--unreachable")
        .option("3");
    let then = r#"
begin "$@"
start=$(now)
cut h1 10.78.0.3 DIRECTION
named
end
"#;
    let ended = on_hosts(job, &then.replace("DIRECTION", direction))
        .passed()
        .said("giving up after 3 s (--unreachable)")
        .said("each treats the other as dead")
        .said("got 1 -7 task ")
        .said("got 2 -7 task ")
        .said("Both tasks are alive, but each treats the other as dead")
        .said("all are heard");
    named_in_time(&ended);
}

#[test]
fn tasks_that_cannot_reach_each_other_are_given_up_if_that_is_wanted() {
    give_up("");
}

/// Tasks 1 and 2 have given each other up. Task 0 reaches both, and one has reported to it that the other is dead.
#[test]
fn nothing_is_sent_in_a_group_to_a_member_that_another_one_has_said_to_be_dead() {
    let job = across(&["reported"])
        .option("--on-failure=continue")
        .option("--unreachable")
        .option("3");
    let then = r#"
begin "$@"
cut h1 10.78.0.3
end
"#;
    on_hosts(job, then)
        .passed()
        .said("nothing is sent to task ");
}

/// The launcher counts none of the processes as ended.
#[test]
fn processes_take_note_of_one_that_another_has_given_up() {
    let job = on_three(Job::of(3, &mpi::program("mitigation"), &["given-up", "-1"]));
    let job = job
        .option("--on-failure=continue")
        .option("--unreachable")
        .option("3");
    let then = r#"
begin "$@"
cut h1 10.78.0.3
end
"#;
    on_hosts(job, then).passed().said("one of 2 goes on");
}

#[test]
fn tasks_that_are_cut_off_in_one_direction_give_each_other_up() {
    for direction in ["in", "out"] {
        give_up(direction);
    }
}

#[test]
fn tasks_that_are_stopped_when_their_network_heals_are_not_given_up() {
    let job = across(&["pair", "12"])
        .option("--on-failure=continue")
        .option("--unreachable")
        .option("4");
    let ended = on_hosts(
        job,
        r#"
begin "$@"
cut h1 10.78.0.3
heard 'cannot reach'
for task in $(pgrep -x reach); do
    case $(ip netns identify $task) in h1 | h2) stopped="$stopped $task" ;; esac
done
kill -STOP $stopped
mend h1
sleep 5
kill -CONT $stopped
heard 'reach each other again'
end
"#,
    )
    .passed()
    .said("giving up after 4 s (--unreachable)")
    .said("reach each other again, after")
    .said("all is well");
    assert!(!ended.text.contains("both continue"), "{}", ended.story());
}

#[test]
fn many_tasks_on_two_hosts_that_are_cut_off_are_named_once() {
    let job = Job::new(9, "reach", &["crowd"])
        .option("--host")
        .option("h0:1,h1:4,h2:4")
        .option("--interface")
        .option("10.78.0.0/24")
        .option("--rsh")
        .option("ip netns exec {host}")
        .option("--on-failure=continue")
        .option("--unreachable")
        .option("3");
    let ended = on_hosts(
        job,
        r#"
begin "$@"
cut h1 10.78.0.3
end
"#,
    )
    .passed();
    for task in 1..9 {
        let all_lost = format!("task {task} has lost 4");
        assert!(ended.text.contains(&all_lost), "{}", ended.story());
    }
    // Reported once when they cannot reach each other, once when they are given up.
    let named = ended.text.matches("cannot reach").count();
    assert_eq!(named, 2, "{}", ended.story());
}

#[test]
fn of_many_hosts_that_are_cut_off_the_first_are_named_and_the_others_counted() {
    let job = Job::new(6, "reach", &["mesh", "10"])
        .option("--host")
        .option("h0:1,h1:1,h2:1,h3:1,h4:1,h5:1")
        .option("--interface")
        .option("10.78.0.0/24")
        .option("--rsh")
        .option("ip netns exec {host}");
    let ended = on_hosts(
        job,
        r#"
begin "$@"
for host in h1 h2 h3 h4 h5; do cut $host 10.78.0.2-10.78.0.6 in; done
heard 'more pairs* of hosts ha.* tasks that cannot reach each other'
for host in h1 h2 h3 h4 h5; do mend $host; done
end
"#,
    )
    .passed()
    .said(" more pair")
    .said("all is well");
    // Eight of the ten pairs of hosts are affected.
    let named = ended.text.matches(": no answer for ").count();
    let again = ended.text.matches("reach each other again").count();
    assert_eq!((named, again), (8, 8), "{}", ended.story());
}

#[test]
fn two_hosts_that_are_cut_off_again_and_again_are_not_named_each_time() {
    let job = across(&["pair", "16"]).option("--on-failure=continue");
    let ended = on_hosts(
        job,
        r#"
begin "$@"
for turn in 1 2 3 4; do
    cut h1 10.78.0.3
    sleep 2.5
    mend h1
    sleep 1.2
done
end
"#,
    )
    .passed()
    .said("all is well");
    let named = ended.text.matches("cannot reach").count();
    assert!((1..=3).contains(&named), "{}", ended.story());
}

#[test]
fn a_cut_between_two_hosts_of_a_machine_is_told_on_all_of_them() {
    let job = Job::new(3, "reach", &["pair", "20"]).option("--map=round");
    on_hosts(
        job,
        r#"
machine h1 h2
begin on h0 "$@"
cut h1 10.78.0.3
sees h0 '"unreached":\[{'
on h0 $regatta hosts
sees h2 '"unreached":\[{'
on h2 $regatta hosts
mend h1
sees h0 '"unreached":\[\]'
sees h2 '"unreached":\[\]'
status=0
wait $job || status=$?
cat /run/said
on h0 $regatta down
exit $status
"#,
    )
    .passed()
    .said("virtual machine default, as h2 sees it: 3 of 3 hosts answer")
    .said("cannot reach each other (since ")
    .said("all is well");
}

#[test]
fn a_host_that_does_not_hear_that_two_others_reach_each_other_again_forgets_that_they_did_not() {
    let job = Job::new(3, "reach", &["pair", "16"]).option("--map=round");
    on_hosts(
        job,
        r#"
machine h1 h2
begin on h0 "$@"
cut h1 10.78.0.3
sees h2 '"unreached":\[{'
# The daemon of h0 cannot open a new connection to that of h2.
on h2 nft 'add table ip deaf; add chain ip deaf in { type filter hook input priority 0; }'
on h2 nft 'add rule ip deaf in ip saddr 10.78.0.1 tcp flags & (syn | ack) == syn drop'
mend h1
sees h0 '"unreached":\[\]'
sees h2 '"unreached":\[\]'
on h2 nft 'delete table ip deaf'
status=0
wait $job || status=$?
cat /run/said
on h0 $regatta down
exit $status
"#,
    )
    .passed()
    .said("all is well");
}

#[test]
fn the_next_launcher_gives_up_tasks_that_cannot_reach_each_other() {
    let job = Job::new(4, "reach", &["given-up", "1"])
        .option("--map=round")
        .option("--on-failure=continue")
        .option("--unreachable")
        .option("3");
    on_hosts(
        job,
        r#"
mkdir /run/job
cd /run/job
machine h1 h2 h3
begin on h0 "$@"
ip link set v0 down
wait $job || echo "the first launcher has ended"
sees h1 '"known":3'
cut h2 10.78.0.4
tail -n +1 -F regatta-h0-*.out 2>/dev/null | grep -q -m 1 -e 'has ended with status'
cat regatta-h0-*.out
on h1 $regatta down || echo "some hosts did not answer"
"#,
    )
    .passed()
    .said("giving up after 3 s (--unreachable)")
    .said("got 2 -7 task ")
    .said("got 3 -7 task ")
    .said("all are heard");
}

#[test]
fn a_launcher_that_was_stopped_says_so_when_its_agents_have_given_up() {
    let job = across(&["pair", "60"]).option("--host-timeout").option("2");
    let ended = on_hosts(
        job,
        r#"
begin "$@"
launcher=$(pgrep -x regatta-job)
kill -STOP $launcher
for agent in $(pgrep -x regatta-agent); do tail -f /dev/null --pid=$agent; done
kill -CONT $launcher
status=0
wait $job || status=$?
cat /run/said
echo "the job's status: $status"
"#,
    );
    for words in [
        "is lost: its agent received nothing from this host for ",
        "this launcher did not run for",
    ] {
        assert!(ended.text.contains(words), "{}", ended.story());
    }
}
