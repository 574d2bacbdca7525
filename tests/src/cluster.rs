//! A real Slurm for tests: slurmctld, slurmd and munged of this system, on nodes made of network namespaces.
//!
//! All of it lives in namespaces of its own, with its files in one temporary folder, and ends with the test program. It needs
//! root, and the packages that `scripts/need test` gets; without them a test is left out.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use crate::job::Job;
use crate::lan::APART;
use crate::{needs, programs};

/// Slurm's programs and those that make the network, with the packages that have them.
const NEEDED: [(&str, &str); 6] = [
    ("slurmctld", "slurm-wlm"),
    ("slurmd", "slurm-wlm"),
    ("srun", "slurm-wlm"),
    ("munged", "munge"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
];

/// A cluster that runs.
pub struct Cluster {
    child: Child,
    /// The first process of its namespaces.
    inner: String,
    folder: PathBuf,
}

impl Cluster {
    /// The one that tests share, with three nodes of two processors each: node1, node2, node3.
    pub fn shared() -> &'static Cluster {
        check();
        static SHARED: LazyLock<Cluster> = LazyLock::new(|| Cluster::start("shared", 3));
        &SHARED
    }

    /// One of a test's own, to be broken.
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

    /// A command that enters the cluster where users work, followed by these words.
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

    /// A job that is started in the cluster by these words: those of `salloc`, or of `srun` for a job without a launcher.
    pub fn job(&self, words: &[&str], job: Job) -> Job {
        let around = self.inside(words);
        job.around(&around.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs a command in the cluster to its end.
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

/// Leaves the test out that runs, where no cluster can be.
fn check() {
    for (program, package) in NEEDED {
        needs::program(program, package);
    }
    if !rustix::process::geteuid().is_root() {
        needs::leave_out("the nodes of Slurm's tests are made by root: sudo -E make test");
    }
    needs::namespaces();
}
