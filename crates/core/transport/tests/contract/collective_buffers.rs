//! Collective buffers: memory to which several tasks contribute.

use regatta_engine::{COLLECTIVE_BUFFER_DEPTH, CollectiveBuffers, Fault, Part};
use regatta_memory::views::Views;

use super::{World, block, pattern};

/// Number of rounds, large enough to go round wide areas.
const ROUNDS: u32 = 700;

/// Lets both members contribute and read, for more rounds than a collective buffer keeps.
fn run_rounds<T: CollectiveBuffers>(tasks: &[T; 2], buffers: &[T::CollectiveBuffer; 2]) {
    let capacity = tasks[0].collective_buffer_capacity(&buffers[0]);
    let lengths = [0, 1, 8, 55, 56, 57, 64, capacity - 1, capacity];
    for (round, len) in (1..ROUNDS).zip(lengths.into_iter().cycle()) {
        for me in 0..2 {
            let other = 1 - me as u32;
            assert!(!tasks[1 - me].contributed(&buffers[1 - me], me as u32, round));
            let mut bytes = pattern(len, round + me as u32);
            assert!(!tasks[me].await_contribution(&buffers[me], me as u32, Some(other)));
            assert!(tasks[me].await_contribution(&buffers[me], me as u32, Some(other)));
            let from = block(&mut bytes);
            tasks[me].contribute(&buffers[me], me as u32, round, &from, 0..2, &|index| index);
            assert!(!tasks[me].await_contribution(&buffers[me], me as u32, None));
        }
        for me in 0..2 {
            for index in 0..2 {
                assert!(tasks[me].contributed(&buffers[me], index, round));
                let expected = pattern(len, round + index);
                let offset = len / 3;
                let part = Part { offset, total: len };
                let mut bytes = vec![0; len - offset];
                tasks[me].collect(&buffers[me], index, round, part, &block(&mut bytes));
                assert_eq!(bytes, expected[offset..]);
                if let Some(memory) = tasks[me].contribution(&buffers[me], index, round, len) {
                    assert_eq!(memory.to_vec(), expected);
                    let start = memory.contiguous().map(|start| start.addr());
                    assert!(start.is_some_and(|start| start.is_multiple_of(64)));
                }
            }
        }
    }
}

pub fn contributions_are_read_by_the_others<T: CollectiveBuffers>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    let [a, b] = &mut tasks;
    let (Some(one), Some(two)) = (a.world_collective_buffer(), b.world_collective_buffer()) else {
        panic!("tasks that share memory have a collective buffer");
    };
    run_rounds(&tasks, &[one, two]);
}

pub fn collective_buffers_are_found_by_name<T: CollectiveBuffers>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    let [a, b] = &mut tasks;
    let (one, name) = a
        .new_collective_buffer(2)
        .unwrap()
        .expect("memory is shared");
    let two = b.enter_collective_buffer(name, 2).unwrap().expect("in use");
    run_rounds(&tasks, &[one, two]);
    let refused = tasks[1].enter_collective_buffer(u64::MAX, 2);
    assert!(matches!(refused, Err(Fault::Corrupt { .. })));
}

pub fn a_collective_buffer_is_used_again_when_all_have_left<T: CollectiveBuffers>(
    make: impl Fn() -> World<T>,
) {
    let mut tasks = make().tasks;
    let mut last = None;
    // More groups than a host of two tasks has buffers.
    for _ in 0..40 {
        let [a, b] = &mut tasks;
        let (one, name) = a
            .new_collective_buffer(2)
            .unwrap()
            .expect("those of before are used again");
        if let Some(last) = last.replace(name) {
            assert_eq!(b.enter_collective_buffer(last, 2).unwrap().map(drop), None);
        }
        // A buffer with a remaining member is not reused, nor is one of another size.
        let (_, other) = b
            .new_collective_buffer(2)
            .unwrap()
            .expect("memory is shared");
        let (_, large) = b
            .new_collective_buffer(3)
            .unwrap()
            .expect("memory is shared");
        assert!(name != other && name != large);
        // These groups are given up, and no other member has entered.
        b.leave_collective_buffer(other, 2);
        b.give_up_collective_buffer(other, 2);
        b.give_up_collective_buffer(large, 3);
        assert!(!b.is_collective_buffer_used(other) && b.is_collective_buffer_used(large));
        b.leave_collective_buffer(large, 3);
        assert_eq!(a.enter_collective_buffer(other, 2).unwrap().map(drop), None);
        let two = b.enter_collective_buffer(name, 2).unwrap().expect("in use");
        for (me, buffer) in [&one, &two].into_iter().enumerate() {
            for round in 1..=COLLECTIVE_BUFFER_DEPTH {
                assert_eq!(
                    tasks[me].contributed_round(buffer, 1 - me as u32, round),
                    0,
                    "of old"
                );
            }
        }
        for (me, buffer) in [&one, &two].into_iter().enumerate() {
            for round in 1..4 {
                let from = Views::none();
                tasks[me].contribute(buffer, me as u32, round, &from, 0..2, &|index| index);
            }
        }
        tasks[0].leave_collective_buffer(name, 2);
        assert!(tasks[0].is_collective_buffer_used(name));
        tasks[1].leave_collective_buffer(name, 2);
        assert!(!tasks[0].is_collective_buffer_used(name));
    }
}
