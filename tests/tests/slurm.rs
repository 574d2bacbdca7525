//! Jobs under Slurm, with a real slurmctld and a real slurmd per node.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use regatta_tests::{Cluster, Job, Running, command, executable, look_until, program, slowness};

/// Runs a command. Returns its status, standard output and standard error.
fn told(cluster: &Cluster, words: &[&str]) -> (i32, String, String) {
    let output = cluster.run(words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Returns the command line that runs a command in an allocation.
fn salloc<'a>(options: &[&'a str], words: &[&'a str]) -> Vec<&'a str> {
    [&["salloc", "--quiet"], options, words].concat()
}

/// Returns the command line of `regatta run` with these arguments.
fn regatta_run<'a>(command: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&[command, "run"], words].concat()
}

/// Creates a job that `srun` starts with these options.
fn srun(options: &[&str], program: &str, arguments: &[&str]) -> Job {
    srun_after("", options, program, arguments)
}

/// Like `srun`, but a shell in each task runs `commands` before the program. If they end with `!`, srun does not see
/// the program's status: after a killed task, srun may drop the last output of the others.
fn srun_after(commands: &str, options: &[&str], program: &str, arguments: &[&str]) -> Job {
    let script = match commands.strip_suffix('!') {
        Some(commands) => format!("{commands}\n\"$@\" || :"),
        None => format!("{commands}\nexec \"$@\""),
    };
    let words = [&["srun", "--quiet"], options, &["sh", "-c", &script, "sh"]].concat();
    let job = Job::alone(program, arguments).limit(65);
    Cluster::shared().job(&words, job)
}

fn kill(pid: &str) {
    let (status, _, said) = told(Cluster::shared(), &["kill", "-9", pid]);
    assert_eq!(status, 0, "{said}");
}

/* ---- regatta run inside an allocation ------------------------------------------------------ */

#[test]
fn regatta_run_takes_the_nodes_and_the_tasks_of_the_allocation() {
    let show = "echo node $SLURMD_NODENAME cores $(nproc)";
    let regatta = command().display().to_string();
    let run = regatta_run(&regatta, &["--label", "sh", "-c", show]);
    for (options, expected) in [
        (
            &["-N2", "-n3", "-wnode1,node2"][..],
            &["[0] node node1", "[1] node node1", "[2] node node2"][..],
        ),
        (
            &["-N3"],
            &["[0] node node1", "[1] node node2", "[2] node node3"],
        ),
        (
            &["-N1", "-n2", "-wnode1"],
            &["[0] node node1", "[1] node node1"],
        ),
        (
            &["-N2", "--ntasks-per-node=1", "-c2", "-wnode2,node3"],
            &["[0] node node2", "[1] node node3"],
        ),
    ] {
        let (status, output, said) = told(Cluster::shared(), &salloc(options, &run));
        let mut lines: Vec<&str> = output.lines().collect();
        lines.sort_unstable();
        assert_eq!(status, 0, "{options:?} {said}");
        assert_eq!(lines.len(), expected.len(), "{options:?} {output} {said}");
        for (line, start) in lines.iter().zip(expected) {
            assert!(line.starts_with(start), "{options:?} {output}");
        }
    }
}

#[test]
fn the_processors_of_the_job_are_those_of_its_tasks() {
    let regatta = command().display().to_string();
    for (options, cores) in [(&["-N2", "-n2", "-c1"], "1"), (&["-N2", "-n2", "-c2"], "2")] {
        let run = regatta_run(&regatta, &["--bind", "none", "nproc"]);
        let (status, output, said) = told(Cluster::shared(), &salloc(options, &run));
        assert_eq!(
            (status, output),
            (0, format!("{cores}\n{cores}\n")),
            "{said}"
        );
    }
}

#[test]
fn traffic_and_collectives_under_regatta_run() {
    let cluster = Cluster::shared();
    let job = Job::new(4, "traffic", &["random", "81", "2"]).limit(65);
    cluster
        .job(&["salloc", "--quiet", "-N2", "-n4"], job)
        .run()
        .passed();
    let job = Job::new(5, "traffic_crowd", &["collectives", "5", "25"]).limit(65);
    cluster
        .job(&["salloc", "--quiet", "-N3", "-n5"], job)
        .run()
        .passed();
}

#[test]
fn more_tasks_than_the_allocation_has_room_for_must_be_asked_for() {
    let regatta = command().display().to_string();
    let run = regatta_run(&regatta, &["-n", "5", "true"]);
    let (status, _, said) = told(Cluster::shared(), &salloc(&["-N2", "-n4"], &run));
    assert_eq!(status, 2, "{said}");
    assert!(
        said.contains("has room for 4 tasks on 2 nodes, and -n 5 asks for more"),
        "{said}"
    );
    assert!(said.contains("--oversubscribe"), "{said}");
    let job = Job::new(5, "traffic", &["random", "82", "1"])
        .option("--oversubscribe")
        .limit(65);
    Cluster::shared()
        .job(&["salloc", "--quiet", "-N2", "-n4"], job)
        .run()
        .passed();
}

#[test]
fn without_srun_there_is_a_sentence() {
    let empty = std::env::temp_dir().join(format!("rg-empty-{}", std::process::id()));
    std::fs::create_dir_all(&empty).expect("a folder");
    let path = format!("PATH={}", empty.display());
    let regatta = command().display().to_string();
    let run = [
        &["/usr/bin/env", &path],
        &regatta_run(&regatta, &["/bin/true"])[..],
    ]
    .concat();
    let (status, _, said) = told(Cluster::shared(), &salloc(&["-N2"], &run));
    let _ = std::fs::remove_dir(&empty);
    assert_eq!(status, 125, "{said}");
    assert!(
        said.contains("srun, which reaches the nodes, is not in PATH"),
        "{said}"
    );
}

#[test]
fn the_doctor_says_in_which_job_it_is() {
    let regatta = command().display().to_string();
    let words = salloc(&["-N2", "-n4"], &[&regatta, "doctor"]);
    let (_, report, _) = told(Cluster::shared(), &words);
    let plain = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        plain.contains("with room for 4 tasks on 2 nodes"),
        "{report}"
    );
}

