//! Processes that could not make a record. Each leaves an empty file whose name says why.

use std::collections::BTreeMap;
use std::path::Path;

use crate::folder::Files;

/// Maximum number of processes named in a sentence.
const MAX_NAMED_PROCESSES: usize = 5;

/// The pids of these processes, by host and errno.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded(BTreeMap<(String, i32), Vec<u32>>);

impl Unrecorded {
    /// Separates these processes' files from the records.
    pub(crate) fn split(files: Files) -> (Files, Unrecorded) {
        let mut found = Unrecorded::default();
        let mut others = Files::new();
        for (name, bytes) in files {
            match said_by(&name).filter(|_| bytes.is_empty()) {
                Some((host, pid, error)) => {
                    let place = found.0.entry((host.to_owned(), error)).or_default();
                    place.push(pid);
                }
                None => {
                    others.insert(name, bytes);
                }
            }
        }
        (others, found)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a sentence for each host and error.
    pub(crate) fn problems(&self, folder: &Path) -> Vec<String> {
        let sentence = |((host, error), pids): (&(String, i32), &Vec<u32>)| {
            let shown = pids.iter().take(MAX_NAMED_PROCESSES).map(u32::to_string);
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = match pids.len().saturating_sub(MAX_NAMED_PROCESSES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let error = std::io::Error::from_raw_os_error(*error);
            format!(
                "process {shown}{more} of {host} could not write a record in {} ({error}), so its calls are not counted: free space there, or record fewer events (--events)",
                folder.display()
            )
        };
        self.0.iter().map(sentence).collect()
    }
}

/// Returns the host, the pid and the errno in the name `host-process-time-error28.record`.
fn said_by(name: &str) -> Option<(&str, u32, i32)> {
    let (rest, error) = name.strip_suffix(".record")?.rsplit_once("-error")?;
    let mut parts = rest.splitn(3, '-');
    let (host, pid) = (parts.next()?, parts.next()?);
    Some((host, pid.parse().ok()?, error.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_files_say_which_process_could_not_make_a_record_and_why() {
        let names = ["host-7-99-error28.record", "host-8-99-error28.record"];
        let sound = [
            "host-9-99.record",
            "host-9-98-errorx.record",
            "error28.record",
        ];
        let all = names.iter().chain(&sound);
        let mut files: Files = all.map(|name| (name.to_string(), Vec::new())).collect();
        files.insert("host-5-99-error28.record".to_owned(), vec![0]);
        let (others, found) = Unrecorded::split(files);
        assert_eq!(others.len(), 4);
        let said = found.problems("/tmp/x".as_ref());
        let part =
            "process 7, 8 of host could not write a record in /tmp/x (No space left on device";
        assert!(said.len() == 1 && said[0].starts_with(part), "{said:?}");
    }
}
