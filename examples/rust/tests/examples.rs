//! Runs every example, in C and in Rust, in jobs of 1, 2 and 5 tasks. Both languages must print the same, and so must a job
//! whose tasks alternate between the languages.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TASKS: [u32; 3] = [1, 2, 5];
/// Time limit of a job, in seconds. An example that takes longer counts as hanging.
const SECONDS: &str = "60";
/// Shell script that runs one of two programs, by the parity of the task's rank in `REGATTA_JOB=version:fd:rank:size`.
const IN_TURN: &str = r#"rank=${REGATTA_JOB#*:*:}; rank=${rank%%:*}
                         if [ $((rank % 2)) = 0 ]; then exec "$0"; else exec "$1"; fi"#;

/// Returns the folder of this build's Rust examples, which also has the command and the library.
fn built() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_hello"))
        .parent()
        .expect("the folder of programs")
}

/// Returns the names of the files with this extension in a folder of the examples, without the extension.
fn names(folder: &str, extension: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).expect("a folder of examples");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let paths = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into());
    paths.filter_map(stem).collect()
}

/// Builds the command and the library if they do not exist.
fn need_command_and_library() {
    let missing = || {
        let names = ["regatta", "libregatta.so"].map(|name| built().join(name));
        names.into_iter().find(|path| !path.exists())
    };
    if missing().is_none() {
        return;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([
            "build",
            "-p",
            "regatta-cli",
            "-p",
            "regatta-capi",
            "--target-dir",
        ])
        .arg(built().parent().expect("the target folder"))
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if built().ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo");
    if let Some(path) = missing() {
        panic!(
            "{} is needed to run the examples and could not be built ({status}); build it with \
             `cargo build -p regatta-cli -p regatta-capi`",
            path.display()
        );
    }
}

/// A temporary folder, which is removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let name = format!("examples-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).expect("a folder for the programs");
        Folder(folder)
    }

    /// Compiles an example in C as the README says, and links it with the library of this build.
    fn compile(&self, name: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../c")
            .join(name);
        let program = self.0.join(name);
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let output = Command::new(compiler)
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/interfaces/c/include"))
            .arg(source.with_extension("c"))
            .arg("-o")
            .arg(&program)
            .arg("-L")
            .arg(&self.0)
            .arg("-lregatta")
            .output()
            .expect("a C compiler");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{name}.c does not compile:\n{said}"
        );
        program
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a job and returns the lines of its output, sorted, because tasks write in any order.
fn lines(tasks: u32, program: &[&Path], libraries: &Path) -> Vec<String> {
    let output = Command::new(built().join("regatta"))
        .args(["run", "--timeout", SECONDS, "-n", &tasks.to_string()])
        .args(program)
        .env("LD_LIBRARY_PATH", libraries)
        .stdin(Stdio::null())
        .output()
        .expect("the command regatta");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && errors.is_empty(),
        "{program:?} with {tasks} tasks: {}\n{said}\n{errors}",
        output.status
    );
    let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
    assert!(
        !lines.is_empty(),
        "{program:?} with {tasks} tasks says nothing"
    );
    lines.sort();
    lines
}

#[test]
fn examples_say_the_same_in_every_language() {
    let (in_c, in_rust) = (names("../c", "c"), names("src/bin", "rs"));
    assert_eq!(in_c, in_rust, "the same names in every language");
    assert!(in_c.len() >= 6, "{in_c:?}");
    need_command_and_library();
    let folder = Folder::new();
    for name in ["libregatta.so", "libregatta.so.0"] {
        let library = built().join("libregatta.so");
        std::os::unix::fs::symlink(library, folder.0.join(name)).expect("a link");
    }
    let shell = Path::new("/bin/sh");
    for name in &in_c {
        let (c, rust) = (folder.compile(name), built().join(name));
        for tasks in TASKS {
            let said = lines(tasks, &[&c], &folder.0);
            assert_eq!(
                said,
                lines(tasks, &[&rust], &folder.0),
                "{name}, {tasks} tasks"
            );
            let mixed = [shell, "-c".as_ref(), IN_TURN.as_ref(), &c, &rust];
            assert_eq!(
                said,
                lines(tasks, &mixed, &folder.0),
                "{name}, {tasks} tasks of both"
            );
        }
    }
}
