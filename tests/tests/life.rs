//! Calls before initialization and after finalization, and initializations that fail (`tests/programs/life.c`).

use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;

use regatta_segment::job::VERSION as SPOKEN;
use regatta_tests::{Ended, Job, skip};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::Uid;

/// Error codes: a launcher that does not follow the protocol, and a launcher of another version.
const LAUNCHER: &str = "-14";
const VERSION: &str = "-15";

#[test]
fn calls_outside_of_a_jobs_life_are_refused() {
    Job::new(2, "life", &["outside"]).run().passed();
    Job::alone("life", &["outside"]).run().passed();
}

#[test]
fn a_program_by_itself_is_a_world_of_one() {
    Job::alone("life", &["alone"]).run().passed();
    Job::new(1, "life", &["alone"]).run().passed();
}

#[test]
fn a_child_that_inherits_is_a_world_of_its_own() {
    Job::new(2, "life", &["parent"]).run().passed();
}

#[test]
fn a_forked_child_can_call_nothing_and_harms_nobody() {
    Job::new(2, "life", &["forked"]).run().passed();
}

#[test]
fn a_task_whose_forked_child_has_its_connections_sleeps_when_one_of_them_has_ended() {
    for trusted in [false, true] {
        let job = Job::new(3, "life", &["child-that-stays"]).across("alpha:1,beta:1,gamma:1");
        let job = if trusted {
            job.option("--trusted-network")
        } else {
            job
        };
        job.run().passed();
    }
}

#[test]
fn groups_that_come_and_go_use_up_no_memory() {
    Job::new(2, "life", &["groups", "20000"]).run().passed();
    Job::new(3, "life", &["groups", "1500"]).run().passed();
}

#[test]
fn all_that_a_task_has_sent_arrives_though_it_leaves() {
    // These sizes use ring lines, payload buffers and streams. A sender may fill a stream long before its offer has
    // been sent.
    for bytes in ["8", "3000", "40000", "1000000"] {
        for way in ["send", "isend", "bsend", "loan"] {
            let job = Job::new(2, "life", &["last-sends", way, bytes, "0"]);
            job.run().passed();
        }
    }
}

#[test]
fn loans_that_found_no_room_wait_for_a_receiver_that_computes() {
    Job::new(2, "life", &["last-sends", "loan", "3000", "6"])
        .run()
        .passed();
}

/// Runs a job in which the receiver's buffer is full of other messages when it is notified that the loan's sender has
/// left or died.
fn a_loan_is_read_late(how: &str) -> Ended {
    Job::new(3, "life", &["late-loan", how])
        .env("REGATTA_BUFFER", "64K")
        .option("--on-failure=continue")
        .run()
}

#[test]
fn a_loan_that_its_receiver_has_not_read_outlives_a_sender_that_leaves() {
    a_loan_is_read_late("leaves").passed();
}

#[test]
fn a_loan_that_its_receiver_has_not_read_outlives_a_sender_that_dies() {
    a_loan_is_read_late("dies").ended_with(128 + 9);
}

/// A socket of another user has the name of the job's socket. The task must not join through it, and must send nothing
/// to it. Only root can listen as another user.
#[test]
fn a_job_at_whose_socket_another_user_listens_is_not_entered_and_nothing_is_said_there() {
    const OTHER: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        skip("only root can listen as another user");
        return;
    }
    let folder = std::env::temp_dir().join(format!("life-stranger-{}", std::process::id()));
    let ours = folder.join("regatta");
    let mut private = std::fs::DirBuilder::new();
    private
        .recursive(true)
        .mode(0o700)
        .create(&ours)
        .expect("a directory");
    let address = SocketAddrUnix::new(ours.join("j.job.socket")).expect("an address");
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
    let socket = socket.expect("a socket");
    rustix::net::bind(&socket, &address).expect("a free name");
    // The kernel records the user that calls listen(), and on Linux each thread has its own user ID.
    let listens = std::thread::spawn(move || {
        let user = Uid::from_raw(OTHER);
        rustix::thread::set_thread_res_uid(user, user, user).expect("another user");
        rustix::net::listen(&socket, 1).expect("a socket");
        UnixListener::from(socket)
    });
    let stranger = listens.join().expect("its end");
    let directory = folder.display().to_string();
    Job::alone("life", &["enter-refused", "j", "the user 65534"])
        .env("XDG_RUNTIME_DIR", &directory)
        .run()
        .passed();
    let (mut caller, _) = stranger.accept().expect("a call");
    let mut said = Vec::new();
    caller.read_to_end(&mut said).expect("the end of the call");
    assert_eq!(said, b"");
    std::fs::remove_dir_all(&folder).expect("it is ours");
}

