//! Every collective, blocking and not, against a serial reference, in jobs of real processes.

mod support;

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use regatta::{ErrorKind, Group, Task, ordered, parts};
use support::in_jobs;

const SIZES: [usize; 4] = [1, 2, 3, 5];
/// Numbers of elements: none, few, just up to and just above the limits of the paths for small messages, and 300 KB.
const COUNTS: [usize; 11] = [0, 1, 7, 64, 512, 513, 2048, 2049, 4096, 8191, 37_500];

/// Returns element `index` of the input of rank `rank` in round `round`.
fn value(rank: usize, index: usize, round: usize) -> u64 {
    (rank * 1_000_003 + index * 101 + round * 7) as u64
}

fn given(rank: usize, count: usize, round: usize) -> Vec<u64> {
    (0..count).map(|index| value(rank, index, round)).collect()
}

/// Concatenates the inputs of all ranks: `lens[rank]` elements from each.
fn all(lens: impl IntoIterator<Item = usize>, round: usize) -> Vec<u64> {
    let lens = lens.into_iter().enumerate();
    lens.flat_map(|(rank, len)| given(rank, len, round))
        .collect()
}

/// Returns the world, and groups made from it in each way.
fn groups(task: &Task) -> Vec<Group<'_>> {
    let world = task.world();
    let reversed: Vec<usize> = (0..world.size()).rev().collect();
    let mut groups = vec![
        world.dup().expect("a duplicate"),
        world.select(&reversed).expect("a selection"),
    ];
    let halves = world.split(Some(world.rank() as u32 % 2), 0);
    groups.extend(halves.expect("a split"));
    groups.push(world);
    groups
}

#[test]
fn moving_data() {
    in_jobs("moving_data", &SIZES, |task| {
        for group in groups(task) {
            for (round, count) in COUNTS.into_iter().enumerate() {
                moves(&group, count, round).expect("collectives");
            }
        }
    });
}

fn moves(group: &Group, count: usize, round: usize) -> regatta::Result<()> {
    let (rank, size) = (group.rank(), group.size());
    let mine = given(rank, count, round);
    let everything = all(vec![count; size], round);
    // The elements that all members send to this rank: each sends its own, shifted by the receiver's rank.
    let exchanged: Vec<u64> = (0..size)
        .flat_map(|from| (0..count).map(move |index| value(from, index + rank, round)))
        .collect();
    let gives: Vec<u64> = (0..size)
        .flat_map(|to| (0..count).map(move |index| value(rank, index + to, round)))
        .collect();

    group.barrier()?;
    group.ibarrier()?.wait()?;
    for root in 0..size {
        moves_with_root(group, root, round, &mine, &everything)?;
    }
    let mut gathered = vec![0; count * size];
    group.allgather(&mine, &mut gathered)?;
    assert_eq!(gathered, everything);
    let mut gathered = vec![0; count * size];
    gathered[rank * count..][..count].copy_from_slice(&mine);
    group.allgather_in_place(&mut gathered)?;
    assert_eq!(gathered, everything);
    assert_eq!(group.iallgather(mine)?.wait()?.0, everything);

    let mut gets = vec![0; count * size];
    group.alltoall(&gives, &mut gets)?;
    assert_eq!(gets, exchanged);
    assert_eq!(group.ialltoall(gives)?.wait()?.0, exchanged);
    Ok(())
}

