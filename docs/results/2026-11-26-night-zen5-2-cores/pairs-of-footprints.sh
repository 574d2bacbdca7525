#!/usr/bin/env bash
# Times an exchange of BYTES between two tasks each of which has a footprint of its own, in turns: pairs-of-footprints.sh BYTES [TURNS].
# Run from the repository's root after `cargo build --release -p regatta-capi -p regatta-cli`. Launches are sorted by the time of 8 bytes one way right before
# and after: `close` up to 120 ns, `far` from there on; others are left out. Prints medians of launches in us.
set -eu
bytes=$1 turns=${2:-8}
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cc -std=gnu11 -O3 -DADAPTER='"adapters/regatta.c"' -Icrates/interfaces/c/include programs/primitives/main.c -o "$here/primitives" -Ltarget/release -lregatta -lm
ln -s "$PWD/target/release/libregatta.so" "$here/libregatta.so.0"
# The third number of a job's word is the task's.
cat > "$here/task" <<'SCRIPT'
#!/bin/sh
case $REGATTA_JOB in *:*:0:*) footprint=${PAIR%,*} ;; *) footprint=${PAIR#*,} ;; esac
REGATTA_FOOTPRINT=$footprint exec "$@"
SCRIPT
chmod +x "$here/task"
export LD_LIBRARY_PATH=$here PAIR
for _ in $(seq "$turns"); do
    for PAIR in narrow,narrow wide,wide narrow,wide narrow,non-temporal wide,non-temporal non-temporal,non-temporal; do
        echo "pair $PAIR"
        target/release/regatta run -n 2 "$here/task" "$here/primitives" one-to-one=8 "exchange=$bytes" one-to-one=8
    done
done | awk '
    function median(   i, j, t) {
        for (i = 6; i <= NF; i++) for (j = i; j > 5 && $j + 0 < $(j - 1) + 0; j--) { t = $j; $j = $(j - 1); $(j - 1) = t }
        return $(5 + int((NF - 5) / 2))
    }
    function mood(t) { return t <= 0.12 ? "close" : "far" }
    /^pair/ { pair = $2; n = 0 }
    /^point/ { time[++n] = median() }
    /^done/ && n == 3 && mood(time[1]) == mood(time[3]) { print mood(time[1]), pair, time[2] }' | sort -k1,2 -k3,3n | awk '
    function say() { if (n) printf "%-5s %-26s %8.2f us, of %d launches\n", m, p, v[int((n + 1) / 2)], n }
    { if ($1 " " $2 != last) { say(); n = 0; last = $1 " " $2; m = $1; p = $2 } v[++n] = $3 }
    END { say() }'
