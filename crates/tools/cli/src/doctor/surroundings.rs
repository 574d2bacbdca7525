//! The environment of this command: other launchers, containers, and the library that programs would load.

use std::path::PathBuf;

use super::file;
use super::finding::Finding;

const AREA: &str = "surroundings";

/// The variable by which processes find PVM's own daemon.
const PVM: &str = "PVMSOCK";

pub fn findings() -> Vec<Finding> {
    let mut findings = launchers(&regatta_foreign::environment);
    if std::env::var_os(PVM).is_some() {
        let value = format!("the original PVM is in the environment ({PVM} is set)");
        findings.push(
            Finding::info(AREA, "launcher", value)
                .next("PVM programs use Regatta if its library is loaded"),
        );
    }
    if let Some(found) = regatta_launch::slurm::describe() {
        findings.push(Finding::info(AREA, "Slurm", found));
    }
    if let Some(kind) = container() {
        findings.push(Finding::info(
            AREA,
            "container",
            format!("this is a container ({kind}); its restrictions are listed above"),
        ));
    }
    findings.push(library());
    findings
}

/// Returns the launchers of other systems that have started this command.
fn launchers(environment: regatta_foreign::Environment) -> Vec<Finding> {
    let stops = regatta_foreign::of_several(environment);
    let finding = |found: regatta_foreign::Found| {
        let (launcher, mark) = (found.launcher, &found.mark);
        let number = match found.tasks {
            Some(tasks) => format!("one of {tasks}"),
            None => "the number of processes is unknown".to_owned(),
        };
        let value = format!("started by {launcher} ({mark}), {number}");
        let finding = Finding::info(
            AREA,
            "launcher",
            match stops {
                Some(_) => {
                    format!("{value}: a Regatta program started directly would exit with an error")
                }
                None => value,
            },
        );
        finding.next("start Regatta programs with `regatta run`")
    };
    regatta_foreign::all(environment)
        .into_iter()
        .map(finding)
        .collect()
}

fn container() -> Option<String> {
    if let Some(kind) = file("/run/systemd/container").or_else(|| std::env::var("container").ok()) {
        return Some(kind);
    }
    [
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/singularity", "singularity"),
        ("/.singularity.d", "apptainer"),
    ]
    .into_iter()
    .find(|(mark, _)| std::path::Path::new(mark).exists())
    .map(|(_, kind)| kind.to_owned())
}

/// Returns the library that the dynamic loader would find: by its variable, beside this command, or in the usual
/// directories.
fn library() -> Finding {
    const FILE: &str = "libregatta.so";
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(PathBuf::from));
    let searched = std::env::var_os("LD_LIBRARY_PATH");
    let folders = searched
        .iter()
        .flat_map(std::env::split_paths)
        .chain(
            beside
                .iter()
                .flat_map(|folder| [folder.clone(), folder.join("../lib")]),
        )
        .chain(
            [
                "/usr/local/lib",
                "/usr/lib",
                "/usr/lib/x86_64-linux-gnu",
                "/usr/lib/aarch64-linux-gnu",
            ]
            .map(PathBuf::from),
        )
        .map(|folder| folder.join(FILE))
        .filter(|path| path.exists())
        .filter_map(|path| path.canonicalize().ok());
    let mut found: Vec<String> = Vec::new();
    for path in folders.map(|path| path.display().to_string()) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    match &found[..] {
        [] => Finding::missing(AREA, FILE, "not found beside this command or by the loader; programs in C and other languages need it")
            .next("make install PREFIX=DIR, and LD_LIBRARY_PATH=DIR/lib if DIR is not in the loader's path"),
        [one] => Finding::ok(AREA, FILE, one.clone()),
        [first, rest @ ..] => Finding::info(AREA, FILE, format!("{first}; also {}: the loader uses the first it finds", rest.join(", "))),
    }
}
