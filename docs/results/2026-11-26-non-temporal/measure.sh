#!/usr/bin/env bash
# Times the race's operations between two tasks with each choice of footprint, in turn, ROUNDS times, and prints the median of each in microseconds.
# Run from the repository's root after `cargo build --release -p regatta-capi -p regatta-cli`.
# Samples are sorted by the time of 8 bytes right before and after: `close` up to 120 ns, `far` from there on; others are left out.
set -eu
rounds=${ROUNDS:-20}
points=${POINTS:-one-to-one=1024,4096,16384,65536 exchange=1024,4096,16384 message-rate=1024,4096,16384,65536 global-sum=4096,8192,16384 concatenation=8192,16384 complete-exchange=8192,16384}
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cc -std=gnu11 -O3 -DADAPTER='"adapters/regatta.c"' -Icrates/interfaces/c/include programs/primitives/main.c -o "$here/primitives" \
    -Ltarget/release -lregatta -lm
ln -s "$PWD/target/release/libregatta.so" "$here/libregatta.so.0"
export LD_LIBRARY_PATH=$here
for _ in $(seq "$rounds"); do
    for point in $points; do
        operation=${point%=*}
        for bytes in $(tr , ' ' <<<"${point#*=}"); do
            for footprint in narrow wide non-temporal learn; do
                echo "footprint $footprint"
                REGATTA_FOOTPRINT=$footprint target/release/regatta run -n 2 "$here/primitives" \
                    one-to-one=8 "$operation=$bytes" one-to-one=8
            done
        done
    done
done | awk '
    function median(n) {
        for (i = 5; i <= NF; i++) for (j = i; j > 5 && $j < $(j - 1); j--) { t = $j; $j = $(j - 1); $(j - 1) = t }
        return $(5 + int((NF - 5) / 2))
    }
    /^footprint/ { footprint = $2; seen = 0 }
    /^point/ {
        took[seen] = median(0); name[seen] = $2 " " $3; seen++
        if (seen == 3) {
            far = took[0] > 0.12; if (far == (took[2] > 0.12)) print name[1], (far ? "far" : "close"), footprint, took[1]
        }
    }' | sort | awk '
    function say() { if (n) printf "%-26s %-6s %-13s %9.3f   of %d\n", op, mood, fp, v[int((n + 1) / 2)], n }
    { key = $1 " " $2 " " $3 " " $4; if (key != last) { say(); n = 0; last = key; op = $1 " " $2; mood = $3; fp = $4 }
      n++; v[n] = $5 + 0; for (j = n; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t } }
    END { say() }'
