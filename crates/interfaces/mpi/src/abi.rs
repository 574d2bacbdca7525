//! The types and constants of MPI's standard ABI.

use std::ffi::{c_int, c_void};

macro_rules! handles {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`MPI_", stringify!($name), "`: a handle. Values below 4096 are predefined.")]
            #[repr(transparent)]
            #[allow(non_camel_case_types)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(pub usize);
        )*
    };
}

// The handles and constants, generated from the table.
include!(concat!(env!("OUT_DIR"), "/constants.rs"));

/// `MPI_Status`. The library uses the last words for the length in bytes (two words) and for whether the operation was
/// cancelled (one word).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The sender's rank.
    pub source: c_int,
    /// The message's tag.
    pub tag: c_int,
    /// The operation's error.
    pub error: c_int,
    internal: [c_int; 5],
}

impl Status {
    /// Returns the status of an operation with MPI_PROC_NULL, or of no operation; in the latter case `source` is
    /// MPI_ANY_SOURCE.
    pub const fn empty(source: c_int) -> Status {
        let tag = ANY_TAG;
        Status {
            source,
            tag,
            error: SUCCESS,
            internal: [0; 5],
        }
    }

    /// Returns the status of a message with this many bytes.
    pub fn of_message(source: c_int, tag: c_int, bytes: u64) -> Status {
        let mut status = Status::empty(source);
        status.tag = tag;
        status.set_bytes(bytes);
        status
    }

    /// Returns the length of the message in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.internal[0] as u32) | u64::from(self.internal[1] as u32) << 32
    }

    /// Sets the length of the message in bytes.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.internal[0] = bytes as u32 as c_int;
        self.internal[1] = (bytes >> 32) as u32 as c_int;
    }

    /// Returns whether the operation was cancelled.
    pub fn cancelled(&self) -> bool {
        self.internal[2] != 0
    }

    /// Sets whether the operation was cancelled.
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[2] = c_int::from(cancelled);
    }

    /// Stores the status of no operation, with MPI_SUCCESS as its error, unless `to` is MPI_STATUS_IGNORE.
    ///
    /// # Safety
    /// `to` is MPI_STATUS_IGNORE or valid for writes.
    pub unsafe fn store_empty(to: *mut Status) {
        if !to.is_null() {
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { *to = Status::empty(ANY_SOURCE) };
        }
    }

    /// Stores the status unless `to` is MPI_STATUS_IGNORE. Leaves the error field unchanged, as MPI requires of calls
    /// that complete one operation.
    ///
    /// # Safety
    /// `to` is MPI_STATUS_IGNORE or valid for writes.
    #[inline]
    pub unsafe fn store(self, to: *mut Status) {
        if !to.is_null() {
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe {
                (*to).source = self.source;
                (*to).tag = self.tag;
                (*to).internal = self.internal;
            }
        }
    }
}

/// An array of counts or displacements: of `int`, or of the 64-bit MPI_Count or MPI_Aint.
#[derive(Clone, Copy, Debug)]
pub enum Ints {
    /// An array of `int`.
    Small(*const c_int),
    /// An array of MPI_Count or MPI_Aint.
    Large(*const i64),
}

impl Ints {
    /// Returns whether the pointer to the array is null.
    pub fn is_null(self) -> bool {
        match self {
            Ints::Small(array) => array.is_null(),
            Ints::Large(array) => array.is_null(),
        }
    }

    /// # Safety
    /// The array has more than `index` elements.
    #[inline]
    pub unsafe fn get(self, index: usize) -> i64 {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            match self {
                Ints::Small(array) => i64::from(*array.add(index)),
                Ints::Large(array) => *array.add(index),
            }
        }
    }

    /// # Safety
    /// The array has `length` elements.
    pub unsafe fn to_vec(self, length: usize) -> Vec<i64> {
        // SAFETY: the caller upholds the safety contract of this function.
        (0..length)
            .map(|index| unsafe { self.get(index) })
            .collect()
    }
}

/// The destination of a count: an `int` or an MPI_Count.
#[derive(Clone, Copy, Debug)]
pub enum OutCount {
    /// An `int`. A count that does not fit is stored as MPI_UNDEFINED.
    Small(*mut c_int),
    /// An MPI_Count.
    Large(*mut i64),
}

