//! Jobs that grow: a host that joins the virtual machine becomes a host of the job that runs in it.
//!
//! The hosts are network namespaces connected to a bridge, inside the test's own namespaces. The job adds and kills
//! them itself.

use regatta_tests::lan::{APART, AS_ROOT, SEES, make_hosts};
use regatta_tests::{Job, command};

/// Script that runs after the hosts h0 to h5 were created: starts a machine on some of them, and the job on h0. h3
/// lacks the job's working directory. On h4 only the first shell (the daemon's) finds a `regatta` of this version. On
/// h5 the second shell (for the job's agent) kills the daemon.
const WORLD: &str = r#"mkdir -p /run/everywhere/job
cp /bin/sh /run/shell
cat >/run/enter <<'END'
if [ "$1" = h3 ]; then mount -t tmpfs tmpfs /run/everywhere; fi
if [ "$1" = h4 ]; then mount --bind /run/other/sh /bin/sh; fi
if [ "$1" = h5 ]; then mount --bind /run/deadly/sh /bin/sh; fi
shift
exec "$@"
END
mkdir /run/other
cat >/run/other/sh <<'END'
#!/run/shell
if mkdir /run/other/first 2>/dev/null; then exec /run/shell "$@"; fi
printf '\nregatta-agent 9.9.9 (channel 9)\n'
exec cat >/dev/null
END
mkdir /run/deadly
cat >/run/deadly/sh <<'END'
#!/run/shell
if mkdir /run/deadly/first 2>/dev/null; then exec /run/shell "$@"; fi
case $(cat /proc/$PPID/comm) in regatta-daemon) kill -9 $PPID ;; esac
exec cat >/dev/null
END
chmod +x /run/other/sh /run/deadly/sh
export REGATTA_RSH='env XDG_RUNTIME_DIR=/run/user.{host} ip netns exec {host} sh /run/enter {host}'
unset REGATTA_VM
on_first="env XDG_RUNTIME_DIR=/run/user.h0 ip netns exec h0"
regatta=$1
hosts=$2
shift 2
cd /run/everywhere/job
$on_first $regatta up --as h0:1 $hosts
# Waits until the hosts' names are known.
for host in $hosts; do sees h0 "\"name\":\"${host%:*}\""; done
status=0
$on_first "$@" || status=$?
cd /
$on_first $regatta down
exit $status
"#;

fn on_hosts(hosts: &str, job: Job) -> Job {
    let regatta = command().display().to_string();
    let script = make_hosts(6) + SEES + WORLD;
    let shell = ["sh", "-ec", &script, "sh", &regatta, hosts];
    let around = [&["unshare"], &AS_ROOT[..], &APART, &shell].concat();
    job.around(&around).limit(100)
}

#[test]
fn a_job_takes_in_hosts_that_are_added_lost_and_added_again() {
    let regatta = command().display().to_string();
    on_hosts("h1:1", Job::new(2, "grow", &["grow", &regatta]))
        .run()
        .passed()
        .said("on the host h3: the directory /run/everywhere/job cannot be used on this host")
        .said("the host h4 runs regatta 9.9.9 (channel 9)")
        .said("install the same release on both; the job continues without that host")
        .said("the host h2 is lost");
}

#[test]
fn a_job_on_one_host_takes_in_another() {
    let regatta = command().display().to_string();
    let job = Job::new(1, "grow", &["alone", &regatta]).option("--verbose");
    on_hosts("", job)
        .run()
        .passed()
        .said("the host h1 has joined the job");
}

#[test]
fn a_host_that_comes_later_hears_that_the_tasks_of_one_that_was_given_back_are_gone() {
    let regatta = command().display().to_string();
    on_hosts("h1:1", Job::new(1, "grow", &["back", &regatta]))
        .run()
        .passed();
}

#[test]
fn a_host_whose_daemon_is_killed_while_a_job_starts_is_named_with_what_was_observed_and_what_to_do()
{
    let regatta = command().display().to_string();
    let ended = on_hosts("h5:1", Job::new(2, "grow", &["alone", &regatta])).run();
    assert_eq!(ended.status, 125, "{}", ended.story());
    ended
        .said("the host h5 ")
        .said("its daemon has ended")
        .said("No task was started there")
        .said("`regatta hosts` shows the remaining hosts, and `regatta add h5` adds a lost host again");
}
