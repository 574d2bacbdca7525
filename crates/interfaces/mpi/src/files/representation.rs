//! Data representations: the form of elements in a file.

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::abi::*;
use crate::datatype::bounds::Bounds;
use crate::datatype::builtin::Basic;
use crate::datatype::layout::Layout;
use crate::datatype::map::Map;
use crate::datatype::signature::{Signature, Totals};
use crate::datatype::{Kept, Staging, Type, construct, external, memory};
use crate::error::{Error, Result};

/// The form of elements in a file.
#[derive(Clone)]
pub enum Representation {
    /// The same bytes as in memory; `native` or `internal`.
    Native(&'static str),
    /// external32.
    External,
    /// A representation of the program, converted by its callbacks.
    User(Arc<User>),
}

/// A data representation that the program has registered.
pub struct User {
    name: CString,
    read: Conversion,
    write: Conversion,
    extent: Datarep_extent_function,
    extra: *mut c_void,
}

// SAFETY: the program allows any thread that accesses a file to call its callbacks with their argument.
unsafe impl Send for User {}
// SAFETY: the program allows any thread that accesses a file to call its callbacks with their argument.
unsafe impl Sync for User {}

static REGISTERED: Mutex<Vec<Arc<User>>> = Mutex::new(Vec::new());

fn registered() -> MutexGuard<'static, Vec<Arc<User>>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn predefined(name: &CStr) -> Option<Representation> {
    match name.to_bytes() {
        b"native" | b"NATIVE" => Some(Representation::Native("native")),
        b"internal" => Some(Representation::Native("internal")),
        b"external32" => Some(Representation::External),
        _ => None,
    }
}

/// Returns the representation with this name.
pub fn find(name: &CStr) -> Result<Representation> {
    if let Some(found) = predefined(name) {
        return Ok(found);
    }
    let registered = registered();
    let found = registered.iter().find(|it| it.name.as_c_str() == name);
    found.cloned().map(Representation::User).ok_or_else(|| {
        let text = format!(
            "there is no data representation {name:?}; the representations are native, internal, external32, and those added by MPI_Register_datarep"
        );
        Error::new(ERR_UNSUPPORTED_DATAREP, text)
    })
}

/// Registers a representation.
pub fn register(
    name: &CStr,
    read: Conversion,
    write: Conversion,
    extent: Datarep_extent_function,
    extra: *mut c_void,
) -> Result {
    let mut registered = registered();
    if predefined(name).is_some() || registered.iter().any(|it| it.name.as_c_str() == name) {
        let text = format!("a data representation {name:?} already exists");
        return Err(Error::new(ERR_DUP_DATAREP, text));
    }
    registered.push(Arc::new(User {
        name: name.to_owned(),
        read,
        write,
        extent,
        extra,
    }));
    Ok(())
}

fn too_large() -> Error {
    Error::new(ERR_ARG, "the datatype's bounds in the file are too large")
}

/// Returns for each dimension the size of the array, the size of the subarray, and its start.
fn sizes_of_subarray(dimensions: usize, numbers: &[i64]) -> Vec<[i64; 3]> {
    let of = |it: usize| [0, 1, 2].map(|row| numbers[row * dimensions + it]);
    (0..dimensions).map(of).collect()
}

impl Representation {
    /// Returns its name.
    pub fn name(&self) -> &[u8] {
        match self {
            Representation::Native(name) => name.as_bytes(),
            Representation::External => b"external32",
            Representation::User(user) => user.name.to_bytes(),
        }
    }

    /// Returns the size of an element in the file, in bytes.
    fn size_of(&self, basic: &Basic) -> Result<i64> {
        match self {
            Representation::Native(_) => Ok(basic.size as i64),
            Representation::External => Ok(basic.external as i64),
            // Without conversion callbacks nothing is converted.
            Representation::User(user) if !user.reads() && !user.writes() => Ok(basic.size as i64),
            Representation::User(user) => user.extent_of(basic.datatype),
        }
    }

    /// Returns whether any element of a datatype has another size in the file than in memory.
    fn differs(&self, of: &Type) -> Result<bool> {
        let mut differs = Ok(false);
        kinds(&of.map().signature, &mut |basic| {
            if let Ok(false) = differs {
                differs = self.size_of(basic).map(|size| size != basic.size as i64);
            }
        });
        differs
    }

    /// Returns the type map of a datatype in the file. Extents of elements are those in the file. Displacements that
    /// the program has given in bytes stay the same.
    pub fn map(&self, of: &Type) -> Result<Map> {
        match self {
            Representation::Native(_) => Ok(of.map().clone()),
            _ if !self.differs(of)? => Ok(of.map().clone()),
            _ => self.scaled(of),
        }
    }

