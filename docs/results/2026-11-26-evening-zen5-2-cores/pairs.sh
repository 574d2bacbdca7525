#!/usr/bin/env bash
# Times small collectives of two tasks with this build and with another one (a folder with its libregatta.so.0, of the same version of the segment), in turns:
# pairs.sh FOLDER [TURNS]. Run from the repository's root after `cargo build --release -p regatta-capi -p regatta-cli`. Prints medians of launches in ns.
set -eu
before=$1 turns=${2:-9}
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cc -std=gnu11 -O3 -DADAPTER='"adapters/regatta.c"' -Icrates/interfaces/c/include programs/primitives/main.c -o "$here/primitives" \
    -Ltarget/release -lregatta -lm
ln -s "$PWD/target/release/libregatta.so" "$here/libregatta.so.0"
for _ in $(seq "$turns"); do
    for library in "$here" "$before"; do
        [ "$library" = "$here" ] && echo build now || echo build before
        LD_LIBRARY_PATH=$library target/release/regatta run -n 2 "$here/primitives" \
            barrier concatenation=8,64,256 global-sum=8,64,256 complete-exchange=8,64,256
    done
done | awk '
    function sorted(from, n,   i, j, t) { for (i = from + 1; i <= n; i++) for (j = i; j > from && $j < $(j - 1); j--) { t = $j; $j = $(j - 1); $(j - 1) = t } }
    /^build/ { build = $2 }
    /^point/ { sorted(5, NF); print $2, $3, build, 1000 * $(5 + int((NF - 5) / 2)) }' | sort | awk '
    function say() { if (n) printf "%-20s %5s %-7s %6.0f ns, of %d launches\n", o, b, w, v[int((n + 1) / 2)], n }
    { if ($1 " " $2 " " $3 != last) { say(); n = 0; last = $1 " " $2 " " $3; o = $1; b = $2; w = $3 }
      v[++n] = $4; for (j = n; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t } }
    END { say() }'
