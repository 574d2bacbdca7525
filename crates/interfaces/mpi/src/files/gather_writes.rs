//! Writing many short runs that are close together, through a [`Mapping`](super::mapping::Mapping) of that part of the
//! file.
//!
//! A pwrite of 8 bytes takes 400 to 900 ns. A mapping takes some 3 us, each of its pages 1 us, and each run 20 ns.

use super::mapping::PAGE_BYTES;
use super::posix::{Outcome, Posix};
use super::sieve::are_close;
use super::view::Run;

/// Number of runs whose pwrite calls take as long as making a mapping.
const RUNS_PER_MAPPING: usize = 8;
/// Number of runs whose pwrite calls take as long as one page of a mapping.
const RUNS_PER_PAGE: usize = 3;

/// Runs that are still to be written, in ascending order and close together.
pub struct GatherWrites<'a> {
    file: &'a Posix,
    data: *const u8,
    runs: Vec<Run>,
}

impl<'a> GatherWrites<'a> {
    /// Returns an empty list of runs. `data` is the memory to which all runs are relative.
    pub fn new(file: &'a Posix, data: *const u8) -> GatherWrites<'a> {
        GatherWrites {
            file,
            data,
            runs: Vec::new(),
        }
    }

    /// Adds a run. Unless it follows closely, writes the runs before it first.
    ///
    /// # Safety
    /// The run's part of the memory is valid for reads.
    pub unsafe fn add(&mut self, run: Run) -> Outcome {
        if !are_close(&self.runs, &run) {
            // SAFETY: the caller guarantees that the runs' memory is valid for reads.
            unsafe { self.write()? };
        }
        self.runs.push(run);
        Ok(())
    }

    /// Writes the remaining runs.
    ///
    /// # Safety
    /// See [`add`](GatherWrites::add).
    pub unsafe fn finish(mut self) -> Outcome {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { self.write() }
    }

    unsafe fn write(&mut self) -> Outcome {
        let runs = std::mem::take(&mut self.runs);
        let mut left = &runs[..];
        if let [first, .., last] = left {
            let pages = ((last.end() - first.offset) / PAGE_BYTES) as usize;
            if left.len() > RUNS_PER_MAPPING + RUNS_PER_PAGE * pages {
                // SAFETY: the caller upholds the safety contract of this function.
                left = unsafe { self.write_together(left)? };
            }
        }
        for run in left {
            let data = self.data.wrapping_add(run.at);
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { self.file.write(data, run.length, run.offset)? };
        }
        self.runs = runs;
        self.runs.clear();
        Ok(())
    }

    /// Writes several runs through a mapping as far as possible, and returns the others.
    unsafe fn write_together<'r>(&self, runs: &'r [Run]) -> Outcome<&'r [Run]> {
        let [first, front @ .., last] = runs else {
            return Ok(runs);
        };
        if !self.file.can_be_mapped() {
            return Ok(runs);
        }
        let mut before = runs;
        if self.file.size()? < last.end() {
            // Writing the last run makes the file long enough for the mapping. That is out of order, so space for all
            // runs is reserved first. If there is not enough, the runs are written in order until the device is full,
            // and nothing is written behind that.
            let data = self.data.wrapping_add(last.at);
            // SAFETY: the caller upholds the safety contract of this function.
            let is_long = self.file.reserve(first.offset, last.end())
                && unsafe { self.file.write(data, last.length, last.offset) }.is_ok();
            if !is_long {
                return Ok(runs);
            }
            before = &runs[..=front.len()];
        }
        let Some(mapping) = self.file.map(first.offset, last.end()) else {
            return Ok(before);
        };
        // SAFETY: the caller upholds the safety contract of this function.
        let written = unsafe { mapping.write(self.data, before) };
        self.file.note_written();
        Ok(&before[written..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    /// Writes runs one by one and together, and checks that both give the same file. Returns the file and its bytes.
    fn check(before: usize, runs: &[(i64, usize)]) -> (Posix, Vec<u8>) {
        let name = format!(
            "gather-writes-{}-{before}-{}",
            std::process::id(),
            runs.len()
        );
        let path = std::env::temp_dir().join(name);
        let mut expected = vec![b'.'; before];
        std::fs::write(&path, &expected).unwrap();
        let name = CString::new(path.to_str().unwrap()).unwrap();
        let file = Posix::open(&name, libc::O_RDWR).unwrap();
        let total = runs.iter().map(|run| run.1).sum();
        let data: Vec<u8> = (0..total).map(|at| (at % 251) as u8).collect();
        let mut writes = GatherWrites::new(&file, data.as_ptr());
        let mut at = 0;
        for &(offset, length) in runs {
            let end = offset as usize + length;
            expected.resize(expected.len().max(end), 0);
            expected[offset as usize..end].copy_from_slice(&data[at..at + length]);
            // SAFETY: the runs are inside `data`.
            unsafe { writes.add(Run { offset, at, length }) }.unwrap();
            at += length;
        }
        // SAFETY: the runs are inside `data`.
        unsafe { writes.finish() }.unwrap();
        let written = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(written == expected);
        (file, written)
    }

    #[test]
    fn runs_near_and_far_long_and_short_are_written_as_one_by_one() {
        check(0, &[]);
        check(0, &[(0, 8), (16, 8)]);
        check(
            100,
            &[(0, 8), (8200, 8), (8210, 20_000), (28_300, 4), (128_200, 4)],
        );
        let many: Vec<_> = (0..60_000).map(|k| (5 + k * 16, 8)).collect();
        check(0, &many);
        check(500_003, &many);
    }

    /// Runs that a mapping cannot write are left to pwrite, which reports the error.
    #[test]
    fn a_run_behind_the_file_is_not_taken_by_a_mapping() {
        let (file, _) = check(4096, &[(0, 8)]);
        let runs: Vec<_> = (0..600)
            .map(|k| Run {
                offset: k as i64 * 16,
                at: k * 8,
                length: 8,
            })
            .collect();
        let data = vec![7; 8 * runs.len()];
        let mapping = file.map(0, 9600).expect("a mapping");
        // SAFETY: the runs are inside `data`.
        assert_eq!(unsafe { mapping.write(data.as_ptr(), &runs) }, 0);
        assert_eq!(file.size(), Ok(4096));
    }
}
