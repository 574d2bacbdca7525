//! Checks of arguments: the valid values that the functions of `calls` take instead of handles and pointers.
//!
//! The type of a parameter determines what a valid argument is: an object instead of a handle, [`Out`] instead of a
//! pointer. A function checks itself those parameters that stay handles or pointers, because null is allowed or because
//! all processes must agree on the error.

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::abi::*;
use crate::communicator::{self, Communicator, Members, Route};
use crate::datatype::{self, Type};
use crate::error::{Error, Result};
use crate::files::{self, Open};
use crate::window::{self, Window};
use crate::{groups, session};

/// An argument of a call to a function that takes a `T`.
pub trait Argument<T> {
    /// Returns the valid value of the argument with this name, or an error.
    ///
    /// # Safety
    /// If the argument is a pointer, it is null or valid for reads and writes until the call returns.
    unsafe fn valid(self, name: &str) -> Result<T>;
}

/// Arguments that the function checks itself.
impl<T> Argument<T> for T {
    #[inline(always)]
    unsafe fn valid(self, _: &str) -> Result<T> {
        Ok(self)
    }
}

/// A pointer to a result. It may be unaligned.
#[derive(Clone, Copy)]
pub struct Out<'a, T> {
    at: NonNull<T>,
    of: PhantomData<&'a mut T>,
}

impl<'a, T> Out<'a, T> {
    /// Wraps a pointer. Fails if it is null.
    ///
    /// # Safety
    /// The pointer is null, or valid for reads and writes during `'a`.
    #[inline(always)]
    pub unsafe fn at(address: *mut T, name: &str) -> Result<Out<'a, T>> {
        match NonNull::new(address) {
            Some(at) => Ok(Out {
                at,
                of: PhantomData,
            }),
            None => Err(is_null(name)),
        }
    }

    /// Writes the result.
    #[inline(always)]
    pub fn put(self, value: T) {
        // SAFETY: the pointer is valid for writes.
        unsafe { self.at.write_unaligned(value) };
    }

    /// Returns the value that the program has stored there.
    #[inline(always)]
    pub fn get(self) -> T
    where
        T: Copy,
    {
        // SAFETY: the pointer is valid for reads.
        unsafe { self.at.read_unaligned() }
    }

    /// Returns the address, for functions that write several results there.
    #[inline(always)]
    pub fn address(self) -> *mut T {
        self.at.as_ptr()
    }
}

impl<'a, T> From<&'a mut T> for Out<'a, T> {
    fn from(place: &'a mut T) -> Self {
        Out {
            at: place.into(),
            of: PhantomData,
        }
    }
}

impl<'a, T> Argument<Out<'a, T>> for *mut T {
    #[inline(always)]
    unsafe fn valid(self, name: &str) -> Result<Out<'a, T>> {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { Out::at(self, name) }
    }
}

/// C declares a pointer to an address as `void*`.
impl<'a> Argument<Out<'a, *mut c_void>> for *mut c_void {
    #[inline(always)]
    unsafe fn valid(self, name: &str) -> Result<Out<'a, *mut c_void>> {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { Out::at(self.cast(), name) }
    }
}

impl<'a, T> Argument<&'a T> for *const T {
    #[inline(always)]
    unsafe fn valid(self, name: &str) -> Result<&'a T> {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { self.as_ref() }.ok_or_else(|| is_null(name))
    }
}

impl<'a, T> Argument<&'a mut T> for *mut T {
    #[inline(always)]
    unsafe fn valid(self, name: &str) -> Result<&'a mut T> {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { self.as_mut() }.ok_or_else(|| is_null(name))
    }
}

impl<'a> Argument<&'a CStr> for *const c_char {
    unsafe fn valid(self, name: &str) -> Result<&'a CStr> {
        match self.is_null() {
            // SAFETY: the caller guarantees that the text is NUL-terminated.
            false => Ok(unsafe { CStr::from_ptr(self) }),
            true => Err(is_null(name)),
        }
    }
}

/// Returns the error for a null pointer.
#[cold]
pub fn is_null(name: &str) -> Error {
    Error::new(ERR_ARG, format!("{name} is a null pointer"))
}

macro_rules! objects {
    ($($handle:ty => $object:ty, $find:path;)*) => {
        $(
            impl Argument<$object> for $handle {
                #[inline(always)]
                unsafe fn valid(self, _: &str) -> Result<$object> {
                    $find(self)
                }
            }
        )*
    };
}

objects! {
    Comm => &'static Route, communicator::route;
    Comm => Arc<Communicator>, communicator::get;
    Group => Members, groups::get;
    Datatype => Arc<Type>, datatype::get;
    Win => &'static Window, window::get;
    File => Arc<Open>, files::get;
    Session => Arc<session::Object>, session::get;
}
