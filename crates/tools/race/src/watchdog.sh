#!/bin/sh
# Ends what a race has left behind, once the race itself has ended without doing so: it was killed.
#
# $1: what the marks of its processes begin with, a name and a value that nobody else has. $2: its folder. Standard input: a pipe whose other end only the race has.
trap '' HUP INT QUIT TERM
mark=$1 folder=$2
cd /
# No command of its own waits there: the race ends this shell alone when it is over.
read -r line

# Sends a signal to all with the mark; fails if there are none.
send() {
    found=
    for file in $(grep -lF -e "$mark" /proc/[0-9]*/environ 2>/dev/null); do
        pid=${file#/proc/}
        kill -s "$1" "${pid%/environ}" 2>/dev/null && found=yes
    done
    [ -n "$found" ]
}

# Launchers have some time to end their tasks.
turn=0
send TERM
while [ $turn -lt 20 ] && send 0; do
    sleep 0.1
    turn=$((turn + 1))
done
# Nobody is left if two looks say so: between them a process that was just started gets its variables.
turn=0 quiet=0
while [ $turn -lt 100 ] && [ $quiet -lt 2 ]; do
    if send KILL; then quiet=0; else quiet=$((quiet + 1)); fi
    sleep 0.1
    turn=$((turn + 1))
done
rm -rf -- "$folder"
