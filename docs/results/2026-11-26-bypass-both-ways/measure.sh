#!/usr/bin/env bash
# Two tasks that both send at once, after a rest (both.c), and races of a launch each, with the builds in the folders that are named: in turn, ROUNDS
# times. Each folder has `regatta` and `libregatta.so`, as `cargo build --release -p regatta-capi -p regatta-cli` makes them. Run as root, from
# the repository's root.
set -eu
rounds=${ROUNDS:-12}
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
record=docs/results/2026-11-26-bypass-both-ways

# Two hosts at a bridge, and the program on them by the build in folder $1.
hosts() {
    unshare --mount --net --pid --fork --kill-child --mount-proc sh -ec '
        here=$1
        mount -t tmpfs tmpfs /run
        mount -t tmpfs tmpfs /dev/shm
        mkdir /run/netns
        ip link set lo up
        ip link add bridge type bridge
        ip address add 10.78.0.254/24 dev bridge
        ip link set bridge up
        for k in 0 1; do
            ip netns add h$k
            ip link add v$k type veth peer name eth0 netns h$k
            ip link set v$k master bridge up
            ip -n h$k link set lo up
            ip -n h$k address add 10.78.0.$((k + 1))/24 dev eth0
            ip -n h$k link set eth0 up
            mkdir -m 700 /run/user.h$k
        done
        export XDG_RUNTIME_DIR=/run/user.h0 LD_LIBRARY_PATH=$here
        "$here/regatta" run -n 2 --host h0:1,h1:1 --interface 10.78.0.0/24 --rsh "ip netns exec {host}" "$here/both"
    ' sh "$1"
}

for build in "$@"; do
    name=$(basename "$build")
    mkdir "$here/$name"
    ln -s "$(realpath "$build")"/{regatta,libregatta.so} "$here/$name"
    ln -s libregatta.so "$here/$name/libregatta.so.0"
    cc -O2 -Icrates/interfaces/c/include "$record/both.c" -o "$here/$name/both" -L"$here/$name" -lregatta
done
race() {
    "$here/$1/regatta" race --quick --quiet --network hosts --operation "$2" --tasks 2 --bytes 8 --launches 1 --environment regatta --out "$here/out" >/dev/null
    echo "$2 $1 $(cut -d, -f9 "$here/out/results.csv" | tail -1)"
}
for _ in $(seq "$rounds"); do
    for build in "$@"; do
        name=$(basename "$build")
        echo "after-rest $name $(hosts "$here/$name")"
        race "$name" one-to-one
        race "$name" global-sum
    done
done | sort -s -k1,2
