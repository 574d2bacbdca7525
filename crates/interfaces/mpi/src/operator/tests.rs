use super::*;

fn combined<T: Copy, const N: usize>(
    op: Op,
    datatype: Datatype,
    a: [T; N],
    mut b: [T; N],
) -> [T; N] {
    let reduction = get(op, datatype).expect("an operator for it");
    // SAFETY: the arrays have `N` elements of this datatype.
    unsafe { reduction.combine(a.as_ptr().cast(), b.as_mut_ptr().cast(), N as i64) };
    b
}

#[test]
fn numbers_are_combined() {
    assert_eq!(
        combined(SUM, INT, [1, 2, i32::MAX], [3, 4, 1]),
        [4, 6, i32::MIN]
    );
    assert_eq!(combined(MAX, UNSIGNED_CHAR, [200u8, 1], [100, 2]), [200, 2]);
    assert_eq!(combined(PROD, DOUBLE, [1.5, -2.0], [2.0, 3.0]), [3.0, -6.0]);
    assert_eq!(
        combined(MIN, FLOAT, [1.5f32, -2.0], [2.0, 3.0]),
        [1.5, -2.0]
    );
    assert_eq!(
        combined(PROD, C_DOUBLE_COMPLEX, [[1.0, 2.0]], [[3.0, 4.0]]),
        [[-5.0, 10.0]]
    );
    assert_eq!(combined(BXOR, BYTE, [0xf0u8], [0xff]), [0x0f]);
    assert_eq!(combined(LAND, C_BOOL, [1u8, 1, 0], [1, 0, 1]), [1, 0, 0]);
    assert_eq!(combined(LXOR, LOGICAL, [1u32, 1, 0], [1, 0, 0]), [0, 1, 0]);
    assert_eq!(
        combined(SUM, INTEGER16, [1i128 << 100], [1]),
        [(1i128 << 100) + 1]
    );
}

/// Uses 1.5, 2 and -3 in the format of the x87 unit.
#[test]
fn long_doubles_are_combined() {
    let (one_and_a_half, two) = (
        0x3fff_c000_0000_0000_0000u128,
        0x4000_8000_0000_0000_0000u128,
    );
    let three = 0x4000_c000_0000_0000_0000u128;
    assert_eq!(
        combined(PROD, LONG_DOUBLE, [two], [one_and_a_half]),
        [three]
    );
    assert_eq!(
        combined(SUM, LONG_DOUBLE, [one_and_a_half], [one_and_a_half]),
        [three]
    );
    let minus = three | 1 << 79;
    assert_eq!(combined(MIN, LONG_DOUBLE, [minus], [two]), [minus]);
    assert_eq!(combined(MAX, LONG_DOUBLE, [minus], [two]), [two]);
    // (1.5 + 0i) * (2 + 0i)
    let product = combined(
        PROD,
        C_LONG_DOUBLE_COMPLEX,
        [[one_and_a_half, 0]],
        [[two, 0]],
    );
    assert_eq!(product, [[three, 0]]);
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair<V, I>(V, I);

#[test]
fn of_equal_values_the_lower_index_stays() {
    let a = [Pair(1.0f64, 7i32), Pair(2.0, 3), Pair(3.0, 1)];
    let b = [Pair(1.0f64, 5i32), Pair(1.0, 9), Pair(4.0, 0)];
    let least = combined(MINLOC, DOUBLE_INT, a, b);
    assert_eq!(least, [Pair(1.0, 5), Pair(1.0, 9), Pair(3.0, 1)]);
    let most = combined(MAXLOC, DOUBLE_INT, a, b);
    assert_eq!(most, [Pair(1.0, 5), Pair(2.0, 3), Pair(4.0, 0)]);
    let pair = fortran::value_index(UINT8_T, INT64_T).expect("integers");
    let least = combined(MINLOC, pair, [Pair(200u8, 1i64)], [Pair(100u8, 2i64)]);
    assert_eq!(least, [Pair(100, 2)]);
}

#[test]
fn an_operator_is_not_for_every_type() {
    let class = |op, datatype| get(op, datatype).err().map(|error| error.class());
    assert_eq!(class(SUM, BYTE), Some(ERR_OP));
    assert_eq!(class(BAND, DOUBLE), Some(ERR_OP));
    assert_eq!(class(MAX, C_DOUBLE_COMPLEX), Some(ERR_OP));
    assert_eq!(class(SUM, DOUBLE_INT), Some(ERR_OP));
    assert_eq!(class(MINLOC, DOUBLE), Some(ERR_OP));
    assert_eq!(class(SUM, C_BOOL), Some(ERR_OP));
    assert_eq!(class(OP_NULL, INT), Some(ERR_OP));
    assert_eq!(class(REPLACE, INT), Some(ERR_OP));
    assert_eq!(class(SUM, DATATYPE_NULL), Some(ERR_TYPE));
}

#[test]
fn what_the_engine_can_do_the_kernels_can_too() {
    let all = [
        SUM, PROD, MAX, MIN, LAND, LOR, LXOR, BAND, BOR, BXOR, MINLOC, MAXLOC,
    ];
    for datatype in (0x200..0x300).map(Datatype) {
        for op in all {
            if engine(op, datatype).is_some() {
                assert!(get(op, datatype).is_ok(), "{op:?} {datatype:?}");
            }
        }
    }
    let of = |kind, op, times| Some(Engine { kind, op, times });
    assert_eq!(engine(SUM, DOUBLE), of(rg::DOUBLE, rg::SUM, 1));
    assert_eq!(engine(SUM, C_FLOAT_COMPLEX), of(rg::FLOAT, rg::SUM, 2));
    assert_eq!(engine(LOR, C_BOOL), of(rg::UINT8, rg::OR, 1));
    assert_eq!(engine(BAND, C_BOOL), None);
    assert_eq!(engine(PROD, C_FLOAT_COMPLEX), None);
    let real = fortran::real(10, UNDEFINED).expect("a double");
    assert_eq!(
        get(SUM, real).expect("for it").engine,
        of(rg::DOUBLE, rg::SUM, 1)
    );
}

unsafe extern "C" fn difference(
    input: *mut c_void,
    inout: *mut c_void,
    count: *mut c_int,
    datatype: *mut Datatype,
) {
    // SAFETY: the test passes arrays of ints.
    unsafe {
        assert_eq!(*datatype, INT);
        for index in 0..*count as usize {
            let own = inout.cast::<i32>().add(index);
            *own = *input.cast::<i32>().add(index) - *own;
        }
    }
}

#[test]
fn an_operator_of_a_programs_is_called_with_its_type() {
    let op = create(UserFunction::Small(Some(difference)), false).expect("room");
    assert!(!is_commutative(op).expect("an operator"));
    assert_eq!(combined(op, INT, [5, 7], [1, 2]), [4, 5]);
    free(op).expect("an operator");
    assert!(get(op, INT).is_err() && free(op).is_err() && free(SUM).is_err());
    assert!(is_commutative(SUM).expect("predefined"));
}
