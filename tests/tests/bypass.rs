//! Small messages that bypass TCP/IP between hosts of one network. They arrive whether their frames arrive or are lost.
//!
//! The hosts h0 to h3 are network namespaces connected to a bridge, which can be told to drop the frames.

use regatta_tests::lan::{APART, AS_ROOT, make_hosts};
use regatta_tests::{Ended, Job, command};

/// Match of a bridge rule for the frames of bypasses.
const FRAMES: &str = "ether type 0x88b5";

/// Start of the script. Arguments: the command, then the command line to run.
const BEGIN: &str = r#"unset REGATTA_VM
regatta=$1
shift
: >/run/said
nft 'add table bridge bypass; add chain bridge bypass crossing { type filter hook forward priority 0; }; add counter bridge bypass passed'
nft "add rule bridge bypass crossing FRAMES counter name passed"
passed() { nft list counter bridge bypass passed | sed -n 's/.*packets \([0-9]*\).*/\1/p'; }
heard() { tail -n +1 -F /run/said 2>/dev/null | grep -q -m 1 -e "$1" -e FAIL -e HUNG; }
end() {
    status=0
    wait $job || status=$?
    cat /run/said
    echo "passed $(passed) frames"
    exit $status
}
"#;

fn on_hosts(job: Job, then: &str) -> Ended {
    let regatta = command().display().to_string();
    let script = make_hosts(4) + &BEGIN.replace("FRAMES", FRAMES) + &then.replace("FRAMES", FRAMES);
    let shell = ["sh", "-ec", &script, "sh", &regatta];
    let around = [&["unshare"], &AS_ROOT[..], &APART, &shell].concat();
    job.around(&around).limit(150).run()
}

fn across(program: &str, arguments: &[&str]) -> Job {
    across_by("ip netns exec {host}", program, arguments)
}

fn across_by(rsh: &str, program: &str, arguments: &[&str]) -> Job {
    on_each(Job::new(2, program, arguments), "h0:1,h1:1", rsh)
}

fn on_each(job: Job, hosts: &str, rsh: &str) -> Job {
    job.option("--host")
        .option(hosts)
        .option("--interface")
        .option("10.78.0.0/24")
        .option("--rsh")
        .option(rsh)
}

const JUST_RUN: &str = r#"
"$@" >/run/said 2>&1 &
job=$!
end
"#;

/// Returns how many of these frames have crossed the bridge.
#[track_caller]
fn frames(ended: &Ended) -> u64 {
    let found = ended.text.split("passed ").nth(1);
    let found = found.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    found.unwrap_or_else(|| panic!("no frames are counted in\n{}", ended.story()))
}

#[test]
fn nothing_is_lost_when_a_bypass_is_cut_and_comes_back() {
    let ended = on_hosts(
        across("bypass", &["cut"]),
        r#"
"$@" >/run/said 2>&1 &
job=$!
heard '^by the bypass'
[ "$(passed)" -gt 2000 ] || echo "FAILED: $(passed) frames"
nft insert rule bridge bypass crossing FRAMES drop
: >/run/dropped
heard 'without the bypass'
nft flush chain bridge bypass crossing
: >/run/mended
end
"#,
    );
    ended.passed().said("by the bypass again");
}

/// Runs a job while the bridge drops every third frame.
fn with_losses(argument: &str) -> Ended {
    const RULE: &str = "nft insert rule bridge bypass crossing FRAMES numgen inc mod 3 0 drop";
    on_hosts(
        across("bypass", &[argument]),
        &format!("\n{RULE}{JUST_RUN}"),
    )
    .passed()
}

#[test]
fn nothing_is_lost_when_a_bypass_loses_frames_all_the_time() {
    with_losses("some");
}

/// Both tasks send at the same time, so a frame overtakes messages sent earlier over the connection. After each pause
/// both must use the bypass again.
#[test]
fn two_that_both_send_at_once_use_a_bypass_again_after_each_rest() {
    let ended = on_hosts(across("bypass", &["both"]), JUST_RUN).passed();
    // Each task sends more than 6000 messages. The first after each pause and the long ones use the connection.
    assert!(frames(&ended) > 6000, "{}", ended.story());
    assert!(frames(&with_losses("both")) > 0);
}

/// The sender computes without any call after its frame was lost. The message must still arrive soon over the
/// connection, well before the next tick of the timer that watches the connection.
#[test]
fn a_lost_word_of_a_task_that_computes_comes_soon_by_the_connection() {
    let ended = with_losses("away");
    let worst = ended.text.split("worst ").nth(1);
    let worst = worst.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    assert!(worst.is_some_and(|worst| worst < 120), "{}", ended.story());
}

