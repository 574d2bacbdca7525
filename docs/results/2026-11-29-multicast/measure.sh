#!/bin/sh
# measure.sh [TIMES]: the time of a broadcast and a barrier of 8 hosts by each way of frames.c, in us, TIMES times each, and their medians.
# Takes root, or a user who may have user namespaces; iproute2, util-linux.
#
# REGATTA=DIR: a folder with regatta, libregatta.so and regatta.h, whose own collectives are measured between the same hosts, without the
# bypass (off) and with it (use).
set -e
times=${1:-5}
if [ -z "$APART" ]; then
    user=
    [ "$(id -u)" = 0 ] || user="--user --map-root-user"
    exec env APART=1 unshare $user --mount --net --pid --fork --kill-child --mount-proc sh "$0" "$times"
fi
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -pthread -o "$work/frames" "$here/frames.c"
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
ip link set lo up
ip link add bridge type bridge
ip address add 10.78.0.254/24 dev bridge
ip link set bridge up
hosts="0 1 2 3 4 5 6 7" slots=
for host in $hosts; do
    ip netns add h$host
    ip link add to-$host type veth peer name eth0 netns h$host
    ip link set to-$host master bridge up
    ip -n h$host link set lo up
    ip -n h$host address add 10.78.0.$((host + 1))/24 dev eth0
    ip -n h$host link set eth0 up
    slots=$slots${slots:+,}h$host:1
done
cores=$(nproc)
run() {
    dd if=/dev/zero of="$work/board" bs=4096 count=1 2>/dev/null
    for host in $hosts; do
        ip netns exec h$host timeout 30 taskset -c $((host * cores / 8)) "$work/frames" "$work/board" $host "$@" &
    done
    wait
}
regatta() {
    cat >"$work/enter" <<'END'
#!/bin/sh
host=$1
shift
exec ip netns exec $host unshare --uts taskset -c $((${host#h} * $(nproc) / 8)) sh -c 'hostname "$0"; exec "$@"' $host "$@"
END
    chmod 755 "$work/enter"
    cc -O2 -I"$REGATTA" -o "$work/collectives" "$here/collectives.c" "$REGATTA/libregatta.so" -Wl,-rpath,"$REGATTA"
    ln -sf libregatta.so "$REGATTA/libregatta.so.0"
    for bypass in off use; do
        REGATTA_BYPASS=$bypass timeout 60 "$REGATTA/regatta" run -n 8 --host "$slots" --rsh "$work/enter {host}" --bind none "$work/collectives" 2000
    done
}
for turn in $(seq "$times"); do
    for wait in sleep waiter; do
        for way in tcp tcp-star frames frames-star multicast; do run broadcast $way $wait 4000; done
        for way in tcp-spread tcp tcp-multicast frames-spread frames multicast; do run barrier $way $wait 4000; done
    done
    [ -z "$REGATTA" ] || regatta
done | sort -t, -k1,3 -k4n | awk -F, '
    function out() { if (n) print key, v[int((n + 1) / 2)], "(" v[1] " to " v[n] ")" lost }
    { k = $1 " " $2 " " $3; if (k != key) { out(); key = k; n = 0; lost = "" } v[++n] = $4; if ($5) lost = " lost" }
    END { out() }'
