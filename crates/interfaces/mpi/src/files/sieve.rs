//! Reading many short runs that are close together: one long read, from which the runs are copied (data sieving).
//!
//! R. Thakur, W. Gropp, E. Lusk, "Data sieving and collective I/O in ROMIO" (1999). A read of data in the page cache
//! takes about 300 ns and 5 ns for each 100 bytes, so reading a gap of 4 KiB takes less time than another call. Writes
//! are not sieved: writing a gap back may overwrite what another process has written there.
//! [`gather_writes`](super::gather_writes) is used instead.

use super::posix::{Outcome, Posix};
use super::view::Run;

/// Maximum length of a gap that is read together with the runs on either side, in bytes.
const MAX_GAP_BYTES: i64 = 4 << 10;
/// Maximum length of a run that is copied out of a longer read, in bytes. A longer run is worth a call of its own.
const MAX_RUN_BYTES: usize = 16 << 10;
/// Maximum length of a read, in bytes: about what stays in a core's cache until it is copied.
const MAX_READ_BYTES: i64 = 256 << 10;

/// Returns whether a run follows others closely enough for all of them to be transferred together.
pub fn are_close(runs: &[Run], next: &Run) -> bool {
    let is_close = |(first, last): (&Run, &Run)| {
        (0..=MAX_GAP_BYTES).contains(&next.offset.saturating_sub(last.end()))
            && next.end().saturating_sub(first.offset) <= MAX_READ_BYTES
            && next.length.max(last.length) <= MAX_RUN_BYTES
    };
    runs.first().zip(runs.last()).is_none_or(is_close)
}

/// Runs that are still to be read, in ascending order and close together.
pub struct Sieve<'a> {
    file: &'a Posix,
    data: *mut u8,
    runs: Vec<Run>,
    buffer: Vec<u8>,
    /// Number of bytes that have been read for runs.
    moved: usize,
    /// Whether the file has ended within a run.
    ended: bool,
}

impl<'a> Sieve<'a> {
    /// Returns an empty list of runs. `data` is the memory to which all runs are relative.
    pub fn new(file: &'a Posix, data: *mut u8) -> Sieve<'a> {
        Sieve {
            file,
            data,
            runs: Vec::new(),
            buffer: Vec::new(),
            moved: 0,
            ended: false,
        }
    }

    /// Adds a run. Unless it follows closely, reads the runs before it first. Returns false if the file has ended.
    ///
    /// # Safety
    /// The run's part of the memory is valid for writes.
    pub unsafe fn add(&mut self, run: Run) -> Outcome<bool> {
        if !are_close(&self.runs, &run) {
            // SAFETY: the caller guarantees that the runs' memory is valid for writes.
            unsafe { self.read()? };
        }
        if !self.ended {
            self.runs.push(run);
        }
        Ok(!self.ended)
    }

    /// Reads the remaining runs. Returns how many bytes of all runs are before the end of the file.
    ///
    /// # Safety
    /// See [`add`](Sieve::add).
    pub unsafe fn finish(mut self) -> Outcome<usize> {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { self.read()? };
        Ok(self.moved)
    }

    unsafe fn read(&mut self) -> Outcome {
        match self.runs[..] {
            [] => {}
            [run] => {
                let to = self.data.wrapping_add(run.at);
                // SAFETY: the caller upholds the safety contract of this function.
                let got = unsafe { self.file.read(to, run.length, run.offset)? };
                self.count(got, run.length);
            }
            // SAFETY: the caller upholds the safety contract of this function.
            [first, .., last] => unsafe { self.read_together(first.offset, last.end())? },
        }
        self.runs.clear();
        Ok(())
    }

    unsafe fn read_together(&mut self, start: i64, end: i64) -> Outcome {
        let length = (end - start) as usize;
        self.buffer.reserve(length);
        let from = self.buffer.as_mut_ptr();
        // SAFETY: the buffer has room for the read, and runs are copied only as far as it was filled.
        unsafe {
            let got = self.file.read(from, length, start)?;
            for run in std::mem::take(&mut self.runs) {
                let begin = (run.offset - start) as usize;
                let bytes = run.length.min(got.saturating_sub(begin));
                let to = self.data.wrapping_add(run.at);
                to.copy_from_nonoverlapping(from.wrapping_add(begin), bytes);
                self.count(bytes, run.length);
            }
        }
        Ok(())
    }

    fn count(&mut self, got: usize, length: usize) {
        if !self.ended {
            self.moved += got;
        }
        self.ended |= got < length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    /// Reads runs one by one and by a sieve, and checks that both give the same bytes and count.
    fn check(file_bytes: usize, runs: &[(i64, usize)]) {
        let path = std::env::temp_dir().join(format!("sieve-{}-{file_bytes}", std::process::id()));
        let bytes: Vec<u8> = (0..file_bytes).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let name = CString::new(path.to_str().unwrap()).unwrap();
        let file = Posix::open(&name, libc::O_RDONLY).unwrap();
        std::fs::remove_file(&path).unwrap();
        let total = runs.iter().map(|run| run.1).sum();
        let (mut expected, mut count) = (vec![0; total], 0);
        let mut data = vec![0; total];
        let mut sieve = Sieve::new(&file, data.as_mut_ptr());
        let (mut at, mut goes_on) = (0, true);
        for &(offset, length) in runs {
            if goes_on {
                let there = file_bytes.saturating_sub(offset as usize).min(length);
                expected[at..at + there].copy_from_slice(&bytes[offset as usize..][..there]);
                count += there;
                goes_on = there == length;
            }
            // SAFETY: the runs are inside `data`.
            let _ = unsafe { sieve.add(Run { offset, at, length }) }.unwrap();
            at += length;
        }
        // SAFETY: the runs are inside `data`.
        assert_eq!(unsafe { sieve.finish() }, Ok(count));
        assert_eq!(data, expected);
    }

    #[test]
    fn runs_near_and_far_long_and_short_are_read_as_one_by_one() {
        check(0, &[(0, 8), (16, 8)]);
        check(100_000, &[]);
        check(100_000, &[(5, 8), (21, 8), (40, 1), (99_990, 20)]);
        check(
            1 << 20,
            &[(0, 8), (8200, 8), (8210, 20_000), (28_300, 4), (28_200, 4)],
        );
        let many: Vec<_> = (0..60_000).map(|k| (k * 16, 8)).collect();
        check(1 << 20, &many);
        check(500_003, &many);
    }
}
