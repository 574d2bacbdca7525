//! Reading the memory of another process, with a single copy by the kernel (Cross Memory Attach).
//!
//! Containers and hardened kernels (Yama, seccomp) refuse that. So it is tried once per peer, and pipes carry
//! everything if it is refused.
//!
//! The kernel takes a process id as the id of the process's first thread, which has no memory any more after it has
//! ended (`pthread_exit`), even if other threads run on. Then the memory is read with the id of another thread.

/// Reads from the memory of process `pid` at `address` into `to`, with one copy by the kernel (Cross Memory Attach).
/// Returns how many bytes were read, which may be fewer than requested.
///
/// # Safety
/// `to` must be writable for `len` bytes. The kernel checks the remote side.
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
        // SAFETY: the iovecs live across the call; the caller guarantees that `to` is writable for `len` bytes.
        let got =
            unsafe { libc::process_vm_readv(thread as libc::pid_t, &local, 1, &remote, 1, 0) };
        usize::try_from(got).map_err(|_| std::io::Error::last_os_error())
    };
    match read(pid) {
        Err(error) if has_left(&error) => by_other_threads(pid, error, read),
        result => result,
    }
}

/// Returns whether the kernel has found no memory under an id: the thread has ended, or does not exist.
fn has_left(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

/// Reads with the ids of the process's other threads, until one of them is alive.
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

/// Returns the ids of the threads of a process, except the first one.
pub fn other_threads(pid: u32) -> impl Iterator<Item = u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let names = threads.into_iter().flatten().flatten();
    let numbers = names.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    numbers.filter(move |&thread| thread != pid)
}

/// Checks whether this process may read the memory of `pid`, by reading one byte.
pub fn may_pull(pid: u32, probe_address: u64) -> std::io::Result<()> {
    let mut byte = 0u8;
    // SAFETY: `byte` is writable for one byte.
    match unsafe { pull(pid, probe_address, &mut byte, 1) } {
        Ok(1) => Ok(()),
        Ok(_) => Err(std::io::Error::from_raw_os_error(libc::EFAULT)),
        Err(error) => Err(error),
    }
}

/// Another process whose memory is read. As process ids are reused, each process has a unique word in its memory: if
/// that word is read, the memory belongs to the intended process.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// The process id.
    pub pid: u32,
    /// Address of its word.
    pub address: u64,
    /// The word, which no other process has at this address.
    pub word: u64,
}

impl Remote {
    /// Checks that the process exists and that this process may read its memory. After a read of its memory, this
    /// proves that the read was from the intended process.
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
