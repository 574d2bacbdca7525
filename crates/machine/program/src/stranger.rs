//! Detects another PVM's library that a running task has loaded instead of Regatta's.

use std::path::{Path, PathBuf};

/// Returns another PVM's library in the text of a process's mappings. Regatta's library of that name also loads
/// libregatta.so.
pub fn other_pvm(maps: &str) -> Option<PathBuf> {
    let files = || {
        maps.lines()
            .filter_map(|line| Some(&line[line.find('/')?..]))
    };
    let named = |path: &str, name: &str| {
        path.rsplit('/')
            .next()
            .is_some_and(|file| file.starts_with(name))
    };
    let library = files().find(|path| named(path, "libpvm3.so"))?;
    let has_ours = files().any(|path| named(path, "libregatta.so"));
    (!has_ours).then(|| PathBuf::from(library))
}

/// Returns a line for the standard error of a task that has loaded this library, which explains the problem.
pub fn sentence(library: &Path) -> String {
    let library = library.display();
    format!(
        "regatta: this task has loaded the library of another PVM, {library}, so it never joins this job, for which its parent waits; put Regatta's folder lib/regatta-pvm first in LD_LIBRARY_PATH (for R in R_LD_LIBRARY_PATH), or link the program to it with -Wl,-rpath\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOREIGN: &str = "/usr/lib/x86_64-linux-gnu/libpvm3.so.3.4.6";

    fn maps(files: &[&str]) -> String {
        let line = |file: &&str| format!("7f15-7f16 r--p 00000000 fe:00 181 {file}\n");
        files.iter().map(line).collect()
    }

    #[test]
    fn another_pvm_s_library_is_told_from_ours() {
        let libc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
        let ours = "/usr/local/lib/regatta-pvm/libpvm3.so.3";
        let regatta = "/usr/local/lib/libregatta.so.0.1.0";
        assert_eq!(
            other_pvm(&maps(&["[heap]", libc, FOREIGN])),
            Some(FOREIGN.into())
        );
        assert_eq!(other_pvm(&maps(&[libc, ours, regatta])), None);
        assert_eq!(other_pvm(&maps(&["[heap]", libc])), None);
        assert_eq!(other_pvm(""), None);
    }
}
