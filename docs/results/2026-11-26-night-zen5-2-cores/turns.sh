#!/usr/bin/env bash
# Times points between two tasks with this build, with another one (a folder with its regatta and its libregatta.so.0), and with `limit`, in turns:
# turns.sh FOLDER TURNS POINT... (each as `exchange=65536,262144`). Run from the repository's root after `cargo build --release -p regatta-capi -p regatta-cli`.
# Launches are sorted by the time of 8 bytes one way right before and after: `close` up to 120 ns, `far` from there on; others are left out. Prints medians of
# launches in ns.
set -eu
before=$1 turns=$2
shift 2
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
build() { cc -std=gnu11 -O3 -DADAPTER="\"adapters/$1.c\"" -Icrates/interfaces/c/include programs/primitives/main.c -o "$here/$1" -Ltarget/release -lregatta -lm; }
build regatta
build limit
ln -s "$PWD/target/release/libregatta.so" "$here/libregatta.so.0"
points="one-to-one=8 $* one-to-one=8"
for _ in $(seq "$turns"); do
    echo build now
    LD_LIBRARY_PATH=$here target/release/regatta run -n 2 "$here/regatta" $points
    echo build before
    LD_LIBRARY_PATH=$before "$before/regatta" run -n 2 "$here/regatta" $points
    echo build limit
    RACE_TASKS=2 LD_LIBRARY_PATH=$here "$here/limit" $points
done | awk '
    function median(   i, j, t) {
        for (i = 6; i <= NF; i++) for (j = i; j > 5 && $j + 0 < $(j - 1) + 0; j--) { t = $j; $j = $(j - 1); $(j - 1) = t }
        return 1000 * $(5 + int((NF - 5) / 2))
    }
    function mood(t) { return t <= 120 ? "close" : "far" }
    /^build/ { build = $2; n = 0 }
    /^point/ { name[++n] = $2 " " $3; time[n] = median() }
    /^done/ && mood(time[1]) == mood(time[n]) { for (i = 2; i < n; i++) print mood(time[1]), name[i], build, time[i] }' |
    sort -k1,2 -k3,3n -k4,4 -k5,5n | awk '
    function say() { if (n) printf "%-5s %-18s %8s B  %-6s %9.1f ns, of %d launches\n", m, o, b, w, v[int((n + 1) / 2)], n }
    { key = $1 " " $2 " " $3 " " $4; if (key != last) { say(); n = 0; last = key; m = $1; o = $2; b = $3; w = $4 } v[++n] = $5 }
    END { say() }'
