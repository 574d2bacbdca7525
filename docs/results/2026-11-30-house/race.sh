#!/bin/sh
# Races two builds of Regatta against each other, in turn: race.sh BEFORE AFTER OUT, each of the first two a target/release.
set -eu
race() {
    build=$1 out=$2
    shift 2
    "$build/regatta" race --quiet --launches 3 --environment regatta --out "$out" "$@" >/dev/null
}
for round in 1 2 3 4 5; do
    for side in before after; do
        build=$1
        [ "$side" = before ] || build=$2
        out=$3/$side
        race "$build" "$out-two-$round" --seed "$round" --operation one-to-one,message-rate,barrier,global-sum,concatenation,exchange --tasks 2 --bytes 8,1024,65536,1048576
        race "$build" "$out-many-$round" --seed "$round" --operation barrier,global-sum --tasks 32 --bytes 8,1024
        race "$build" "$out-hosts-$round" --seed "$round" --network hosts --operation one-to-one --tasks 2 --bytes 8,65536
        race "$build" "$out-start-$round" --seed "$round" --suite start --operation join-leave,spawn --tasks 2,32
    done
done
