//! Files that a test writes and then executes.
//!
//! A file that is open for writing cannot be executed (ETXTBSY). A child that another test is just starting may have
//! inherited the descriptor and hold the file open. So another process writes these files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies a program with its permissions.
pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-p").arg(from).arg(to).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "a copy of {}",
        from.display()
    );
}

/// Writes a script with permissions `mode` and returns its path.
pub fn script(path: &Path, text: &str, mode: u32) -> PathBuf {
    let draft = path.with_extension("draft");
    std::fs::write(&draft, text).expect("a file");
    std::fs::set_permissions(&draft, PermissionsExt::from_mode(mode)).expect("its mode");
    copy(&draft, path);
    std::fs::remove_file(&draft).expect("the draft");
    path.to_owned()
}
