#!/bin/sh
# Makes the hosts of a race, inside namespaces that are this race's own: network namespaces at a bridge, each slowed both
# ways if RATE says so, and two commands, `enter HOST COMMAND...` and `rsh HOST COMMAND`.
#
# HOSTS: a word NAME=ADDRESS=PROCESSORS for each. RATE, BURST, LIMIT, MTU: of tbf and of the links, or empty.
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
folder=/run/race
mkdir -p /run/netns $folder
ip link set lo up

slow() {
    [ -z "$RATE" ] || tc "$@" root tbf rate "$RATE" burst "$BURST" limit "$LIMIT"
}

here=127.0.0.1
if [ -z "$LOOPBACK" ]; then
    here=10.77.0.254
    ip link add bridge type bridge
    ip address add $here/24 dev bridge
    ip link set bridge up
fi
# Launchers tell their own address by looking up their own name.
printf '127.0.0.1 localhost\n%s %s\n' $here "$(hostname)" >$folder/hosts
for word in $HOSTS; do
    name=${word%%=*} rest=${word#*=}
    address=${rest%%=*} processors=${rest#*=}
    echo "$address $name" >>$folder/hosts
    echo "$processors" >$folder/processors.$name
    mkdir -p $folder/pvm/$name
    [ -z "$LOOPBACK" ] || continue
    ip netns add "$name"
    ip link add "to-$name" mtu "$MTU" type veth peer name eth0 mtu "$MTU" netns "$name"
    ip link set "to-$name" master bridge up
    ip -n "$name" link set lo up
    ip -n "$name" address add "$address/24" dev eth0
    ip -n "$name" link set eth0 up
    slow qdisc add dev "to-$name"
    slow -n "$name" qdisc add dev eth0
done
mount --bind $folder/hosts /etc/hosts

# What runs there has the host's network, name and processors, and the folder of its PVM daemon.
cat >$folder/enter <<'END'
#!/bin/sh
host=$1
shift
export PVM_TMP=/run/race/pvm/$host
exec ip netns exec "$host" unshare --uts taskset -c "$(cat /run/race/processors.$host)" \
    sh -c 'hostname "$0"; exec "$@"' "$host" "$@"
END
# As ssh, for the launchers: options are passed over, the rest is a line for a shell.
cat >$folder/rsh <<'END'
#!/bin/sh
while :; do
    case $1 in
    -*) shift ;;
    *) break ;;
    esac
done
host=$1
shift
while [ "$1" = -n ]; do shift; done
exec /run/race/enter "$host" sh -c "$*"
END
# Hosts that are only pretended, one for each call, in turn.
cat >$folder/pretend <<'END'
#!/bin/sh
turn=0
while ! mkdir /run/race/turn.$turn 2>/dev/null; do turn=$((turn + 1)); done
set -- "$(cat /run/race/processors.* | sed -n "$((turn + 1))p")" "$@"
exec taskset -c "$@"
END
chmod 755 $folder/enter $folder/rsh $folder/pretend
