//! The policy of placement: which core each task of a job is bound to.
//!
//! A task of its own core keeps its cache and can wait by spinning; that is what makes a message cost nanoseconds. With
//! more tasks than cores, evenly many on each, neighbours in rank share a core: the next to act is then mostly woken
//! where its waker is about to sleep, instead of on a core that has to be woken first (32 tasks on 2 cores, a message
//! round the ring: 280 us bound in blocks, 430 us free, 440 us bound in turn; a barrier 32, 43, 33 us). Where the
//! division is uneven a fixed assignment would only keep the kernel from mending it: then all are left free.
//! [`Placement::new`] is the one place that decides.

use rustix::thread::CpuSet;

use crate::cores::{self, Claim};
use crate::plan::Bind;
use crate::refusal::Refusal;
use crate::words;

/// Where each task of a job runs.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// Task i is bound to entry i, counted round; nothing is bound when it is empty.
    cores: Vec<usize>,
    _claims: Vec<Claim>,
}

impl Placement {
    /// Decides for a job of `tasks` tasks.
    pub(crate) fn new(bind: &Bind, tasks: u32) -> Result<Self, Refusal> {
        let allowed = cores::allowed();
        let cores = match bind {
            Bind::Free => Vec::new(),
            Bind::Auto => return Ok(Self::of_its_own(&allowed, tasks as usize)),
            Bind::Core => cores::spread(&allowed),
            Bind::List(list) => {
                if let Some(core) = list.iter().find(|core| !allowed.contains(core)) {
                    return Err(Refusal::of_regatta(format!(
                        "--bind names core {core}, which this process may not use; it may use {} (taskset -cp $$ shows them)",
                        words::numbers(&allowed)
                    )));
                }
                list.clone()
            }
        };
        let claims = cores
            .iter()
            .take(tasks as usize)
            .filter_map(|&core| Claim::take(core))
            .collect();
        Ok(Self {
            cores,
            _claims: claims,
        })
    }

    /// A core for each task that no other job claims; blocks of neighbours on each when there are evenly many; or
    /// freedom for all.
    fn of_its_own(allowed: &[usize], tasks: usize) -> Self {
        if tasks > allowed.len() {
            return Self::in_blocks(allowed, tasks);
        }
        if tasks > cores::usable() {
            return Self::default();
        }
        let mut placement = Self::default();
        for core in cores::spread(allowed) {
            if placement.cores.len() == tasks {
                break;
            }
            if let Some(claim) = Claim::take(core) {
                placement.cores.push(core);
                placement._claims.push(claim);
            }
        }
        if placement.cores.len() == tasks {
            placement
        } else {
            Self::default()
        }
    }

    /// Neighbours in rank share a core, if every core gets as many.
    fn in_blocks(allowed: &[usize], tasks: usize) -> Self {
        let even = tasks.is_multiple_of(allowed.len()) && cores::usable() >= allowed.len();
        let each = tasks / allowed.len();
        let cores = match even {
            true => (0..tasks).map(|rank| allowed[rank / each]).collect(),
            false => Vec::new(),
        };
        Self {
            cores,
            _claims: Vec::new(),
        }
    }

    /// The cores of the whole job, when it was given fewer than it has tasks. Tasks then must not
    /// wait by spinning, however many cores the host has.
    pub(crate) fn squeezed(&self, tasks: u32) -> Option<CpuSet> {
        let mut set = CpuSet::new();
        self.cores.iter().for_each(|&core| set.set(core));
        (set.count() > 0 && set.count() < tasks).then_some(set)
    }

    /// The cores of task `rank`; `None` leaves it free.
    pub(crate) fn of(&self, rank: u32) -> Option<CpuSet> {
        let core = *self.cores.get(rank as usize % self.cores.len().max(1))?;
        let mut set = CpuSet::new();
        set.set(core);
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uneven_crowd_is_left_free() {
        let cores = cores::allowed().len() as u32;
        if cores > 1 {
            let placement = Placement::new(&Bind::Auto, cores + 1).expect("a placement");
            assert!(placement.of(0).is_none());
        }
    }

    #[test]
    fn neighbours_in_an_even_crowd_share_a_core() {
        let allowed = cores::allowed();
        let placement = Placement::in_blocks(&allowed, 4 * allowed.len());
        if cores::usable() >= allowed.len() {
            for rank in 0..4 * allowed.len() {
                let core = placement.of(rank as u32).expect("a core");
                assert!(core.is_set(allowed[rank / 4]));
            }
        }
    }

    #[test]
    fn a_list_is_used_in_turn() {
        let first = cores::allowed()[0];
        let placement = Placement::new(&Bind::List(vec![first]), 3).expect("a placement");
        for rank in 0..3 {
            assert!(placement.of(rank).expect("a core").is_set(first));
        }
    }

    #[test]
    fn a_core_that_is_not_ours_is_refused() {
        let refusal =
            Placement::new(&Bind::List(vec![CpuSet::MAX_CPU - 1]), 1).expect_err("no such core");
        assert!(refusal.sentence.contains("may not use"), "{refusal}");
    }
}
