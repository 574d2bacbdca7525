//! Programs of PVM, on Regatta's library and on PVM's own.
//!
//! The same binary runs on both: the loader takes the first library of that name in its search path.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use crate::left;
use crate::looks::await_files;

/// Name under which programs load the library.
const SONAME: &str = "libpvm3.so.3";
/// Linker option: keeps a dependency on each library that is named, even if none of its symbols are used.
const NAMED: &str = "-Wl,--no-as-needed";
/// Default location of PVM itself.
const PVM_ROOT: &str = "/usr/lib/pvm3";
/// Returns PVM's name of this machine's architecture.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "LINUX64",
        other => panic!("PVM's name of {other} is not known to this test"),
    }
}

/// Folder in which programs find Regatta's library under its name.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = crate::programs::built("libpvm3.so", "regatta-pvm");
    let folder = crate::programs::link(&library, SONAME);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/pvm-libraries");
    let made = Command::new(script).arg(&folder).status();
    assert!(
        made.is_ok_and(|status| status.success()),
        "libgpvm3 and libfpvm3"
    );
    folder
});

/// Returns the folder of Regatta's headers for programs of PVM.
pub(crate) fn headers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/interfaces/pvm/include")
}

/// Compiles `tests/programs/NAME.c` with Regatta's headers.
pub fn program(name: &str) -> PathBuf {
    crate::programs::compile_with(name, &[headers()], &[LIBRARY.join(SONAME)])
}

/// Compiles `tests/programs/NAME.c`, linked with the library for groups as well.
pub fn group_program(name: &str) -> PathBuf {
    group_program_of(name, &[name])
}

/// Like [`group_program`], for a program of several files.
pub fn group_program_of(name: &str, files: &[&str]) -> PathBuf {
    let libraries = ["libgpvm3.so.3", SONAME].map(|library| LIBRARY.join(library));
    // On PVM, the program must name libpvm3 itself, which the library for groups uses.
    let all = [&[PathBuf::from(NAMED)][..], &libraries].concat();
    crate::programs::compile_all(name, files, &[headers()], &all)
}

/// Compiles the Fortran program `tests/programs/NAME.f`. Skips the test if gfortran is not installed.
pub fn fortran_program(name: &str, place: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("programs/{name}.f"));
    let program = place.join(name);
    let libraries = ["libfpvm3.a", "libgpvm3.so.3", SONAME];
    let output = Command::new(crate::needs::program("gfortran", "gfortran"))
        .args(["-fallow-argument-mismatch", "-std=legacy", "-w", "-o"])
        .arg(&program)
        .arg(source)
        .arg(format!("-I{}", headers().display()))
        .arg(NAMED)
        .args(libraries.map(|library| LIBRARY.join(library)))
        .output()
        .expect("gfortran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}.f: {said}");
    program
}

/// Returns the symbols that Regatta's Fortran library defines.
pub fn fortran_symbols() -> Vec<String> {
    symbols(&LIBRARY.join("libfpvm3.a"))
}

/// Returns the symbols that a library defines.
pub fn symbols(library: &Path) -> Vec<String> {
    let output = Command::new("nm")
        .arg("--defined-only")
        .arg(library)
        .output();
    let text = String::from_utf8(output.expect("nm").stdout).expect("text");
    let names = text.lines().filter_map(|line| line.split_once(" T "));
    names.map(|(_, name)| name.to_owned()).collect()
}

/// Returns the path of Regatta's library.
pub fn library() -> PathBuf {
    LIBRARY.join(SONAME)
}

/// Returns a command that runs a program on Regatta's library.
pub fn on_regatta(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", &*LIBRARY);
    command
}

/// Returns a command that runs a program on PVM's own library without a daemon. If the program starts one, `folder`
/// gets the daemon's files.
pub(crate) fn without_daemon(program: &Path, folder: &Path) -> Command {
    crate::needs::file(Path::new(PVM_ROOT).join("lib/pvmd"), "pvm");
    let mut command = Command::new(program);
    settings(&mut command, folder).env_remove("LD_LIBRARY_PATH");
    command
}

