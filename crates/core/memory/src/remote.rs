//! The memory of another process, read by the kernel in a single copy (Cross Memory Attach).
//!
//! Containers and hardened kernels (Yama, seccomp) refuse that. So it is asked for once per peer, and the pipes carry everything where it is refused.
//!
//! The kernel takes the number of a process for that of its first thread, which has no memory any more when it has left (`pthread_exit`), however
//! long others go on. Then the memory is had by the number of another one.

/// Read from the memory of process `pid` at `address` straight into `to`: one copy made by the
/// kernel (Cross Memory Attach). Returns how many bytes came, which may be fewer than asked.
///
/// # Safety
/// `to` must be writable for `len` bytes. The remote side is checked by the kernel.
pub unsafe fn pull(pid: u32, address: u64, to: *mut u8, len: usize) -> std::io::Result<usize> {
    let local = libc::iovec {
        iov_base: to.cast(),
        iov_len: len,
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: len,
    };
    let read = |thread: u32| {
        // SAFETY: the iovecs live across the call; the caller vouches for `to`.
        let got =
            unsafe { libc::process_vm_readv(thread as libc::pid_t, &local, 1, &remote, 1, 0) };
        usize::try_from(got).map_err(|_| std::io::Error::last_os_error())
    };
    match read(pid) {
        Err(error) if has_left(&error) => by_other_threads(pid, error, read),
        result => result,
    }
}

/// Whether the kernel has found no memory under a number: the thread has left, or there is none.
fn has_left(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

/// Reads by threads of the process other than the first one, until one is there.
#[cold]
fn by_other_threads(
    pid: u32,
    error: std::io::Error,
    read: impl Fn(u32) -> std::io::Result<usize>,
) -> std::io::Result<usize> {
    let threads = other_threads(pid).map(read);
    let mut answers = threads.filter(|answer| !answer.as_ref().is_err_and(has_left));
    answers.next().unwrap_or(Err(error))
}

/// The numbers of the threads of a process other than the first one.
pub fn other_threads(pid: u32) -> impl Iterator<Item = u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let names = threads.into_iter().flatten().flatten();
    let numbers = names.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    numbers.filter(move |&thread| thread != pid)
}

/// May this process read the memory of `pid`? Tried with one byte.
pub fn may_pull(pid: u32, probe_address: u64) -> std::io::Result<()> {
    let mut byte = 0u8;
    // SAFETY: one byte is writable at `byte`.
    match unsafe { pull(pid, probe_address, &mut byte, 1) } {
        Ok(1) => Ok(()),
        Ok(_) => Err(std::io::Error::from_raw_os_error(libc::EFAULT)),
        Err(error) => Err(error),
    }
}

/// Another process whose memory is read. The number of a process is given to others when it has ended, so each has a word of its
/// own in its memory: where that is read, the memory is the one that is meant.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// The number of the process.
    pub pid: u32,
    /// Where its word is.
    pub address: u64,
    /// The word, which no other process has there.
    pub word: u64,
}

impl Remote {
    /// Is it there, and may this process read its memory? After a read of it: it was the one that was read.
    pub fn check(&self) -> std::io::Result<()> {
        let mut word = [0; size_of::<u64>()];
        // SAFETY: the array is writable for its length.
        let got = unsafe { pull(self.pid, self.address, word.as_mut_ptr(), word.len()) }?;
        match got == word.len() && u64::from_ne_bytes(word) == self.word {
            true => Ok(()),
            false => Err(std::io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulls_from_a_process_and_reports_a_bad_address() {
        let from = vec![9u8; 5000];
        let mut to = vec![0u8; 5000];
        let me = std::process::id();
        // SAFETY: `to` holds 5000 bytes.
        let got = unsafe { pull(me, from.as_ptr() as u64, to.as_mut_ptr(), 5000) };
        match got {
            Ok(n) => assert_eq!((n, &to), (5000, &from)),
            Err(refused) => assert!(may_pull(me, from.as_ptr() as u64).is_err(), "{refused}"),
        }
        assert!(may_pull(me, 8).is_err());
    }
}
