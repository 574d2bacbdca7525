//! The functions of libregatta.so that the functions of the same names here call. `build.rs` generates the list from `regatta.h`.
#![allow(
    dead_code,
    clippy::too_many_arguments,
    reason = "all are here, whichever the recorder calls"
)]

use std::ffi::{CStr, c_char, c_double, c_int, c_void};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use regatta_abi::*;

/// A function of libregatta.so.
struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr) -> Real {
        let address = AtomicPtr::new(std::ptr::null_mut());
        Real { name, address }
    }

    /// Returns the address of the function, which it looks up at the first call.
    #[inline]
    fn address(&self) -> *mut c_void {
        let known = self.address.load(Relaxed);
        match known.is_null() {
            false => known,
            true => self.find(),
        }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // SAFETY: `name` is NUL-terminated.
        let mut found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            // RTLD_NEXT does not find a libregatta.so that the program has loaded by dlopen.
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
            // SAFETY: the name is NUL-terminated, and RTLD_NOLOAD loads nothing.
            let library = unsafe { libc::dlopen(c"libregatta.so.0".as_ptr(), flags) };
            if !library.is_null() {
                // SAFETY: the library is loaded, and `name` is NUL-terminated.
                found = unsafe { libc::dlsym(library, self.name.as_ptr()) };
            }
        }
        if found.is_null() {
            let name = self.name.to_string_lossy();
            crate::file::complain(&format!("libregatta.so has no function {name}"));
            std::process::abort();
        }
        self.address.store(found, Relaxed);
        found
    }
}

/// Defines functions that call those of the same names in libregatta.so.
macro_rules! real {
    ($(fn $name:ident($($argument:ident: $type:ty,)*) -> $returns:ty;)*) => {$(
        #[inline(always)]
        pub(crate) unsafe fn $name($($argument: $type),*) -> $returns {
            static REAL: Real = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => Real::new(name),
                Err(_) => panic!("a name ends with a zero"),
            };
            type Function = unsafe extern "C" fn($($type),*) -> $returns;
            // SAFETY: the function of this name has this type.
            let function = unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.address()) };
            // SAFETY: the caller fulfils the preconditions of the function.
            unsafe { function($($argument),*) }
        }
    )*};
}

include!(concat!(env!("OUT_DIR"), "/real.rs"));
