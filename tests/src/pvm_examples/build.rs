//! The sources and the built programs of the examples, and a home in which they are.

use std::path::Path;
use std::process::Command;

use super::Program;
use crate::needs;
use crate::pvm;
use crate::pvm_machine::Machine;

/// Where Debian has the archives of sources.
const ARCHIVES: &str = "/usr/share/doc/pvm-examples";
const NAMES: [&str; 2] = ["examples", "gexamples"];
/// Where Debian has the programs.
pub const DEBIAN: &str = "/usr/bin";

/// The C of their time.
const C_FLAGS: &str = "ARCHCFLAGS=-std=gnu89 -w";

/// A command's output; it must succeed.
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

/// The C and Fortran sources in the archives.
pub fn sources() -> Vec<String> {
    let list = |name| done(Command::new("tar").arg("-tzf").arg(archive(name)));
    let all = NAMES.map(list).concat();
    let source = |line: &&str| line.ends_with(".c") || line.ends_with(".f");
    all.lines().filter(source).map(str::to_owned).collect()
}

/// The programs that Debian has built of them, and some more.
pub fn debian_programs() -> Vec<String> {
    needs::file(ARCHIVES, "pvm-examples");
    let list = done(Command::new("dpkg").args(["-L", "pvm-examples"]));
    let name = |line: &str| line.strip_prefix("/usr/bin/").map(str::to_owned);
    list.lines().filter_map(name).collect()
}

/// Whose headers and libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Ours.
    Regatta,
    /// The original's.
    Pvm,
}

/// Build them in `$HOME/pvm3`, as PVM's own tree has it: headers, libraries, sources and programs beside each other.
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
    // Where nothing is found here the linker takes the system's, which are PVM's.
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
        // The archives have built programs as well: of PVM's library.
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

/// As `aimk` does it: in a folder of the architecture, by the makefile beside the sources.
fn make(tree: &Path, archive: &str, programs: &[&Program]) {
    let folder = tree.join(archive).join("built");
    std::fs::create_dir(&folder).expect("a folder");
    // An object with which several are linked has a target of its own, on which they do not depend.
    let shared = (archive == "examples").then_some("taskf.o");
    needs::program("gfortran", "gfortran");
    let mut make = Command::new("make");
    // The variables of a make around the tests are not for this one.
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

/// Compiles a program that no makefile builds: linked with both libraries, like the others.
fn compile(tree: &Path, program: &Program) {
    let folder = |name: &str| tree.join(name).join(pvm::architecture());
    done(
        Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
            // One of them calls exit() without a status, which is only told to a compiler that knows exit().
            .args(["-std=gnu89", "-w", "-fno-builtin", "-o"])
            .arg(folder("bin").join(program.name))
            .arg(tree.join(program.sources[0]))
            .arg(format!("-I{}", tree.join("include").display()))
            .arg(format!("-L{}", folder("lib").display()))
            .args(["-lgpvm3", "-lpvm3"]),
    );
}
