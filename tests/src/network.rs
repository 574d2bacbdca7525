//! Hosts with a virtual machine on them (see [`crate::lan`]), and a shell beside them that does what it is told; all ends with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::command;
use crate::lan::{APART, AS_ROOT, SEES, make_hosts};
use crate::needs;

/// Ends what the shell has to say to one order.
const MARK: &str = "---- done";
/// The words before a command on the first host. Each host has a folder for the socket of its daemon, since all have the same files.
pub(crate) const ON_FIRST: &str = "ip netns exec h0 env XDG_RUNTIME_DIR=/run/user.h0 REGATTA_RSH='ip netns exec {host} env XDG_RUNTIME_DIR=/run/user.{host}'";
/// How long a fleet may take to come to its end when its time is over.
const FLEET_END_TIMEOUT: Duration = Duration::from_secs(300);
/// The name that a worker gives to its process when it is up (`tests/programs/chaos_worker.c`).
const UP_PROCESS_NAME: &str = "chaos-up";

pub(crate) struct Network {
    shell: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// A byte comes when the command that was started is over.
    over: ChildStderr,
    hosts: u32,
}

impl Network {
    /// The first host, and so many others.
    pub(crate) fn new(hosts: u32) -> Network {
        Network::with(hosts + 1, true)
    }

