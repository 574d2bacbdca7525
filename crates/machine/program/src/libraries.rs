//! Adds Regatta's libraries to the environment of tasks, so that they load those that belong to this command.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::{profiled, trampoline};

/// The name and the value of an environment variable.
pub type Variable = (OsString, OsString);

/// The variable with the directories that the loader searches before its default ones.
const LOADER: &str = "LD_LIBRARY_PATH";
/// The possible directories of Regatta's libraries, relative to the command's, and a file that is in each.
const LIBRARIES: [(&str, &str); 7] = [
    ("../lib/regatta-pvm", "libpvm3.so.3"),
    ("../lib/regatta-nx", "libnx.so.0"),
    ("../lib/regatta-express", "libexpress.so.0"),
    ("../lib/regatta-mpi", "libmpi_abi.so.1"),
    ("../lib/regatta/mpich", "libmpi.so.12"),
    ("../lib", "libregatta.so.0"),
    ("", "libregatta.so.0"),
];
/// Prefixes of the names of Regatta's libraries.
const OURS: [&str; 9] = [
    "libregatta.so",
    "libpvm3.so",
    "libnx.so",
    "libexpress.so",
    "libcros.so",
    "libplotix.so",
    "libmpi_abi.so",
    "libmpi.so.12",
    "libmpich.so.12",
];
/// The loader's default directories. They do not have to be listed, and if listed first they would hide what the user
/// has put before them.
const USUAL: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];

/// Returns the environment with the directories of Regatta's libraries in front of the loader's path, except those that
/// are in it already. So tasks load the libraries that belong to this command, and not those of another PVM.
/// MPItrampoline finds Regatta's, too.
pub fn with_libraries(environment: Vec<Variable>) -> Vec<Variable> {
    let command = std::env::current_exe().unwrap_or_default();
    let folder = command.parent().unwrap_or(Path::new("/"));
    let folders = LIBRARIES.iter().filter_map(|(place, file)| {
        let place = folder.join(place);
        regatta_trust::check(&place.join(file)).ok()?;
        place.canonicalize().ok()
    });
    let environment = trampoline::with_trampoline(in_front(environment, folders), folder);
    profiled::with_recorder(environment, folder)
}

/// Returns whether a file of this name is one of Regatta's libraries.
pub(crate) fn is_ours(file: &str) -> bool {
    OURS.iter().any(|ours| file.starts_with(ours))
}

/// Adds the directories as [`with_libraries`] does, and in front of them those from which a process with these mappings
/// has loaded Regatta's libraries.
pub fn with_libraries_of(environment: Vec<Variable>, maps: &str) -> Vec<Variable> {
    let ours = |file: &OsStr| is_ours(&file.to_string_lossy());
    let loaded = maps.lines().filter_map(|line| {
        let path = Path::new(&line[line.find('/')?..]);
        ours(path.file_name()?).then(|| path.parent().map(Path::to_owned))?
    });
    in_front(with_libraries(environment), loaded)
}

/// Returns the value of a variable.
pub(crate) fn value<'a>(environment: &'a [Variable], name: &str) -> Option<&'a OsStr> {
    let found = environment.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_os_str())
}

/// Puts these directories in front of the loader's path, except those that are in it already.
pub(crate) fn in_front(
    mut environment: Vec<Variable>,
    folders: impl Iterator<Item = PathBuf>,
) -> Vec<Variable> {
    let at = environment.iter().position(|(name, _)| name == LOADER);
    let known = at.map(|at| environment[at].1.clone()).unwrap_or_default();
    let listed: Vec<PathBuf> = std::env::split_paths(&known).collect();
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let usual = USUAL.iter().any(|usual| Path::new(usual) == folder);
        if !usual && !listed.contains(&folder) && !all.contains(&folder) {
            all.push(folder);
        }
    }
    if all.is_empty() {
        return environment;
    }
    if !known.is_empty() {
        all.extend(listed);
    }
    if let Ok(value) = std::env::join_paths(all) {
        match at {
            Some(at) => environment[at].1 = value,
            None => environment.push((LOADER.into(), value)),
        }
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_in_front_once_and_the_users_own_stay() {
        let folders = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let with = |before: Option<&str>, names: &[&str]| {
            let before = before.map(|value| (LOADER.into(), value.into()));
            let after = in_front(before.into_iter().collect(), folders(names).into_iter());
            after.into_iter().map(|(_, value)| value).next()
        };
        assert_eq!(with(None, &["/a", "/a", "/b"]), Some("/a:/b".into()));
        assert_eq!(with(Some("/x:/a"), &["/a", "/b"]), Some("/b:/x:/a".into()));
        assert_eq!(with(Some(""), &["/a"]), Some("/a".into()));
        assert_eq!(with(Some("/x"), &["/usr/lib"]), Some("/x".into()));
        assert_eq!(with(None, &[]), None);
    }
}