/// Compiles a third-party program, in the C dialect of its time, with Regatta's headers.
pub(crate) fn compile(source: &Path, program: &Path) {
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu89", "-w", "-O1", "-o"])
        .arg(program)
        .arg(source)
        .arg(format!("-I{}", headers().display()))
        .arg(LIBRARY.join(SONAME))
        .output()
        .expect("a C compiler");
    assert!(
        output.status.success(),
        "{}: {}",
        source.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns the environment mark of PVM's own processes that belong to the test with this mark.
pub(crate) fn original_mark(mark: &str) -> String {
    format!("{mark}-original")
}

/// PVM's own virtual machine, with one host and a folder of its own.
pub struct Original {
    daemon: Child,
    folder: PathBuf,
    mark: String,
}

impl Original {
    /// Starts PVM. Skips the test if PVM 3.4 is not installed.
    pub fn start(name: &str) -> Original {
        let mark = format!("{name}-{}", std::process::id());
        Original::start_by("localhost", &mark, &mut |_| {})
    }

    /// Like `start`, with `home` as the home folder of its programs.
    pub fn start_in(name: &str, home: &Path) -> Original {
        Original::start_at("localhost", name, home)
    }

    /// Like `start_in`, under another name of this host. PVM does not add hosts to one whose own address is a loopback
    /// address.
    pub(crate) fn start_at(host: &str, name: &str, home: &Path) -> Original {
        Original::start_by(host, &original_mark(name), &mut |command| {
            command.env("HOME", home).current_dir(home);
        })
    }

    /// Returns the lines written by the daemon and by tasks whose output no other task collects.
    pub fn log(&self) -> String {
        let user = rustix::process::getuid().as_raw();
        std::fs::read_to_string(self.folder.join(format!("pvml.{user}"))).unwrap_or_default()
    }

    /// Returns the folder of the daemon's log and other files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn start_by(host: &str, name: &str, around: &mut dyn FnMut(&mut Command)) -> Original {
        let daemon = Path::new(PVM_ROOT).join("lib/pvmd");
        crate::needs::file(&daemon, "pvm");
        crate::needs::file("/usr/include/pvm3.h", "pvm-dev");
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for PVM");
        // Path on which the daemon finds the group server and the tests' programs.
        let hosts = folder.join("hosts");
        let line = format!("{host} ep=$HOME/pvm3/bin/$PVM_ARCH:/usr/bin\n");
        std::fs::write(&hosts, line).expect("a list of hosts");
        let mut command = Command::new(daemon);
        around(&mut command);
        let child = settings(&mut command, &folder)
            .env(left::MARK, name)
            .arg(format!("-n{host}"))
            .arg(&hosts)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("PVM's daemon");
        let mut original = Original {
            daemon: child,
            folder,
            mark: name.to_owned(),
        };
        original.await_ready();
        original
    }

    /// Waits until the daemon is ready: it then has written its address to a file.
    fn await_ready(&mut self) {
        let address = self
            .folder
            .join(format!("pvmd.{}", rustix::process::getuid().as_raw()));
        let daemon = &mut self.daemon;
        await_files(&self.folder, || {
            let ended = daemon.try_wait().expect("PVM's daemon");
            assert!(ended.is_none(), "PVM's daemon has ended: {ended:?}");
            let file = std::fs::metadata(&address);
            file.is_ok_and(|file| file.len() > 0).then_some(())
        });
    }

    /// Returns a command that runs a program on PVM's own library, as a task of this machine.
    pub fn command(&self, program: &Path) -> Command {
        without_daemon(program, &self.folder)
    }
}

fn settings<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command
        .env("PVM_ROOT", PVM_ROOT)
        .env("PVM_TMP", folder)
        .env("PVM_ALLOW_ROOT", "1")
}

impl Drop for Original {
    fn drop(&mut self) {
        // On SIGTERM, the daemon ends its tasks and removes its files.
        let pid = rustix::process::Pid::from_child(&self.daemon);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.daemon.wait();
        left::kill(&self.mark);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Runs a program and returns its standard output. Panics if the program fails.
pub fn said(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program");
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}\n{stderr}");
    String::from_utf8(stdout).expect("text")
}