    /// So many hosts; `pretend` to be root, which is enough for all but a server of ssh.
    pub(crate) fn with(hosts: u32, pretend: bool) -> Network {
        needs::program("nft", "nftables");
        needs::program("pgrep", "procps");
        let making = make_hosts(hosts);
        let mut shell = Command::new("unshare")
            .args(if pretend { &AS_ROOT[..] } else { &[] })
            .args(APART)
            .arg("sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("unshare");
        let mut network = Network {
            orders: shell.stdin.take().expect("a pipe"),
            answers: BufReader::new(shell.stdout.take().expect("a pipe")),
            over: shell.stderr.take().expect("a pipe"),
            shell,
            hosts,
        };
        writeln!(network.orders, "exec 3>&2").expect("the shell");
        let said = network.order(&making);
        assert!(said.is_empty(), "hosts cannot be made here: {said}");
        network
    }

    /// Has the shell do something; what that said.
    fn order(&mut self, script: &str) -> String {
        writeln!(self.orders, "{{ {script}\n}} 2>&1; echo '{MARK}'").expect("the shell");
        let mut said = String::new();
        loop {
            let before = said.len();
            let length = self.answers.read_line(&mut said).expect("the shell");
            assert!(length > 0, "the shell has ended: {said}");
            if said[before..].trim_end() == MARK {
                said.truncate(before);
                return said;
            }
        }
    }

    /// Starts the command that is tried.
    pub(crate) fn start(&mut self, line: &str) {
        self.order(&format!(
            "{{ {line} </dev/null >/run/said 2>&1; echo $? >/run/status; echo; }} 1>&3 &"
        ));
    }

    /// Starts a fleet, and waits until its captain says that it has begun (`tests/programs/fleet.c`): a host that is lost before is
    /// an error of the command's. If it ends at once, its outcome says why.
    pub(crate) fn start_fleet(&mut self, line: &str) {
        self.order("mkfifo /run/begun");
        self.start(line);
        self.order("timeout 120 cat /run/begun");
    }

    /// Waits until that is over, or until the time has come.
    pub(crate) fn is_over(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a short time");
        poll(
            &mut [PollFd::from_borrowed_fd(self.over.as_fd(), PollFlags::IN)],
            Some(&left),
        )
        .is_ok_and(|ready| ready > 0)
    }

    /// Its status, and all it said.
    pub(crate) fn outcome(&mut self) -> (i32, String) {
        let over = self.is_over(Instant::now() + FLEET_END_TIMEOUT);
        let said = self.order("cat /run/said");
        assert!(
            over,
            "the fleet does not come to its end:\n{said}\n{}",
            self.left()
        );
        self.over.read_exact(&mut [0]).expect("a byte");
        let status = self.order("cat /run/status");
        (status.trim().parse().expect("a status"), said)
    }

    /// A command about the virtual machine, given on the first host; it must succeed.
    pub(crate) fn regatta(&mut self, words: &str) {
        let said = self.order(&format!(
            "{ON_FIRST} {} {words} >/run/answer 2>&1 || cat /run/answer",
            command().display()
        ));
        assert!(said.is_empty(), "regatta {words}: {said}");
    }

    /// The process of a worker of a program, by the choice of `pick`.
    fn pick_worker(&mut self, program: &str, pick: impl FnOnce(u64) -> u64) -> Option<String> {
        let living = self.order(&format!("pgrep -f '{program} worker'"));
        let living: Vec<&str> = living.lines().collect();
        (!living.is_empty()).then(|| living[pick(living.len() as u64) as usize].to_owned())
    }

    /// Whether there are workers of a program, and all that live have said that they are up. Where they are started together, and wait for each
    /// other before they say so, none is about to be started then.
    pub(crate) fn are_workers_up(&mut self, program: &str) -> bool {
        let names = self.order(&format!(
            "for worker in $(pgrep -f '{program} worker'); do cat /proc/$worker/comm 2>/dev/null; done"
        ));
        !names.is_empty() && names.lines().all(|name| name == UP_PROCESS_NAME)
    }

    /// Kills a worker that may be alive, by the choice of `pick`.
    pub(crate) fn kill_worker(&mut self, program: &str, pick: impl FnOnce(u64) -> u64) -> bool {
        match self.pick_worker(program, pick) {
            Some(worker) => self.order(&format!("kill -9 {worker}")).is_empty(),
            None => false,
        }
    }

    /// Kills everything on a host.
    pub(crate) fn kill_host(&mut self, host: u64) {
        self.order(&format!("ip netns pids h{host} | xargs -r kill -9"));
    }

    /// A host that was struck is one of the machine's again, which has so many hosts then, all of which answer.
    pub(crate) fn bring_back(&mut self, host: u32, name: &str, all: u32) {
        let regatta = command().display().to_string();
        let without = all - 1;
        let said = self.order(&format!(
            r#"{SEES}
            regatta={regatta}
            ip link set v{host} master bridge
            (sees h0 '"known":{without},' && {ON_FIRST} $regatta add --connect-timeout=60 {name} >/dev/null && sees h0 '"known":{all},.*"seen":{all},' '"cores":null')"#
        ));
        assert!(said.is_empty(), "{name} does not come back: {said}");
    }

    /// Starts a server of ssh on a host; a folder with a command `ssh` that knows it by the host's name.
    pub(crate) fn serve_ssh(&mut self, host: u32) -> &'static str {
        let (name, address) = (format!("h{host}"), format!("10.78.0.{}", host + 1));
        let said = self.order(&format!(
            r#"set -e
            PATH=$PATH:/usr/sbin:/sbin
            mkdir -p /run/sshd /run/ssh
            cd /run/ssh
            for key in server user; do ssh-keygen -q -t ed25519 -N '' -f $key; done
            printf '%s\n' 'ListenAddress {address}' 'HostKey /run/ssh/server' 'PidFile none' 'UsePAM no' 'StrictModes no'                 'AuthorizedKeysFile /run/ssh/user.pub' 'SetEnv XDG_RUNTIME_DIR=/run/user.{name}' >sshd.conf
            echo "{address} $(cat server.pub)" >known-hosts
            printf '%s\n' 'Host {name}' 'HostName {address}' 'IdentityFile /run/ssh/user' 'IdentitiesOnly yes'                 'UserKnownHostsFile /run/ssh/known-hosts' 'GlobalKnownHostsFile none' 'StrictHostKeyChecking yes' >ssh.conf
            printf '#!/bin/sh\nexec %s -F /run/ssh/ssh.conf "$@"\n' "$(command -v ssh)" >ssh
            chmod +x ssh
            ip netns exec {name} "$(command -v sshd)" -f /run/ssh/sshd.conf
            cd /
            set +e"#
        ));
        assert!(said.is_empty(), "no server of ssh: {said}");
        "/run/ssh"
    }

    /// Ends all that runs on a host, and returns when it has ended.
    pub(crate) fn end_all(&mut self, host: u32) {
        let said = self.order(&format!(
            "for pid in $(ip netns pids h{host}); do kill $pid; tail --pid=$pid -f /dev/null; done"
        ));
        assert!(said.is_empty(), "h{host}: {said}");
    }

    /// Runs `begin`, and after this time `end`, beside all else. The time is how long a fault lasts, and nobody waits for it.
    /// `faults` is the shell's variable for its process.
    fn for_a_while(&mut self, faults: &str, begin: &str, time: Duration, end: &str) {
        self.order(&format!(
            "{{ {begin}; sleep {}; {end}; }} >/dev/null 2>&1 & {faults}=\"${faults} $!\"",
            time.as_secs_f64()
        ));
    }

    /// Nothing passes from or to a host for so long.
    pub(crate) fn cut(&mut self, host: u64, time: Duration) {
        let begin = format!("ip link set v{host} nomaster");
        let end = format!("ip link set v{host} master bridge");
        self.await_silences();
        self.for_a_while("silences", &begin, time, &end);
    }

