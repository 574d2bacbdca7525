//! Loans and collective buffers: memory that several tasks see.

use regatta_engine::{COLLECTIVE_BUFFER_DEPTH, Fault, Part, Transport};
use regatta_memory::views::Views;

use super::{World, block, pattern};

pub fn a_loan_is_read_in_place_and_given_back<T: Transport>(make: impl Fn() -> World<T>) {
    let [mut a, mut b] = make().tasks;
    for len in [0, 1, 4096, 1 << 20] {
        let (place, mine) = a.lend(len).unwrap();
        assert_eq!(mine.len(), len);
        mine.fill(&pattern(len, 1));
        let theirs = b.borrowed(0, place, len as u64).unwrap();
        assert_eq!(theirs.to_vec(), pattern(len, 1));
        let address = mine.contiguous().expect("a loan is one block") as usize;
        let (found, room) = a.loan_at(address).expect("it is lent");
        assert!(found == place && room >= len);
        b.give_back(place);
        assert!(
            a.loan_at(address).is_some(),
            "only who has it gives it back"
        );
        assert!(
            matches!(b.loan_came(0, place), Err(Fault::Corrupt { .. })),
            "nor has it been handed over"
        );
        a.give_back(place);
        assert_eq!(a.loan_at(address), None);
    }
}

pub fn a_loan_that_is_none_is_refused<T: Transport>(make: impl Fn() -> World<T>) {
    let [mut a, mut b] = make().tasks;
    let (place, _) = a.lend(100).unwrap();
    for (place, len) in [
        (place, u64::MAX),
        (place + 1, 1),
        (u64::MAX, 1),
        (1 << 40, 1),
    ] {
        let refused = b.borrowed(0, place, len);
        assert!(
            matches!(refused, Err(Fault::Corrupt { peer: 0, .. })),
            "{place} {len}"
        );
    }
    assert_eq!(a.loan_at(&raw const a as usize), None);
    assert!(matches!(a.lend(usize::MAX), Err(Fault::Memory(_))));
}

/// Both members contribute, both read, more rounds than a collective buffer keeps.
fn run_rounds<T: Transport>(tasks: &[T; 2], buffers: &[T::CollectiveBuffer; 2]) {
    let capacity = tasks[0].collective_buffer_capacity(&buffers[0]);
    let lengths = [0, 1, 8, 55, 56, 57, 64, capacity - 1, capacity];
    for (round, len) in (1..4 * COLLECTIVE_BUFFER_DEPTH).zip(lengths.into_iter().cycle()) {
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
            }
        }
    }
}

pub fn contributions_are_read_by_the_others<T: Transport>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    let [a, b] = &mut tasks;
    let (Some(one), Some(two)) = (a.world_collective_buffer(), b.world_collective_buffer()) else {
        panic!("tasks that share memory have a collective buffer");
    };
    run_rounds(&tasks, &[one, two]);
}

pub fn collective_buffers_are_found_by_name<T: Transport>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    let [a, b] = &mut tasks;
    let (one, name) = a
        .new_collective_buffer(2)
        .unwrap()
        .expect("memory is shared");
    let two = b.enter_collective_buffer(name, 2).unwrap();
    run_rounds(&tasks, &[one, two]);
    let refused = tasks[1].enter_collective_buffer(u64::MAX, 2);
    assert!(matches!(refused, Err(Fault::Corrupt { .. })));
}

pub fn a_collective_buffer_is_used_again_when_all_have_left<T: Transport>(
    make: impl Fn() -> World<T>,
) {
    let mut tasks = make().tasks;
    let mut last = None;
    for _ in 0..5 {
        let [a, b] = &mut tasks;
        let (one, name) = a
            .new_collective_buffer(2)
            .unwrap()
            .expect("memory is shared");
        assert!(last.is_none_or(|last| name == last), "all had left it");
        // Not this one: one of its members is still there. Nor one of another size.
        let (_, other) = b
            .new_collective_buffer(2)
            .unwrap()
            .expect("memory is shared");
        let (_, large) = b
            .new_collective_buffer(3)
            .unwrap()
            .expect("memory is shared");
        assert!(name != other && name != large);
        a.leave_collective_buffer(other, 2);
        let two = b.enter_collective_buffer(name, 2).unwrap();
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
        tasks[1].leave_collective_buffer(name, 2);
        last = Some(name);
    }
}
