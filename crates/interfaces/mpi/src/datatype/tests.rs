//! Checks layouts against a type map that is written out element by element.

use std::ffi::c_void;
use std::sync::Arc;

use proptest::prelude::*;

use super::construct::{Share, darray, hindexed, hvector, structure, subarray};
use super::map::Map;
use super::{Made, Type, get};
use crate::abi::*;

/// The displacement of each byte, in the order of the type map, and the extent.
#[derive(Clone, Debug)]
struct Naive {
    bytes: Vec<i64>,
    extent: i64,
}

impl Naive {
    fn block(&self, length: i64, at: i64) -> Vec<i64> {
        let places = (0..length).map(|k| at + k * self.extent);
        let bytes = places.flat_map(|place| self.bytes.iter().map(move |byte| place + byte));
        bytes.collect()
    }
}

fn both(map: Option<Map>, bytes: Vec<i64>) -> (Map, Naive) {
    let map = map.expect("small numbers");
    let extent = map.bounds.extent();
    (map, Naive { bytes, extent })
}

fn element() -> impl Strategy<Value = (Map, Naive)> {
    let kinds = prop::sample::select(vec![CHAR, SHORT, INT, DOUBLE, DOUBLE_INT, SHORT_INT]);
    kinds.prop_map(|datatype| {
        let map = get(datatype).expect("predefined").map().clone();
        let bytes = match datatype {
            DOUBLE_INT => (0..12).collect(),
            SHORT_INT => vec![0, 1, 4, 5, 6, 7],
            _ => (0..map.bounds.size).collect(),
        };
        both(Some(map), bytes)
    })
}

fn derived(
    old: impl Strategy<Value = (Map, Naive)> + Clone,
) -> impl Strategy<Value = (Map, Naive)> {
    let vector = (old.clone(), 0..4i64, 0..4i64, -200..200i64).prop_map(
        |((map, naive), count, length, stride)| {
            let bytes = (0..count).flat_map(|k| naive.block(length, k * stride));
            let bytes = bytes.collect();
            both(hvector(&map, count, length, stride), bytes)
        },
    );
    let blocks = prop::collection::vec((0..4i64, -200..200i64), 0..8);
    let regular = (0..6i64, 1..3i64, -60..60i64).prop_map(|(count, length, distance)| {
        (0..count)
            .map(|k| (length, k * distance))
            .collect::<Vec<_>>()
    });
    let indexed = (old.clone(), prop_oneof![blocks, regular]).prop_map(|((map, naive), blocks)| {
        let bytes = blocks
            .iter()
            .flat_map(|&(length, at)| naive.block(length, at));
        let bytes = bytes.collect();
        both(hindexed(&map, blocks), bytes)
    });
    let members = prop::collection::vec((0..3i64, -100..100i64, old.clone()), 0..4);
    let structured = members.prop_map(|members| {
        let bytes = members
            .iter()
            .flat_map(|(length, at, (_, naive))| naive.block(*length, *at));
        let bytes = bytes.collect();
        let members = members
            .iter()
            .map(|(length, at, (map, _))| (*length, *at, map));
        both(structure(members), bytes)
    });
    let resized = (old, -50..50i64, -50..100i64)
        .prop_map(|((map, naive), lb, extent)| both(map.resized(lb, extent), naive.bytes));
    prop_oneof![vector, indexed, structured, resized]
}

fn nested() -> impl Strategy<Value = (Map, Naive)> {
    let once = prop_oneof![element(), derived(element().boxed())].boxed();
    let twice = prop_oneof![once.clone(), derived(once)].boxed();
    prop_oneof![twice.clone(), derived(twice)].boxed()
}

/// Half the size of the test's memory; buffers begin in its middle.
const MIDDLE: usize = 1 << 16;