    /// Nothing passes between two hosts for so long; both reach all others.
    pub(crate) fn cut_pair(&mut self, one: u64, other: u64, time: Duration) {
        let address = |host| format!("10.78.0.{}", host + 1);
        let table = format!("apart{other}");
        let on_one = format!("ip netns exec h{one} nft");
        let begin = format!(
            "{on_one} 'add table ip {table}; add chain ip {table} out {{ type filter hook output priority 0; }}; \
             add chain ip {table} in {{ type filter hook input priority 0; }}; \
             add rule ip {table} out ip daddr {to} drop; add rule ip {table} in ip saddr {to} drop'",
            to = address(other)
        );
        self.for_a_while(
            "faults",
            &begin,
            time,
            &format!("{on_one} 'delete table ip {table}'"),
        );
    }

    /// The link of a host goes down and comes up some times.
    pub(crate) fn flap(&mut self, host: u64, times: u64, pause: Duration) {
        self.await_silences();
        let mut script = String::new();
        for state in ["down", "up"].repeat(times as usize) {
            let pause = pause.as_secs_f64();
            script += &format!("ip -n h{host} link set eth0 {state}; sleep {pause}; ");
        }
        self.order(&format!(
            "{{ {script} }} >/dev/null 2>&1 & silences=\"$silences $!\""
        ));
    }

    /// Waits until no host is silent: two faults in a row could add up to what counts as its death.
    fn await_silences(&mut self) {
        self.order("for fault in $silences; do wait $fault; done; silences=");
    }

    /// Waits until all faults that last for a while are over: a host that is cut off from another is not added.
    pub(crate) fn calm(&mut self) {
        self.await_silences();
        self.order("for fault in $faults; do wait $fault; done; faults=");
    }

    /// A worker that may be alive does not run for so long.
    pub(crate) fn freeze_worker(
        &mut self,
        program: &str,
        pick: impl FnOnce(u64) -> u64,
        time: Duration,
    ) -> bool {
        let Some(worker) = self.pick_worker(program, pick) else {
            return false;
        };
        self.for_a_while(
            "faults",
            &format!("kill -STOP {worker}"),
            time,
            &format!("kill -CONT {worker}"),
        );
        true
    }

    /// No process of a host runs for so long.
    pub(crate) fn freeze_host(&mut self, host: u64, time: Duration) {
        let begin = format!("all=$(ip netns pids h{host}); kill -STOP $all");
        self.await_silences();
        self.for_a_while("silences", &begin, time, "kill -CONT $all");
    }

    /// Connections of a host that send something in the next moment are reset.
    pub(crate) fn reset(&mut self, host: u64) {
        let chain = "add table ip soak; add chain ip soak out { type filter hook output priority 0; }; add rule ip soak out meta l4proto tcp reject with tcp reset";
        let nft = format!("ip netns exec h{host} nft");
        self.for_a_while(
            "faults",
            &format!("{nft} '{chain}'"),
            Duration::from_millis(50),
            &format!("{nft} 'delete table ip soak'"),
        );
    }

    /// Leftovers that were not there at the start: processes, files in shared memory, sockets.
    pub(crate) fn left(&mut self) -> String {
        // One that has ended, or has only to give back its number, is not left behind: the former is a zombie, the latter has no
        // command line any more.
        let living = r"xargs -r ps -o stat=,pid=,args= -p | grep -v -e '^Z' -e '\[.*\]$' || true";
        // `regatta down` knows the end of the other hosts' daemons by their connections: a moment before their processes have ended.
        let mut left = self.order(
            "wait; for pid in $(pgrep regatta); do timeout 10 tail --pid=$pid -f /dev/null || true; done; ls -A /dev/shm; find /run/user.* -type s",
        );
        for n in 0..self.hosts {
            left += &self.order(&format!("ip netns pids h{n} | {living}"));
        }
        left + &self.order(&format!(
            "for name in regatta soak chaos reaction; do pgrep $name; done | {living}"
        ))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_up_when_the_last_one_has_said_so() {
        let mut network = Network::with(1, true);
        assert!(
            !network.are_workers_up("chaos"),
            "they may be about to come"
        );
        network.order("mkfifo /run/go /run/word /run/never");
        let begin = format!(
            r#"sh -c 'echo >/run/word
            read word </run/go
            printf {UP_PROCESS_NAME} >/proc/$$/comm
            echo >/run/word
            read word </run/never' 'chaos worker' &
            read word </run/word"#
        );
        for _ in 0..2 {
            network.order(&begin);
            assert!(!network.are_workers_up("chaos"));
            network.order("echo >/run/go; read word </run/word");
            assert!(network.are_workers_up("chaos"));
        }
        assert!(network.kill_worker("chaos", |_| 0));
    }
}