#[test]
fn random_traffic_by_bypasses_arrives_once_in_order_and_whole() {
    for words in [&["random", "81", "3"][..], &["random", "82", "3"]] {
        let ended = on_hosts(across("traffic", words), JUST_RUN).passed();
        assert!(frames(&ended) > 0, "{}", ended.story());
    }
    on_hosts(across("traffic_order", &["overtaking"]), JUST_RUN).passed();
    let three = Job::new(3, "traffic", &["random", "83", "3"]);
    let three = on_each(three, "h0:1,h1:1,h2:1", "ip netns exec {host}");
    let ended = on_hosts(three, JUST_RUN).passed();
    assert!(frames(&ended) > 0, "{}", ended.story());
}

#[test]
fn everything_comes_that_a_task_has_said_before_it_was_killed() {
    for _ in 0..3 {
        let job = across("bypass", &["dies"]).option("--on-failure=continue");
        let ended = on_hosts(job, JUST_RUN).said("all came");
        assert!(frames(&ended) > 300, "{}", ended.story());
    }
}

#[test]
fn a_bypass_changes_its_keys() {
    let job = across("bypass", &["some"]).env("REGATTA_RECORDS_PER_KEY", "600");
    on_hosts(job, JUST_RUN).passed().said("it is used");
}

#[test]
fn no_bypass_is_used_by_who_does_not_want_one_or_may_not() {
    let job = || across("bypass", &["some"]);
    let ended = on_hosts(job().env("REGATTA_BYPASS", "off"), JUST_RUN).passed();
    assert_eq!(frames(&ended.said("it is not used")), 0);
    // Without CAP_NET_RAW only the latency differs.
    let rsh = "ip netns exec {host} setpriv --bounding-set -net_raw";
    let without = across_by(rsh, "bypass", &["some"]);
    let ended = on_hosts(without, JUST_RUN).passed();
    assert_eq!(frames(&ended.said("it is not used")), 0);
    let ended = on_hosts(job(), JUST_RUN).passed();
    assert!(frames(&ended.said("it is used")) > 1000);
}

#[test]
fn a_setting_that_makes_no_sense_is_named() {
    let job = Job::new(1, "bypass", &["some"]).env("REGATTA_BYPASS", "perhaps");
    let ended = job.run();
    assert!(
        ended.text.contains("REGATTA_BYPASS=\"perhaps\""),
        "{}",
        ended.story()
    );
}

/// Creates a job with one task on each of three hosts.
fn on_three(arguments: &[&str]) -> Job {
    let job = Job::new(3, "together", arguments);
    on_each(job, "h0:1,h1:1,h2:1", "ip netns exec {host}")
}

/// Match of a bridge rule for multicast frames of bypasses.
const TOGETHER: &str = "ether type 0x88b5 ether daddr & 01:00:00:00:00:00 == 01:00:00:00:00:00";

/// Runs a job that broadcasts 3000 times. The bridge counts only multicast frames, and applies `with_them` to them.
fn broadcasts(job: Job, with_them: &str) -> Ended {
    let rule = format!(
        "\nnft flush chain bridge bypass crossing\nnft 'insert rule bridge bypass crossing {TOGETHER} counter name passed {with_them}'{JUST_RUN}"
    );
    on_hosts(job, &rule).passed().said("all 3000 came")
}

#[test]
fn what_goes_to_several_hosts_is_one_frame() {
    let ended = broadcasts(on_three(&["often", "3000"]), "accept");
    // The bridge passes each frame to all other hosts.
    assert!(frames(&ended) > 3000, "{}", ended.story());
}

/// All other receivers are on the root's own host, so no multicast frames may be sent.
#[test]
fn what_goes_to_one_other_host_is_no_frame_for_several() {
    let job = Job::new(4, "together", &["often", "3000"]);
    let job = on_each(job, "h0:2,h1:2", "ip netns exec {host}");
    assert_eq!(frames(&broadcasts(job, "accept")), 0);
}

#[test]
fn a_switch_that_passes_no_frames_to_groups_costs_some_milliseconds_now_and_then() {
    let ended = broadcasts(on_three(&["often", "3000"]), "drop");
    // Three tasks have two links each, and a link pauses after three losses. Each frame goes to all other hosts.
    assert!((1..200).contains(&frames(&ended)), "{}", ended.story());
}

#[test]
fn a_frame_for_several_tasks_wakes_no_other() {
    let job = Job::new(4, "together", &["bystander"]);
    let job = on_each(job, "h0:1,h1:1,h2:1,h3:1", "ip netns exec {host}");
    let ended = on_hosts(job, JUST_RUN).passed().said("woken");
    assert!(frames(&ended) > 3000, "{}", ended.story());
}

#[test]
fn broadcasts_come_once_and_in_order_when_frames_are_lost_all_the_time() {
    const RULE: &str = "nft insert rule bridge bypass crossing FRAMES numgen inc mod 10 0 drop";
    let ended = on_hosts(on_three(&["often", "1000"]), &format!("\n{RULE}{JUST_RUN}"));
    ended.passed().said("all 1000 came");
}

#[test]
fn a_broadcast_of_a_task_that_is_killed_comes_or_its_death_is_told() {
    for _ in 0..3 {
        let job = on_three(&["dies"]).option("--on-failure=continue");
        on_hosts(job, JUST_RUN).said("told");
    }
}