fn pattern() -> Vec<u8> {
    (0..2 * MIDDLE)
        .map(|at| (at * 31 + at / 251) as u8)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn packing_takes_the_bytes_of_the_type_map((map, naive) in nested(), count in 0..4i64, cut in 0.0..1.0f64) {
        let memory = pattern();
        let expected: Vec<u8> = naive.block(count, 0).iter().map(|&at| memory[(MIDDLE as i64 + at) as usize]).collect();
        let of = Type::new(map, Made::default());
        let size = of.packed_size(count).expect("small");
        prop_assert_eq!(size, expected.len());
        let buffer = memory[MIDDLE..].as_ptr().cast::<c_void>();
        let cut = (size as f64 * cut) as usize;
        let mut out = vec![0u8; size];
        // SAFETY: the elements lie in the memory.
        unsafe {
            of.pack(buffer, cut, size, out[cut..].as_mut_ptr());
            of.pack(buffer, 0, cut, out.as_mut_ptr());
        }
        prop_assert_eq!(&out, &expected);
        let views = of.views(buffer, count, usize::MAX - 1).expect("no limit");
        let mut viewed = Vec::new();
        for view in views {
            for k in 0..view.count as isize {
                let from = view.base.cast::<u8>().wrapping_offset(k * view.stride);
                // SAFETY: the views lie in the memory.
                viewed.extend_from_slice(unsafe { std::slice::from_raw_parts(from, view.block) });
            }
        }
        prop_assert_eq!(&viewed, &expected);
    }

    #[test]
    fn unpacking_puts_the_bytes_where_the_type_map_says((map, naive) in nested(), count in 0..4i64, cut in 0.0..1.0f64) {
        let mut expected = pattern();
        let places = naive.block(count, 0);
        for (index, &at) in places.iter().enumerate() {
            expected[(MIDDLE as i64 + at) as usize] = index as u8;
        }
        let of = Type::new(map, Made::default());
        let bytes: Vec<u8> = (0..places.len()).map(|index| index as u8).collect();
        let mut memory = pattern();
        let buffer = memory[MIDDLE..].as_mut_ptr().cast::<c_void>();
        let cut = (bytes.len() as f64 * cut) as usize;
        // SAFETY: the elements lie in the memory.
        unsafe {
            of.unpack(bytes.as_ptr(), 0, cut, buffer);
            of.unpack(bytes[cut..].as_ptr(), cut, bytes.len(), buffer);
        }
        prop_assert!(memory == expected);
    }

    #[test]
    fn shares_of_an_array_are_dealt_as_the_standard_says(
        dimensions in prop::collection::vec((1..7i64, 1..4i64, 1..4i64), 1..4),
        fortran: bool,
    ) {
        let order = if fortran { ORDER_FORTRAN } else { ORDER_C };
        let total: i64 = dimensions.iter().map(|it| it.0).product();
        let processes: i64 = dimensions.iter().map(|it| it.1).product();
        let old = get(INT).expect("predefined").map().clone();
        let mut seen = vec![0; total as usize];
        for process in 0..processes {
            let mut rank = process;
            let shares: Vec<Share> = dimensions.iter().map(|&(size, processes, block)| {
                let coordinate = rank % processes;
                rank /= processes;
                Share { size, block, processes, coordinate }
            }).collect();
            let map = darray(&old, &shares, order).expect("small");
            prop_assert_eq!(map.bounds.extent(), total * 4);
            let mut got = Vec::new();
            map.walk(0, map.bounds.size as usize, &mut |piece| {
                for k in 0..piece.count as isize {
                    let at = piece.offset + k * piece.stride;
                    got.extend((0..piece.block as isize / 4).map(|word| at / 4 + word));
                }
            });
            // An element belongs to the process whose coordinates follow from its indices.
            let mut expected = Vec::new();
            for at in 0..total {
                let mut left = at;
                let mut mine = true;
                for dimension in super::construct::nearest_first(shares.len(), order) {
                    let share = shares[dimension];
                    let index = left % share.size;
                    left /= share.size;
                    mine &= index / share.block % share.processes == share.coordinate;
                }
                if mine {
                    expected.push(at as isize);
                    seen[at as usize] += 1;
                }
            }
            prop_assert_eq!(got, expected);
        }
        prop_assert!(seen.iter().all(|&times| times == 1));
    }
}

#[test]
fn simple_types_become_one_piece_or_one_vector() {
    let double = get(DOUBLE).expect("predefined");
    let piece = |map: Option<Map>| {
        let mut pieces = Vec::new();
        let map = map.expect("small");
        map.walk(0, map.bounds.size as usize, &mut |piece| pieces.push(piece));
        pieces.len()
    };
    let old = double.map();
    assert!(hvector(old, 5, 2, 16).is_some_and(|map| map.layout.run() == Some(80)));
    assert_eq!(piece(hvector(old, 500, 1, 16)), 1);
    assert_eq!(piece(hindexed(old, (0..500).map(|k| (1, k * 24)))), 1);
    assert_eq!(piece(hindexed(old, (0..500).map(|k| (1, k * 8)))), 1);
    assert_eq!(piece(subarray(old, &[[10, 10, 0], [20, 3, 4]], ORDER_C)), 1);
    assert_eq!(piece(subarray(old, &[[10, 4, 1], [20, 20, 0]], ORDER_C)), 1);
    assert_eq!(
        piece(subarray(old, &[[9, 4, 1], [9, 4, 1], [9, 4, 1]], ORDER_C)),
        4
    );
}

