//! The example sources and programs, and a home folder that contains them.

use std::path::Path;
use std::process::Command;

use super::Program;
use crate::needs;
use crate::pvm;
use crate::pvm_machine::Machine;

/// Debian's folder of the source archives.
const ARCHIVES: &str = "/usr/share/doc/pvm-examples";
const NAMES: [&str; 2] = ["examples", "gexamples"];
/// Debian's folder of the programs.
pub const DEBIAN: &str = "/usr/bin";

/// The C dialect of the examples.
const C_FLAGS: &str = "ARCHCFLAGS=-std=gnu89 -w";

/// Runs a command and returns its output. Panics if it fails.
fn done(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{}\n{}",
        said(&output.stdout),
        said(&output.stderr)
    );
    said(&output.stdout)
}

fn archive(name: &str) -> String {
    let path = format!("{ARCHIVES}/{name}.tar.gz");
    needs::file(&path, "pvm-examples");
    path
}

/// Returns the names of the C and Fortran sources in the archives.
pub fn sources() -> Vec<String> {
    let list = |name| done(Command::new("tar").arg("-tzf").arg(archive(name)));
    let all = NAMES.map(list).concat();
    let source = |line: &&str| line.ends_with(".c") || line.ends_with(".f");
    all.lines().filter(source).map(str::to_owned).collect()
}

/// Returns the programs that Debian has built from the archives. Debian has some more.
pub fn debian_programs() -> Vec<String> {
    needs::file(ARCHIVES, "pvm-examples");
    let list = done(Command::new("dpkg").args(["-L", "pvm-examples"]));
    let name = |line: &str| line.strip_prefix("/usr/bin/").map(str::to_owned);
    list.lines().filter_map(name).collect()
}

/// Whose headers and libraries programs are built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Regatta's.
    Regatta,
    /// PVM's own.
    Pvm,
}

/// Builds the programs in `$HOME/pvm3`, laid out like PVM's own tree: headers, libraries, sources and programs.
pub fn build(machine: &Machine, programs: &[Program], maker: Maker) {
    let tree = machine.place().join("pvm3");
    let libraries = tree.join("lib").join(pvm::architecture());
    for folder in [&tree.join("include"), &libraries] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    let link = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to).expect("a link");
    for header in ["pvm3.h", "pvmtev.h", "fpvm3.h"] {
        let from = match maker {
            Maker::Regatta => pvm::headers().join(header),
            Maker::Pvm => Path::new("/usr/include").join(header),
        };
        link(&from, &tree.join("include").join(header));
    }
    // If a library is missing here, the linker uses the system's, which is PVM's.
    if maker == Maker::Regatta {
        let ours = pvm::library();
        let ours = ours.parent().expect("its folder");
        for (from, to) in [
            ("libpvm3.so.3", "libpvm3.so"),
            ("libgpvm3.so.3", "libgpvm3.so"),
            ("libfpvm3.a", "libfpvm3.a"),
            ("libregatta.so.0", "libregatta.so.0"),
        ] {
            link(&ours.join(from), &libraries.join(to));
        }
    }
    for name in NAMES {
        // The archives also contain programs that were built with PVM's library.
        done(
            Command::new("tar")
                .args(["--exclude=*/LINUX64", "-xzf"])
                .arg(archive(name))
                .current_dir(&tree),
        );
        let of_archive = programs
            .iter()
            .filter(|program| program.sources[0].starts_with(&format!("{name}/")));
        let (made, alone): (Vec<_>, Vec<_>) = of_archive.partition(|program| program.in_makefile);
        make(&tree, name, &made);
        for program in alone {
            compile(&tree, program);
        }
    }
}

/// Builds the programs as `aimk` does: in a folder named after the architecture, with the makefile beside the sources.
fn make(tree: &Path, archive: &str, programs: &[&Program]) {
    let folder = tree.join(archive).join("built");
    std::fs::create_dir(&folder).expect("a folder");
    // taskf.o is linked into several programs, but the makefile does not list it as their dependency.
    let shared = (archive == "examples").then_some("taskf.o");
    needs::program("gfortran", "gfortran");
    let mut make = Command::new("make");
    // Variables of a `make` that runs the tests must not reach this one.
    for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS"] {
        make.env_remove(name);
    }
    make.args([
        "-f",
        "../Makefile.aimk",
        "SDIR=..",
        C_FLAGS,
        "FC=",
        "F77=gfortran",
    ])
    .arg(format!("PVM_ARCH={}", pvm::architecture()))
    .arg(format!("PVMDIR={}", tree.display()))
    .args(shared)
    .args(programs.iter().map(|program| program.name))
    .current_dir(&folder);
    done(&mut make);
}

/// Compiles a program that has no target in the makefile. It is linked with both libraries, like the others.
fn compile(tree: &Path, program: &Program) {
    let folder = |name: &str| tree.join(name).join(pvm::architecture());
    done(
        Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
            // One of the programs calls exit() without a status, which a compiler rejects if it knows exit() as a
            // builtin.
            .args(["-std=gnu89", "-w", "-fno-builtin", "-o"])
            .arg(folder("bin").join(program.name))
            .arg(tree.join(program.sources[0]))
            .arg(format!("-I{}", tree.join("include").display()))
            .arg(format!("-L{}", folder("lib").display()))
            .args(["-lgpvm3", "-lpvm3"]),
    );
}
