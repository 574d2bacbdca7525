//! Locates the command and the library, and compiles the C programs linked with them.
//!
//! Every created file lies in a folder of this test program below cargo's target folder. Files are created under a
//! temporary name and then renamed, so that simultaneous runs never see a partial file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Name under which programs load the library.
const SONAME: &str = "libregatta.so.0";

struct Places {
    /// Cargo's folder of this profile. The test programs lie in its subfolder `deps`.
    target: PathBuf,
    /// Folder for the files of this test program.
    made: PathBuf,
}

static PLACES: LazyLock<Places> = LazyLock::new(find);

/// Returns the path of a file in cargo's folder of this profile. Builds `package` if the file does not exist.
pub fn built(file: &str, package: &str) -> PathBuf {
    let path = PLACES.target.join(file);
    if !path.exists() {
        build(&PLACES.target, &[package]);
    }
    path
}

/// Returns this file of `package` from the release profile, which is the one that is installed, whatever profile the
/// tests have.
pub fn optimized(file: &str, package: &str) -> PathBuf {
    let release = PLACES.target.with_file_name("release");
    build(&release, &[package]);
    release.join(file)
}

/// Returns an unused temporary path. Several tests may create the same file at once.
fn fresh(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let own = std::process::id();
    PLACES.made.join(format!("{name}-{own}-{number}"))
}

/// Links a library under the name by which programs load it, and returns the folder. The link is symbolic, so that it
/// always names the newest build.
pub fn link(library: &Path, name: &str) -> PathBuf {
    let fresh = fresh(&format!("link-{name}"));
    std::os::unix::fs::symlink(library, &fresh).expect("a link");
    std::fs::rename(&fresh, PLACES.made.join(name)).expect("the library's name");
    PLACES.made.clone()
}

/// Creates a folder for the files that a compiler writes beside a program.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = fresh(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes a file with this content into this test program's folder. Returns that folder.
pub(crate) fn file(name: &str, content: &[u8]) -> PathBuf {
    let fresh = fresh(name);
    std::fs::write(&fresh, content).expect("a file");
    std::fs::rename(&fresh, PLACES.made.join(name)).expect("the file's name");
    PLACES.made.clone()
}

fn find() -> Places {
    let own = std::env::current_exe().expect("the test program's path");
    let target = own
        .ancestors()
        .nth(2)
        .expect("target/PROFILE/deps/TEST")
        .to_owned();
    if !target.join("regatta").exists() || !target.join("libregatta.so").exists() {
        build(&target, &["regatta-capi", "regatta-cli"]);
    }
    let made = target
        .join("programs")
        .join(own.file_name().expect("the test program's name"));
    std::fs::create_dir_all(&made).expect("a folder for the C programs");
    // A symbolic link always names the newest build of the library.
    let fresh = made.join(format!("link-{}", std::process::id()));
    std::os::unix::fs::symlink(target.join("libregatta.so"), &fresh).expect("a link");
    std::fs::rename(&fresh, made.join(SONAME)).expect("the library's name");
    Places { target, made }
}

fn build(target: &Path, packages: &[&str]) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .arg("build")
        .args(packages.iter().flat_map(|package| ["-p", package]))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", target.parent().expect("target"));
    if target.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo");
    assert!(status.success(), "the library and the command: {status}");
}

/// Returns the path of the command `regatta`.
pub fn command() -> PathBuf {
    PLACES.target.join("regatta")
}

/// Returns the folder in which programs find the library.
pub(crate) fn library() -> &'static Path {
    &PLACES.made
}

/// Compiles `tests/programs/NAME.c`, linked with the library.
pub fn program(name: &str) -> PathBuf {
    program_of(name, &[name])
}

/// Compiles these files of `tests/programs` into one C program, linked with the library.
pub(crate) fn program_of(name: &str, files: &[&str]) -> PathBuf {
    static MADE: LazyLock<Mutex<HashMap<String, PathBuf>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(name.to_owned())
        .or_insert_with(|| {
            let include =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/interfaces/c/include");
            compile_all(name, files, &[include], &[PLACES.made.join(SONAME)])
        })
        .clone()
}

/// Compiles `tests/programs/NAME.c` without any of Regatta's libraries.
pub fn program_alone(name: &str) -> PathBuf {
    compile_with(name, &[], &[])
}

/// Compiles `tests/programs/NAME.c` with these include folders and libraries.
pub(crate) fn compile_with(name: &str, includes: &[PathBuf], libraries: &[PathBuf]) -> PathBuf {
    compile_all(name, &[name], includes, libraries)
}

/// Compiles a C program from several files.
pub fn compile_all(
    name: &str,
    files: &[&str],
    includes: &[PathBuf],
    libraries: &[PathBuf],
) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let fresh = fresh(name);
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .arg("-pthread")
        .args(
            includes
                .iter()
                .map(|include| format!("-I{}", include.display())),
        )
        .args(files.iter().map(|file| programs.join(format!("{file}.c"))))
        .arg("-o")
        .arg(&fresh)
        .args(libraries)
        .output()
        .expect("a C compiler");
    assert!(
        output.status.success(),
        "{name}.c: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let path = PLACES.made.join(name);
    std::fs::rename(&fresh, &path).expect("the program");
    path
}
