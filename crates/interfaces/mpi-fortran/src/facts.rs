//! Facts about Fortran: sizes of its types, and the values of a LOGICAL. As in C the first to set them wins.

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::handles::Info;
use crate::{
    PMPI_Abi_get_fortran_booleans, PMPI_Abi_get_fortran_info, PMPI_Abi_set_fortran_booleans,
    PMPI_Abi_set_fortran_info, PMPI_Info_create, PMPI_Info_free, PMPI_Info_set, SUCCESS,
};

/// The value of .TRUE.; .FALSE. is 0 for every compiler. Most compilers check the lowest bit, or whether the value is
/// 0.
static TRUE: AtomicI32 = AtomicI32::new(1);

/// Sizes of types, and which of the types with a size in their name are supported.
const FACTS: [(&std::ffi::CStr, &std::ffi::CStr); 24] = [
    (c"mpi_character_size", c"1"),
    (c"mpi_logical_size", c"4"),
    (c"mpi_integer_size", c"4"),
    (c"mpi_real_size", c"4"),
    (c"mpi_double_precision_size", c"8"),
    (c"mpi_logical1_supported", c"true"),
    (c"mpi_logical2_supported", c"true"),
    (c"mpi_logical4_supported", c"true"),
    (c"mpi_logical8_supported", c"true"),
    (c"mpi_logical16_supported", c"true"),
    (c"mpi_integer1_supported", c"true"),
    (c"mpi_integer2_supported", c"true"),
    (c"mpi_integer4_supported", c"true"),
    (c"mpi_integer8_supported", c"true"),
    (c"mpi_integer16_supported", c"true"),
    (c"mpi_real2_supported", c"true"),
    (c"mpi_real4_supported", c"true"),
    (c"mpi_real8_supported", c"true"),
    (c"mpi_real16_supported", c"true"),
    (c"mpi_complex4_supported", c"true"),
    (c"mpi_complex8_supported", c"true"),
    (c"mpi_complex16_supported", c"true"),
    (c"mpi_complex32_supported", c"true"),
    (c"mpi_double_complex_supported", c"true"),
];

/// Sets the facts before MPI is initialized, unless a program has done it.
pub fn set() {
    static SET: Once = Once::new();
    // SAFETY: these functions may be called at any time, and the pointers point to local variables.
    SET.call_once(|| unsafe {
        set_booleans();
        let mut info = Info::of(INFO_NULL);
        if PMPI_Abi_get_fortran_info(&mut info) == SUCCESS && info.to_int() != INFO_NULL {
            PMPI_Info_free(&mut info);
            return;
        }
        if PMPI_Info_create(&mut info) != SUCCESS {
            return;
        }
        for (key, value) in FACTS {
            PMPI_Info_set(info, key.as_ptr(), value.as_ptr());
        }
        PMPI_Abi_set_fortran_info(info);
        PMPI_Info_free(&mut info);
    });
}

const INFO_NULL: c_int = 0x130;

/// Takes over the values of a LOGICAL that the program has set, or sets the usual ones.
///
/// # Safety
/// libmpi_abi.so is loaded.
unsafe fn set_booleans() {
    let (mut yes, mut no, mut is_set) = (1i32, 0i32, 0);
    let places = ((&raw mut yes).cast(), (&raw mut no).cast());
    // SAFETY: the pointers point to local variables of four bytes.
    unsafe {
        let result = PMPI_Abi_get_fortran_booleans(4, places.0, places.1, &mut is_set);
        if result == SUCCESS && is_set != 0 {
            TRUE.store(yes, Ordering::Relaxed);
        } else {
            PMPI_Abi_set_fortran_booleans(4, places.0, places.1);
        }
    }
}

/// Converts a logical value of C to Fortran.
pub fn logical(truth: c_int) -> c_int {
    match truth {
        0 => 0,
        _ => TRUE.load(Ordering::Relaxed),
    }
}

/// Converts logical values that C has written to Fortran's. Values other than 0 and 1 are left unchanged.
///
/// # Safety
/// `first` points to `count` values.
#[inline]
pub unsafe fn logicals(first: *mut c_int, count: c_int) {
    for index in 0..count.max(0) as usize {
        // SAFETY: the caller guarantees valid pointers.
        unsafe {
            let place = first.add(index);
            if *place == 1 {
                *place = logical(1);
            }
        }
    }
}
