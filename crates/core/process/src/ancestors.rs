//! Programs that a task starts as processes of its own.
//!
//! Such a program inherits the environment of the task, and with it the join token, whose descriptors it does not have: it is not that task. It
//! is told from a task whose descriptors were closed on the way, by a script that started it, say: some ancestor of it has the same token and has joined.

use regatta_memory::remote::other_threads;

/// A process up the line of parents; beyond that many it is not looked for.
const MAX_ANCESTORS: usize = 64;

/// The parent of a process.
fn parent(process: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may have any character.
    let (_, after) = text.rsplit_once(')')?;
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    (parent > 1).then_some(parent)
}

/// The content of a file of the process, which the first thread has no more when it has left before others.
fn file(process: u32, name: &str) -> Vec<u8> {
    let others =
        other_threads(process).map(|thread| format!("/proc/{process}/task/{thread}/{name}"));
    let paths = std::iter::once(format!("/proc/{process}/{name}")).chain(others);
    // Of a process of another user nothing can be read: it is none of ours.
    let mut contents = paths.filter_map(|path| std::fs::read(path).ok());
    contents
        .find(|content| !content.is_empty())
        .unwrap_or_default()
}

/// Whether this process has the entry in its environment, and a job's memory mapped: the launcher has the memory and not the entry, a script has the
/// entry alone.
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

/// Whether an ancestor of this process is the task to which the token was given, and has joined with it.
pub(crate) fn include_task(variable: &str, token: &str) -> bool {
    let entry = format!("{variable}={token}").into_bytes();
    let mut ancestors = std::iter::successors(parent(std::process::id()), |&at| parent(at));
    let mut ancestors = ancestors.by_ref().take(MAX_ANCESTORS);
    ancestors.any(|process| is_task(process, &entry))
}
