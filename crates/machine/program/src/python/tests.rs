use std::fs;

use super::*;

/// A temporary directory of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = format!("regatta-python-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Scratch(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("its directory")).expect("a directory");
        fs::write(&path, text).expect("a file");
        path
    }

    /// Creates a virtual environment for version 3.11 with these modules of mpi4py. Returns its interpreter.
    fn environment(&self, modules: &[&str]) -> PathBuf {
        self.file("venv/pyvenv.cfg", "home = /nonexistent\nversion = 3.11.7\n");
        self.file("venv/lib/python3.11/site-packages/mpi4py/__init__.py", "");
        for module in modules {
            self.file(
                &format!("venv/lib/python3.11/site-packages/mpi4py/{module}"),
                "",
            );
        }
        self.file("venv/bin/python3", "")
    }

    fn ours(&self) -> Ours {
        Ours {
            standard: Some(self.file("regatta/libmpi_abi.so.1", "")),
            mpich: Some(self.file("mpich/libmpi.so.12", "")),
            compiler: Some(self.file("mpi/mpicc", "")),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const MPICH: &str = "MPI.mpich.cpython-311-x86_64-linux-gnu.so";
const OPEN_MPI: &str = "MPI.openmpi.cpython-311-x86_64-linux-gnu.so";
const STANDARD: &str = "MPI.mpiabi.cpython-311-x86_64-linux-gnu.so";

fn found(interpreter: &Path) -> Option<Mpi4py> {
    Mpi4py::of(interpreter, &folders::of(interpreter, |_| None)?)
}

#[test]
fn a_wheel_is_told_to_load_our_library_for_one_of_its_interfaces() {
    let scratch = Scratch::new("wheel");
    let python = scratch.environment(&[MPICH, OPEN_MPI]);
    let ours = scratch.ours();
    let wheel = found(&python).expect("an mpi4py");
    let mpich = ours.mpich.clone().expect("a file");
    assert_eq!(wheel.choose(false, &ours), Choice::Load(mpich));
    scratch.environment(&[STANDARD]);
    let wheel = found(&python).expect("an mpi4py");
    let standard = ours.standard.clone().expect("a file");
    assert_eq!(wheel.choose(false, &ours), Choice::Load(standard));
}

#[test]
fn a_wheel_without_an_interface_of_ours_is_a_mismatch_unless_the_user_has_chosen() {
    let scratch = Scratch::new("mismatch");
    let wheel = found(&scratch.environment(&[OPEN_MPI])).expect("an mpi4py");
    let Choice::Mismatch(said) = wheel.choose(false, &scratch.ours()) else {
        panic!("Open MPI's interface is not ours");
    };
    assert!(
        said.contains("Open MPI") && said.contains("/mpi/mpicc MPI4PY_BUILD_MPIABI=1 "),
        "{said}"
    );
    assert_eq!(wheel.choose(true, &scratch.ours()), Choice::Nothing);
    let both = found(&scratch.environment(&[OPEN_MPI, MPICH])).expect("an mpi4py");
    let choice = both.choose(false, &Ours::default());
    assert!(matches!(choice, Choice::Mismatch(_)), "{choice:?}");
}

#[test]
fn where_there_is_no_mpi4py_for_this_version_nothing_is_found() {
    let scratch = Scratch::new("none");
    let python = scratch.environment(&["MPI.mpich.cpython-312-x86_64-linux-gnu.so", "MPI.pyi"]);
    assert!(found(&python).is_none());
    assert!(found(Path::new("/nonexistent/bin/python3")).is_none());
}

#[test]
fn a_module_that_is_linked_to_a_library_tells_its_interface() {
    let scratch = Scratch::new("linked");
    let python = scratch.environment(&[]);
    let package = scratch.0.join("venv/lib/python3.11/site-packages/mpi4py");
    let choice = |library: &str, rpath: &str| {
        let module = package.join("MPI.cpython-311-x86_64-linux-gnu.so");
        compile_module(&scratch, &module, library, rpath);
        found(&python)
            .expect("an mpi4py")
            .choose(true, &scratch.ours())
    };
    assert_eq!(choice("libmpi_abi.so.1", ""), Choice::Nothing);
    assert_eq!(
        choice("libmpi.so.12", ""),
        Choice::Folder(scratch.0.join("mpich"))
    );
    for (library, rpath, part) in [
        ("libmpi.so.40", "", "Open MPI"),
        ("libmpich.so.12", "", "MPICH"),
        ("libmpi.so.12", "$ORIGIN/other", "LD_PRELOAD="),
    ] {
        match choice(library, rpath) {
            Choice::Mismatch(said) => assert!(said.contains(part), "{library}: {said}"),
            other => panic!("{library}: {other:?}"),
        }
    }
}

/// Compiles a module that is linked to this library, which is also in the folder `other` beside it.
fn compile_module(scratch: &Scratch, module: &Path, library: &str, rpath: &str) {
    let source = scratch.file("empty.c", "");
    let other = module.with_file_name("other");
    fs::create_dir_all(&other).expect("a directory");
    let linked = other.join(library);
    let compile = |words: &[&OsStr]| {
        let mut command = std::process::Command::new("cc");
        command
            .arg("-shared")
            .arg("-Wl,--no-as-needed")
            .arg(&source)
            .args(words);
        assert!(command.status().expect("a compiler").success(), "{words:?}");
    };
    let soname = format!("-Wl,-soname,{library}");
    compile(&["-o".as_ref(), linked.as_ref(), soname.as_ref()]);
    let path = format!("-Wl,--disable-new-dtags,-rpath,{rpath}");
    let path = if rpath.is_empty() { "-Wl,-O1" } else { &path };
    compile(&[
        "-o".as_ref(),
        module.as_ref(),
        linked.as_ref(),
        path.as_ref(),
    ]);
}

#[test]
fn folders_that_the_user_names_come_first_and_those_of_the_system_where_they_are_wanted() {
    let scratch = Scratch::new("folders");
    let python = scratch.environment(&[]);
    let of = |path: Option<&'static OsStr>| {
        let set = |name: &'static str| path.filter(|_| name == "PYTHONPATH");
        folders::of(&python, set).expect("folders").all
    };
    let own = scratch.0.join("venv/lib/python3.11/site-packages");
    assert_eq!(of(None)[0], own);
    assert_eq!(
        of(Some("/a:/b".as_ref()))[..2],
        ["/a", "/b"].map(PathBuf::from)
    );
    scratch.file("base/bin/python3.11", "");
    let home = scratch.0.join("base/bin");
    let settings = format!(
        "home = {}\ninclude-system-site-packages = true\nversion_info = 3.11.7.final.0\n",
        home.display()
    );
    scratch.file("venv/pyvenv.cfg", &settings);
    let all = of(None);
    assert_eq!(all[0], own);
    let base = scratch.0.join("base/lib/python3.11/site-packages");
    assert!(all.contains(&base), "{all:?}");
}

#[test]
fn scripts_lead_to_their_interpreter() {
    let scratch = Scratch::new("scripts");
    let interpreter_of = |text: &str| interpreter(&scratch.file("tool", text), None);
    let python = Some(PathBuf::from("/opt/venv/bin/python3.11"));
    assert_eq!(interpreter_of("#!/opt/venv/bin/python3.11 -u\n"), python);
    assert_eq!(interpreter_of("#!/bin/sh\n"), None);
    assert_eq!(interpreter_of("#!/usr/bin/env no-such-python\n"), None);
    assert_eq!(interpreter_of(""), None);
    for (name, is) in [
        ("python3.13t", true),
        ("python", true),
        ("python-config", false),
    ] {
        assert_eq!(is_python(name.as_ref()), is, "{name}");
    }
}
