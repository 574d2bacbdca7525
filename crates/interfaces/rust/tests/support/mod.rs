//! Tests that run in real jobs. The test program starts itself again, as every task of a job.
#![allow(dead_code, reason = "each test program uses a part of this")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use regatta::Task;

/// Environment variable with the name of the test whose body a process runs as a task.
const TASK_OF: &str = "REGATTA_TEST_TASK_OF";
/// Time limit of a job, in seconds. A job that takes longer counts as hanging.
const SECONDS: &str = "120";

/// Runs `body` as every task of a job of each of these sizes. `name` is the name of the calling test. All tasks must reach the
/// end of `body`.
pub fn in_jobs(name: &str, sizes: &[usize], body: fn(&Task)) {
    if std::env::var(TASK_OF).is_ok_and(|of| of == name) {
        let task = regatta::init().expect("a job");
        body(&task);
        println!("\n{}", done(name, task.world().rank()));
        return;
    }
    assert!(!sizes.is_empty(), "a test of no job tests nothing");
    let exe = std::env::current_exe().expect("this program");
    let regatta = regatta();
    for &size in sizes {
        let output = Command::new(&regatta)
            .args(["run", "--timeout", SECONDS, "-n", &size.to_string()])
            .arg(&exe)
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(TASK_OF, name)
            .stdin(Stdio::null())
            .output()
            .expect("the command regatta");
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{name} with {size} tasks: {}\n{said}\n{errors}",
            output.status
        );
        for rank in 0..size {
            assert!(
                said.contains(&done(name, rank)),
                "{name} with {size} tasks: task {rank} did not come to the end\n{said}\n{errors}"
            );
        }
    }
}

fn done(name: &str, rank: usize) -> String {
    format!("<{name}: task {rank} has come to the end>")
}

/// Returns the path of this build's `regatta` command, which is beside the folder of the test programs. Builds the command if
/// it does not exist.
pub fn regatta() -> PathBuf {
    let exe = std::env::current_exe().expect("this program");
    let built = exe
        .parent()
        .and_then(Path::parent)
        .expect("target/PROFILE/deps");
    let regatta = built.join("regatta");
    if !regatta.exists() {
        let target = built.parent().expect("target");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "-p", "regatta-cli", "--target-dir"])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if built.ends_with("release") {
            cargo.arg("--release");
        }
        let status = cargo.status().expect("cargo");
        assert!(
            status.success() && regatta.exists(),
            "there is no {}: build it with `cargo build --workspace`",
            regatta.display()
        );
    }
    regatta
}