/// Checks the collectives that move data from a root to all members, and from all members to a root.
fn moves_with_root(
    group: &Group,
    root: usize,
    round: usize,
    mine: &[u64],
    everything: &[u64],
) -> regatta::Result<()> {
    let (rank, size, count) = (group.rank(), group.size(), mine.len());
    let mut data = if rank == root {
        mine.to_vec()
    } else {
        vec![0; count]
    };
    group.broadcast(&mut data, root)?;
    assert_eq!(data, given(root, count, round));
    let data = if rank == root {
        mine.to_vec()
    } else {
        vec![0; count]
    };
    assert_eq!(
        group.ibroadcast(data, root)?.wait()?.0,
        given(root, count, round)
    );

    let at_root = if rank == root { count * size } else { 0 };
    let mut gathered = vec![0; at_root];
    group.gather(mine, &mut gathered, root)?;
    assert_eq!(gathered, everything[..at_root]);
    assert_eq!(
        group.igather(mine.to_vec(), root)?.wait()?.0,
        everything[..at_root]
    );

    let mut part = vec![0; count];
    group.scatter(&everything[..at_root], &mut part, root)?;
    assert_eq!(part, mine);
    // What other members pass does not matter, even if it has the length of the whole.
    let without_effect = vec![u64::MAX; count * size];
    let whole = if rank == root {
        everything
    } else {
        &without_effect
    };
    part.fill(0);
    group.scatter(whole, &mut part, root)?;
    assert_eq!(part, mine);
    let whole = everything[..at_root].to_vec();
    assert_eq!(group.iscatter(whole, count, root)?.wait()?.0, mine);
    Ok(())
}

#[test]
fn moving_parts_of_different_lengths() {
    in_jobs("moving_parts_of_different_lengths", &SIZES, |task| {
        for group in groups(task) {
            for (round, count) in COUNTS.into_iter().enumerate() {
                moves_parts(&group, count, round).expect("collectives");
            }
        }
    });
}

fn moves_parts(group: &Group, count: usize, round: usize) -> regatta::Result<()> {
    let (rank, size) = (group.rank(), group.size());
    // Rank 0 has no elements; each higher rank has more than the one before.
    let lens: Vec<usize> = (0..size).map(|rank| rank * count / 2).collect();
    let mine = given(rank, lens[rank], round);
    let everything = all(lens.iter().copied(), round);
    // In the gathered memory the parts are in reverse rank order, with gaps of one element.
    let mut places = vec![0..0; size];
    let mut end = 0;
    for rank in (0..size).rev() {
        places[rank] = end + 1..end + 1 + lens[rank];
        end = places[rank].end;
    }
    let mut whole = vec![u64::MAX; end];
    let packed = parts(&lens);
    for (place, part) in places.iter().zip(&packed) {
        whole[place.clone()].copy_from_slice(&everything[part.clone()]);
    }
    for root in 0..size {
        let mut got = vec![u64::MAX; if rank == root { end } else { 0 }];
        group.gatherv(&mine, &mut got, &places, root)?;
        assert!(rank != root || got == whole);
        let got = group.igatherv(mine.clone(), &packed, root)?.wait()?.0;
        assert!(rank != root || got == everything);
        let mut part = vec![0; lens[rank]];
        group.scatterv(&whole, &places, &mut part, root)?;
        assert_eq!(part, mine);
        let request = group.iscatterv(everything.clone(), &packed, lens[rank], root)?;
        assert_eq!(request.wait()?.0, mine);
    }
    let mut got = vec![u64::MAX; end];
    group.allgatherv(&mine, &mut got, &places)?;
    assert_eq!(got, whole);
    assert_eq!(group.iallgatherv(mine, &packed)?.wait()?.0, everything);

    // Rank `a` sends (a + b) * count / 4 elements to rank `b`.
    let between = |a: usize, b: usize| (a + b) * count / 4;
    let lens: Vec<usize> = (0..size).map(|other| between(rank, other)).collect();
    let give: Vec<u64> = (0..size)
        .flat_map(|to| (0..between(rank, to)).map(move |index| value(rank, index + to, round)))
        .collect();
    let get: Vec<u64> = (0..size)
        .flat_map(|from| (0..between(rank, from)).map(move |i| value(from, i + rank, round)))
        .collect();
    let places = parts(&lens);
    let mut got = vec![0; get.len()];
    group.alltoallv(&give, &places, &mut got, &places)?;
    assert_eq!(got, get);
    assert_eq!(group.ialltoallv(give, &places, &places)?.wait()?.0, get);
    Ok(())
}