#[test]
fn a_launcher_per_task_is_refused() {
    let regatta = command().display().to_string();
    let run = [&["srun", "-n2"], &regatta_run(&regatta, &["true"])[..]].concat();
    let (status, _, said) = told(Cluster::shared(), &run);
    assert_eq!(status, 2, "{said}");
    assert!(
        said.contains("srun has started `regatta run` 2 times"),
        "{said}"
    );
}

#[test]
fn a_node_that_is_down_is_named() {
    let cluster = Cluster::start("down", 2);
    let regatta = command().display().to_string();
    let end = "kill $(cat $(dirname $SLURM_CONF)/slurmd-node2.pid); exec \"$@\"";
    let run = [
        &["sh", "-c", end, "sh"],
        &regatta_run(&regatta, &["true"])[..],
    ]
    .concat();
    let (status, _, said) = told(&cluster, &salloc(&["-N2"], &run));
    assert_eq!(status, 125, "{said}");
    assert!(
        said.contains("no agent could be started on the host node2")
            && said.contains("srun: error"),
        "{said}"
    );
}

/// Waits until `tasks` tasks are blocked. Returns the process of rank 1.
fn victim(job: &mut Running, tasks: u32) -> String {
    let all: Vec<Vec<String>> = (0..tasks).map(|_| job.read_words("blocked ")).collect();
    let found = all.iter().find(|words| words[0] == "1");
    found.expect("rank 1")[1].clone()
}

#[test]
fn scancel_leaves_nothing_behind() {
    for words in [
        &["salloc", "--job-name=cancelled-run", "-N2", "-n3"][..],
        &["srun", "--job-name=cancelled-step", "-N2", "-n3"],
    ] {
        let job = match words[0] {
            "salloc" => Job::new(3, "death", &["receive-exact"]),
            _ => Job::alone("death", &["receive-exact"]),
        };
        let mut job = Cluster::shared().job(words, job).start();
        victim(&mut job, 3);
        let name = words[1].replace("--job-name", "--name");
        let (status, _, said) = told(Cluster::shared(), &["scancel", &name]);
        assert_eq!(status, 0, "{said}");
        // Checks that nothing is left behind.
        let ended = job.end();
        assert_ne!(ended.status, 0, "{}", ended.story());
    }
}

/* ---- srun ./program ------------------------------------------------------------------------ */

#[test]
fn tasks_on_one_node_become_a_job() {
    srun(&["-N1", "-n2"], "traffic", &["random", "83", "2"])
        .run()
        .passed();
    srun(
        &["-N1", "-n6", "--overcommit"],
        "traffic_crowd",
        &["collectives", "6", "25"],
    )
    .run()
    .passed();
}

