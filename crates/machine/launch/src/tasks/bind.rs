//! The placement policy: which core each task of a job is bound to.
//!
//! A task with a core of its own keeps its cache and can wait by spinning, which is what makes a message cost
//! nanoseconds. With more tasks than cores, equally many on each, neighbouring ranks share a core: the next task to act
//! is then usually woken on the core where its waker is about to sleep, instead of on one that must be woken first (32
//! tasks on 2 cores, a message round the ring: 280 us bound in blocks, 430 us unbound, 440 us bound in turn; a barrier
//! 32, 43, 33 us). If the tasks cannot be divided equally, a fixed assignment would only prevent the kernel from
//! balancing them, so no task is bound. [`Placement::new`] is the one place that decides.
//!
//! Several hosts of one job can be one machine: containers, or network namespaces. Each has its own agent, and claims
//! of cores do not reach from one to another. So the launcher counts the tasks on all hosts that may use the same cores
//! of one machine, and tells each host how many of those come before its own ([`Share`]). The cores are then
//! distributed as if it were one host.

use std::collections::HashMap;
use std::hash::Hash;

use regatta_program::Refusal;
use rustix::thread::CpuSet;

use crate::plan::Bind;
use crate::tasks::cores::{self, Claim};
use crate::words;

/// One host's share of the job's first tasks on the same cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Number of tasks on hosts before this one.
    pub(crate) before: u32,
    /// Number of tasks on other hosts with these cores, before or after this one.
    pub(crate) others: u32,
}

regatta_wire::fields!(Share { before, others });

impl Share {
    /// Returns the shares of these hosts, each given with its number and the cores that it may use. `host_of` has the
    /// host of each task.
    pub(crate) fn of_hosts<Cores: Eq + Hash>(
        hosts: &[(u32, Cores)],
        host_of: &[u32],
    ) -> HashMap<u32, Share> {
        let mut on_host: HashMap<u32, u32> = HashMap::new();
        for &host in host_of {
            *on_host.entry(host).or_default() += 1;
        }
        let own = |host: &u32| on_host.get(host).copied().unwrap_or(0);
        let mut on_cores: HashMap<&Cores, u32> = HashMap::new();
        let mut shares: HashMap<u32, Share> = HashMap::new();
        for (host, cores) in hosts {
            let so_far = on_cores.entry(cores).or_default();
            shares.entry(*host).or_default().before = *so_far;
            *so_far += own(host);
        }
        for (host, cores) in hosts {
            let all = on_cores.get(cores).copied().unwrap_or(0);
            shares.entry(*host).or_default().others = all - own(host);
        }
        shares
    }
}

/// The cores on which the tasks of a job run.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// Task i is bound to entry i, modulo the length. Nothing is bound if the list is empty.
    cores: Vec<usize>,
    _claims: Vec<Claim>,
}

