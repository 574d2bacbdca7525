//! The functions of libregatta.so, behind those of the same name here.

use std::ffi::{CStr, c_void};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

/// A function of libregatta.so.
pub(crate) struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    /// The function of this name, which ends with a zero.
    pub(crate) const fn new(name: &'static str) -> Real {
        let address = AtomicPtr::new(std::ptr::null_mut());
        match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => Real { name, address },
            Err(_) => panic!("a name ends with a zero"),
        }
    }

    /// Its address.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
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

/// Calls the function of libregatta.so that has this name, with these variables as arguments.
macro_rules! real {
    ($name:ident($($argument:ident: $type:ty),* $(,)?)) => {{
        static REAL: $crate::real::Real =
            $crate::real::Real::new(concat!(stringify!($name), "\0"));
        type Function = unsafe extern "C" fn($($type),*) -> std::ffi::c_int;
        let function =
            std::mem::transmute::<*mut std::ffi::c_void, Function>(REAL.address());
        function($($argument),*)
    }};
}
pub(crate) use real;
