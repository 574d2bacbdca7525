//! The footprint of a path: how much shared memory its copies rotate over, and whether stores bypass the caches. It
//! is learned while messages flow.
//!
//! Copies between two cores go through memory that both access in turn. As long as this memory fits into a core's own
//! cache, each line that the sender writes is still held by the receiver's core and must be transferred from there,
//! core to core. If the memory is larger, the lines have moved to the cache that the cores share by the time they are
//! written again. Which of the two is faster depends on the distance between the cores: on one machine the wide
//! footprint copied 16 KiB twice as fast, on another a narrow one copied 4 MiB faster. Where two cores share no cache
//! at all, the transfer from the receiver takes longest. Non-temporal stores, which do not request the line first,
//! are 3.5 times as fast there for 16 KiB one way, five to eight times for messages of 4 to 64 KiB in a row, and
//! slower where the cores are close. No constant is right for all. So each ring, the pipes of a task together, and
//! each member of a pair try all footprints, keep the fastest, and repeat the trial from time to time. The pipes of a
//! task share two [`Learner`]s, since they are used in turn: one for the messages that fit into a narrow pipe, and
//! one for longer ones.
//!
//! *Measure.* The sender times its own copies, and the receiver those whose lines request it ([`Learner::read`]).
//! Non-temporal stores cost the sender little and the receiver more, which then reads from memory; the sum of both
//! counts. A member of a pair only times its own stores, and estimates the other member's part as a share of their
//! cost.
//!
//! *Cost.* A trial is [`COPIES_PER_FOOTPRINT`] timed copies with each footprint. Before they count,
//! [`WARM_UP_ROUNDS`] times the wide footprint is copied, because memory is slow the first time, and because each
//! footprint leaves the caches in another state, which must not distort the measurement of the next footprint. The
//! first trial comes after [`FIRST_TRIAL_BYTES`] bytes; later trials are ever rarer. Between trials the cost is one
//! subtraction for each copy.
//!
//! *Checks.* Between trials a few copies are timed from time to time ([`MIN_CHECK_INTERVAL_BYTES`]). If they cost
//! much more or less than in the trial, a second check follows [`MIN_CHECK_INTERVAL_BYTES`] bytes later: after a
//! pause the caches hold another program's data, and copies cost more until that is replaced, while a trial of
//! messages of 4 MiB takes as long as ten of them. If the second check agrees with the first, the machine has
//! changed, as a virtual machine does when its processors are moved, and a trial begins. Non-temporal stores cost the
//! same on any machine, so while they are in use the checks time a few ordinary stores ([`Learner::probes`]). Each
//! such alarm makes checks rarer, and each check without one makes them more frequent again.
//!
//! *Final state.* Once a task sees more tasks than cores, its present learners stay narrow for good
//! ([`Learner::stay_narrow`]), even when the other tasks have left: which tasks run on neighbouring cores is then
//! unpredictable. A learner also stays narrow if there is no memory for a wide footprint.
//!
//! *Memory.* A ring that has tried its wide buffer keeps it, 2 MiB. A pipe that a message of more than 256 KiB has
//! used has 1 MiB. A pair's collective buffer keeps the 2 MiB of each member that has tried a wide area. Only jobs of
//! up to 8 tasks have wide footprints ([`Geometry`](regatta_segment::job::Geometry)), so each task has at most seven
//! such rings.
//!
//! *Robustness.* The median of the samples counts: if a task is preempted for a moment, that spoils a sample or two,
//! but not the result.

use regatta_memory::copy::HAS_NON_TEMPORAL;
use regatta_memory::ticks::cost_of_kib;

/// Choice of the footprints of a task's rings and pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Each ring, the pipes of a task together, and each member of a pair try all footprints, and keep the fastest.
    Learn,
    /// All are narrow.
    Narrow,
    /// All are wide, if the job is small enough for that.
    Wide,
    /// All use non-temporal stores, if the job is small enough for wide footprints.
    NonTemporal,
}

/// A footprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Footprint {
    /// The memory fits into the cache of a core.
    Narrow,
    /// The memory does not fit into the cache of a core.
    Wide,
    /// The sender uses non-temporal stores: into the narrow buffer of a ring, or through the whole of a pipe.
    NonTemporal,
}