#[test]
fn tasks_on_several_nodes_become_a_job() {
    srun(&["-N2", "-n4"], "traffic", &["random", "84", "2"])
        .run()
        .passed();
    srun(
        &["-N3", "-n6"],
        "traffic_crowd",
        &["collectives", "6", "25"],
    )
    .run()
    .passed();
    // Ranks are distributed cyclically over the nodes, and connections are authenticated but not encrypted.
    srun(
        &["-N3", "-n6", "--distribution=cyclic"],
        "traffic",
        &["random", "85", "2"],
    )
    .env("REGATTA_TRUSTED_NETWORK", "1")
    .run()
    .passed();
}

/// With these values of `--mpi`, Slurm sets the variables by which programs of PMI detect their launcher.
#[test]
fn tasks_that_srun_starts_as_programs_of_pmi_become_a_job() {
    for mpi in ["--mpi=pmi2", "--mpi=cray_shasta"] {
        let tasks = ["-N2", "-n4", mpi];
        srun(&tasks, "traffic", &["random", "86", "1"])
            .run()
            .passed();
        let alone = ["-n1", mpi];
        srun(&alone, "life", &["alone"]).run().passed();
    }
}

#[test]
fn steps_of_one_allocation_at_the_same_time_are_jobs_of_their_own() {
    let steps =
        "for step in 1 2 3; do srun --quiet --overlap -N2 -n4 \"$@\" & all=\"$all $!\"; done
for step in $all; do wait $step || exit 1; done";
    let around = ["salloc", "--quiet", "-N2", "-n4", "sh", "-c", steps, "sh"];
    let job = Job::alone("traffic", &["random", "86", "1"]).limit(65);
    Cluster::shared().job(&around, job).run().passed();
}

#[test]
fn one_job_after_another_in_one_step() {
    let twice = [
        "srun",
        "--quiet",
        "-N2",
        "-n4",
        "sh",
        "-c",
        "\"$@\" && \"$@\"",
        "sh",
    ];
    let job = Job::alone("traffic", &["random", "87", "1"]).limit(65);
    Cluster::shared().job(&twice, job).run().passed();
}

#[test]
fn a_killed_task_is_told_at_once_and_survived() {
    for options in [
        &["-N1", "-n3", "--overcommit"][..],
        &["-N3", "-n3"],
        &["-N2", "-n4"],
    ] {
        for scenario in [&["receive-exact"][..], &["collective", "allreduce"]] {
            let tasks: u32 = options[1][2..].parse().expect("a number");
            let mut job = srun_after("!", options, "death", scenario).start();
            let victim = victim(&mut job, tasks);
            let slow = slowness();
            let killed = Instant::now();
            kill(&victim);
            for _ in 1..tasks {
                job.read_words("got ");
            }
            let told = killed.elapsed();
            assert!(
                told < Duration::from_secs(1).mul_f64(slow.max(slowness())),
                "{options:?}: told after {told:?}"
            );
            let ended = job.end().sound();
            ended.named_the_dead(tasks);
        }
    }
}

