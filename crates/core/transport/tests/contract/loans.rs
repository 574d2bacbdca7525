//! Loans: memory that goes to another task.

use regatta_engine::{Fault, Loans};

use super::{World, pattern};

pub fn a_loan_is_read_in_place_and_given_back<T: Loans>(make: impl Fn() -> World<T>) {
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

pub fn a_loan_that_is_none_is_refused<T: Loans>(make: impl Fn() -> World<T>) {
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