use Footprint::{Narrow, NonTemporal, Wide};

impl Footprint {
    /// Returns the footprint that a trial measures after this one.
    fn next(self) -> Footprint {
        match self {
            Narrow => Wide,
            Wide if HAS_NON_TEMPORAL => NonTemporal,
            Wide | NonTemporal => Narrow,
        }
    }
}

/// Number of footprints.
const FOOTPRINTS: usize = 3;

/// Traffic in bytes before the first trial: for less, a trial does not pay.
const FIRST_TRIAL_BYTES: u64 = 4 << 20;
/// Traffic in bytes before the first trial for messages longer than a narrow pipe.
const FIRST_LONG_TRIAL_BYTES: u64 = 32 << 20;
/// Initial traffic in bytes between two trials. It grows by a factor of eight after each trial that changed nothing,
/// up to [`MAX_TRIAL_INTERVAL_BYTES`].
const MIN_TRIAL_INTERVAL_BYTES: u64 = 256 << 20;
/// Maximum traffic in bytes between two trials.
const MAX_TRIAL_INTERVAL_BYTES: u64 = 16 << 30;
/// Minimum and initial traffic in bytes between two checks of the cost of copies.
const MIN_CHECK_INTERVAL_BYTES: u64 = 8 << 20;
/// Number of copies timed in a check.
const COPIES_PER_CHECK: usize = 7;
/// Range of a copy's cost that counts as unchanged, in percent of its cost in the trial.
const UNCHANGED_PERCENT: std::ops::RangeInclusive<u64> = 70..=140;
/// Traffic before a footprint is timed, in multiples of the wide footprint.
const WARM_UP_ROUNDS: u64 = 2;
/// Number of copies that a trial times with each footprint.
const COPIES_PER_FOOTPRINT: usize = 31;
/// Maximum cost of another footprint for which a change is worthwhile, in percent of the cost of the footprint in
/// use.
const MAX_WORTHWHILE_PERCENT: u64 = 92;
/// Number of times from the receiver that a trial needs for each footprint, besides the first, which may belong to an
/// older copy.
const READS_PER_FOOTPRINT: usize = 5;
/// Maximum size in bytes of a ring's short messages and of short contributions to a collective. Where cores are
/// close, a few lines of memory serve these best.
pub(crate) const MAX_SHORT_BYTES: usize = 6 << 10;
/// Minimum size in bytes of a copy that is timed.
pub(crate) const MIN_TIMED_BYTES: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The footprint in use is kept for good.
    Fixed,
    /// No trial: the best footprint is known. Lasts for `left` bytes.
    Settled,
    /// Lets `left` bytes pass before samples are taken.
    Warming,
    Timing,
    /// No trial, but a few copies are timed as a check.
    Watching,
}

/// The choice of footprint for one ring, for the pipes of a task, or for a member of a pair's collective buffer.
#[derive(Debug)]
pub(crate) struct Learner {
    /// Footprint of the next copy.
    now: Footprint,
    /// Footprint that was in use before the trial; after the trial, the one that was chosen.
    kept: Footprint,
    stage: Stage,
    /// Bytes until the stage ends.
    left: i64,
    /// Bytes between this trial and the next.
    pause: u64,
    /// Bytes until that trial, minus those in `left`.
    until: u64,
    /// Bytes between two checks.
    watch: u64,
    /// Whether the last check found another cost than the trial before it.
    doubted: bool,
    /// Whether this trial was started because the cost of copies had changed.
    alarmed: bool,
    /// Whether `kept` is a guess that no trial has confirmed yet.
    guessed: bool,
    /// Size of the wide footprint in bytes.
    wide: u64,
    /// Costs per KiB that were sampled in this trial.
    samples: Vec<u64>,
    /// Costs per KiB from the receiver in this trial. The first may belong to an older copy.
    reads: Vec<u64>,
    /// Costs of the sender's part in the last trial; `costs` has those of both parts together.
    stores: [Option<u64>; FOOTPRINTS],
    costs: [Option<u64>; FOOTPRINTS],
}

