//! Bounds of the numbers of a record, from the duration of its job. More is damage: one bit is enough for centuries.

use crate::{CallRecord, Record, Sizes, Thread, longest};

/// Most processors that a host has.
const PROCESSORS: u128 = 8192;

impl Record {
    /// Whether its times, and numbers of things that take time, are possible in a job of this many nanoseconds.
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

    /// Each sample stands for a stretch of processor time.
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
        // A task that was killed while one thread followed another has the time of the first one twice.
        self.life <= job.saturating_mul(2)
            && self.calls.iter().all(|call| call.fits(job))
            && peers.all(|peer| peer.sent <= job && peer.received <= job)
            && [&self.sent, &self.received].iter().all(|of| fit(of, job))
    }
}

impl CallRecord {
    /// A call takes more than a nanosecond.
    fn fits(&self, job: u64) -> bool {
        let numbers = [self.count, self.time, self.longest, self.failed];
        numbers.iter().all(|&number| number <= job)
    }
}

/// Messages of a class are no longer than it says. The last one may not have been counted yet.
fn fit(sizes: &Sizes, job: u64) -> bool {
    let mut sizes = sizes.iter().enumerate();
    sizes.all(|(class, &(count, bytes))| {
        let most = (u128::from(count) + 1).saturating_mul(longest(class).into());
        count <= job && u128::from(bytes) <= most
    })
}
