//! Functions that programs give: the core calls one here, which translates and calls the program's.

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

/// A function of a program's that copies attributes.
type Copy<H> = Option<
    unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int,
>;
/// A function of a program's that is told of the end of an attribute.
type Delete<H> = Option<unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int>;

/// A program's functions for a key, by their addresses, and their argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub copy: usize,
    pub delete: usize,
    pub extra: usize,
}

/// All keys' functions. A program that makes and frees keys again and again does so with the same ones.
static KEYS: Mutex<Option<HashMap<Key, &'static Key>>> = Mutex::new(None);

impl Key {
    /// Where the core finds it again.
    pub fn kept(self) -> *mut c_void {
        let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = keys.get_or_insert_default();
        let kept = keys
            .entry(self)
            .or_insert_with(|| Box::leak(Box::new(self)));
        std::ptr::from_ref::<Key>(kept).cast_mut().cast()
    }
}

/// The program's function for copying, called by the core.
pub unsafe extern "C" fn copy<H: Handle>(
    object: H::Core,
    key: c_int,
    extra: *mut c_void,
    value: *mut c_void,
    out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the core gives back the key's functions, of which this one is called only if it is there.
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

/// The program's function for the end of an attribute, called by the core.
pub unsafe extern "C" fn delete<H: Handle>(
    object: H::Core,
    key: c_int,
    value: *mut c_void,
    extra: *mut c_void,
) -> c_int {
    // SAFETY: as above.
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

/// The core's form of an operator's function.
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
    // SAFETY: the program's function, and elements for it; so many that an int does not count them go in several calls.
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
    // SAFETY: the program's function, and elements for it.
    unsafe {
        let function: LargeOperator = transmute(of.function);
        function(input, inout, &mut count, &mut datatype);
    }
}

/// The core's form of an error handler's function.
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
    // SAFETY: the program's function, for objects of this kind.
    let left = unsafe {
        match object {
            Object::Comm(comm) => handle_on(of.function, outer::Comm::outward(comm), code),
            Object::File(file) => handle_on(of.function, outer::File::outward(file), code),
            Object::Session(it) => handle_on(of.function, outer::Session::outward(it), code),
            Object::Win(win) => handle_on(of.function, outer::Win::outward(win), code),
            // There is no object whose handle could be told.
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

/// Calls the function; returns the code that it leaves behind.
unsafe fn handle_on<H: Handle>(function: usize, mut object: H, mut code: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let function: unsafe extern "C" fn(*mut H, *mut c_int, ...) = transmute(function);
        function(&mut object, &mut code);
    }
    code
}

/// A program's functions for a generalized request, and their argument.
pub struct Generalized {
    pub query: Option<unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int>,
    pub free: abi::Grequest_free_function,
    pub cancel: abi::Grequest_cancel_function,
    pub extra: *mut c_void,
}

pub unsafe extern "C" fn query(of: *mut c_void, status: *mut abi::Status) -> c_int {
    // SAFETY: the core gives back the request's functions, and a status to write.
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
    // SAFETY: as above; the core calls this last, and once.
    let code = unsafe {
        let of = Box::from_raw(of.cast::<Generalized>());
        of.free.map_or(SUCCESS, |free| free(of.extra))
    };
    code::inward(code)
}

pub unsafe extern "C" fn cancel(of: *mut c_void, complete: c_int) -> c_int {
    // SAFETY: as above.
    let code = unsafe {
        let of = &*of.cast::<Generalized>();
        of.cancel
            .map_or(SUCCESS, |cancel| cancel(of.extra, complete))
    };
    code::inward(code)
}

/// A program's functions for a data representation, by their addresses, and their argument.
pub struct Representation {
    pub read: usize,
    pub write: usize,
    pub extent: usize,
    pub extra: *mut c_void,
}

type Conversion<C> =
    unsafe extern "C" fn(*mut c_void, outer::Datatype, C, *mut c_void, i64, *mut c_void) -> c_int;

/// Reads or writes with the program's function; `C` is the type of a count.
pub unsafe extern "C" fn convert<C, const WRITES: bool>(
    buffer: *mut c_void,
    datatype: abi::Datatype,
    count: C,
    file: *mut c_void,
    position: i64,
    of: *mut c_void,
) -> c_int {
    // SAFETY: the core gives back the representation's functions, and calls this one only if it is there.
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

/// Asks the program's function for an element's extent in the file.
pub unsafe extern "C" fn extent(
    datatype: abi::Datatype,
    extent: *mut i64,
    of: *mut c_void,
) -> c_int {
    // SAFETY: as above.
    let code = unsafe {
        let of = &*of.cast::<Representation>();
        let function: unsafe extern "C" fn(outer::Datatype, *mut i64, *mut c_void) -> c_int =
            transmute(of.extent);
        function(outer::Datatype::outward(datatype), extent, of.extra)
    };
    code::inward(code)
}
