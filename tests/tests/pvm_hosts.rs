//! PVM programs on the hosts of a virtual machine. Programs started by hand on any host are tasks of one machine, and
//! the machine survives the loss of any host, including the one where the first program was started.
//!
//! The hosts are the network namespaces h0 to h3, connected to a bridge. A shell beside them drives the test.

use std::process::{Command, Stdio};

use regatta_tests::lan::{APART, AS_ROOT, SEES, make_hosts};
use regatta_tests::{command, pvm};

/// Script that runs after the hosts were created. Arguments: the command, the program.
const BEGIN: &str = r#"mkdir -p /run/everywhere/home
export REGATTA_RSH='env XDG_RUNTIME_DIR=/run/user.{host} ip netns exec {host}'
export HOME=/run/everywhere/home
cd "$HOME"
on() { host=$1; shift; env XDG_RUNTIME_DIR=/run/user.$host ip netns exec $host "$@"; }
regatta=$1
program=$2
mkfifo plug
plug=$HOME/plug
on h0 $regatta up --as h0:1 h1:1 h2:1 h3:1 >/dev/null
sees h0 '"cores":1.*"cores":1.*"cores":1.*"cores":1'
# Reads the next line of a task. If the previous writer still has the pipe open, its close may end this read, which is then repeated.
next_line() { until read -r "$@" <plug; do :; done; }
# Shuts down the machine of the remaining hosts, and checks that no process is left.
finish() {
    on h1 $regatta down || true
    for host in h0 h1 h2 h3; do
        for pid in $(ip netns pids $host); do
            case $(cat /proc/$pid/comm 2>/dev/null) in regatta-daemon) kill $pid || true ;; "") ;; *) echo "FAILED: left on $host: $(cat /proc/$pid/comm)" ;; esac
        done
    done
}
"#;

const OUTLIVE: &str = r#"
on h0 $program first $plug &
on h1 $program second $plug &
on h2 $program third $plug &
next_line word
echo "$word"
ip netns pids h0 | xargs kill -9 2>/dev/null || true
next_line word
echo "$word"
on h3 $program late $plug &
wait
# Waits for the last line of the host that led the job.
logs=$(for host in h1 h2 h3; do echo /run/user.$host/regatta/pvm.job.log; done)
tail -q -n +1 -F $logs 2>/dev/null | grep -q -m 1 'has ended with status'
cat $logs 2>/dev/null || true
finish
"#;

/// The program runs on another host than the launcher.
const DOWN: &str = r#"
on h1 $program first $plug >found &
tail -n +1 -F found 2>/dev/null | grep -q -m 1 finds
cat found
on h2 $regatta down
wait
finish
cat /run/user.h0/regatta/pvm.job.log
"#;

/// While the joiner reports its actions to others, nothing passes from h1 to h2: frames for h2 go to a MAC address that
/// no host has.
const JOINED: &str = r#"
mkfifo back
on h2 $program caster $plug $HOME/back &
on h3 $program friend $plug $HOME/back &
on h0 $program late $plug $HOME/back &
on h1 $program joiner $plug $HOME/back &
next_line word
ip -n h1 neighbour replace 10.78.0.3 lladdr 02:00:00:00:00:03 nud permanent dev eth0
echo >back
next_line word
ip -n h1 neighbour delete 10.78.0.3 dev eth0
echo >back
wait
finish
"#;

fn run(program: &str, then: &str) -> String {
    let script = make_hosts(4) + SEES + BEGIN + then;
    let program = pvm::program(program);
    let mut driver = Command::new("timeout");
    driver.args(["--kill-after=5", "90", "unshare"]);
    driver.args(AS_ROOT).args(APART);
    driver.args(["sh", "-ec", &script, "sh"]);
    let around = pvm::on_regatta(&program);
    driver.envs(
        around
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    driver.arg(command()).arg(&program).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("REGATTA_") {
            driver.env_remove(name);
        }
    }
    let output = driver.output().expect("timeout and unshare");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = said(&output.stdout) + &said(&output.stderr);
    assert!(output.status.success() && !all.contains("FAILED"), "{all}");
    all
}

#[test]
fn programs_started_by_hand_on_any_host_outlive_the_first_one() {
    let said = run("pvm_hosts", OUTLIVE);
    for words in ["the first finds h0", "takes over", "the second has met all"] {
        assert!(said.contains(words), "{words:?} is not in:\n{said}");
    }
}

#[test]
fn a_virtual_machine_that_is_taken_down_takes_its_programs_with_it() {
    let said = run("pvm_hosts", DOWN);
    assert!(said.contains("which ends the job"), "{said}");
}

#[test]
fn a_group_is_asked_for_its_members_of_now_though_news_of_them_do_not_arrive() {
    let said = run("pvm_joined", JOINED);
    assert!(said.contains("all is known"), "{said}");
}
