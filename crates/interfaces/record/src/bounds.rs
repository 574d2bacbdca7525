//! Bounds of the numbers in a record, from the duration of its job. A larger number shows that the record is damaged: one flipped bit can
//! add centuries.

use crate::{CallRecord, Record, Sizes, Thread, longest};

/// Maximum number of processors of a host.
const PROCESSORS: u128 = 8192;

impl Record {
    /// Returns whether the times, and the counts of things that take time, are possible in a job of `job` nanoseconds.
    pub fn fits(&self, job: u64) -> bool {
        let head = &self.head;
        let span = head.last.saturating_sub(head.began);
        let names = self.names.iter();
        let mut names = names.flat_map(|name| [name.time, name.times, name.marks]);
        span <= job
            && head.off <= job
            && u128::from(head.processor) <= u128::from(job) * PROCESSORS
            && self.samples_fit(job)
            && names.all(|number| number <= job)
            && self.threads.iter().all(|thread| thread.fits(job))
    }

    /// Returns whether the samples are possible: each stands for one period of processor time.
    fn samples_fit(&self, job: u64) -> bool {
        let threads = self.threads.iter();
        let calls = threads.flat_map(|thread| &thread.calls);
        let in_calls = calls.map(|call| u128::from(call.busy)).sum::<u128>();
        let outside = self.samples.iter().map(|sample| u128::from(sample.count));
        let all = (in_calls + outside.sum::<u128>()).max(self.head.samples.into());
        let period = u128::from(self.head.period.max(1));
        all.saturating_mul(period) <= u128::from(job) * PROCESSORS
    }
}

impl Thread {
    fn fits(&self, job: u64) -> bool {
        let mut peers = self.peers.iter();
        // If a task was killed while a thread took over the part of another, the time of the first thread is counted twice.
        self.life <= job.saturating_mul(2)
            && self.calls.iter().all(|call| call.fits(job))
            && peers.all(|peer| peer.sent <= job && peer.received <= job)
            && [&self.sent, &self.received].iter().all(|of| fit(of, job))
    }
}

impl CallRecord {
    /// Returns whether the numbers are possible: a call takes more than a nanosecond.
    fn fits(&self, job: u64) -> bool {
        let numbers = [self.count, self.time, self.longest, self.failed];
        numbers.iter().all(|&number| number <= job)
    }
}

/// Returns whether the numbers of each class are possible: no message is longer than the class allows. The bytes of one more message
/// than counted are allowed, because the last one may not have been counted yet.
fn fit(sizes: &Sizes, job: u64) -> bool {
    let mut sizes = sizes.iter().enumerate();
    sizes.all(|(class, &(count, bytes))| {
        let most = (u128::from(count) + 1).saturating_mul(longest(class).into());
        count <= job && u128::from(bytes) <= most
    })
}
