//! Files that a test writes and then runs.
//!
//! A file that is open for writing cannot be executed (ETXTBSY), nor as long as a process that another test is just starting has inherited
//! the descriptor. So another process writes them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies a program.
pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-p").arg(from).arg(to).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "a copy of {}",
        from.display()
    );
}

/// Writes a script that its owner, or whoever `mode` says, may run; returns its path.
pub fn script(path: &Path, text: &str, mode: u32) -> PathBuf {
    let draft = path.with_extension("draft");
    std::fs::write(&draft, text).expect("a file");
    std::fs::set_permissions(&draft, PermissionsExt::from_mode(mode)).expect("its mode");
    copy(&draft, path);
    std::fs::remove_file(&draft).expect("the draft");
    path.to_owned()
}