    fn scaled(&self, of: &Type) -> Result<Map> {
        let made = of.made();
        let Some(old) = made.types.first() else {
            return self.basic_map(of);
        };
        let old_map = self.map(old)?;
        let integers: Vec<i64> = match made.counts.is_empty() {
            true => made.integers.iter().map(|&it| i64::from(it)).collect(),
            false => made.counts.clone(),
        };
        let (extent, addresses) = (old_map.bounds.extent(), &made.addresses);
        let displacement = |index: usize| match made.counts.is_empty() {
            true => addresses.get(index).copied(),
            // The large-count form has displacements in bytes among its counts.
            false => integers.get(integers.len() / 2 + 1 + index).copied(),
        };
        let map = match made.combiner {
            COMBINER_DUP => Some(old_map),
            COMBINER_CONTIGUOUS => old_map.block(integers[0]),
            COMBINER_VECTOR => {
                let stride = integers[2].checked_mul(extent).ok_or_else(too_large)?;
                construct::hvector(&old_map, integers[0], integers[1], stride)
            }
            COMBINER_INDEXED => {
                let count = integers[0] as usize;
                let blocks = (0..count).map(|it| {
                    let displacement = integers[1 + count + it].saturating_mul(extent);
                    (integers[1 + it], displacement)
                });
                construct::hindexed(&old_map, blocks)
            }
            COMBINER_INDEXED_BLOCK => {
                let places = integers[2..].iter();
                let blocks = places.map(|it| (integers[1], it.saturating_mul(extent)));
                construct::hindexed(&old_map, blocks)
            }
            COMBINER_SUBARRAY => {
                let (count, order) = (made.integers[0] as usize, made.integers.last());
                let numbers = match made.counts.is_empty() {
                    true => &integers[1..],
                    false => &integers[..],
                };
                let sizes = sizes_of_subarray(count, numbers);
                construct::subarray(&old_map, &sizes, order.copied().unwrap_or(ORDER_C))
            }
            COMBINER_HVECTOR if made.counts.is_empty() => {
                let stride = displacement(0).unwrap_or(0);
                construct::hvector(&old_map, integers[0], integers[1], stride)
            }
            COMBINER_RESIZED => {
                let bounds = &of.map().bounds;
                old_map.resized(bounds.lb, bounds.extent())
            }
            _ => return Err(self.not_portable()),
        };
        map.ok_or_else(too_large)
    }

    #[cold]
    fn not_portable(&self) -> Error {
        let name = String::from_utf8_lossy(self.name()).into_owned();
        let text = format!(
            "elements of the datatype have different sizes in the representation {name}, but the datatype was made with displacements in bytes; make it with displacements in elements"
        );
        Error::new(ERR_CONVERSION, text)
    }

    fn basic_map(&self, of: &Type) -> Result<Map> {
        let mut found = Vec::new();
        of.map()
            .signature
            .walk(1, &mut |basic, _| found.push(basic));
        let [basic] = found[..] else {
            return Err(self.not_portable());
        };
        let size = self.size_of(basic)?;
        Ok(Map {
            offset: 0,
            layout: Arc::new(Layout::Run(size as usize)),
            bounds: Bounds::element(size, size),
            signature: of.map().signature.clone(),
        })
    }

    /// Returns the length of `count` elements in the file, in bytes.
    pub fn length(&self, of: &Type, count: i64) -> Result<usize> {
        let native = of.packed_size(count)?;
        if let Representation::Native(_) = self {
            return Ok(native);
        }
        let Totals { external, .. } = of.map().signature.totals();
        let one = match self {
            Representation::External => external as i64,
            _ => {
                let (mut sum, mut failed) = (0i64, None);
                of.map().signature.walk(1, &mut |basic, elements| {
                    match self.size_of(basic) {
                        Ok(size) => sum = sum.saturating_add(size.saturating_mul(elements as i64)),
                        Err(error) => failed = Some(error),
                    };
                });
                failed.map_or(Ok(sum), Err)?
            }
        };
        let length = one.checked_mul(count).map(|length| length as usize);
        length.ok_or_else(too_large)
    }

    /// Converts the elements of a buffer to their form in the file.
    ///
    /// # Safety
    /// The elements may be read.
    pub unsafe fn encode(&self, buffer: *mut c_void, count: i64, of: &Kept) -> Result<Vec<u8>> {
        let length = self.length(of.of(), count)?;
        let mut data = memory(length)?;
        data.resize(length, 0);
        match self {
            Representation::User(user) if user.writes() => {
                let file = data.as_mut_ptr().cast();
                // SAFETY: the program guarantees that its callback may be called; the memory has the size that the
                // program has stated.
                unsafe { user.convert(user.write, buffer, count, of.handle(), file, "write")? };
            }
            _ => {
                // SAFETY: the caller upholds the safety contract of this function.
                let staging = unsafe { Staging::input(buffer, count, of.handle())? };
                if length != 0 {
                    // SAFETY: the staging's memory has this length.
                    let native = unsafe {
                        std::slice::from_raw_parts(staging.address().cast::<u8>(), staging.length())
                    };
                    match self {
                        Representation::External => {
                            let signature = &of.of().map().signature;
                            external::encode(signature, count as usize, native, &mut data)?;
                        }
                        _ => {
                            let common = length.min(native.len());
                            data[..common].copy_from_slice(&native[..common]);
                        }
                    }
                }
            }
        }
        Ok(data)
    }