#[test]
fn vectors_go_to_the_engine_as_they_are() {
    let column = hvector(get(DOUBLE).expect("predefined").map(), 8192, 1, 16).expect("small");
    let of = Type::new(
        column.resized(0, 8192 * 16).expect("small"),
        Made::default(),
    );
    let memory = pattern();
    let address = memory.as_ptr().cast::<c_void>();
    let views = of.views(address, 2, 1).expect("one view");
    assert_eq!((views.len(), views[0].count), (1, 16384));
    assert_eq!((views[0].block, views[0].stride), (8, 16));
    let lone = hindexed(
        get(INT).expect("predefined").map(),
        (0..100).map(|k| (1 + k % 2, k * k * 16)),
    );
    let of = Type::new(lone.expect("small"), Made::default());
    assert!(of.views(address, 1, 64).is_none());
}

#[test]
fn a_handle_that_is_held_leads_to_its_type_after_that_was_freed() {
    let old = get(INT).expect("predefined");
    let map = old.map().block(2).expect("small");
    let handle = super::insert(Type::new(map, Made::default())).expect("room");
    super::commit(handle).expect("a type");
    let kept = super::Kept::new(handle, get(handle).expect("a type"));
    // SAFETY: the object has no attributes, so no callback is called.
    unsafe { super::free(handle).expect("a type") };
    assert!(get(handle).is_ok());
    // SAFETY: the object has no attributes, so no callback is called.
    assert!(unsafe { super::free(handle) }.is_err());
    drop(kept);
    assert!(get(handle).is_err() && super::block(handle, 1).is_err());
}

#[test]
fn a_structure_is_padded_as_c_pads_it() {
    let of = |datatype| get(datatype).expect("predefined").map().clone();
    let map = structure([(1, 0, &of(DOUBLE)), (1, 8, &of(CHAR))]).expect("small");
    assert_eq!((map.bounds.size, map.bounds.extent()), (9, 16));
    let pair = of(LONG_DOUBLE_INT);
    assert_eq!((pair.bounds.size, pair.bounds.extent()), (20, 32));
    let marked = map.resized(-3, 5).expect("small");
    let map = structure([(2, 0, &marked), (1, 90, &of(DOUBLE))]).expect("small");
    assert_eq!(
        (map.bounds.lb, map.bounds.ub, map.bounds.true_extent()),
        (-3, 7, 98)
    );
}

#[test]
fn numbers_that_do_not_suffice_give_no_type() {
    let of = get(INT).expect("predefined").map().clone();
    assert!(of.block(i64::MAX / 2).is_none());
    assert!(hvector(&of, 3, 1, i64::MAX / 2).is_none());
    assert!(of.clone().shifted(i64::MAX - 2).is_none());
    assert!(hindexed(&of, [(1, i64::MIN), (1, i64::MAX - 8)]).is_none());
    let large = Type::new(of.block(1 << 40).expect("fits"), Made::default());
    assert_eq!(
        large.packed_size(1 << 40).expect_err("too many").class(),
        ERR_COUNT
    );
}

#[test]
fn elements_are_counted_in_a_part_of_a_message() {
    let of = |datatype| get(datatype).expect("predefined").map().clone();
    let map = structure([
        (2, 0, &of(INT)),
        (1, 8, &of(DOUBLE)),
        (1, 16, &of(DOUBLE_INT)),
    ]);
    let of = Arc::new(Type::new(map.expect("small"), Made::default()));
    assert_eq!(of.size(), 28);
    for (bytes, elements) in [
        (0, Some(0)),
        (4, Some(1)),
        (5, None),
        (16, Some(3)),
        (24, Some(4)),
        (60, Some(11)),
    ] {
        assert_eq!(of.elements_in(bytes), elements, "{bytes}");
    }
    assert_eq!(of.map().signature.bytes_of(4), 24);
}

#[test]
fn a_long_chain_of_types_is_dropped_without_a_deep_recursion() {
    let mut last = get(INT).expect("predefined");
    for _ in 0..100_000 {
        let made = Made {
            types: last.clone().into(),
            ..Made::default()
        };
        last = Arc::new(Type::new(last.map().clone(), made));
    }
}
