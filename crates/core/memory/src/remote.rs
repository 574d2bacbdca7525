//! The memory of another process, read by the kernel in a single copy (Cross Memory Attach).
//!
//! Containers and hardened kernels (Yama, seccomp) refuse that. So it is asked for once per peer, and the pipes carry everything where it is refused.

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
    // SAFETY: the iovecs live across the call; the caller vouches for `to`.
    let got = unsafe { libc::process_vm_readv(pid as libc::pid_t, &local, 1, &remote, 1, 0) };
    if got < 0 {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(got as usize)
    }
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
