//! Which shared libraries a program is linked to: its DT_NEEDED entries.
//!
//! Read only to explain why a program did not join; the file is whatever the user named, so every offset is checked and
//! anything odd is simply no answer.

use std::path::Path;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
/// Larger files are not read: the answer is not worth it.
const LARGEST: u64 = 256 << 20;

/// The libraries that a 64-bit little-endian program asks for; `None` when the file is not such a program.
pub(crate) fn needed(path: &Path) -> Option<Vec<String>> {
    if path.metadata().ok()?.len() > LARGEST {
        return None;
    }
    parse(&std::fs::read(path).ok()?)
}

/// Does the program's file contain all of these?
pub(crate) fn contains(path: &Path, words: &[&[u8]]) -> bool {
    if path.metadata().is_ok_and(|it| it.len() > LARGEST) {
        return false;
    }
    let file = std::fs::read(path).unwrap_or_default();
    let has = |word: &[u8]| file.windows(word.len()).any(|part| part == word);
    words.iter().all(|word| has(word))
}

/// The loader that such a program asks for; `None` also when it asks for none.
pub(crate) fn loader(path: &Path) -> Option<String> {
    if path.metadata().ok()?.len() > LARGEST {
        return None;
    }
    let file = std::fs::read(path).ok()?;
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let asks = |segment: &Segment| segment.kind == PT_INTERP;
    string(&file, segments(&file)?.into_iter().find(asks)?.offset)
}

/// Is it such a program that needs no loader?
pub(crate) fn is_static(path: &Path) -> bool {
    loader(path).is_none() && needed(path).is_some()
}

struct Segment {
    kind: u32,
    offset: usize,
    address: u64,
    size: usize,
}

fn parse(file: &[u8]) -> Option<Vec<String>> {
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let segments = segments(file)?;
    let Some(dynamic) = segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else {
        return Some(Vec::new());
    };
    let bytes = file.get(dynamic.offset..dynamic.offset.checked_add(dynamic.size)?)?;
    let entries: Vec<(u64, u64)> = bytes
        .chunks_exact(16)
        .filter_map(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?)))
        .take_while(|&(tag, _)| tag != DT_NULL)
        .collect();
    let table = entries.iter().find(|&&(tag, _)| tag == DT_STRTAB)?.1;
    let strings = segments.iter().find_map(|segment| {
        let inside = usize::try_from(table.checked_sub(segment.address)?).ok()?;
        (segment.kind == PT_LOAD && inside < segment.size)
            .then(|| segment.offset.checked_add(inside))?
    })?;
    entries
        .iter()
        .filter(|&&(tag, _)| tag == DT_NEEDED)
        .map(|&(_, name)| string(file, strings.checked_add(usize::try_from(name).ok()?)?))
        .collect()
}

fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    let table = usize::try_from(u64_at(file, 32)?).ok()?;
    let size = usize::from(u16_at(file, 54)?);
    let count = usize::from(u16_at(file, 56)?);
    (0..count)
        .map(|index| {
            let header = file.get(table.checked_add(index * size)?..)?;
            Some(Segment {
                kind: u32::from_le_bytes(header.get(..4)?.try_into().ok()?),
                offset: usize::try_from(u64_at(header, 8)?).ok()?,
                address: u64_at(header, 16)?,
                size: usize::try_from(u64_at(header, 32)?).ok()?,
            })
        })
        .collect()
}

fn string(file: &[u8], at: usize) -> Option<String> {
    let bytes = file.get(at..)?.split(|&byte| byte == 0).next()?;
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
        assert_eq!(parse(b"#!/bin/sh"), None);
    }
}
