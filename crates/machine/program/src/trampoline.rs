//! MPItrampoline, which JAX and Julia packages contain: a library of MPI functions that loads the MPI named by a
//! variable.

use std::path::{Path, PathBuf};

use crate::libraries::{Variable, value};

/// The variables, and the file for each, relative to the command's folder.
const FILES: [(&str, &str); 2] = [
    ("MPITRAMPOLINE_LIB", "../lib/regatta-mpi/libmpiwrapper.so"),
    ("MPITRAMPOLINE_MPIEXEC", "../lib/regatta/mpi/mpiexec"),
];

/// Returns the environment with what MPItrampoline needs to find Regatta's library. If the user has set the first
/// variable, it is not changed.
pub(crate) fn with_trampoline(mut environment: Vec<Variable>, folder: &Path) -> Vec<Variable> {
    if value(&environment, FILES[0].0).is_some() {
        return environment;
    }
    for (name, place) in FILES {
        if let Some(file) = trusted(&folder.join(place)) {
            environment.retain(|(known, _)| known != name);
            environment.push((name.into(), file.into()));
        }
    }
    environment
}

/// Returns the path of this file without `..`, under its own name, or `None` if another user could have put it there.
fn trusted(file: &Path) -> Option<PathBuf> {
    regatta_trust::check(file).ok()?;
    Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_is_named_unless_the_user_has_chosen() {
        let name = format!("regatta-program-{}-trampoline", std::process::id());
        let top = std::env::temp_dir().join(name);
        let folder = top.join("bin");
        std::fs::create_dir_all(&folder).expect("a folder");
        assert!(with_trampoline(Vec::new(), &folder).is_empty());
        for (_, place) in FILES {
            let file = top.join(place.trim_start_matches("../"));
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
            std::fs::write(&file, "").expect("a file");
        }
        let named = with_trampoline(Vec::new(), &folder);
        let names: Vec<_> = named.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names, ["MPITRAMPOLINE_LIB", "MPITRAMPOLINE_MPIEXEC"]);
        assert!(named.iter().all(|(_, file)| Path::new(file).is_absolute()));
        let chosen = vec![("MPITRAMPOLINE_LIB".into(), "/other.so".into())];
        assert_eq!(with_trampoline(chosen.clone(), &folder), chosen);
        std::fs::remove_dir_all(&top).expect("our own");
    }
}
