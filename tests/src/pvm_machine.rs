//! A virtual machine of PVM's programs, on Regatta and on PVM itself: the same programs in the same home.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::executable;
use crate::left;
use crate::pvm::{self, Original};

/// Where Debian has the programs that come with PVM.
const EXAMPLES: &str = "/usr/share/doc/pvm-examples";
/// Time after which a program that has not ended hangs.
const END_TIMEOUT: Duration = Duration::from_secs(180);

/// A home in which programs are found, and a machine on Regatta; nothing of it stays when it is dropped.
pub struct Machine {
    folder: PathBuf,
    mark: String,
}

impl Machine {
    /// With nothing running yet: the first program begins it.
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

    /// Its home, which goes with it.
    pub fn place(&self) -> PathBuf {
        self.folder.clone()
    }

    /// The mark in the environment of its processes.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// The mark of PVM's own processes, in this home.
    pub(crate) fn original_mark(&self) -> String {
        pvm::original_mark(&self.mark)
    }

    /// Where PVM searches for programs.
    pub fn programs(&self) -> PathBuf {
        self.folder.join("pvm3/bin").join(pvm::architecture())
    }

    /// Put a program where it is found by this name.
    pub fn install(&self, program: &Path, name: &str) -> PathBuf {
        let path = self.programs().join(name);
        executable::copy(program, &path);
        path
    }

    /// Compile a program of PVM's own examples, where it is found by its name.
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

    /// Write a program of the home, for `sh`.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        executable::script(&self.folder.join(name), text, 0o700)
    }

    /// Write a file of the home.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("a file");
    }

    /// A program started by hand, on Regatta.
    pub fn by_hand(&self, program: &Path) -> Command {
        let mut command = pvm::on_regatta(program);
        self.around(&mut command)
            .env("XDG_RUNTIME_DIR", self.folder.join("run"));
        command
    }

    /// The command on PVM itself.
    pub fn on_original(&self, original: &Original, program: &Path) -> Command {
        let mut command = original.command(program);
        self.around(&mut command);
        command
    }

    /// The command on PVM's own library, before its machine has been started; with a folder for that machine's files.
    pub fn on_no_original(&self, program: &Path, folder: &Path) -> Command {
        std::fs::create_dir_all(folder).expect("a folder for PVM");
        let mut command = pvm::without_daemon(program, folder);
        self.around(&mut command);
        command
    }

    /// PVM itself, with this home.
    pub fn original(&self) -> Original {
        Original::start_in(&self.mark, &self.folder)
    }

    /// As `original`, as a host that can take in others.
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

    /// The output of tasks that were started by others.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_folder().join("pvm.job.log")).unwrap_or_default()
    }

    /// Where the log is.
    pub fn log_folder(&self) -> PathBuf {
        self.folder.join("run/regatta")
    }

    /// End the machine, as a program does; then nothing of it may be left.
    pub fn halt(&self) {
        let status = self.by_hand(&pvm::program("pvm_halt")).status();
        assert!(status.is_ok(), "the program that ends the machine");
        self.is_over();
    }

    /// Kills the process that keeps the machine together.
    pub fn behead(&self) {
        left::kill_those(&self.mark, " resident ");
    }

    /// The machine has been ended: nothing of it may be left.
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

/// Both libraries let a program say the same, line by line, and at least so many lines.
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

/// A program's output; the program must end well and in time.
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

/// The output of a command that may fail.
pub fn output(command: &mut Command) -> Output {
    command.output().expect("the program")
}