/// Returns the guardian process of the first node of the job with this name, if it runs.
fn guardians(job: &str) -> Vec<String> {
    let script = "for process in /proc/[0-9]*; do
    [ \"$(cat $process/comm 2>/dev/null)\" = regatta-guard ] || continue
    tr '\\0' '\\n' <$process/environ | grep -qx \"SLURM_JOB_NAME=$1\" || continue
    tr '\\0' '\\n' <$process/environ | grep -qx SLURM_NODEID=0 && echo ${process#/proc/}
done";
    let (_, found, _) = told(Cluster::shared(), &["sh", "-c", script, "sh", job]);
    found.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn tasks_fall_with_their_guardian_and_others_hear_of_it() {
    let mut job = srun_after(
        "!",
        &["-N2", "-n4", "--job-name=falling"],
        "death",
        &["receive-exact"],
    )
    .start();
    victim(&mut job, 4);
    // Tasks 0 and 1 are on the first node.
    guardians("falling")
        .iter()
        .for_each(|guardian| kill(guardian));
    let ended = job.end();
    for rank in [2, 3] {
        let named = format!("got {rank} -7 task 1");
        assert!(
            ended.text.contains(&named),
            "no {named:?} in\n{}",
            ended.story()
        );
    }
    assert!(
        !ended.text.contains("got 0") && !ended.text.contains("HUNG 0"),
        "{}",
        ended.story()
    );
}

/// A file that is removed when dropped.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rg-{}-{name}", std::process::id()));
        Self(executable::script(&path, text, 0o755))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs tasks of several programs, as `srun --multi-prog` starts them, and returns their output.
fn several(name: &str, options: &[&str], lines: &str) -> String {
    let file = File::new(name, lines);
    let path = file.0.display().to_string();
    let words = [&["srun", "--quiet"], options, &["--multi-prog", &path]].concat();
    let (_, output, said) = told(Cluster::shared(), &words);
    output + &said
}

#[test]
fn programs_of_different_versions_are_told_apart() {
    let (ours, other) = (program("slurm_say"), program("slurm_stranger"));
    let lines = format!("0 {}\n1 {}\n", ours.display(), other.display());
    let text = several("versions", &["-N1", "-n2"], &lines);
    // Both tasks must be told that their versions differ.
    assert!(
        text.contains("stranger 1 the tasks of this step use different versions"),
        "{text}"
    );
    assert_eq!(
        text.matches("use different versions of Regatta").count(),
        2,
        "{text}"
    );
    assert!(text.contains("another 1.99"), "{text}");
}

/* ---- the command that is the guardian ------------------------------------------------------- */

#[test]
fn nothing_of_the_task_that_has_started_it_lives_on_in_a_guardian() {
    let file = File::new("inherited", "kept open by every task");
    let path = file.0.display().to_string();
    let mut job = srun_after(
        &format!("exec 7<{path}!"),
        &["-N1", "-n2", "--job-name=apart"],
        "death",
        &["receive-exact"],
    )
    .start();
    let victim = victim(&mut job, 2);
    let files = |process: &str| {
        let words = [
            "sh",
            "-c",
            "readlink /proc/$1/fd/* /proc/$1/exe /proc/$1/cwd",
            "sh",
            process,
        ];
        told(Cluster::shared(), &words).1
    };
    assert!(files(&victim).contains(&path), "the tasks have the file");
    let guardians = guardians("apart");
    assert!(!guardians.is_empty(), "no guardian was found");
    for guardian in guardians {
        let has = files(&guardian);
        assert!(!has.contains(&path), "{has}");
        let regatta = command().canonicalize().expect("the command");
        assert!(has.contains(&regatta.display().to_string()), "{has}");
    }
    kill(&victim);
    job.read_words("got ");
    job.end();
}

#[test]
fn tasks_that_ignore_the_ends_of_their_children_get_a_guardian() {
    srun_after(
        "trap '' CHLD",
        &["-N2", "-n2"],
        "traffic",
        &["random", "90", "1"],
    )
    .run()
    .passed();
}

/// A folder with a copy of the library. A test puts its own script there in place of the command.
struct Apart(std::path::PathBuf);

impl Apart {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rg-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        let library = command().with_file_name("libregatta.so");
        std::fs::copy(library, path.join("libregatta.so.0")).expect("the library");
        Self(path)
    }

    /// Puts this script beside the library, under the command's name.
    fn with_command(self, script: &str) -> Self {
        let path = self.0.join("regatta");
        executable::script(&path, &format!("#!/bin/sh\n{script}\n"), 0o755);
        self
    }

    /// Starts two tasks with this library. Both must be refused with this code and this text.
    fn refused(&self, code: i32, sentence: &str) {
        let places = format!(
            "export LD_LIBRARY_PATH={} PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            self.0.display()
        );
        let ended = srun_after(&places, &["-N1", "-n2"], "slurm_say", &[]).run();
        assert_ne!(ended.status, 0);
        let refused = format!("refused {code} ");
        let lines = ended.text.lines();
        let lines = lines.filter(|line| line.contains(&refused) && line.contains(sentence));
        assert_eq!(lines.count(), 2, "{}", ended.story());
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn without_the_command_that_is_said_with_where_it_was_looked_for() {
    let apart = Apart::new("missing");
    apart.refused(
        -14,
        "the command regatta was not found beside the library or in PATH",
    );
    // A command that others could have replaced counts as missing, and the error names it.
    let apart = apart.with_command("echo 1.99");
    std::fs::set_permissions(&apart.0, PermissionsExt::from_mode(0o777)).expect("its mode");
    apart.refused(-14, "/regatta was not started");
}

#[test]
fn a_command_of_another_version_is_named_with_both_versions() {
    let apart = Apart::new("other").with_command("echo 1.99; echo started");
    apart.refused(
        -15,
        "the command speaks version 1.99 of the job protocol, the library ",
    );
    let apart =
        apart.with_command("echo \"error: unrecognized subcommand 'guardian'\" >&2; exit 2");
    apart.refused(-15, "the command does not support guardians");
}

/// Ends the step when the first task fails.
const TOGETHER: &str = "--kill-on-bad-exit=1";

#[test]
fn a_task_that_never_comes_is_named() {
    for (options, absent, expected) in [
        (
            &["-N1", "-n3", "--overcommit"][..],
            &["1"][..],
            "only 2 of the 3 tasks",
        ),
        (
            &["-N2", "-n4"],
            &["2", "3"],
            "on node2 did not reach node1, where all nodes meet",
        ),
        (
            &["-N2", "-n4"],
            &["0", "1"],
            "on node2 could not reach those on node1 (at 10.78.0.1), where all nodes meet",
        ),
    ] {
        let ended = srun(
            &[&[TOGETHER, "-wnode1,node2"][..], options].concat(),
            "slurm_say",
            absent,
        )
        .env("REGATTA_JOIN_TIMEOUT", "1")
        .run();
        assert_ne!(ended.status, 0);
        ended.said(expected);
    }
}

#[test]
fn a_task_that_dies_before_all_have_come_is_named() {
    let mut job = srun(
        &[TOGETHER, "-N1", "-n3", "--overcommit", "--job-name=early"],
        "slurm_say",
        &["1"],
    )
    .start();
    let all = [job.read_words("calls "), job.read_words("calls ")];
    let second = all.iter().find(|words| words[0] == "2").expect("rank 2");
    // The guardian watches the task that has started it, and each task that has connected to it.
    look_until("the guardian knows both tasks", || {
        let guardian = guardians("early").into_iter().next()?;
        let words = ["sh", "-c", "readlink /proc/$1/fd/*", "sh", &guardian];
        let (_, files, _) = told(Cluster::shared(), &words);
        (files.matches("pidfd").count() == 3).then_some(())
    });
    kill(&second[1]);
    let words = job.read_words("refused ").join(" ");
    assert!(
        words.contains("task 2 (pid")
            && words.contains("ended before all tasks of its node had called rg_init"),
        "{words}"
    );
    job.end();
}

#[test]
fn without_munge_several_nodes_are_refused_with_another_way() {
    let folder = std::env::temp_dir().join(format!("rg-no-munge-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let _ = std::os::unix::fs::symlink("/usr/bin/scontrol", folder.join("scontrol"));
    let path = format!("PATH={}", folder.display());
    let ended = srun_after(&path, &["-N2", "-n2"], "slurm_say", &[]).run();
    assert_ne!(ended.status, 0);
    let ended =
        ended.said("`regatta run PROGRAM` inside salloc or sbatch, which does not need munge");
    assert_eq!(
        ended.text.matches("refused").count(),
        2,
        "{}",
        ended.story()
    );
    // A job on one node needs no guardian.
    srun_after(&path, &["-N1", "-n2"], "traffic", &["random", "88", "1"])
        .run()
        .passed();
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn strangers_at_the_rendezvous_port_do_not_keep_a_job_from_starting() {
    let dribble = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/dribble.py");
    let commands = format!(
        "[ \"$SLURM_NODEID\" = 0 ] || python3 {dribble} \"$SLURM_JOB_ID.$SLURM_STEP_ID\" \"$SLURM_STEP_NODELIST\""
    );
    srun_after(
        &commands,
        &["-N2", "-n2"],
        "traffic",
        &["random", "89", "1"],
    )
    .env("REGATTA_JOIN_TIMEOUT", "40")
    .run()
    .passed();
}

/// The tasks treat termination signals as in `endings.rs`. A step that Slurm ends (because a task has failed, or by
/// `scancel`) must be over soon after Slurm's KillWait, including its guardians.
#[test]
fn a_step_ends_in_time_whatever_its_tasks_do_with_signals() {
    for how in ["leaves", "ignores", "catches", "blocks", "stops", "vforks"] {
        let options = ["--kill-on-bad-exit=1", "-N2", "-n3"];
        let ended = srun(&options, "endings", &[how, "fails"]).run();
        assert_ne!(ended.status, 0, "{how}: {}", ended.story());

        let name = format!("--job-name=stays-{how}");
        let mut job = srun(&[&name, "-N2", "-n3"], "endings", &[how, "joins"]).start();
        (0..3).for_each(|_| _ = job.read_words("up "));
        let name = name.replace("--job-name", "--name");
        let (status, _, said) = told(Cluster::shared(), &["scancel", &name]);
        assert_eq!(status, 0, "{said}");
        // Only the end counts here: srun's status after scancel is Slurm's matter.
        job.end();
    }
}

#[test]
fn one_task_alone_is_a_world_of_one() {
    srun(&["-n1"], "life", &["alone"]).run().passed();
}
