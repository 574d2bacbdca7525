//! The functions of libregatta.so, behind those of the same name here: `build.rs` makes the list of them, of `regatta.h`.
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

    /// Returns its address.
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
        // SAFETY: a text with its end.
        let mut found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            // A library that was loaded while the program ran is behind nobody.
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
            // SAFETY: likewise; nothing is loaded that is not there.
            let library = unsafe { libc::dlopen(c"libregatta.so.0".as_ptr(), flags) };
            if !library.is_null() {
                // SAFETY: a library that is loaded, and a text with its end.
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

/// Functions that call those of the same name.
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
            // SAFETY: as the caller promises.
            unsafe { function($($argument),*) }
        }
    )*};
}

include!(concat!(env!("OUT_DIR"), "/real.rs"));