impl Learner {
    /// Returns a learner whose wide footprint has `wide` bytes.
    pub(crate) fn new(wide: u64, policy: Policy) -> Learner {
        let (kept, stage) = match policy {
            Policy::Learn => (Narrow, Stage::Settled),
            Policy::Narrow => (Narrow, Stage::Fixed),
            Policy::Wide => (Wide, Stage::Fixed),
            Policy::NonTemporal => (NonTemporal, Stage::Fixed),
        };
        Learner {
            now: kept,
            kept,
            stage,
            left: FIRST_TRIAL_BYTES as i64,
            pause: MIN_TRIAL_INTERVAL_BYTES,
            until: 0,
            watch: MIN_CHECK_INTERVAL_BYTES,
            doubted: false,
            alarmed: false,
            guessed: false,
            wide,
            samples: Vec::new(),
            reads: Vec::new(),
            stores: [None; FOOTPRINTS],
            costs: [None; FOOTPRINTS],
        }
    }

    /// Begins with the wide footprint, and tries the others later. Used for messages longer than a narrow pipe: on
    /// most machines a wide footprint is three times as fast for them, and a trial takes as long as ten such
    /// messages.
    pub(crate) fn begin_wide(&mut self) {
        if self.stage != Stage::Fixed {
            (self.now, self.kept, self.guessed) = (Wide, Wide, true);
            self.left = FIRST_LONG_TRIAL_BYTES as i64;
        }
    }

    /// Returns the footprint of the next message.
    #[inline(always)]
    pub(crate) fn choice(&self) -> Footprint {
        self.now
    }

    /// Returns the footprint that is used between trials.
    pub(crate) fn kept(&self) -> Footprint {
        self.kept
    }

    /// Returns whether no further trial will be made.
    pub(crate) fn is_fixed(&self) -> bool {
        self.stage == Stage::Fixed
    }

    /// Returns whether copies are to be timed.
    #[inline(always)]
    pub(crate) fn is_timing(&self) -> bool {
        matches!(self.stage, Stage::Timing | Stage::Watching)
    }

    /// Returns whether ordinary stores are timed while non-temporal stores are in use. A few bytes suffice for that.
    #[inline(always)]
    pub(crate) fn probes(&self) -> bool {
        self.stage == Stage::Watching && self.kept == NonTemporal
    }

    /// Keeps the wide footprint in place of a narrow one: the pipes between the same cores have shown it to be
    /// faster.
    pub(crate) fn keep_wide(&mut self) {
        if self.kept == Narrow && self.stage != Stage::Fixed {
            self.kept = Wide;
            self.decide();
        }
    }

    /// Stays narrow for good, and makes no more trials.
    pub(crate) fn stay_narrow(&mut self) {
        (self.now, self.kept, self.stage) = (Narrow, Narrow, Stage::Fixed);
        self.left = i64::MAX;
    }

