//! Callbacks: the core calls a function here, which converts the arguments and calls the program's function.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::{Mutex, PoisonError};

use regatta_mpi::abi::{self, AdaptedOperator, SUCCESS, UserFunction};
use regatta_mpi::checked;
use regatta_mpi::errhandler::{Adapted, Function, Of};
use regatta_mpi::error::Object;

use crate::outer::{self, Handle, Status};
use crate::places;
use crate::roles::code;

/// A program's function that copies attributes.
type Copy<H> = Option<
    unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int,
>;
/// A program's function that is called when an attribute is deleted.
type Delete<H> = Option<unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int>;

/// The addresses of a program's functions for a key, and their extra state.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub copy: usize,
    pub delete: usize,
    pub extra: usize,
}

/// The functions of all keys, never freed. A program that makes and frees keys repeatedly does so with the same
/// functions.
static KEYS: Mutex<Option<HashMap<Key, &'static Key>>> = Mutex::new(None);

impl Key {
    /// Returns a permanent address of this key, which the core passes back.
    pub fn kept(self) -> *mut c_void {
        let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = keys.get_or_insert_default();
        let kept = keys
            .entry(self)
            .or_insert_with(|| Box::leak(Box::new(self)));
        std::ptr::from_ref::<Key>(kept).cast_mut().cast()
    }
}

/// Calls the program's copy function; called by the core.
pub unsafe extern "C" fn copy<H: Handle>(
    object: H::Core,
    key: c_int,
    extra: *mut c_void,
    value: *mut c_void,
    out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the core passes the key's functions back, and calls this only if there is a copy function.
    let code = unsafe {
        let kept = *extra.cast::<Key>();
        let function: Copy<H> = transmute(kept.copy);
        function.map_or(SUCCESS, |function| {
            function(
                H::outward(object),
                key,
                kept.extra as *mut c_void,
                value,
                out,
                flag,
            )
        })
    };
    code::inward(code)
}

/// Calls the program's delete function; called by the core.
pub unsafe extern "C" fn delete<H: Handle>(
    object: H::Core,
    key: c_int,
    value: *mut c_void,
    extra: *mut c_void,
) -> c_int {
    // SAFETY: the core passes the key's functions back, and calls this only if there is a delete function.
    let code = unsafe {
        let kept = *extra.cast::<Key>();
        let function: Delete<H> = transmute(kept.delete);
        function.map_or(SUCCESS, |function| {
            function(H::outward(object), key, value, kept.extra as *mut c_void)
        })
    };
    code::inward(code)
}

type Operator = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut outer::Datatype);
type LargeOperator = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut outer::Datatype);

type Combining = unsafe fn(&AdaptedOperator, *mut c_void, *mut c_void, i64, abi::Datatype);

/// Converts an operator's function for the core.
pub fn operator(given: UserFunction) -> UserFunction {
    let (call, function): (Combining, usize) = match given {
        UserFunction::Small(function) => (combine, function.map_or(0, |it| it as usize)),
        UserFunction::Large(function) => (combine_large, function.map_or(0, |it| it as usize)),
        adapted @ UserFunction::Adapted(_) => return adapted,
    };
    UserFunction::Adapted(AdaptedOperator {
        call,
        function,
        extra: 0,
    })
}

unsafe fn combine(
    of: &AdaptedOperator,
    input: *mut c_void,
    inout: *mut c_void,
    count: i64,
    datatype: abi::Datatype,
) {
    let mut outside = outer::Datatype::outward(datatype);
    let mut extent = 0;
    let most = i64::from(c_int::MAX);
    // SAFETY: the program has passed this function, and the core passes elements for it. If an int cannot count them,
    // they are passed in several calls.
    unsafe {
        let function: Operator = transmute(of.function);
        if count > most {
            let _ = checked::type_get_extent_x(datatype, &mut 0, &mut extent);
        }
        for first in (0..count).step_by(c_int::MAX as usize) {
            let mut part = most.min(count - first) as c_int;
            let distance = (first * extent) as isize;
            function(
                input.wrapping_byte_offset(distance),
                inout.wrapping_byte_offset(distance),
                &mut part,
                &mut outside,
            );
        }
    }
}

unsafe fn combine_large(
    of: &AdaptedOperator,
    input: *mut c_void,
    inout: *mut c_void,
    mut count: i64,
    datatype: abi::Datatype,
) {
    let mut datatype = outer::Datatype::outward(datatype);
    // SAFETY: the program has passed this function, and the core passes elements for it.
    unsafe {
        let function: LargeOperator = transmute(of.function);
        function(input, inout, &mut count, &mut datatype);
    }
}

