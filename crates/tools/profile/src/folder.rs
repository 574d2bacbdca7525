//! The folder in which this host's tasks write their records.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use regatta_record::{MAX_EVENTS, words};

/// Files by their names, which are unique for each process.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Maximum size of a record, in bytes.
pub(crate) const MAX_RECORD_BYTES: u64 = words(MAX_EVENTS) as u64 * 8;
/// The suffix of a record's name.
const ENDING: &str = ".record";

/// A temporary folder that only this user can access. It is removed on drop, with the records.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates a folder with a new name in `place`.
    pub(crate) fn make(place: &Path) -> Result<Folder, String> {
        // The loader and the recorder read the path as text, so it has no special characters.
        let path = place.join(format!("regatta-profile-{:016x}", fastrand::u64(..)));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            let path = path.display();
            format!("the folder {path} for the records of the tasks cannot be created: {error}")
        })?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Reads all records in the folder.
    pub(crate) fn records(&self, problems: &mut Vec<String>) -> Files {
        let mut files = Files::new();
        let entries = std::fs::read_dir(&self.0).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !is_name(&name) {
                continue;
            }
            match read(&entry.path()) {
                Ok(bytes) => {
                    files.insert(name, bytes);
                }
                Err(error) => problems.push(format!("the record {name} cannot be read: {error}")),
            }
        }
        files
    }
}

/// Removes the folder, with the records.
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns whether the recorder may have given this name.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let stem = name.strip_suffix(ENDING);
    stem.is_some_and(|stem| !stem.is_empty() && stem.len() <= 200 && stem.chars().all(plain))
}

/// Reads a regular file of at most a record's maximum size.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    let known = file.metadata()?;
    if !known.is_file() || known.len() > MAX_RECORD_BYTES {
        return Err(std::io::Error::other(
            "it does not have the size of a record",
        ));
    }
    let mut bytes = Vec::new();
    file.take(MAX_RECORD_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a new file in place of any with this name. Another user may have put a link there, which is not followed.
fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

/// Writes the records into a folder of the user's, with access for this user only.
pub(crate) fn keep(files: &Files, folder: &Path) -> Result<(), String> {
    let written = || {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
        for (name, bytes) in files {
            write_new(&folder.join(name), bytes)?;
        }
        Ok(())
    };
    written().map_err(|error: std::io::Error| {
        let folder = folder.display();
        format!("the records could not be kept in {folder}: {error}")
    })
}
