//! A real Slurm cluster for tests: the system's slurmctld, slurmd and munged, on nodes that are network namespaces.
//!
//! The cluster runs in namespaces of its own, keeps its files in one temporary folder, and ends with the test program.
//! It needs root and the packages that `scripts/need test` installs. Without them the test is skipped.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use crate::job::Job;
use crate::lan::APART;
use crate::{needs, programs};

/// Programs of Slurm and programs that create the network, each with its package.
const NEEDED: [(&str, &str); 6] = [
    ("slurmctld", "slurm-wlm"),
    ("slurmd", "slurm-wlm"),
    ("srun", "slurm-wlm"),
    ("munged", "munge"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
];

/// A running cluster.
pub struct Cluster {
    child: Child,
    /// PID of the first process in the cluster's namespaces.
    inner: String,
    folder: PathBuf,
}

impl Cluster {
    /// Returns the cluster that tests share: three nodes with two processors each (node1, node2, node3).
    pub fn shared() -> &'static Cluster {
        check();
        static SHARED: LazyLock<Cluster> = LazyLock::new(|| Cluster::start("shared", 3));
        &SHARED
    }

    /// Starts a cluster for one test, which may break it.
    pub fn start(name: &str, nodes: u32) -> Cluster {
        check();
        let folder = std::env::temp_dir().join(format!("rg-slurm-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let nodes: Vec<String> = (1..=nodes).map(|number| format!("node{number}")).collect();
        let mut child = Command::new("unshare")
            .args(APART)
            .args(["sh", "-c", SCRIPT, "cluster.sh"])
            .arg(&folder)
            .args(nodes)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("unshare");
        let mut said = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        if line != "ready\n" {
            let _ = said.read_to_string(&mut line);
            panic!("the cluster of Slurm does not start:\n{line}");
        }
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let inner = std::fs::read_to_string(children).expect("/proc");
        Cluster {
            inner: inner.trim().to_owned(),
            child,
            folder,
        }
    }

    /// Returns a command that runs `words` inside the cluster's namespaces.
    fn inside(&self, words: &[&str]) -> Vec<String> {
        let conf = format!("SLURM_CONF={}/slurm.conf", self.folder.display());
        let way = [
            "nsenter",
            "--target",
            &self.inner,
            "--mount",
            "--net",
            "--pid",
            "env",
            &conf,
            "XDG_RUNTIME_DIR=/run/user.own",
        ];
        way.iter()
            .chain(words)
            .map(|&word| word.to_owned())
            .collect()
    }

    /// Wraps a job so that it is started inside the cluster by `words`: `salloc ...`, or `srun ...` for a job without a
    /// launcher.
    pub fn job(&self, words: &[&str], job: Job) -> Job {
        let around = self.inside(words);
        job.around(&around.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs a command in the cluster and waits for its end.
    pub fn run(&self, words: &[&str]) -> Output {
        let words = self.inside(words);
        Command::new(&words[0])
            .args(&words[1..])
            .env("LD_LIBRARY_PATH", programs::library())
            .stdin(Stdio::null())
            .output()
            .expect("nsenter")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const SCRIPT: &str = include_str!("cluster.sh");

/// Skips the running test if this machine cannot run a cluster.
fn check() {
    for (program, package) in NEEDED {
        needs::program(program, package);
    }
    if !rustix::process::geteuid().is_root() {
        needs::leave_out("the nodes of Slurm's tests are made by root: sudo -E make test");
    }
    needs::namespaces();
}
