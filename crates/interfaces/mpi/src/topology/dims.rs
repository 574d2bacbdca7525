//! Balanced dimensions for a number of processes.

use std::ffi::c_int;

/// Maximum number of prime factors of an `int`, plus 1: any further dimension is 1.
const MAX_PRIME_FACTORS: usize = 31;

/// Returns `count` factors of `nodes`, the largest first, that differ as little as possible: the difference between the
/// largest and the smallest is minimal. If several lists qualify, returns the one whose smallest factor is largest,
/// then whose next smallest is largest, and so on.
pub fn balanced(nodes: c_int, count: usize) -> Vec<c_int> {
    if count == 0 {
        return Vec::new();
    }
    if count > MAX_PRIME_FACTORS {
        let mut dims = balanced(nodes, MAX_PRIME_FACTORS);
        dims.resize(count, 1);
        return dims;
    }
    let divisors = divisors(nodes);
    let (mut best, mut spread) = (Vec::new(), nodes);
    for &largest in &divisors {
        if power(largest, count) < i64::from(nodes) {
            continue;
        }
        let least = (largest - spread).max(1);
        // The smallest factor is at most the root, so all further lists have a larger difference.
        if power(least, count) > i64::from(nodes) {
            break;
        }
        if let Some(mut dims) = split(nodes / largest, count - 1, (least, largest), &divisors) {
            dims.insert(0, largest);
            spread = largest - dims.last().copied().unwrap_or(largest);
            best = dims;
        }
    }
    best
}

/// Returns `count` factors within these bounds, the largest first. The smallest one is as large as possible, then the
/// next one.
fn split(
    nodes: c_int,
    count: usize,
    (least, most): (c_int, c_int),
    divisors: &[c_int],
) -> Option<Vec<c_int>> {
    if count == 0 {
        return (nodes == 1).then(Vec::new);
    }
    if power(least, count) > i64::from(nodes) || power(most, count) < i64::from(nodes) {
        return None;
    }
    let fits = |&factor: &c_int| nodes % factor == 0 && power(factor, count) <= i64::from(nodes);
    let within = divisors.iter().copied().rev().filter(|&it| it <= most);
    let mut factors = within.take_while(|&it| it >= least).filter(fits);
    factors.find_map(|smallest| {
        let bounds = (smallest, most);
        let mut dims = split(nodes / smallest, count - 1, bounds, divisors)?;
        dims.push(smallest);
        Some(dims)
    })
}

/// Returns the power, or `i64::MAX` on overflow.
fn power(of: c_int, count: usize) -> i64 {
    let exponent = u32::try_from(count).unwrap_or(u32::MAX);
    i64::from(of).saturating_pow(exponent)
}

/// Returns all divisors in ascending order.
fn divisors(of: c_int) -> Vec<c_int> {
    let small = (1..).take_while(|it| i64::from(*it) * i64::from(*it) <= i64::from(of));
    let small: Vec<c_int> = small.filter(|it| of % it == 0).collect();
    let large = small.iter().rev().map(|it| of / it);
    let mut all: Vec<c_int> = small.iter().copied().chain(large).collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_close_to_each_other() {
        for (nodes, dims) in [
            (1, &[1, 1][..]),
            (6, &[3, 2]),
            (7, &[7, 1]),
            (12, &[4, 3]),
            (16, &[4, 2, 2]),
            (24, &[4, 3, 2]),
            (60, &[5, 4, 3]),
            (84, &[7, 4, 3]),
            (1024, &[4, 4, 4, 4, 4]),
            // 24, 24 and 13 have a smaller maximum, but differ more.
            (7488, &[26, 18, 16]),
            (204_624, &[29, 14, 9, 8, 7]),
            (2_147_483_647, &[2_147_483_647, 1, 1]),
            (735_134_400, &[918, 910, 880]),
        ] {
            assert_eq!(balanced(nodes, dims.len()), dims);
        }
        let many = balanced(1 << 30, 1_000_000);
        assert!(many[..30].iter().all(|&dim| dim == 2) && many[30..].iter().all(|&dim| dim == 1));
    }
}
