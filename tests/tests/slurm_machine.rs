//! A virtual machine inside a real Slurm allocation: `regatta up` without hosts.

use regatta_tests::{Cluster, command, program};

/// Runs a command. Returns its status and its output.
fn told(cluster: &Cluster, words: &[&str]) -> (i32, String) {
    let output = cluster.run(words);
    let text = [output.stdout, output.stderr].concat();
    let status = output.status.code().unwrap_or(-1);
    (status, String::from_utf8_lossy(&text).into_owned())
}

/// Returns a shell command line in which `regatta` is the command under test.
fn shell(commands: &str) -> String {
    format!(
        "PATH={}:$PATH\n{commands}",
        command().parent().expect("a folder").display()
    )
}

/// Waits until all processes of a virtual machine have ended. Panics with those that do not.
#[track_caller]
fn nothing_is_left(cluster: &Cluster) {
    let wait =
        "for pid in $(pgrep '^regatta-(daemon|keeper)'); do tail --pid=$pid -f /dev/null; done";
    let (status, _) = told(cluster, &["timeout", "60", "sh", "-c", wait]);
    let (_, left) = told(cluster, &["pgrep", "-al", "^regatta-"]);
    assert_eq!((status, left.as_str()), (0, ""));
}

/// Waits until a job's output contains `what`.
fn until_said(cluster: &Cluster, file: &str, what: &str) {
    let wait = format!("tail -n +1 -F {file} 2>/dev/null | grep -q -m 1 '{what}'");
    let (status, _) = told(cluster, &["timeout", "90", "sh", "-c", &wait]);
    let (_, said) = told(cluster, &["cat", file]);
    assert_eq!(status, 0, "{said}");
}

#[test]
fn a_machine_of_the_nodes_ends_with_the_allocation() {
    let cluster = Cluster::start("machine", 3);
    // The job is requested from a host that is not a node and takes no tasks.
    let traffic = program("traffic").display().to_string();
    let commands = shell(&format!(
        "set -e
        regatta up
        regatta hosts
        regatta run --label sh -c 'echo runs on $SLURMD_NODENAME'
        regatta run -n 3 {traffic} random 91 1
        regatta remove node2
        regatta run --label sh -c 'echo still on $SLURMD_NODENAME'"
    ));
    let words = ["salloc", "--quiet", "-N3", "-n3", "sh", "-c", &commands];
    let (status, said) = told(&cluster, &words);
    assert_eq!(status, 0, "{said}");
    for part in [
        "and 3 other hosts",
        "runs on node1",
        "runs on node2",
        "runs on node3",
        "still on node1",
        "still on node3",
    ] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
    assert_eq!(said.matches("runs on").count(), 3, "{said}");
    assert!(!said.contains("still on node2"), "{said}");
    nothing_is_left(&cluster);

    // A machine that is shut down properly leaves no job steps, and the Slurm job goes on.
    let commands = shell(
        "set -e
        regatta up
        regatta down
        for pid in $(pgrep '^regatta-keeper'); do tail --pid=$pid -f /dev/null; done
        squeue --steps --noheader --format=%i
        srun -N3 -n3 true",
    );
    let words = ["salloc", "--quiet", "-N3", "-n3", "sh", "-c", &commands];
    let (status, said) = told(&cluster, &words);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("is down"), "{said}");
    nothing_is_left(&cluster);
}

#[test]
fn a_machine_in_a_batch_job_ends_when_the_job_is_cancelled() {
    let cluster = Cluster::start("batch", 2);
    for (options, hosts, lines) in [
        (["-N2", "-n2"], "and 1 other host", 2),
        (["-N1", "-n2"], "and 0 other hosts", 2),
    ] {
        let wrap = shell(
            "set -e
            regatta up
            regatta run --label sh -c 'echo runs on $SLURMD_NODENAME'
            echo all has run
            exec tail -f /dev/null",
        );
        let wrap = format!("--wrap={wrap}");
        let words = [
            &["sbatch", "--parsable", "-o", "/run/said"][..],
            &options,
            &[&wrap],
        ]
        .concat();
        let (status, job) = told(&cluster, &words);
        assert_eq!(status, 0, "{job}");
        until_said(&cluster, "/run/said", "all has run");
        let (_, said) = told(&cluster, &["cat", "/run/said"]);
        assert!(said.contains(hosts), "{said}");
        assert_eq!(said.matches("runs on node").count(), lines, "{said}");
        let (status, refused) = told(&cluster, &["scancel", "--full", job.trim()]);
        assert_eq!(status, 0, "{refused}");
        nothing_is_left(&cluster);
        told(&cluster, &["rm", "/run/said"]);
    }
}

#[test]
fn a_machine_per_task_is_refused() {
    let regatta = command().display().to_string();
    let words = ["srun", "-n2", &regatta, "up"];
    let (status, said) = told(Cluster::shared(), &words);
    assert_eq!(status, 2, "{said}");
    assert!(
        said.contains("srun has started `regatta up` 2 times"),
        "{said}"
    );
}