impl Placement {
    /// Chooses the cores for the `tasks` tasks of a job on this host.
    pub(crate) fn new(bind: &Bind, tasks: u32, share: Share) -> Result<Self, Refusal> {
        let allowed = cores::allowed();
        let mut cores = match bind {
            Bind::Free => Vec::new(),
            Bind::Auto => return Ok(Self::of_its_own(&allowed, tasks as usize, share)),
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
        if !cores.is_empty() {
            let first = share.before as usize % cores.len();
            cores.rotate_left(first);
        }
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

    /// Chooses a core for each task that no other job claims, or blocks of neighbouring ranks on each core if they
    /// divide equally, or no binding.
    fn of_its_own(allowed: &[usize], tasks: usize, share: Share) -> Self {
        let together = tasks + share.others as usize;
        if together > allowed.len() {
            return Self::in_blocks(allowed, tasks, share);
        }
        if together > cores::usable() {
            return Self::default();
        }
        let mut placement = Self::default();
        for core in cores::spread(allowed)
            .into_iter()
            .skip(share.before as usize)
        {
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

    /// Makes neighbouring ranks share a core, if every core gets equally many.
    fn in_blocks(allowed: &[usize], tasks: usize, share: Share) -> Self {
        let together = tasks + share.others as usize;
        let even = together.is_multiple_of(allowed.len()) && cores::usable() >= allowed.len();
        // If the machine has more processors than a mask holds, none are known.
        let Some(each) = together.checked_div(allowed.len()) else {
            return Self::default();
        };
        let first = share.before as usize;
        let cores = match even {
            true => (first..first + tasks)
                .filter_map(|rank| allowed.get(rank / each).copied())
                .collect(),
            false => Vec::new(),
        };
        Self {
            cores,
            _claims: Vec::new(),
        }
    }

    /// Returns the cores of the whole job if it has fewer than tasks. The tasks then must not wait by spinning, however
    /// many cores the host has.
    pub(crate) fn squeezed(&self, tasks: u32) -> Option<CpuSet> {
        let mut set = CpuSet::new();
        self.cores.iter().for_each(|&core| set.set(core));
        (set.count() > 0 && set.count() < tasks).then_some(set)
    }

    /// Returns the cores of task `rank`, or `None` if it is not bound.
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
            let placement =
                Placement::new(&Bind::Auto, cores + 1, Share::default()).expect("a placement");
            assert!(placement.of(0).is_none());
        }
    }

    #[test]
    fn neighbours_in_an_even_crowd_share_a_core() {
        let allowed = cores::allowed();
        let placement = Placement::in_blocks(&allowed, 4 * allowed.len(), Share::default());
        if cores::usable() >= allowed.len() {
            for rank in 0..4 * allowed.len() {
                let core = placement.of(rank as u32).expect("a core");
                assert!(core.is_set(allowed[rank / 4]));
            }
        }
    }

    #[test]
    fn hosts_of_one_machine_take_different_cores() {
        let allowed = cores::allowed();
        if cores::usable() < 2 {
            // not a skip: of one core there is nothing to choose
            return;
        }
        for bind in [
            Bind::Core,
            Bind::Auto,
            Bind::List(vec![allowed[0], allowed[1]]),
        ] {
            let core = |before| {
                let share = Share { before, others: 1 };
                let placement = Placement::new(&bind, 1, share).expect("a placement");
                let set = placement.of(0)?;
                allowed.iter().copied().find(|&core| set.is_set(core))
            };
            let (first, second) = (core(0), core(1));
            // Another job may have claimed one of the cores.
            assert!(
                first != second || bind == Bind::Auto && first.is_none(),
                "{bind:?}"
            );
        }
    }

    #[test]
    fn nothing_is_bound_where_the_cores_are_not_known() {
        let placement = Placement::of_its_own(&[], 2, Share::default());
        assert!(placement.of(0).is_none());
    }

    #[test]
    fn hosts_with_the_same_cores_share_them_and_others_do_not() {
        let hosts = [(0, "a 0-3"), (1, "b 0-3"), (2, "a 0-3"), (4, "a 4-7")];
        let shares = Share::of_hosts(&hosts, &[0, 0, 1, 2, 2, 2, 4, 4, 7]);
        let share = |before, others| Share { before, others };
        let expected = [
            (0, share(0, 3)),
            (1, share(0, 0)),
            (2, share(2, 2)),
            (4, share(0, 0)),
        ];
        assert_eq!(shares, HashMap::from(expected));
    }

    #[test]
    fn the_tasks_of_crowded_hosts_of_one_machine_are_spread_over_its_cores() {
        let allowed = cores::allowed();
        let each = allowed.len() as u32;
        if cores::usable() < allowed.len() {
            // not a skip: a quota of less than its cores leaves the spread to the kernel
            return;
        }
        let mut tasks_of = vec![0; allowed.len()];
        for host in 0..3 {
            let share = Share {
                before: host * each,
                others: 2 * each,
            };
            let placement = Placement::in_blocks(&allowed, each as usize, share);
            for rank in 0..each {
                let set = placement.of(rank).expect("a core");
                let at = allowed.iter().position(|&core| set.is_set(core));
                tasks_of[at.expect("one of ours")] += 1;
            }
        }
        assert_eq!(tasks_of, vec![3; allowed.len()]);
    }

    #[test]
    fn a_list_is_used_in_turn() {
        let first = cores::allowed()[0];
        let placement =
            Placement::new(&Bind::List(vec![first]), 3, Share::default()).expect("a placement");
        for rank in 0..3 {
            assert!(placement.of(rank).expect("a core").is_set(first));
        }
    }

    #[test]
    fn a_core_that_is_not_ours_is_refused() {
        let list = Bind::List(vec![CpuSet::MAX_CPU - 1]);
        let refusal = Placement::new(&list, 1, Share::default()).expect_err("no such core");
        assert!(refusal.sentence.contains("may not use"), "{refusal}");
    }
}
