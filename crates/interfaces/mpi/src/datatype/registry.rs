//! All derived datatypes of this process, by their handles.
//!
//! Messages need few facts about a contiguous datatype, and read them without a lock. These facts are never freed, only
//! reused: as with communicators, a program that frees a datatype while another thread uses it breaks MPI's rules.

use std::sync::atomic::{AtomicIsize, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Type, builtin, no_type};
use crate::abi::*;
use crate::error::{Error, Result};
use crate::objects::{self, Kind, MAX_OBJECTS, Table};

/// Facts about a datatype that messages need.
#[derive(Default)]
struct MessageFacts {
    /// The handle; 0 if there is no committed datatype.
    handle: AtomicUsize,
    form: AtomicU8,
    offset: AtomicIsize,
    size: AtomicUsize,
}

/// One element is not contiguous.
const SCATTERED: u8 = 0;
/// One element is contiguous, several are not.
const PIECE: u8 = 1;
/// Any number of elements is contiguous.
const DENSE: u8 = 2;

const CHUNK: usize = 1024;

static TYPES: Table<Arc<Type>> = Table::new(Kind::Datatype);
static MESSAGE_FACTS: [OnceLock<Box<[MessageFacts]>>; MAX_OBJECTS / CHUNK] =
    [const { OnceLock::new() }; MAX_OBJECTS / CHUNK];

fn facts(handle: usize) -> Option<&'static MessageFacts> {
    let index = objects::index(Kind::Datatype, handle)?;
    let chunk = MESSAGE_FACTS[index / CHUNK]
        .get_or_init(|| (0..CHUNK).map(|_| MessageFacts::default()).collect());
    chunk.get(index % CHUNK)
}

/// Returns offset and length in bytes of `count` elements of a committed datatype if they are contiguous.
#[inline]
pub(super) fn one_piece(datatype: Datatype, count: usize) -> Option<(isize, usize)> {
    let index = objects::index(Kind::Datatype, datatype.0)?;
    let facts = MESSAGE_FACTS[index / CHUNK].get()?.get(index % CHUNK)?;
    let right = facts.handle.load(Ordering::Acquire) == datatype.0;
    let form = facts.form.load(Ordering::Relaxed);
    if !right || form == SCATTERED || form == PIECE && count > 1 {
        return None;
    }
    let length = facts.size.load(Ordering::Relaxed).checked_mul(count)?;
    Some((facts.offset.load(Ordering::Relaxed), length))
}

/// Adds a datatype and returns its handle.
pub fn insert(of: Type) -> Result<Datatype> {
    insert_with(|_| of)
}

/// Adds a datatype and returns its handle, which `make` gets.
pub fn insert_with(make: impl FnOnce(Datatype) -> Type) -> Result<Datatype> {
    let mut made = None;
    let handle = TYPES.insert_with(|handle| {
        let of = Arc::new(make(Datatype(handle)));
        made = Some(of.clone());
        of
    });
    let (Some(handle), Some(of)) = (handle, made) else {
        return Err(Error::new(ERR_NO_MEM, "there are too many datatypes"));
    };
    if of.is_committed() {
        open(handle, &of);
    }
    Ok(Datatype(handle))
}

fn open(handle: usize, of: &Type) {
    let Some(facts) = facts(handle) else { return };
    let form = match (of.one_piece(2), of.one_piece(1)) {
        (Some(_), _) => DENSE,
        (None, Some(_)) => PIECE,
        _ => SCATTERED,
    };
    facts.form.store(form, Ordering::Relaxed);
    facts.offset.store(of.map().offset, Ordering::Relaxed);
    facts.size.store(of.size() as usize, Ordering::Relaxed);
    facts.handle.store(handle, Ordering::Release);
}

/// Returns the datatype with this handle, committed or not.
pub fn get(datatype: Datatype) -> Result<Arc<Type>> {
    let found = builtin::get(datatype).or_else(|| TYPES.get(datatype.0));
    found.ok_or_else(|| no_type(datatype))
}

/// Returns the datatype with this handle. Fails if it is not committed.
pub fn committed(datatype: Datatype) -> Result<Arc<Type>> {
    let found = get(datatype)?;
    match found.is_committed() {
        true => Ok(found),
        false => Err(Error::new(
            ERR_TYPE,
            "the datatype is not committed (call MPI_Type_commit before its use in messages)",
        )),
    }
}

/// Commits a datatype.
pub fn commit(datatype: Datatype) -> Result {
    let found = get(datatype)?;
    if found.predefined_handle().is_none() {
        found.commit();
        open(datatype.0, &found);
    }
    Ok(())
}

/// Duplicates a datatype, with those attributes that their callbacks copy.
///
/// # Safety
/// The callbacks of its attributes may be called.
pub unsafe fn duplicate(datatype: Datatype, of: &Arc<Type>) -> Result<Datatype> {
    // SAFETY: the caller upholds the safety contract of this function.
    let attributes = unsafe { of.attributes.copies(datatype)? };
    insert(of.duplicate(attributes))
}

/// Frees a datatype: its handle is invalid from now on. Objects that still need it keep it.
///
/// # Safety
/// The callbacks of its attributes may be called.
pub unsafe fn free(datatype: Datatype) -> Result {
    let found = get(datatype)?;
    if found.predefined_handle().is_some() {
        let text = format!("{} is predefined and cannot be freed", found.called());
        return Err(Error::new(ERR_TYPE, text));
    }
    if found.is_freed() {
        return Err(no_type(datatype));
    }
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { found.attributes.delete_all(datatype)? };
    if found.free() {
        remove(datatype);
    }
    Ok(())
}

fn remove(datatype: Datatype) {
    if let Some(facts) = facts(datatype.0) {
        facts.handle.store(0, Ordering::Release);
    }
    TYPES.remove(datatype.0);
}

/// Keeps the handle of a datatype valid even if the program frees the datatype. It is for operations that begin later,
/// or that pass the handle to a callback of the program.
pub struct Kept {
    handle: Datatype,
    of: Arc<Type>,
}

impl Kept {
    /// Keeps the handle of a datatype.
    pub fn new(handle: Datatype, of: Arc<Type>) -> Kept {
        of.hold();
        Kept { handle, of }
    }

    /// Returns the handle.
    pub fn handle(&self) -> Datatype {
        self.handle
    }

    /// Returns the datatype.
    pub fn of(&self) -> &Arc<Type> {
        &self.of
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.of.release() {
            remove(self.handle);
        }
    }
}