impl OutCount {
    /// Returns whether the pointer is null.
    pub fn is_null(self) -> bool {
        match self {
            OutCount::Small(place) => place.is_null(),
            OutCount::Large(place) => place.is_null(),
        }
    }

    /// # Safety
    /// The pointer is valid for writes.
    pub unsafe fn set(self, count: i64) {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            match self {
                OutCount::Small(place) => *place = c_int::try_from(count).unwrap_or(UNDEFINED),
                OutCount::Large(place) => *place = count,
            }
        }
    }

    /// # Safety
    /// The pointer is valid for reads.
    pub unsafe fn get(self) -> i64 {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            match self {
                OutCount::Small(place) => i64::from(*place),
                OutCount::Large(place) => *place,
            }
        }
    }
}

macro_rules! functions {
    ($($name:ident($($type:ty),*) $(-> $returns:ty)?;)*) => {
        $(
            #[doc = concat!("`MPI_", stringify!($name), "`, or none.")]
            #[allow(non_camel_case_types)]
            pub type $name = Option<unsafe extern "C" fn($($type),*) $(-> $returns)?>;
        )*
    };
}

functions! {
    User_function(*mut c_void, *mut c_void, *mut c_int, *mut Datatype);
    User_function_c(*mut c_void, *mut c_void, *mut i64, *mut Datatype);
    Grequest_query_function(*mut c_void, *mut Status) -> c_int;
    Grequest_free_function(*mut c_void) -> c_int;
    Grequest_cancel_function(*mut c_void, c_int) -> c_int;
    Copy_function(Comm, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
    Delete_function(Comm, c_int, *mut c_void, *mut c_void) -> c_int;
    Comm_copy_attr_function(Comm, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
    Comm_delete_attr_function(Comm, c_int, *mut c_void, *mut c_void) -> c_int;
    Type_copy_attr_function(Datatype, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
    Type_delete_attr_function(Datatype, c_int, *mut c_void, *mut c_void) -> c_int;
    Win_copy_attr_function(Win, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
    Win_delete_attr_function(Win, c_int, *mut c_void, *mut c_void) -> c_int;
    Datarep_extent_function(Datatype, *mut i64, *mut c_void) -> c_int;
    Datarep_conversion_function(*mut c_void, Datatype, c_int, *mut c_void, i64, *mut c_void) -> c_int;
    Datarep_conversion_function_c(*mut c_void, Datatype, i64, *mut c_void, i64, *mut c_void) -> c_int;
    T_event_cb_function(T_event_instance, T_event_registration, c_int, *mut c_void);
    T_event_free_cb_function(T_event_registration, c_int, *mut c_void);
    T_event_dropped_cb_function(i64, T_event_registration, c_int, c_int, *mut c_void);
}

macro_rules! error_handlers {
    ($($name:ident($handle:ident);)*) => {
        $(
            #[doc = concat!("`MPI_", stringify!($name), "`, or none: the object, the error's code, and whatever the library adds.")]
            #[allow(non_camel_case_types)]
            pub type $name = Option<unsafe extern "C" fn(*mut $handle, *mut c_int, ...)>;
        )*
    };
}

error_handlers! {
    Comm_errhandler_function(Comm);
    File_errhandler_function(File);
    Win_errhandler_function(Win);
    Session_errhandler_function(Session);
}

/// The callback of a reduction operator, in either form.
#[derive(Clone, Copy, Debug)]
pub enum UserFunction {
    /// With a count of type `int`.
    Small(User_function),
    /// With a count of type MPI_Count.
    Large(User_function_c),
    /// A callback of another ABI.
    Adapted(AdaptedOperator),
}

/// A callback of another ABI, with the function that translates and calls it. That function gets the buffers, the count
/// and the datatype.
#[derive(Clone, Copy, Debug)]
pub struct AdaptedOperator {
    /// Translates the arguments and calls the callback.
    pub call: unsafe fn(&AdaptedOperator, *mut c_void, *mut c_void, i64, Datatype),
    /// The callback's address.
    pub function: usize,
    /// An additional word for `call`.
    pub extra: usize,
}

/// The callback that converts the data of a file, in either form.
#[derive(Clone, Copy, Debug)]
pub enum Conversion {
    /// With a count of type `int`.
    Small(Datarep_conversion_function),
    /// With a count of type MPI_Count.
    Large(Datarep_conversion_function_c),
}
