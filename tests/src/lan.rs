//! Hosts to run jobs on: network namespaces `h0`, `h1`, ... connected to a bridge. They live inside namespaces of the
//! test's own, so everything created there disappears when the first process in them ends.

/// Options of `unshare` for private mounts, networks and processes. They end with `unshare`.
pub const APART: [&str; 6] = [
    "--mount",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

/// Options of `unshare` that map any user to root inside the namespaces.
pub const AS_ROOT: [&str; 2] = ["--user", "--map-root-user"];

/// Returns a shell script that creates `count` hosts; it must run in such namespaces. The hosts share all files, so
/// each has a folder `/run/user.NAME` for the sockets of its daemon.
pub fn make_hosts(count: u32) -> String {
    crate::needs::namespaces();
    let hosts: String = (0..count).map(|number| make_host(number) + "\n").collect();
    format!(
        "mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
mkdir /run/netns
ip link set lo up
ip link add bridge type bridge
ip address add 10.78.0.254/24 dev bridge
ip link set bridge up
{hosts}"
    )
}

/// Shell function `sees HOST THIS [NOT]`: waits until the daemon of HOST reports a state of the machine that matches
/// THIS and does not match NOT. The daemon writes one line per change. The variable `regatta` is the command.
pub const SEES: &str = r#"
sees() {
    rm -f /run/seen
    mkfifo /run/seen
    env XDG_RUNTIME_DIR=/run/user.$1 ip netns exec $1 $regatta hosts --watch --json >/run/seen 2>&1 &
    watcher=$!
    seen=$(timeout 90 sed -u -n "/${3:-^$}/d; /$2/{p;q}" </run/seen) || true
    [ -n "$seen" ] || { echo "FAILED: $1 does not see $2"; kill $watcher; exit 1; }
    { kill $watcher; wait $watcher; } 2>/dev/null || true
}
"#;

/// Returns a shell script that creates one host. An ARP request that is lost because the bridge port does not forward
/// yet is repeated soon, so an outage lasts exactly as long as the test intends (docs/failures.md).
fn make_host(number: u32) -> String {
    let (name, last) = (format!("h{number}"), number + 1);
    format!(
        "ip netns add {name}
ip link add v{number} type veth peer name eth0 netns {name}
ip link set v{number} master bridge up
ip -n {name} link set lo up
ip -n {name} address add 10.78.0.{last}/24 dev eth0
ip -n {name} link set eth0 up
ip netns exec {name} sh -c 'echo 100 >/proc/sys/net/ipv4/neigh/eth0/retrans_time_ms'
mkdir -m 700 /run/user.{name}"
    )
}
