//! Hosts to run jobs on: network namespaces `h0`, `h1`, ... at a bridge, inside namespaces of the test's own, so that whatever
//! is made there is gone with the first process in them.

/// Options of `unshare`: mounts, networks and processes that nobody else sees. They end with it.
pub const APART: [&str; 6] = [
    "--mount",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

/// Of a user who may do all that there, whoever he is outside.
pub const AS_ROOT: [&str; 2] = ["--user", "--map-root-user"];

/// For a shell in such namespaces: makes so many hosts. All have the same files, so each has a folder `/run/user.NAME` for
/// the sockets of its daemon.
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

/// For a shell: `sees HOST THIS [NOT]` waits until a host's daemon says of the machine what matches THIS, and not NOT. Each change is
/// a line. The variable `regatta` is the command.
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

/// A question for a neighbour's address that is lost, because the bridge's port does not forward yet, is asked again soon: an outage
/// lasts as long as a test makes it (docs/failures.md).
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