#[test]
fn join_tokens_that_make_no_sense() {
    for text in [
        "",
        "x",
        "V",
        "V:2",
        "V:0:0",
        "V:3:5:2",
        "V:3:0:2:7:7:7",
        "V:-1:0:1",
        "V:99:0:2",
    ] {
        Job::alone("life", &["refused", LAUNCHER, "REGATTA_JOB"])
            .env("REGATTA_JOB", &text.replace('V', &SPOKEN.to_string()))
            .run()
            .passed();
    }
}

#[test]
fn descriptors_that_are_no_job() {
    for file in ["/dev/null", "/dev/zero", "/proc/self/exe", "/"] {
        Job::alone("life", &["refused", LAUNCHER, ""])
            .env("REGATTA_JOB", &format!("{SPOKEN}:7:0:2"))
            .after(&format!("exec 7<{file}"))
            .run()
            .passed();
    }
}

#[test]
fn a_launcher_of_another_version() {
    let other = SPOKEN + 1;
    let said = format!("version {other} ");
    Job::alone("life", &["refused", VERSION, &said])
        .env("REGATTA_JOB", &format!("{other}:3:0:2"))
        .run()
        .passed();
}

#[test]
fn launchers_that_are_not_ours() {
    let foreign = [
        ("OMPI_COMM_WORLD_SIZE", "5", "Open MPI"),
        ("PMI_SIZE", "2", "PMI"),
        ("JSM_NAMESPACE_SIZE", "2", "jsrun"),
    ];
    for (name, value, words) in foreign {
        let job = || Job::alone("life", &["refused", LAUNCHER, words]);
        job().env(name, value).run().passed();
        // It runs as the only task of its job.
        Job::alone("life", &["alone"]).env(name, "1").run().passed();
    }
    Job::alone("life", &["refused", LAUNCHER, "Slurm"])
        .env("SLURM_STEP_ID", "0")
        .env("SLURM_STEP_NUM_TASKS", "8")
        .run()
        .passed();
}

/// Creates a job with the environment of `prterun`, which does not say how many processes it starts.
fn under_prterun(arguments: &[&str]) -> Job {
    Job::alone("life", arguments)
        .env("PMIX_RANK", "0")
        .env("PMIX_NAMESPACE", "prterun-host-20506@1")
        .env("PRTE_LAUNCHED", "1")
}

#[test]
fn a_program_of_a_launcher_that_does_not_say_how_many_there_are_stops_unless_it_is_to_be_alone() {
    let said = "set REGATTA_SINGLETON=allow";
    under_prterun(&["refused", LAUNCHER, said]).run().passed();
    let alone = under_prterun(&["alone"]).env("REGATTA_SINGLETON", "allow");
    alone.run().passed();
    let nonsense = under_prterun(&["refused", "-1", "refuse (the default) or allow"]);
    nonsense.env("REGATTA_SINGLETON", "yes").run().passed();
}

#[test]
fn a_task_of_srun_may_be_alone_on_purpose_and_so_may_what_it_starts() {
    Job::alone("life", &["alone"])
        .env("SLURM_JOB_ID", "7")
        .env("SLURM_STEP_ID", "0")
        .env("SLURM_STEP_NUM_TASKS", "8")
        .env("REGATTA_SINGLETON", "allow")
        .run()
        .passed();
}

#[test]
fn tasks_of_regatta_run_under_another_launcher_are_a_job() {
    for (name, value) in [
        ("PMIX_RANK", "1"),
        ("PMI_SIZE", "4"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
    ] {
        Job::new(2, "life", &["outside"])
            .env(name, value)
            .run()
            .passed();
    }
}

#[test]
fn a_buffer_that_is_no_size() {
    Job::alone("life", &["refused", "-1", "is not a size"])
        .env("REGATTA_BUFFER", "lots")
        .run()
        .passed();
}

#[test]
fn a_task_that_aborts_ends_the_job_with_its_status() {
    for (tasks, code, status) in [(1, "7", 7), (3, "255", 255), (4, "0", 1), (2, "256", 1)] {
        let who = (tasks - 1).to_string();
        let ended = Job::new(tasks, "life", &["abort", code, &who]).run();
        let said = format!("task {who} has called rg_abort({status}): ending all tasks at once");
        ended.ended_with(status).said(&said);
    }
    // The first abort decides the job's status. Here all tasks give the same.
    Job::new(4, "life", &["abort", "9", "-1"])
        .run()
        .ended_with(9)
        .said("has called rg_abort(9)");
}

#[test]
fn a_task_that_is_alone_ends_by_its_abort() {
    Job::alone("life", &["abort", "6", "0"])
        .run()
        .ended_with(6)
        .said("task 0 has called rg_abort(6)");
}
