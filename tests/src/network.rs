//! Hosts with a virtual machine (see [`crate::lan`]), and a shell beside them that executes orders. All end when the
//! shell does.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::command;
use crate::lan::{APART, AS_ROOT, SEES, make_hosts};
use crate::needs;

/// Line that marks the end of the shell's output for one order.
const MARK: &str = "---- done";
/// Prefix of a command that runs on the first host. The hosts share all files, so each has its own folder for the
/// socket of its daemon.
pub(crate) const ON_FIRST: &str = "ip netns exec h0 env XDG_RUNTIME_DIR=/run/user.h0 REGATTA_RSH='ip netns exec {host} env XDG_RUNTIME_DIR=/run/user.{host}'";
/// Time limit for the end of a fleet after its running time.
const FLEET_END_TIMEOUT: Duration = Duration::from_secs(300);
/// Process name that a worker sets when it has started up (`tests/programs/chaos_worker.c`).
const UP_PROCESS_NAME: &str = "chaos-up";

pub(crate) struct Network {
    shell: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Receives a byte when the started command has ended.
    over: ChildStderr,
    hosts: u32,
}

impl Network {
    /// Creates the first host and `hosts` more.
    pub(crate) fn new(hosts: u32) -> Network {
        Network::with(hosts + 1, true)
    }

    /// Creates `hosts` hosts. `pretend` maps the user to root, which is enough for everything except an ssh server.
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

    /// Has the shell execute a script. Returns its output.
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

    /// Starts the command under test.
    pub(crate) fn start(&mut self, line: &str) {
        self.order(&format!(
            "{{ {line} </dev/null >/run/said 2>&1; echo $? >/run/status; echo; }} 1>&3 &"
        ));
    }

    /// Starts a fleet and waits until its captain reports that it has begun (`tests/programs/fleet.c`). If a host were
    /// lost earlier, the command would fail. If the fleet ends at once, [`Network::outcome`] tells why.
    pub(crate) fn start_fleet(&mut self, line: &str) {
        self.order("mkfifo /run/begun");
        self.start(line);
        self.order("timeout 120 cat /run/begun");
    }

    /// Waits until the started command has ended, at most until `until`. Returns whether it has ended.
    pub(crate) fn is_over(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a short time");
        poll(
            &mut [PollFd::from_borrowed_fd(self.over.as_fd(), PollFlags::IN)],
            Some(&left),
        )
        .is_ok_and(|ready| ready > 0)
    }

    /// Waits for the end of the started command. Returns its status and its output.
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

    /// Runs a `regatta` command about the virtual machine on the first host, and checks that it succeeds.
    pub(crate) fn regatta(&mut self, words: &str) {
        let said = self.order(&format!(
            "{ON_FIRST} {} {words} >/run/answer 2>&1 || cat /run/answer",
            command().display()
        ));
        assert!(said.is_empty(), "regatta {words}: {said}");
    }

    /// Returns the PID of a worker of `program`, selected by `pick`.
    fn pick_worker(&mut self, program: &str, pick: impl FnOnce(u64) -> u64) -> Option<String> {
        let living = self.order(&format!("pgrep -f '{program} worker'"));
        let living: Vec<&str> = living.lines().collect();
        (!living.is_empty()).then(|| living[pick(living.len() as u64) as usize].to_owned())
    }

    /// Returns whether workers of a program exist and all living ones have started up. Workers that start together wait
    /// for each other before they report this, so no other worker is about to start then.
    pub(crate) fn are_workers_up(&mut self, program: &str) -> bool {
        let names = self.order(&format!(
            "for worker in $(pgrep -f '{program} worker'); do cat /proc/$worker/comm 2>/dev/null; done"
        ));
        !names.is_empty() && names.lines().all(|name| name == UP_PROCESS_NAME)
    }

    /// Kills the worker selected by `pick`, unless it has already ended.
    pub(crate) fn kill_worker(&mut self, program: &str, pick: impl FnOnce(u64) -> u64) -> bool {
        match self.pick_worker(program, pick) {
            Some(worker) => self.order(&format!("kill -9 {worker}")).is_empty(),
            None => false,
        }
    }

    /// Kills all processes on a host.
    pub(crate) fn kill_host(&mut self, host: u64) {
        self.order(&format!("ip netns pids h{host} | xargs -r kill -9"));
    }

    /// Adds a host again that was struck, and waits until the machine has `all` hosts, all of which answer.
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

    /// Starts an ssh server on a host. Returns a folder with a command `ssh` that reaches it by the host's name.
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

    /// Kills all processes on a host, and returns when they have ended.
    pub(crate) fn end_all(&mut self, host: u32) {
        let said = self.order(&format!(
            "for pid in $(ip netns pids h{host}); do kill $pid; tail --pid=$pid -f /dev/null; done"
        ));
        assert!(said.is_empty(), "h{host}: {said}");
    }

    /// Runs `begin` in the background, and `end` after `time`: the duration of a fault. The caller does not wait.
    /// `faults` is the shell variable that collects the background processes.
    fn for_a_while(&mut self, faults: &str, begin: &str, time: Duration, end: &str) {
        self.order(&format!(
            "{{ {begin}; sleep {}; {end}; }} >/dev/null 2>&1 & {faults}=\"${faults} $!\"",
            time.as_secs_f64()
        ));
    }

    /// Cuts a host off from the network for this time.
    pub(crate) fn cut(&mut self, host: u64, time: Duration) {
        let begin = format!("ip link set v{host} nomaster");
        let end = format!("ip link set v{host} master bridge");
        self.await_silences();
        self.for_a_while("silences", &begin, time, &end);
    }

    /// Blocks traffic between two hosts for this time. Both still reach all others.
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

    /// Takes the link of a host down and up several times.
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

    /// Waits until no host is cut off: two outages in a row could last long enough that the host counts as lost.
    fn await_silences(&mut self) {
        self.order("for fault in $silences; do wait $fault; done; silences=");
    }

    /// Waits until all lasting faults are over. A host cannot be added while it is cut off from another.
    pub(crate) fn calm(&mut self) {
        self.await_silences();
        self.order("for fault in $faults; do wait $fault; done; faults=");
    }

    /// Stops the worker selected by `pick` for this time, unless it has already ended.
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

    /// Stops all processes of a host for this time.
    pub(crate) fn freeze_host(&mut self, host: u64, time: Duration) {
        let begin = format!("all=$(ip netns pids h{host}); kill -STOP $all");
        self.await_silences();
        self.for_a_while("silences", &begin, time, "kill -CONT $all");
    }

    /// Resets those connections of a host that send something within the next moment.
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

    /// Returns what was not there at the start: processes, files in shared memory, sockets.
    pub(crate) fn left(&mut self) -> String {
        // Ignores processes that have ended but were not reaped (zombies, `Z`) and those that are being torn down,
        // which no longer have a command line (`[...]`).
        let living = r"xargs -r ps -o stat=,pid=,args= -p | grep -v -e '^Z' -e '\[.*\]$' || true";
        // `regatta down` detects the end of the other hosts' daemons by their connections, which is slightly before the
        // processes have ended.
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
