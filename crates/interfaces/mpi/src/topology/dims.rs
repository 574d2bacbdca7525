//! Balanced dimensions for a number of processes.

use std::ffi::c_int;

/// So many factors of `nodes`, the largest first, as close to each other as they can be: the largest is as small as
/// possible, then the next one.
pub fn balanced(nodes: c_int, count: usize) -> Vec<c_int> {
    let divisors = divisors(nodes);
    let mut dims = Vec::with_capacity(count);
    let mut rest = nodes;
    for left in (1..=count).rev() {
        let fits = |&&divisor: &&c_int| {
            rest % divisor == 0 && can_split(rest / divisor, left - 1, divisor, &divisors)
        };
        let largest = divisors.iter().find(fits).copied().unwrap_or(rest);
        dims.push(largest);
        rest /= largest;
    }
    dims
}

/// Whether `nodes` has so many factors none of which is larger than this.
fn can_split(nodes: c_int, count: usize, most: c_int, divisors: &[c_int]) -> bool {
    if nodes == 1 {
        return true;
    }
    if count == 0 {
        return false;
    }
    if nodes <= most {
        return true;
    }
    // As many of the largest allowed are still too few.
    let bound = (0..count).try_fold(1 as c_int, |bound, _| bound.checked_mul(most));
    if bound.is_some_and(|bound| bound < nodes) {
        return false;
    }
    let factors = divisors.iter().rev();
    let mut factors = factors.filter(|&&it| it > 1 && it <= most && nodes % it == 0);
    factors.any(|&factor| can_split(nodes / factor, count - 1, factor, divisors))
}

/// In ascending order.
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
            (2_147_483_647, &[2_147_483_647, 1, 1]),
            (735_134_400, &[918, 910, 880]),
        ] {
            assert_eq!(balanced(nodes, dims.len()), dims);
        }
    }
}