/// Checks reduce-scatters, with equal parts and with parts of different lengths. In the latter rank 0 has no elements.
fn scatters<T, O>(group: &Group, mine: &[T], total: &[T], operator: O) -> regatta::Result<()>
where
    T: regatta::Data + PartialEq + Debug,
    O: regatta::Operator<T> + Copy + Send + Sync + 'static,
{
    let (rank, size, count) = (group.rank(), group.size(), mine.len());
    let end = |rank: usize| count * rank * rank / (size - 1).max(1).pow(2);
    let mut counts: Vec<usize> = (1..size).map(|rank| end(rank) - end(rank - 1)).collect();
    counts.insert(0, if size == 1 { count } else { 0 });
    let part = parts(&counts)[rank].clone();
    let mut own = mine[part.clone()].to_vec();
    group.reduce_scatter(mine, &mut own, &counts, operator)?;
    assert_eq!(own, total[part.clone()]);
    let request = group.ireduce_scatter(mine.to_vec(), &counts, operator)?;
    assert_eq!(request.wait()?.0, total[part]);

    let each = count / size;
    let (whole, part) = (&mine[..each * size], &total[each * rank..][..each]);
    let mut own = whole[..each].to_vec();
    group.reduce_scatter_block(whole, &mut own, operator)?;
    assert_eq!(own, part);
    let request = group.ireduce_scatter_block(whole.to_vec(), operator)?;
    assert_eq!(request.wait()?.0, part);
    Ok(())
}

/// Checks all reductions by one operator on one type.
fn reduces<T, O>(
    group: &Group,
    count: usize,
    make: fn(u64) -> T,
    operator: O,
    serial: fn(T, T) -> T,
) where
    T: regatta::Data + PartialEq + Debug,
    O: regatta::Operator<T> + Copy + Send + Sync + 'static,
{
    let (rank, size) = (group.rank(), group.size());
    let input = |rank| -> Vec<T> { given(rank, count, 0).into_iter().map(make).collect() };
    let upto = |last: usize| {
        (1..=last).fold(input(0), |sum, rank| {
            let both = sum.into_iter().zip(input(rank));
            both.map(|(a, b)| serial(a, b)).collect()
        })
    };
    let (mine, total, prefix) = (input(rank), upto(size - 1), upto(rank));
    let run = || -> regatta::Result<()> {
        let mut output = mine.clone();
        group.allreduce(&mine, &mut output, operator)?;
        assert_eq!(output, total);
        output.clone_from(&mine);
        group.allreduce_in_place(&mut output, operator)?;
        assert_eq!(output, total);
        assert_eq!(group.iallreduce(mine.clone(), operator)?.wait()?.0, total);

        group.scan(&mine, &mut output, operator)?;
        assert_eq!(output, prefix);
        output.clone_from(&mine);
        group.scan_in_place(&mut output, operator)?;
        assert_eq!(output, prefix);
        assert_eq!(group.iscan(mine.clone(), operator)?.wait()?.0, prefix);

        let below = rank.checked_sub(1).map_or(mine.clone(), upto);
        output.clone_from(&mine);
        group.exscan(&mine, &mut output, operator)?;
        assert_eq!(output, below);
        output.clone_from(&mine);
        group.exscan_in_place(&mut output, operator)?;
        assert_eq!(output, below);
        assert_eq!(group.iexscan(mine.clone(), operator)?.wait()?.0, below);

        scatters(group, &mine, &total, operator)?;

        for root in [0, size - 1] {
            let expected = if rank == root { &total } else { &mine };
            output.clone_from(&mine);
            group.reduce(&mine, &mut output, operator, root)?;
            assert_eq!(output, *expected);
            let reduced = group.ireduce(mine.clone(), operator, root)?.wait()?.0;
            assert_eq!(reduced, *expected);
        }
        Ok(())
    };
    run().expect("reductions");
}