    /// Counts `bytes` that were copied in with the chosen footprint.
    #[inline(always)]
    pub(crate) fn copied(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes as i64);
        if self.left < 0 {
            self.next_stage();
        }
    }

    /// Counts `bytes` of a message that keeps the footprint it began with. During a trial, bytes of a message with
    /// another footprint do not count: a long message would end the trial before the next message could take part.
    pub(crate) fn copied_with(&mut self, footprint: Footprint, bytes: usize) {
        let tries = matches!(self.stage, Stage::Warming | Stage::Timing);
        if !tries || footprint == self.now {
            self.copied(bytes);
        }
    }

    /// Records that a copy of `bytes` took `ticks`.
    pub(crate) fn timed(&mut self, bytes: usize, ticks: u64) {
        let wanted = match self.stage {
            Stage::Timing => COPIES_PER_FOOTPRINT,
            Stage::Watching => COPIES_PER_CHECK,
            _ => return,
        };
        if bytes < MIN_TIMED_BYTES {
            return;
        }
        if self.samples.len() < wanted {
            self.samples.push(cost_of_kib(bytes, ticks));
        }
        let heard = self.stage == Stage::Watching || self.reads.len() > READS_PER_FOOTPRINT;
        if self.samples.len() == wanted && heard {
            self.next_stage();
        }
    }

    /// Records the ticks per KiB that the receiver needed to copy out what was sent last.
    pub(crate) fn read(&mut self, cost: u64) {
        if self.stage == Stage::Timing && self.reads.len() < COPIES_PER_FOOTPRINT {
            // The value comes from shared memory and may be anything.
            self.reads.push(cost.min(u32::MAX as u64));
        }
    }

    #[cold]
    fn next_stage(&mut self) {
        match self.stage {
            Stage::Fixed => self.left = i64::MAX,
            Stage::Settled if self.until > 0 => self.look(),
            Stage::Watching => self.compare(),
            Stage::Settled | Stage::Warming => self.time(),
            Stage::Timing => {
                self.keep_cost();
                match self.now.next() {
                    next if next == self.kept => self.judge(),
                    next => self.warm(next),
                }
            }
        }
    }

    fn warm(&mut self, footprint: Footprint) {
        self.now = footprint;
        self.stage = Stage::Warming;
        self.left = (WARM_UP_ROUNDS * self.wide) as i64;
    }

    fn time(&mut self) {
        self.stage = Stage::Timing;
        self.samples.clear();
        self.reads.clear();
        // The stage ends after these bytes even if the messages are too short for enough samples.
        self.left = (self.wide * 4) as i64;
    }

    fn look(&mut self) {
        self.time();
        self.stage = Stage::Watching;
        if self.probes() {
            self.now = Narrow;
        }
    }

    fn compare(&mut self) {
        let before = self.stores[self.now as usize];
        let is_alike =
            |(now, before): (u64, u64)| UNCHANGED_PERCENT.contains(&(now * 100 / before.max(1)));
        let enough = self.samples.len() == COPIES_PER_CHECK;
        if !enough || median(&mut self.samples).zip(before).is_none_or(is_alike) {
            self.doubted = false;
            self.watch = (self.watch - self.watch / 8).max(MIN_CHECK_INTERVAL_BYTES);
            return self.go_on();
        }
        if !self.doubted {
            self.doubted = true;
            return self.go_on();
        }
        self.doubted = false;
        self.alarmed = true;
        self.now = self.kept;
        self.watch = (self.watch * 2).min(MIN_TRIAL_INTERVAL_BYTES);
        self.time();
    }

    /// Records the costs of the footprint just tried, or `None` where there are too few samples.
    fn keep_cost(&mut self) {
        let (mut stores, mut reads) = (None, None);
        if self.samples.len() >= COPIES_PER_FOOTPRINT / 4 {
            stores = median(&mut self.samples);
        }
        if self.reads.len() > READS_PER_FOOTPRINT {
            reads = median(&mut self.reads[1..]);
        }
        self.stores[self.now as usize] = stores;
        self.costs[self.now as usize] = stores.zip(reads).map(|(stores, reads)| stores + reads);
    }

    fn judge(&mut self) {
        let cost = |footprint: Footprint| self.costs[footprint as usize];
        let all = [Narrow, Wide, NonTemporal];
        let tried = all
            .into_iter()
            .filter(|&footprint| cost(footprint).is_some());
        let best = tried.min_by_key(|&footprint| cost(footprint));
        let Some(best) = best else {
            return self.decide();
        };
        // A narrow footprint leaves more of the caches to the program, so a guess must be better than the narrow one
        // to be kept.
        if self.guessed && cost(Narrow).is_some() {
            self.kept = Narrow;
        }
        self.guessed = false;
        let worthwhile = match cost(self.kept) {
            Some(kept) => {
                cost(best).is_some_and(|best| best * 100 <= kept * MAX_WORTHWHILE_PERCENT)
            }
            // If no message used the kept footprint, the messages take another path.
            None => self.stores[self.kept as usize].is_none(),
        };
        if worthwhile {
            self.kept = best;
            self.pause = MIN_TRIAL_INTERVAL_BYTES;
        } else if !self.alarmed {
            self.pause = (self.pause * 8).min(MAX_TRIAL_INTERVAL_BYTES);
        }
        self.decide();
    }

    fn decide(&mut self) {
        (self.alarmed, self.doubted) = (false, false);
        self.until = self.pause;
        self.go_on();
    }

    /// Continues with the kept footprint until the next check or trial.
    fn go_on(&mut self) {
        self.now = self.kept;
        self.stage = Stage::Settled;
        let watch = match self.doubted {
            true => MIN_CHECK_INTERVAL_BYTES,
            false => self.watch,
        };
        let left = self.until.min(watch);
        self.until -= left;
        self.left = left as i64;
        self.samples.clear();
    }
}

