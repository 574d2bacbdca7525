//! The shared libraries to which a program is linked: its DT_NEEDED entries.
//!
//! Read only to explain why a program did not join, and to find out what it needs to find an MPI. The file is chosen by
//! the user, so every offset is checked, and an invalid file gives no answer. Programs can be large, so only the
//! required parts are read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
/// Maximum size of a table, in bytes; larger ones count as invalid.
const MAX_SECTION_BYTES: usize = 1 << 20;
/// Maximum length of a string, in bytes; longer ones are cut.
const MAX_STRING_BYTES: usize = 4096;

/// The libraries that the loader has to load for a program or library, and where it searches first.
#[derive(Debug, Default)]
pub(crate) struct Linked {
    /// The libraries in its DT_NEEDED entries.
    pub(crate) needed: Vec<String>,
    /// The directories that the loader searches before those of `LD_LIBRARY_PATH`, separated by `:`.
    pub(crate) first: String,
}

/// Returns the libraries of a 64-bit little-endian program or library, or `None` if the file is neither.
pub(crate) fn linked(path: &Path) -> Option<Linked> {
    parse(&File::open(path).ok()?)
}

/// Returns the libraries that such a program needs.
pub(crate) fn needed(path: &Path) -> Option<Vec<String>> {
    linked(path).map(|linked| linked.needed)
}

/// Maximum size of a file that is searched for words, in bytes; searching a larger one takes too long.
const MAX_SEARCHED_BYTES: u64 = 256 << 20;

/// Returns whether the program's file contains all of these words.
pub(crate) fn contains(path: &Path, words: &[&[u8]]) -> bool {
    if path
        .metadata()
        .is_ok_and(|it| it.len() > MAX_SEARCHED_BYTES)
    {
        return false;
    }
    let file = std::fs::read(path).unwrap_or_default();
    let has = |word: &[u8]| file.windows(word.len()).any(|part| part == word);
    words.iter().all(|word| has(word))
}

/// Returns the loader that such a program names, or `None` if it names none.
pub(crate) fn loader(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let asks = |segment: &Segment| segment.kind == PT_INTERP;
    string(&file, segments(&file)?.into_iter().find(asks)?.offset)
}

/// Returns whether the file is such a program that needs no loader.
pub(crate) fn is_static(path: &Path) -> bool {
    loader(path).is_none() && needed(path).is_some()
}

/// The bytes of a file.
trait Bytes {
    /// Reads `length` bytes at offset `at`, or fewer at the end of the file.
    fn up_to(&self, at: usize, length: usize) -> Option<Vec<u8>>;

    /// Reads `length` bytes at offset `at`, or returns `None` if there are fewer.
    fn exactly(&self, at: usize, length: usize) -> Option<Vec<u8>> {
        self.up_to(at, length).filter(|found| found.len() == length)
    }
}

impl Bytes for File {
    fn up_to(&self, at: usize, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match self.read_at(&mut bytes[filled..], at.checked_add(filled)? as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        bytes.truncate(filled);
        Some(bytes)
    }
}

struct Segment {
    kind: u32,
    offset: usize,
    address: u64,
    size: usize,
}

fn parse(file: &(impl Bytes + ?Sized)) -> Option<Linked> {
    let segments = segments(file)?;
    let Some(dynamic) = segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else {
        return Some(Linked::default());
    };
    let bytes = file.exactly(dynamic.offset, dynamic.size.min(MAX_SECTION_BYTES))?;
    let entries: Vec<(u64, u64)> = bytes
        .chunks_exact(16)
        .filter_map(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?)))
        .take_while(|&(tag, _)| tag != DT_NULL)
        .collect();
    let all = |wanted: u64| entries.iter().filter(move |&&(tag, _)| tag == wanted);
    let table = all(DT_STRTAB).next()?.1;
    let strings = segments.iter().find_map(|segment| {
        let inside = usize::try_from(table.checked_sub(segment.address)?).ok()?;
        (segment.kind == PT_LOAD && inside < segment.size)
            .then(|| segment.offset.checked_add(inside))?
    })?;
    let text =
        |&(_, name): &(u64, u64)| string(file, strings.checked_add(usize::try_from(name).ok()?)?);
    // The loader ignores DT_RPATH if there is a DT_RUNPATH.
    let first = match all(DT_RUNPATH).next() {
        Some(_) => None,
        None => all(DT_RPATH).next(),
    };
    Some(Linked {
        needed: all(DT_NEEDED).map(text).collect::<Option<_>>()?,
        first: first.map_or(Some(String::new()), text)?,
    })
}

/// Returns the segments of a file that begins like such a program.
fn segments(file: &(impl Bytes + ?Sized)) -> Option<Vec<Segment>> {
    let head = file.exactly(0, 64)?;
    if head.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = usize::try_from(u64_at(&head, 32)?).ok()?;
    let size = usize::from(u16_at(&head, 54)?);
    let count = usize::from(u16_at(&head, 56)?);
    let length = Some(count * size).filter(|&length| length <= MAX_SECTION_BYTES)?;
    let headers = file.exactly(table, length)?;
    (0..count)
        .map(|index| {
            let header = headers.get(index * size..)?;
            Some(Segment {
                kind: u32::from_le_bytes(header.get(..4)?.try_into().ok()?),
                offset: usize::try_from(u64_at(header, 8)?).ok()?,
                address: u64_at(header, 16)?,
                size: usize::try_from(u64_at(header, 32)?).ok()?,
            })
        })
        .collect()
}

fn string(file: &(impl Bytes + ?Sized), at: usize) -> Option<String> {
    let bytes = file.up_to(at, MAX_STRING_BYTES)?;
    let bytes = bytes.split(|&byte| byte == 0).next()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(
        bytes.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(
        bytes.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Bytes for [u8] {
        fn up_to(&self, at: usize, length: usize) -> Option<Vec<u8>> {
            let rest = self.get(at..)?;
            Some(rest[..length.min(rest.len())].to_vec())
        }
    }

    #[test]
    fn the_shell_is_linked_to_the_c_library() {
        let libraries = needed(Path::new("/bin/sh")).expect("an ELF program");
        assert!(
            libraries.iter().any(|name| name.contains("libc")),
            "{libraries:?}"
        );
    }

    #[test]
    fn words_are_found_in_a_program() {
        let shell = Path::new("/bin/sh");
        assert!(contains(shell, &[b"ELF", b"libc.so"]));
        assert!(!contains(shell, &[b"ELF", b"ompi_mpi_comm_world"]));
        assert!(!contains(Path::new("/does/not/exist"), &[b"ELF"]));
    }

    #[test]
    fn a_script_and_a_program_with_a_loader_are_not_static() {
        assert!(!is_static(Path::new("/bin/sh")));
        assert!(!is_static(Path::new("/proc/version")));
    }

    #[test]
    fn a_truncated_program_gives_no_answer_and_no_panic() {
        let whole = std::fs::read("/bin/sh").expect("a shell");
        for length in (0..4096).chain((4096..whole.len()).step_by(997)) {
            let _ = parse(&whole[..length]);
        }
        assert!(parse(b"#!/bin/sh".as_slice()).is_none());
    }
}
