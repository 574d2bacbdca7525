//! Programs that a task starts as processes of its own.
//!
//! Such a program inherits the environment of the task, and with it the join token, but not the token's descriptors: it is not that task. A task
//! whose descriptors were closed before it started, for example by a script, is in the same situation. The difference is that such a program has an
//! ancestor that has the same token and has joined.

use regatta_memory::remote::other_threads;

/// Maximum number of ancestors that are checked.
const MAX_ANCESTORS: usize = 64;

/// Returns the parent of a process.
fn parent(process: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may contain any character.
    let (_, after) = text.rsplit_once(')')?;
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    (parent > 1).then_some(parent)
}

/// Returns the contents of a file of a process. If the first thread has ended before others, the file is read from another thread.
fn file(process: u32, name: &str) -> Vec<u8> {
    let others =
        other_threads(process).map(|thread| format!("/proc/{process}/task/{thread}/{name}"));
    let paths = std::iter::once(format!("/proc/{process}/{name}")).chain(others);
    // Files of other users' processes cannot be read; such a process is not a task of this job.
    let mut contents = paths.filter_map(|path| std::fs::read(path).ok());
    contents
        .find(|content| !content.is_empty())
        .unwrap_or_default()
}

/// Returns whether this process has the entry in its environment and has a job's memory mapped. The launcher has only the memory, a script only the
/// entry.
fn is_task(process: u32, entry: &[u8]) -> bool {
    let environment = file(process, "environ");
    let mut entries = environment.split(|&byte| byte == 0);
    let memory = format!("/memfd:{}", regatta_segment::job::MEMORY_NAME);
    let is_memory = |line: &[u8]| {
        line.windows(memory.len())
            .any(|part| part == memory.as_bytes())
    };
    entries.any(|one| one == entry)
        && file(process, "maps")
            .split(|&byte| byte == b'\n')
            .any(is_memory)
}

/// Returns whether an ancestor of this process is the task to which the token was given, and has joined with it.
pub(crate) fn include_task(variable: &str, token: &str) -> bool {
    let entry = format!("{variable}={token}").into_bytes();
    let mut ancestors = std::iter::successors(parent(std::process::id()), |&at| parent(at));
    let mut ancestors = ancestors.by_ref().take(MAX_ANCESTORS);
    ancestors.any(|process| is_task(process, &entry))
}
