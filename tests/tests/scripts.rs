//! The scripts report what a machine lacks, and what was left out because of it.

use regatta_tests::executable;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Commands that the scripts need on every machine.
const EVERYWHERE: [&str; 12] = [
    "bash", "sh", "env", "sed", "cut", "sort", "tr", "head", "id", "dirname", "cat", "make",
];

/// A folder of commands, which is removed when dropped.
struct Commands(PathBuf);

impl Commands {
    fn new(name: &str) -> Commands {
        let folder = std::env::temp_dir().join(format!("regatta-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let commands = Commands(folder);
        for name in EVERYWHERE {
            symlink(found(name), commands.0.join(name)).expect("a link");
        }
        // python3 may be a wrapper script that needs more commands.
        let (path, python) = (std::env::var("PATH").expect("PATH"), found("python3"));
        commands.add(
            "python3",
            &format!("PATH='{path}' exec {} \"$@\"", python.display()),
        );
        commands
    }

    /// Adds a command that runs this script.
    fn add(&self, name: &str, script: &str) -> PathBuf {
        let path = self.0.join(name);
        executable::script(&path, &format!("#!/bin/sh\n{script}\n"), 0o755)
    }

    /// Runs a script with only these commands in PATH. Returns its exit status and its output.
    fn run(&self, script: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../scripts")
            .join(script);
        let output = Command::new(script)
            .args(arguments)
            .env("PATH", &self.0)
            .env("HOME", &self.0)
            .env("SKIPPED_TESTS", self.0.join("skipped"))
            .env_remove("CI")
            .env_remove("CC")
            .env_remove("CARGO_HOME")
            .output()
            .expect("a script");
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn found(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").expect("PATH");
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places
        .find(|place| place.exists())
        .unwrap_or_else(|| panic!("no {name}"))
}

/// Returns whether `count-tests` accepts this log and this list of skips in CI, and its output.
fn counted(name: &str, log: &str, skipped: &str) -> (bool, String) {
    let folder = std::env::temp_dir().join(format!("regatta-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("log"), log).expect("a log");
    std::fs::write(folder.join("skipped"), skipped).expect("a list");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/count-tests");
    let output = Command::new(script)
        .args(["tests", "log", "skipped"])
        .current_dir(&folder)
        .env("CI", "true")
        .output()
        .expect("a script");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said)
}

const PASSED: &str =
    "test one ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";

#[test]
fn a_run_in_which_nothing_was_skipped_passes() {
    let (passed, said) = counted("count-all", PASSED, "");
    assert!(
        passed && said.starts_with("tests: 1 passed, 0 failed, 0 skipped"),
        "{said}"
    );
}

#[test]
fn a_run_without_tests_or_with_skipped_ones_fails_in_ci() {
    let (passed, said) = counted("count-none", "", "");
    assert!(!passed && said.contains("no test was run"), "{said}");
    let skipped = "skipped: a::one: no root\nskipped: a::one: no network\nskipped: scripts::x: y\n";
    let (passed, said) = counted("count-skipped", PASSED, skipped);
    assert!(
        !passed
            && said.contains(
                "0 passed, 0 failed, 1 skipped, in 1 programs; parts of checks skipped: 1"
            ),
        "{said}"
    );
}

#[test]
fn tests_that_failed_stand_at_the_end_by_name() {
    let log = "test a::two ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let (passed, said) = counted("count-failed", log, "");
    assert!(!passed);
    assert!(said.starts_with("failed: a::two\n"), "{said}");
}

#[test]
fn a_compiler_without_headers_is_told_from_no_compiler() {
    let commands = Commands::new("need-cc");
    let (status, said) = commands.run("need", &["check"]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("make check needs a C compiler (cc)"),
        "{said}"
    );
    assert!(said.contains("apt-get install gcc libc6-dev"), "{said}");
    commands.add("cc", "! grep -q stdio.h");
    symlink(found("grep"), commands.0.join("grep")).expect("a link");
    let (status, said) = commands.run("need", &["check"]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains(
            "needs the headers of the C library (stdio.h); install: sudo apt-get install libc6-dev"
        ),
        "{said}"
    );
}

#[test]
fn how_to_get_the_compiler_of_rust_is_told() {
    let commands = Commands::new("need-rust");
    commands.add("cc", "cat >/dev/null");
    let (status, said) = commands.run("need", &["check"]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("cargo is not installed") && said.contains("https://sh.rustup.rs"),
        "{said}"
    );
    commands.add("cargo", "echo 'cargo 1.63.0'");
    let (_, said) = commands.run("need", &["check"]);
    assert!(
        said.contains("this is 1.63.0, which was not installed with rustup"),
        "{said}"
    );
    commands.add("rustup", "exit 0");
    let (_, said) = commands.run("need", &["check"]);
    assert!(said.contains("rustup update stable"), "{said}");
    commands.add("cargo", "echo 'cargo 99.0.0'");
    assert_eq!(commands.run("need", &["check"]), (Some(0), String::new()));
}

#[test]
fn what_tests_can_do_without_is_told_and_no_error() {
    let commands = Commands::new("need-wants");
    commands.add("cc", "cat >/dev/null");
    commands.add("cargo", "echo 'cargo 99.0.0'");
    let (status, said) = commands.run("need", &["test"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("make test skips what needs") && said.contains("Slurm"),
        "{said}"
    );
}

#[test]
fn a_test_that_has_left_itself_out_is_told_as_skipped() {
    let commands = Commands::new("left-out");
    std::fs::write(
        commands.0.join("skipped"),
        "skipped: some::lacking: no gfortran\n",
    )
    .expect("a file");
    let says = "cat <<END
running 3 tests
test fine ... ok
test lacking ... FAILED
$1
failures:

---- lacking stdout ----
skipped: some::lacking: no gfortran

failures:
    lacking

test result: FAILED. 1 passed; $2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

END
exit 101";
    let program = commands.add("some-0123456789abcdef", says);
    let program = program.display().to_string();
    let (status, said) = commands.run("run-test-program", &[&program, "", "1"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("test lacking ... skipped"), "{said}");
    assert!(
        said.contains("test result: ok. 2 passed; 0 failed;"),
        "{said}"
    );
    assert!(
        !said.contains("FAILED") && !said.contains("failures"),
        "{said}"
    );
    let (status, said) = commands.run(
        "run-test-program",
        &[&program, "test wrong ... FAILED", "2"],
    );
    assert_eq!(status, Some(101), "{said}");
    assert!(
        said.contains("test wrong ... FAILED") && said.contains("failures"),
        "{said}"
    );
    assert!(
        said.contains("test result: FAILED. 2 passed; 1 failed;"),
        "{said}"
    );
}

#[test]
fn an_installation_into_a_folder_that_cannot_be_written_is_refused_before_the_build() {
    let commands = Commands::new("install");
    commands.add("cc", "cat >/dev/null");
    commands.add("pkg-config", "exit 0");
    commands.add(
        "cargo",
        "[ \"$1\" = --version ] && echo 'cargo 99.0.0' || echo BUILT",
    );
    for name in ["realpath", "mkdir"] {
        symlink(found(name), commands.0.join(name)).expect("a link");
    }
    // A regular file in place of a folder: no user can write below it, not even root.
    let place = commands.0.join("place");
    std::fs::write(&place, "").expect("a file");
    let output = Command::new(found("env"))
        .arg(format!("PREFIX={}", place.display()))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/install"))
        .env("PATH", &commands.0)
        .output()
        .expect("a script");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(
        !output.status.success() && !said.contains("BUILT"),
        "{said}"
    );
    assert!(
        said.contains("is not writable for this user") && said.contains("PREFIX=$HOME/.local"),
        "{said}"
    );
}

/// Returns whether `check-docs` accepts this page, and its output.
fn documented(name: &str, page: &str) -> (bool, String) {
    let folder = std::env::temp_dir().join(format!("regatta-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("page.md");
    std::fs::write(&file, page).expect("a page");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/check-docs");
    let output = Command::new(script).arg(&folder).arg(&file).output();
    let output = output.expect("a script");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.success(), said)
}

#[test]
fn pages_say_what_their_commands_do() {
    let file = "```c title=\"a.c\"\nint a;\n```\n\n```sh\nb=$(cat a.c)\n```\n\n";
    for (output, wrong) in [
        ("int a; 7\n", None),
        ("int ...\n", None),
        ("...\n", None),
        ("int b; 7\n", Some("does not print: int b; 7")),
        ("", Some("prints what the page does not show")),
        ("int a; 7\nmore\n", Some("does not print: more")),
    ] {
        let page = format!("{file}```console\n$ echo $b 7\n{output}```\n");
        let (passes, said) = documented("pages", &page);
        assert_eq!(passes, wrong.is_none(), "{page}{said}");
        assert!(said.contains(wrong.unwrap_or("2 commands")), "{page}{said}");
    }
    let (passes, said) = documented("pages", "```sh\nfalse\n```\n");
    assert!(!passes && said.contains("ends with 1"), "{said}");
    let left_out = "<!-- not run: it ends all -->\n```sh\nfalse\n```\n";
    let (passes, said) = documented("pages", left_out);
    assert!(!passes && said.contains("no command was run"), "{said}");
}