/// Converts an error handler's function for the core.
pub fn error_handler(of: Of, function: usize) -> Function {
    Function::Adapted(Adapted {
        of,
        call: handle,
        function,
        extra: 0,
    })
}

unsafe fn handle(of: &Adapted, object: Object, code: c_int) -> c_int {
    let code = code::outward(code);
    // SAFETY: the program has passed this function for objects of this kind.
    let left = unsafe {
        match object {
            Object::Comm(comm) => handle_on(of.function, outer::Comm::outward(comm), code),
            Object::File(file) => handle_on(of.function, outer::File::outward(file), code),
            Object::Session(it) => handle_on(of.function, outer::Session::outward(it), code),
            Object::Win(win) => handle_on(of.function, outer::Win::outward(win), code),
            // There is no object whose handle could be passed.
            Object::Unmade(_) if of.of == Of::Session => handle_on(
                of.function,
                outer::Session::outward(abi::SESSION_NULL),
                code,
            ),
            Object::Unmade(_) => handle_on(of.function, outer::Comm::outward(abi::COMM_NULL), code),
            Object::None => code,
        }
    };
    code::inward(left)
}

/// Calls the function, and returns the code that it leaves in its argument.
unsafe fn handle_on<H: Handle>(function: usize, mut object: H, mut code: c_int) -> c_int {
    // SAFETY: the caller guarantees valid pointers.
    unsafe {
        let function: unsafe extern "C" fn(*mut H, *mut c_int, ...) = transmute(function);
        function(&mut object, &mut code);
    }
    code
}

/// A program's functions for a generalized request, and their extra state.
pub struct Generalized {
    pub query: Option<unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int>,
    pub free: abi::Grequest_free_function,
    pub cancel: abi::Grequest_cancel_function,
    pub extra: *mut c_void,
}

pub unsafe extern "C" fn query(of: *mut c_void, status: *mut abi::Status) -> c_int {
    // SAFETY: the core passes the request's functions back, and a valid status.
    let code = unsafe {
        let of = &*of.cast::<Generalized>();
        let mut outside = Status::NOTHING;
        places::outward(&*status, &mut outside);
        let code = of
            .query
            .map_or(SUCCESS, |query| query(of.extra, &mut outside));
        *status = places::inward(&outside);
        code
    };
    code::inward(code)
}

pub unsafe extern "C" fn free(of: *mut c_void) -> c_int {
    // SAFETY: the core passes the request's functions back, and calls this once, last.
    let code = unsafe {
        let of = Box::from_raw(of.cast::<Generalized>());
        of.free.map_or(SUCCESS, |free| free(of.extra))
    };
    code::inward(code)
}

pub unsafe extern "C" fn cancel(of: *mut c_void, complete: c_int) -> c_int {
    // SAFETY: the core passes the request's functions back.
    let code = unsafe {
        let of = &*of.cast::<Generalized>();
        of.cancel
            .map_or(SUCCESS, |cancel| cancel(of.extra, complete))
    };
    code::inward(code)
}

/// The addresses of a program's functions for a data representation, and their extra state.
pub struct Representation {
    pub read: usize,
    pub write: usize,
    pub extent: usize,
    pub extra: *mut c_void,
}

type Conversion<C> =
    unsafe extern "C" fn(*mut c_void, outer::Datatype, C, *mut c_void, i64, *mut c_void) -> c_int;

/// Converts data with the program's function. `C` is the type of the count.
pub unsafe extern "C" fn convert<C, const WRITES: bool>(
    buffer: *mut c_void,
    datatype: abi::Datatype,
    count: C,
    file: *mut c_void,
    position: i64,
    of: *mut c_void,
) -> c_int {
    // SAFETY: the core passes the representation's functions back, and calls this only if there is such a function.
    let code = unsafe {
        let of = &*of.cast::<Representation>();
        let function: Conversion<C> = transmute(if WRITES { of.write } else { of.read });
        function(
            buffer,
            outer::Datatype::outward(datatype),
            count,
            file,
            position,
            of.extra,
        )
    };
    code::inward(code)
}

/// Gets an element's extent in the file from the program's function.
pub unsafe extern "C" fn extent(
    datatype: abi::Datatype,
    extent: *mut i64,
    of: *mut c_void,
) -> c_int {
    // SAFETY: the core passes the representation's functions back.
    let code = unsafe {
        let of = &*of.cast::<Representation>();
        let function: unsafe extern "C" fn(outer::Datatype, *mut i64, *mut c_void) -> c_int =
            transmute(of.extent);
        function(outer::Datatype::outward(datatype), extent, of.extra)
    };
    code::inward(code)
}