macro_rules! integer_operators {
    ($group:expr, $count:expr, $($type:ty)*) => {$({
        use regatta::*;
        type T = $type;
        // Intentionally wraps around in the narrow types, and includes zeros.
        let make: fn(u64) -> T = |x| if x % 5 == 0 { 0 } else { x as T };
        let truth = |x: bool| x as T;
        let _ = truth;
        reduces($group, $count, make, Sum, |a: T, b| a.wrapping_add(b));
        reduces($group, $count, make, Product, |a: T, b| a.wrapping_mul(b));
        reduces($group, $count, make, Max, |a: T, b| a.max(b));
        reduces($group, $count, make, Min, |a: T, b| a.min(b));
        reduces($group, $count, make, And, |a: T, b| (a != 0 && b != 0) as T);
        reduces($group, $count, make, Or, |a: T, b| (a != 0 || b != 0) as T);
        reduces($group, $count, make, BitAnd, |a: T, b| a & b);
        reduces($group, $count, make, BitOr, |a: T, b| a | b);
        reduces($group, $count, make, BitXor, |a: T, b| a ^ b);
        // On truth values `Xor` is associative.
        let make: fn(u64) -> T = |x| (x % 2) as T;
        reduces($group, $count, make, Xor, |a: T, b| ((a != 0) != (b != 0)) as T);
    })*};
}

macro_rules! float_operators {
    ($group:expr, $count:expr, $($type:ty)*) => {$({
        use regatta::*;
        type T = $type;
        // Small integers, whose sums are exact in any order.
        let make: fn(u64) -> T = |x| (x % 64) as T - 20.0;
        reduces($group, $count, make, Sum, |a: T, b| a + b);
        reduces($group, $count, make, Max, |a: T, b| a.max(b));
        reduces($group, $count, make, Min, |a: T, b| a.min(b));
        let make: fn(u64) -> T = |x| (x % 4) as T;
        reduces($group, $count, make, Product, |a: T, b| a * b);
    })*};
}