    /// Converts data of a file, of which the first `valid` bytes were read, to a buffer. Returns the number of bytes in
    /// the buffer.
    ///
    /// # Safety
    /// The elements may be written.
    pub unsafe fn decode(
        &self,
        mut data: Vec<u8>,
        valid: usize,
        buffer: *mut c_void,
        count: i64,
        of: &Kept,
    ) -> Result<usize> {
        if let Representation::User(user) = self
            && user.reads()
        {
            let one = self.length(of.of(), 1)?.max(1);
            let whole = (valid / one) as i64;
            let file = data.as_mut_ptr().cast();
            // SAFETY: the program guarantees that its callback may be called; `data` has this many elements.
            unsafe { user.convert(user.read, buffer, whole, of.handle(), file, "read")? };
            return of.of().packed_size(whole);
        }
        let staging = Staging::output(buffer, count, of.handle())?;
        let moved = match self {
            Representation::External => {
                let signature = &of.of().map().signature;
                let mut native = vec![0; staging.length()];
                external::decode(signature, count as usize, &data, &mut native)?;
                let moved = native_bytes(signature, count as usize, valid);
                // SAFETY: the staging memory has at least this many bytes.
                unsafe { copy(&native[..moved], &staging) };
                moved
            }
            _ => {
                let moved = valid.min(staging.length());
                // SAFETY: the staging memory has at least this many bytes.
                unsafe { copy(&data[..moved], &staging) };
                moved
            }
        };
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { staging.finish(moved) };
        Ok(moved)
    }
}

unsafe fn copy(bytes: &[u8], to: &Staging) {
    if !bytes.is_empty() {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.address().cast(), bytes.len());
        }
    }
}

/// Returns the size in memory of the elements that are complete in the first `valid` bytes of external32.
fn native_bytes(signature: &Signature, count: usize, valid: usize) -> usize {
    let (mut left, mut native, mut over) = (valid, 0, false);
    signature.walk(count, &mut |basic, elements| {
        if !over {
            let whole = elements.min(left / basic.external.max(1));
            native += whole * basic.size;
            left -= whole * basic.external;
            over = whole < elements;
        }
    });
    native
}

/// Calls `visit` with the basic types of the elements, with some of them possibly several times.
fn kinds(signature: &Signature, visit: &mut impl FnMut(&'static Basic)) {
    match signature {
        Signature::Of(basic, _) => visit(basic),
        Signature::Elements(list, _) => list.iter().for_each(|(basic, _)| visit(basic)),
        Signature::Repeat(body, ..) => kinds(body, visit),
        Signature::List(list, _) => list.iter().for_each(|it| kinds(it, visit)),
    }
}

impl User {
    fn writes(&self) -> bool {
        is_function(self.write)
    }

    fn reads(&self) -> bool {
        is_function(self.read)
    }

    fn returned(&self, code: c_int, which: &str) -> Result {
        match code {
            SUCCESS => Ok(()),
            _ => {
                let name = &self.name;
                let text = format!(
                    "the {which} function of the data representation {name:?} has returned {code}"
                );
                Err(Error::new(ERR_CONVERSION, text))
            }
        }
    }

    fn extent_of(&self, datatype: Datatype) -> Result<i64> {
        let Some(function) = self.extent else {
            return Err(Error::new(ERR_CONVERSION, "there is no extent function"));
        };
        let mut extent = 0;
        // SAFETY: the program guarantees that its callback may be called with its own argument.
        let code = unsafe { function(datatype, &mut extent, self.extra) };
        self.returned(code, "extent")?;
        match extent {
            1.. => Ok(extent),
            _ => {
                let text =
                    format!("an element has {extent} bytes in the file; it must have at least 1");
                Err(Error::new(ERR_CONVERSION, text))
            }
        }
    }

    unsafe fn convert(
        &self,
        function: Conversion,
        buffer: *mut c_void,
        count: i64,
        datatype: Datatype,
        file: *mut c_void,
        which: &str,
    ) -> Result {
        // SAFETY: the caller upholds the safety contract of this function, of the program's function with its own
        // argument.
        let code = unsafe {
            match function {
                Conversion::Small(Some(function)) => {
                    let count = c_int::try_from(count).map_err(|_| too_large())?;
                    function(buffer, datatype, count, file, 0, self.extra)
                }
                Conversion::Large(Some(function)) => {
                    function(buffer, datatype, count, file, 0, self.extra)
                }
                _ => SUCCESS,
            }
        };
        self.returned(code, which)
    }
}

/// Returns whether it is a callback instead of MPI_CONVERSION_FN_NULL.
fn is_function(conversion: Conversion) -> bool {
    match conversion {
        Conversion::Small(function) => function.is_some(),
        Conversion::Large(function) => function.is_some(),
    }
}
