//! A virtual machine for programs of PVM, on Regatta and on PVM itself: the same programs in the same home folder.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::executable;
use crate::left;
use crate::pvm::{self, Original};

/// Debian's folder of the programs that come with PVM.
const EXAMPLES: &str = "/usr/share/doc/pvm-examples";
/// Time after which a program that has not ended counts as hung.
const END_TIMEOUT: Duration = Duration::from_secs(180);

/// A home folder with programs, and a machine on Regatta. Dropping it ends the machine and removes the folder.
pub struct Machine {
    folder: PathBuf,
    mark: String,
}

impl Machine {
    /// Creates the home folder. The first program started in it starts the machine.
    pub fn new(name: &str) -> Machine {
        let name = format!("regatta-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let machine = Machine { folder, mark: name };
        builder.create(machine.programs()).expect("a home");
        builder
            .create(machine.folder.join("run"))
            .expect("a folder");
        machine
    }

    /// Returns the home folder, which is removed with this value.
    pub fn place(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Returns the mark in the environment of the machine's processes.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Returns the mark of PVM's own processes in this home folder.
    pub(crate) fn original_mark(&self) -> String {
        pvm::original_mark(&self.mark)
    }

    /// Returns the folder in which PVM searches for programs.
    pub fn programs(&self) -> PathBuf {
        self.folder.join("pvm3/bin").join(pvm::architecture())
    }

    /// Installs a program under this name where PVM finds it.
    pub fn install(&self, program: &Path, name: &str) -> PathBuf {
        let path = self.programs().join(name);
        executable::copy(program, &path);
        path
    }

    /// Compiles one of PVM's own examples and installs it under its name.
    pub fn example(&self, name: &str) -> PathBuf {
        let archive = Path::new(EXAMPLES).join("examples.tar.gz");
        crate::needs::file(&archive, "pvm-examples");
        let source = self.folder.join(format!("{name}.c"));
        let text = std::fs::File::create(&source).expect("a file");
        let status = Command::new("tar")
            .arg("-xzOf")
            .arg(&archive)
            .arg(format!("examples/{name}.c"))
            .stdout(text)
            .status();
        assert!(status.expect("tar").success(), "no example {name}");
        let program = self.programs().join(name);
        pvm::compile(&source, &program);
        program
    }

    /// Writes a shell script into the home folder.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        executable::script(&self.folder.join(name), text, 0o700)
    }

    /// Writes a file into the home folder.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("a file");
    }

    /// Returns a command that starts a program by hand, on Regatta.
    pub fn by_hand(&self, program: &Path) -> Command {
        let mut command = pvm::on_regatta(program);
        self.around(&mut command)
            .env("XDG_RUNTIME_DIR", self.folder.join("run"));
        command
    }

    /// Returns a command that starts a program by hand, on PVM itself.
    pub fn on_original(&self, original: &Original, program: &Path) -> Command {
        let mut command = original.command(program);
        self.around(&mut command);
        command
    }

    /// Returns a command that starts a program on PVM's own library before PVM's machine runs. `folder` gets that
    /// machine's files.
    pub fn on_no_original(&self, program: &Path, folder: &Path) -> Command {
        std::fs::create_dir_all(folder).expect("a folder for PVM");
        let mut command = pvm::without_daemon(program, folder);
        self.around(&mut command);
        command
    }

    /// Starts PVM itself with this home folder.
    pub fn original(&self) -> Original {
        Original::start_in(&self.mark, &self.folder)
    }

    /// Like `original`, on a host name that lets PVM add other hosts.
    pub fn original_at(&self, host: &str) -> Original {
        Original::start_at(host, &self.mark, &self.folder)
    }

    fn around<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("REGATTA_") {
                command.env_remove(name);
            }
        }
        command
            .env("HOME", &self.folder)
            .env(left::MARK, &self.mark)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
    }

    /// Returns the output of tasks that were spawned.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_folder().join("pvm.job.log")).unwrap_or_default()
    }

    /// Returns the folder of the log.
    pub fn log_folder(&self) -> PathBuf {
        self.folder.join("run/regatta")
    }

    /// Halts the machine from a program, and checks that nothing of it is left.
    pub fn halt(&self) {
        let status = self.by_hand(&pvm::program("pvm_halt")).status();
        assert!(status.is_ok(), "the program that ends the machine");
        self.is_over();
    }

    /// Kills the process that runs the machine (`regatta resident`).
    pub fn behead(&self) {
        left::kill_those(&self.mark, " resident ");
    }

    /// Checks that the machine has ended and nothing of it is left.
    pub fn is_over(&self) {
        let over = left::all_end_by(&self.mark, Instant::now() + END_TIMEOUT);
        assert!(
            over,
            "the machine was ended, and these run: {:?}\n{}",
            left::lines(&self.mark),
            self.log()
        );
    }
}

/// Checks that the outputs on both libraries agree line by line, and have at least `least` lines.
pub fn same_lines(ours: &str, theirs: &str, least: usize) {
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs, "Regatta's, then PVM's");
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
    assert!(ours.lines().count() >= least, "too little was said: {ours}");
}

impl Drop for Machine {
    fn drop(&mut self) {
        left::kill(&self.mark);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Runs a program and returns its output. Panics if it fails or exceeds the time limit.
pub fn said(command: &mut Command) -> String {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let pid = rustix::process::Pid::from_child(&child);
    let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
    let fd = fd.expect("the program");
    let out = reader(child.stdout.take().expect("its output"));
    let err = reader(child.stderr.take().expect("its errors"));
    let limit = rustix::time::Timespec {
        tv_sec: END_TIMEOUT.as_secs() as i64,
        tv_nsec: 0,
    };
    let mut polls = [rustix::event::PollFd::new(
        &fd,
        rustix::event::PollFlags::IN,
    )];
    let ended = rustix::event::poll(&mut polls, Some(&limit)) == Ok(1);
    if !ended {
        let _ = child.kill();
    }
    let status = child.wait().expect("its end");
    let text = |reader: std::thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&reader.join().expect("its words")).into_owned()
    };
    let (stdout, stderr) = (text(out), text(err));
    assert!(
        ended && status.success(),
        "{command:?}: {status}, in time: {ended}\n{stdout}\n{stderr}"
    );
    stdout
}

fn reader(mut from: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = from.read_to_end(&mut all);
        all
    })
}

/// Runs a command, which may fail, and returns its output.
pub fn output(command: &mut Command) -> Output {
    command.output().expect("the program")
}