#[test]
fn reductions_of_all_types_by_all_operators() {
    in_jobs("reductions_of_all_types_by_all_operators", &SIZES, |task| {
        let world = task.world();
        for count in [0, 1, 7, 600] {
            integer_operators!(&world, count, i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
            float_operators!(&world, count, f32 f64);
        }
    });
}

#[test]
fn reductions_of_all_lengths_on_all_groups() {
    in_jobs("reductions_of_all_lengths_on_all_groups", &SIZES, |task| {
        for group in groups(task) {
            for count in COUNTS {
                reduces(&group, count, |x| x, regatta::Sum, u64::wrapping_add);
                reduces(
                    &group,
                    count * 8,
                    |x| x as u8,
                    regatta::BitXor,
                    |a, b| a ^ b,
                );
                reduces(&group, count, |x| (x % 99) as f64, regatta::Max, f64::max);
            }
        }
    });
}

/// Affine maps x -> ax + b under composition: associative, not commutative.
type Map = [u32; 2];

fn then(first: Map, second: Map) -> Map {
    [
        first[0].wrapping_mul(second[0]),
        first[1].wrapping_mul(second[0]).wrapping_add(second[1]),
    ]
}

#[test]
fn reductions_by_functions_of_the_user() {
    in_jobs("reductions_by_functions_of_the_user", &SIZES, |task| {
        let compose = ordered(|a: &Map, b: &Map| then(*a, *b));
        let longest = regatta::commutative(|a: &[u64; 3], b: &[u64; 3]| (*a).max(*b));
        for group in groups(task) {
            for count in COUNTS {
                let make: fn(u64) -> Map = |x| [x as u32 | 1, (x >> 3) as u32];
                reduces(&group, count, make, compose, then);
                let make: fn(u64) -> [u64; 3] = |x| [x % 17, x % 5, x];
                reduces(&group, count, make, longest, |a, b| a.max(b));
            }
        }
    });
}

#[test]
fn an_operator_cannot_call_regatta() {
    in_jobs("an_operator_cannot_call_regatta", &[2, 3], |task| {
        let world = &task.world();
        let loan = Mutex::new(task.loan(10).ok());
        let (calls, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let meddling = &regatta::commutative(|a: &u64, b: &u64| {
            let errors = [
                world.barrier().err(),
                world.send(&1, 0, 1).err(),
                regatta::init().err(),
                task.progress().err(),
                world.scope(|_| Ok(())).err(),
            ];
            let states = errors.iter().flatten();
            let states = states.filter(|error| *error.kind() == ErrorKind::State);
            calls.fetch_add(errors.len(), Ordering::SeqCst);
            refused.fetch_add(states.count(), Ordering::SeqCst);
            // A value that calls Regatta when dropped does not call it here.
            drop(loan.lock().expect("a lock").take());
            a + b
        });
        for count in [1, 5000] {
            let mut sums = vec![1; count];
            world.allreduce_in_place(&mut sums, meddling).expect("sums");
            assert!(sums.iter().all(|&sum| sum == world.size() as u64));
        }
        let calls = calls.into_inner();
        assert_eq!(calls, refused.into_inner());
        // At least one task has applied the operator.
        let mut all = [calls as u64];
        world
            .allreduce_in_place(&mut all, regatta::Sum)
            .expect("outside again");
        assert!(all[0] > 0);
    });
}

#[test]
fn many_at_once_complete_in_any_order() {
    in_jobs("many_at_once_complete_in_any_order", &SIZES, |task| {
        let world = task.world();
        let (rank, size) = (world.rank(), world.size());
        for count in [1, 700, 20_000] {
            let start = |round| world.iallreduce(given(rank, count, round), regatta::Sum);
            let sums: Vec<_> = (0..20)
                .map(|round| start(round).expect("a start"))
                .collect();
            // Blocking collectives in between.
            let mut ranks = vec![0; size];
            world.allgather(&[rank as u64], &mut ranks).expect("ranks");
            assert!(ranks.iter().zip(0..).all(|(&a, b)| a == b));
            for (round, sum) in sums.into_iter().enumerate().rev() {
                let (sum, _) = sum.wait().expect("a sum");
                let expected = (0..count).map(|index| {
                    let values = (0..size).map(|rank| value(rank, index, round));
                    values.sum::<u64>()
                });
                assert!(sum.into_iter().eq(expected), "round {round}");
            }
        }
    });
}

#[test]
fn a_dropped_collective_is_still_completed_for_the_others() {
    in_jobs(
        "a_dropped_collective_is_still_completed_for_the_others",
        &[2, 5],
        |task| {
            let world = task.world();
            for count in [1, 50_000] {
                let data = vec![world.rank() as u64; count];
                let request = world.iallreduce(data, regatta::Max).expect("a start");
                if world.rank() == 1 {
                    drop(request);
                } else {
                    let (most, _) = request.wait().expect("the greatest");
                    assert!(most.iter().all(|&rank| rank == world.size() as u64 - 1));
                }
                world.barrier().expect("a barrier");
            }
        },
    );
}

#[test]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "one part for a group of one"
)]
fn arguments_that_do_not_fit_are_refused() {
    let task = regatta::init().expect("a world of one");
    let world = task.world();
    let whole = &mut [0u8; 3];
    assert!(world.allreduce(&[1u8], whole, regatta::Sum).is_err());
    assert!(world.allgather(&[1u8], whole).is_err());
    assert!(world.gatherv(&[1u8], whole, &parts(&[2]), 0).is_err());
    assert!(world.gatherv(&[1u8], whole, &[3..4], 0).is_err());
    assert!(world.gatherv(&[1u8], whole, &[0..1, 1..2], 0).is_err());
    let backwards = std::ops::Range { start: 2, end: 1 };
    assert!(world.scatterv(whole, &[backwards], &mut [0u8], 0).is_err());
    assert!(world.broadcast(whole, 1).is_err());
    assert!(world.reduce(&[1u8], &mut [0u8], regatta::Sum, 9).is_err());
    let sum = regatta::Sum;
    assert!(world.exscan(&[1u8], &mut [], sum).is_ok());
    assert!(world.reduce_scatter(&[1u8], whole, &[3], sum).is_err());
    assert!(world.reduce_scatter(&[1u8; 3], whole, &[2], sum).is_err());
    assert!(
        world
            .reduce_scatter(&[1u8; 3], &mut [0], &[3], sum)
            .is_err()
    );
    assert!(world.ireduce_scatter(vec![1u8; 3], &[1, 2], sum).is_err());
    assert!(world.reduce_scatter_block(&[1u8], whole, sum).is_err());
    assert!(world.igather(vec![1u8], usize::MAX).is_err());
    assert!(world.select(&[]).is_err());
    assert!(world.select(&[0, 0]).is_err());
    assert!(world.split(Some(u32::MAX), 0).is_err());
}