fn median(samples: &mut [u64]) -> Option<u64> {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn trying(wide: u64) -> Learner {
        Learner::new(wide, Policy::Learn)
    }

    /// The wide footprint with which long messages begin is kept only if it is faster than a narrow one.
    #[test]
    fn a_guess_is_no_reason_to_stay() {
        for (narrow, kept) in [(95, Narrow), (300, Wide)] {
            let mut learner = trying(MIB);
            learner.begin_wide();
            flow(&mut learner, 256 * MIB, 256 << 10, costs(narrow, 100));
            assert_eq!(learner.kept(), kept, "a narrow one costs {narrow} of 100");
        }
    }

    /// Lets `bytes` flow in copies of `each` bytes, where a KiB costs `cost` of the footprint. Returns the number of
    /// bytes that used the wide footprint.
    fn flow(
        learner: &mut Learner,
        bytes: u64,
        each: usize,
        mut cost: impl FnMut(Footprint) -> u64,
    ) -> u64 {
        let mut wide = 0;
        for _ in 0..bytes / each as u64 {
            let footprint = learner.choice();
            wide += (footprint == Wide) as u64 * each as u64;
            if learner.is_timing() {
                learner.read(read(footprint));
                learner.timed(each, cost(footprint) * each as u64 / 1024);
            }
            learner.copied(each);
        }
        wide
    }

    /// Lets bytes flow in messages that keep the footprint they began with.
    fn flow_in_messages(
        learner: &mut Learner,
        messages: u32,
        length: u64,
        mut cost: impl FnMut(Footprint) -> u64,
    ) {
        let each = 32 << 10;
        for _ in 0..messages {
            let footprint = learner.choice();
            for _ in 0..length / each as u64 {
                if learner.is_timing() && footprint == learner.choice() {
                    learner.read(read(footprint));
                    learner.timed(each, cost(footprint) * each as u64 / 1024);
                }
                learner.copied_with(footprint, each);
            }
        }
    }

    fn costs(narrow: u64, wide: u64) -> impl FnMut(Footprint) -> u64 {
        move |footprint| match footprint {
            Narrow => narrow,
            Wide => wide,
            NonTemporal => narrow.max(wide),
        }
    }

    /// Returns the receiver's part of the cost.
    fn read(footprint: Footprint) -> u64 {
        match footprint {
            Narrow | Wide => 5,
            NonTemporal => 60,
        }
    }

    /// Returns costs where ordinary stores cost `ordinary`, and non-temporal stores a constant.
    fn apart(ordinary: u64) -> impl FnMut(Footprint) -> u64 {
        move |footprint| match footprint {
            Narrow | Wide => ordinary,
            NonTemporal => 50,
        }
    }

    #[test]
    fn the_faster_one_is_kept() {
        for each in [MIN_TIMED_BYTES, 4096, 32 << 10] {
            let mut learner = trying(2 * MIB);
            flow(&mut learner, 64 * MIB, each, costs(100, 50));
            assert_eq!(learner.kept(), Wide, "copies of {each}");
            let mut learner = trying(2 * MIB);
            flow(&mut learner, 64 * MIB, each, costs(50, 100));
            assert_eq!(learner.kept(), Narrow, "copies of {each}");
        }
    }

    #[test]
    fn the_faster_one_is_kept_by_messages_of_any_length() {
        for length in [MIB, 4 * MIB, 16 * MIB, 256 * MIB] {
            let enough = (32 * MIB / length).max(4) as u32;
            let mut learner = trying(MIB);
            flow_in_messages(&mut learner, enough, length, costs(100, 50));
            assert_eq!(learner.kept(), Wide, "messages of {length}");
            let mut learner = trying(MIB);
            flow_in_messages(&mut learner, enough, length, costs(50, 100));
            assert_eq!(learner.kept(), Narrow, "messages of {length}");
        }
    }

    #[test]
    fn a_slight_advantage_changes_nothing() {
        let mut learner = trying(MIB);
        flow(&mut learner, 64 * MIB, 8192, costs(100, 95));
        assert_eq!(learner.kept(), Narrow);
    }

    /// In practice, short messages of a ring do not use the wide buffer to a task that answers.
    #[test]
    fn a_footprint_that_no_message_takes_does_not_end_a_trial() {
        for kept in [Narrow, Wide] {
            let mut learner = trying(2 * MIB);
            learner.kept = kept;
            learner.now = kept;
            for _ in 0..(64 * MIB) / 4096 {
                let footprint = learner.choice();
                if learner.is_timing() && footprint != Wide {
                    learner.read(read(footprint));
                    learner.timed(4096, apart(1000)(footprint) * 4);
                }
                learner.copied(4096);
            }
            let best = if HAS_NON_TEMPORAL {
                NonTemporal
            } else {
                Narrow
            };
            assert_eq!(learner.kept(), best, "{kept:?} before");
        }
    }

    #[test]
    fn the_kept_one_is_not_given_up_for_want_of_the_receivers_times() {
        let mut learner = trying(MIB);
        flow(&mut learner, 64 * MIB, 16 << 10, costs(100, 50));
        assert_eq!(learner.kept(), Wide);
        for _ in 0..8192 * MIB / (16 << 10) {
            let footprint = learner.choice();
            if learner.is_timing() {
                if footprint != Wide {
                    learner.read(read(footprint));
                }
                learner.timed(16 << 10, costs(500, 50)(footprint) * 16);
            }
            learner.copied(16 << 10);
        }
        assert_eq!(learner.kept(), Wide);
    }

    #[test]
    fn a_damaged_cost_is_one_like_any_other() {
        let mut learner = trying(MIB);
        for _ in 0..(64 * MIB) / (16 << 10) {
            if learner.is_timing() {
                learner.read(u64::MAX);
                learner.timed(16 << 10, u64::MAX >> 10);
            }
            learner.copied(16 << 10);
        }
    }

    #[test]
    fn little_traffic_is_not_tried_with() {
        let mut learner = trying(MIB);
        assert_eq!(
            flow(&mut learner, FIRST_TRIAL_BYTES, 4096, costs(100, 1)),
            0
        );
    }

    #[test]
    fn the_wrong_one_carries_at_most_one_part_in_thirty() {
        let mut learner = trying(2 * MIB);
        let wide = flow(&mut learner, 4 << 30, 32 << 10, costs(50, 100));
        assert!(
            wide > 0 && wide < (4 << 30) / 30,
            "{} MiB of 4096",
            wide / MIB
        );
    }

    #[test]
    fn copies_that_were_interrupted_spoil_no_verdict() {
        let mut learner = trying(MIB);
        let mut count = 0;
        let spoiled = |footprint| {
            count += 1;
            let cost = costs(100, 50)(footprint);
            cost * if count % 3 == 0 { 1000 } else { 1 }
        };
        flow(&mut learner, 64 * MIB, 16 << 10, spoiled);
        assert_eq!(learner.kept(), Wide);
    }

    #[test]
    fn a_machine_that_changes_is_noticed() {
        let mut learner = trying(MIB);
        flow(&mut learner, 64 * MIB, 16 << 10, costs(100, 50));
        assert_eq!(learner.kept(), Wide);
        flow(&mut learner, 4 << 30, 16 << 10, costs(50, 100));
        assert_eq!(learner.kept(), Narrow);
    }

    /// The change is noticed whether costs rise or fall, and however far off the next trial is.
    #[test]
    fn a_machine_that_changes_is_noticed_soon() {
        let mut learner = trying(2 * MIB);
        flow(&mut learner, 8 << 30, 16 << 10, costs(50, 60));
        assert_eq!(learner.kept(), Narrow);
        flow(&mut learner, 32 * MIB, 16 << 10, costs(300, 100));
        assert_eq!(learner.kept(), Wide);
        flow(&mut learner, 32 * MIB, 16 << 10, costs(20, 40));
        assert_eq!(learner.kept(), Narrow);
    }

    #[test]
    fn stores_past_the_caches_are_chosen_where_cores_are_far_apart_and_only_there() {
        for each in [MIN_TIMED_BYTES, 4096, 16 << 10] {
            let mut learner = trying(2 * MIB);
            flow(&mut learner, 64 * MIB, each, apart(200));
            let far = if HAS_NON_TEMPORAL {
                NonTemporal
            } else {
                Narrow
            };
            assert_eq!(learner.kept(), far, "copies of {each}");
            flow(&mut learner, 64 * MIB, each, apart(80));
            assert_eq!(learner.kept(), Narrow, "copies of {each}, close again");
        }
    }

    /// Most copies are non-temporal.
    #[test]
    fn probes_in_between_stores_past_the_caches_are_few() {
        let mut learner = trying(2 * MIB);
        let (mut past, mut all) = (0, 0);
        flow(&mut learner, 64 * MIB, 16 << 10, apart(1000));
        for _ in 0..100_000 {
            past += (learner.choice() == NonTemporal) as u64;
            all += 1;
            if learner.is_timing() {
                learner.read(read(learner.choice()));
                learner.timed(16 << 10, apart(1000)(learner.choice()) * 16);
            }
            learner.copied(16 << 10);
        }
        assert!(
            !HAS_NON_TEMPORAL || past * 100 > all * 95,
            "{past} of {all}"
        );
    }

    /// Costs that fluctuate all the time cause few trials.
    #[test]
    fn a_restless_machine_is_not_tried_for_ever() {
        let mut learner = trying(2 * MIB);
        let mut random = 1u64;
        let mut restless = |footprint| {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let factor = if (random >> 33).is_multiple_of(3) {
                4
            } else {
                1
            };
            factor * costs(50, 100)(footprint)
        };
        let wide = flow(&mut learner, 16 << 30, 16 << 10, &mut restless);
        assert!(wide < (16 << 30) / 30, "{} MiB of 16384", wide / MIB);
    }

    /// A pause makes the copies after it more expensive, but starts no trial. Only the rare regular trials are made.
    #[test]
    fn caches_that_are_cold_after_a_pause_bring_no_trial() {
        let mut learner = trying(2 * MIB);
        flow(&mut learner, 64 * MIB, 16 << 10, costs(60, 40));
        assert_eq!(learner.kept(), Wide);
        let mut wide = 0;
        for _ in 0..64 {
            wide += flow(&mut learner, 4 * MIB, 16 << 10, costs(120, 80));
            wide += flow(&mut learner, 60 * MIB, 16 << 10, costs(60, 40));
        }
        assert!(wide > 4000 * MIB, "{} MiB of 4096", wide / MIB);
    }

    /// A trial that was due ends the doubt of the last check.
    #[test]
    fn a_doubt_ends_with_a_trial() {
        let mut learner = trying(2 * MIB);
        flow(&mut learner, 64 * MIB, 16 << 10, costs(60, 40));
        learner.doubted = true;
        while learner.stage != Stage::Timing {
            flow(&mut learner, 16 << 10, 16 << 10, costs(60, 40));
        }
        while learner.stage != Stage::Settled {
            flow(&mut learner, 16 << 10, 16 << 10, costs(60, 40));
        }
        assert!(!learner.doubted);
    }

    #[test]
    fn short_copies_end_a_trial_without_a_verdict() {
        let mut learner = trying(MIB);
        let mut timed = 0;
        for _ in 0..256 {
            flow(&mut learner, MIB, MIN_TIMED_BYTES / 2, costs(100, 50));
            assert_eq!(learner.kept(), Narrow);
            timed += learner.is_timing() as u32;
        }
        assert!(timed < 128, "timed in {timed} of 256 MiB");
    }

    #[test]
    fn without_memory_for_the_wide_one_nothing_is_tried() {
        let mut learner = trying(MIB);
        learner.stay_narrow();
        learner.keep_wide();
        assert_eq!(flow(&mut learner, 1 << 30, 32 << 10, costs(100, 1)), 0);
    }
}
