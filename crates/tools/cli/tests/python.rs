//! Programs in Python: their mpi4py is told where our library is, or the user is told what to do. The interpreter in
//! these tests is a script that prints what it was told.

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{REGATTA, Scratch, told};

const MODULES: [&str; 2] = ["MPI.mpich.abi3.so", "MPI.openmpi.abi3.so"];

/// An installed Regatta with empty libraries of these names, and a Python environment with these modules of mpi4py.
struct Installed(Scratch);

impl Installed {
    fn new(name: &str, libraries: &[&str], modules: &[&str]) -> Installed {
        let made = Installed(Scratch::new(&format!("python-{name}")));
        made.file("bin/regatta", "");
        std::fs::remove_file(made.path("bin/regatta")).expect("a file");
        copy(Path::new(REGATTA), &made.path("bin/regatta"));
        symlink("regatta", made.path("bin/mpiexec")).expect("a link");
        for library in libraries {
            made.file(&format!("lib/{library}"), "");
        }
        made.file("venv/pyvenv.cfg", "version = 3.12.1\n");
        let says = "#!/bin/sh\necho \"library=$MPI4PY_LIBMPI interface=$MPI4PY_MPIABI\"\n";
        let draft = made.file("venv/bin/draft", says);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&draft, mode).expect("its mode");
        copy(&draft, &made.path("venv/bin/python3"));
        let package = "venv/lib/python3.12/site-packages/mpi4py";
        for file in modules.iter().chain(&["__init__.py"]) {
            made.file(&format!("{package}/{file}"), "");
        }
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.0.join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("its directory")).expect("a directory");
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Returns the command of this name with these words.
    fn command(&self, name: &str, words: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin").join(name));
        command
            .args(words)
            .current_dir(&self.0.0)
            .env_remove("MPI4PY_LIBMPI")
            .env_remove("MPI4PY_MPIABI")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let words = [&["run"], words].concat();
        told(&self.command("regatta", &words).output().expect("regatta"))
    }
}

/// Copies a program by another process. If this process wrote it, a child forked by another test could still hold it
/// open for writing, and executing it would fail with ETXTBSY.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-p").arg(from).arg(to).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "a copy of {}",
        from.display()
    );
}

const OURS: &str = "regatta/mpich/libmpi.so.12";
const IMPORTS: [&str; 3] = ["venv/bin/python3", "-c", "from mpi4py import MPI"];

fn library(path: &Path) -> String {
    let path = path.canonicalize().expect("a library");
    format!("library={} interface=\n", path.display())
}

#[test]
fn a_wheel_of_mpi4py_is_told_to_load_our_library() {
    let installed = Installed::new("wheel", &[OURS], &MODULES);
    let (status, output, said) = installed.run(&[&["-n", "2"], &IMPORTS[..]].concat());
    let told = library(&installed.path("lib").join(OURS));
    assert_eq!((status, output), (0, told.repeat(2)), "{said}");
    // As one section of several, and on another host.
    let words = [&["-n", "1", "true", ":", "-n", "1"], &IMPORTS[..]].concat();
    let output = installed.command("mpiexec", &words).output();
    assert_eq!(support::told(&output.expect("mpiexec")).1, told);
    let words = [&["--host", "alpha:1", "--rsh", "sh -c"], &IMPORTS[..]].concat();
    assert_eq!(installed.run(&words).1, told);
}

#[test]
fn a_user_who_has_named_a_library_or_an_interface_keeps_it() {
    let installed = Installed::new("kept", &[OURS], &MODULES);
    let words = [&["run", "-n", "1"], &IMPORTS[..]].concat();
    for (variable, expected) in [
        ("MPI4PY_LIBMPI", "library=mine interface=\n"),
        ("MPI4PY_MPIABI", "library= interface=mine\n"),
    ] {
        let mut command = installed.command("regatta", &words);
        let output = command.env(variable, "mine").output().expect("regatta");
        let (_, output, said) = told(&output);
        assert_eq!(output, expected);
        let is_named = said.contains("the library named by MPI4PY_LIBMPI (mine)");
        assert_eq!(is_named, variable == "MPI4PY_LIBMPI", "{said}");
    }
}

#[test]
fn an_mpi4py_that_cannot_run_here_is_one_sentence() {
    let installed = Installed::new("mismatch", &[OURS], &["MPI.openmpi.abi3.so"]);
    for words in [
        [&["run", "-n", "2"], &IMPORTS[..]].concat(),
        [
            &["run", "-n", "2", "--host", "alpha:2", "--rsh", "sh -c"],
            &IMPORTS[..],
        ]
        .concat(),
    ] {
        let output = installed.command("regatta", &words).output();
        let (status, output, said) = told(&output.expect("regatta"));
        assert_eq!((status, output.as_str()), (126, ""), "{said}");
        assert!(said.contains("was built for Open MPI, whose"), "{said}");
        assert!(said.contains("MPI4PY_BUILD_MPIABI=1"), "{said}");
    }
}

/// Only its own imports are examined, so it may run, and find mpi4py by itself.
#[test]
fn a_script_that_does_not_name_mpi4py_runs_and_hears_of_it_in_the_end() {
    let installed = Installed::new("silent", &[], &MODULES);
    installed.file("script.py", "import solver\n");
    let (status, output, said) = installed.run(&["-n", "2", "venv/bin/python3", "script.py"]);
    assert_eq!((status, output.lines().count()), (0, 2), "{said}");
    assert!(
        said.contains("none of the 2 tasks joined Regatta: the mpi4py in "),
        "{said}"
    );
    let ready = Installed::new("ready", &[OURS], &MODULES);
    ready.file("script.py", "import solver\n");
    let (_, _, said) = ready.run(&["-n", "2", "venv/bin/python3", "script.py"]);
    assert!(!said.contains("mpi4py"), "{said}");
}
