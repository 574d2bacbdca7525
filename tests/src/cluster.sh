# Runs a Slurm cluster on this machine in namespaces of its own: munged, slurmctld, and one slurmd per node. Each node
# has its own network. Must run as the first process of a PID namespace, so that everything ends with it.
#   cluster.sh FOLDER NODE...
set -e
exec 3<&0
folder=$1
shift
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/munge "$folder/state"
mkdir -m 700 /run/user.own
# munged's socket is open to all users, but the folder is private to this mount namespace.
chmod 755 /run/munge
head -c 128 /dev/urandom >"$folder/munge.key"
chmod 600 "$folder/munge.key"
munged --force --key-file="$folder/munge.key" --socket=/run/munge/munge.socket.2 --num-threads=2 \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munged.seed"

ip link set lo up
ip link add br0 type bridge
ip address add 10.78.0.254/24 dev br0
ip link set br0 up
nodes=
number=0
for node in "$@"; do
    number=$((number + 1))
    ip netns add "$node"
    ip link add "v$number" type veth peer name eth0 netns "$node"
    ip link set "v$number" master br0 up
    ip -n "$node" link set lo up
    ip -n "$node" address add "10.78.0.$number/24" dev eth0
    ip -n "$node" link set eth0 up
    nodes="$nodes
NodeName=$node NodeAddr=10.78.0.$number NodeHostname=$node CPUs=2 State=UNKNOWN"
done
cat >"$folder/slurm.conf" <<END
ClusterName=regatta
SlurmctldHost=$(uname -n)(10.78.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
SlurmctldPort=6817
SlurmdPort=6818
SlurmdParameters=config_overrides
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
KillWait=2
JobAcctGatherType=jobacct_gather/none
$nodes
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:16 MaxTime=INFINITE State=UP
END
# Slurm limits nothing by control groups here, but slurmd needs to know their version.
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n' >"$folder/cgroup.conf"
else
    printf 'CgroupPlugin=cgroup/v1\n' >"$folder/cgroup.conf"
fi
export SLURM_CONF="$folder/slurm.conf"
slurmctld -c
for node in "$@"; do
    mkdir "$folder/spool-$node"
    # All nodes share their files, so each has its own folder for the sockets of a user's daemons.
    nsenter --net="/run/netns/$node" unshare --mount sh -ec '
        mount -t tmpfs -o mode=700 tmpfs /run/user.own
        exec slurmd -N "$1"' sh "$node"
done
# The cluster is ready when a step on all nodes has run, which needs all of them to be registered.
if ! timeout 90 srun --quiet -N$# -n$# true >"$folder/first-step" 2>&1 </dev/null; then
    sinfo -N
    cat "$folder/first-step"
    tail -n 20 "$folder"/*.log
    exit 1
fi
echo ready
# The input ends with the process that uses the cluster. Waiting for it also reaps orphans.
cat <&3 >/dev/null &
wait $!
# The test program does not clean up when it ends, so the files are removed here.
rm -rf "$folder"
