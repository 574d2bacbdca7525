//! Attributes that programs attach to communicators, datatypes and windows, under keys that they create.
//!
//! A key may be freed while objects have attributes under it: its number stays valid until the last of these attributes
//! is deleted. No lock is held while a callback of the program runs, since it may access attributes itself.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::*;
use crate::error::{Error, Result};
use crate::objects::{Kind, Table};

/// The callback that copies an attribute to a duplicate of its object: MPI_NULL_COPY_FN, MPI_DUP_FN, or one of the
/// program.
pub type CopyFunction<H> = Option<
    unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int,
>;
/// The callback for the deletion of an attribute: MPI_NULL_DELETE_FN, or one of the program.
pub type DeleteFunction<H> =
    Option<unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int>;

/// A kind of handle whose objects have attributes.
pub trait Holder: Copy + Send + 'static {
    /// Returns all keys for objects of this kind. A number is never a key of two kinds.
    fn keys() -> &'static Keys<Self>;
}

macro_rules! holders {
    ($($name:ident $kind:ident)*) => {
        $(
            impl Holder for $name {
                fn keys() -> &'static Keys<$name> {
                    static KEYS: Keys<$name> = Keys(Table::new(Kind::$kind));
                    &KEYS
                }
            }
        )*
    };
}
holders!(Comm CommKey Datatype DatatypeKey Win WinKey);

/// The keys for objects of one kind of handle.
pub struct Keys<H: Holder>(Table<KeyInUse<H>>);

/// A key that has not been freed, or that still has attributes.
struct KeyInUse<H: Holder> {
    functions: Functions<H>,
    is_freed: bool,
    /// Number of attributes under the key.
    attributes: usize,
}

/// The callbacks for attributes under a key.
struct Functions<H: Holder> {
    copy: CopyFunction<H>,
    delete: DeleteFunction<H>,
    extra: usize,
}

impl<H: Holder> Clone for Functions<H> {
    fn clone(&self) -> Functions<H> {
        *self
    }
}

impl<H: Holder> Copy for Functions<H> {}

impl<H: Holder> KeyInUse<H> {
    fn is_over(&self) -> bool {
        self.is_freed && self.attributes == 0
    }
}

impl<H: Holder> Keys<H> {
    fn with<T>(&self, number: c_int, act: impl FnOnce(&mut KeyInUse<H>) -> T) -> Result<T> {
        let found = self.0.with(number as usize, act);
        found.ok_or_else(|| no_key(number))
    }

    /// Changes a key, and removes it if it is then freed and without attributes.
    fn let_go(&self, number: c_int, act: impl FnOnce(&mut KeyInUse<H>)) -> Result {
        let found = self.0.remove_if(number as usize, |key| {
            act(key);
            key.is_over()
        });
        found.map(drop).ok_or_else(|| no_key(number))
    }
}

#[cold]
fn no_key(number: c_int) -> Error {
    let text = match number {
        KEYVAL_INVALID => "the key is MPI_KEYVAL_INVALID".to_owned(),
        TAG_UB..=UNIVERSE_SIZE | WIN_BASE..=WIN_MODEL => {
            format!("the key {number} is a predefined one, whose attribute belongs to the library")
        }
        _ => {
            format!("{number} is not a valid key for objects of this kind; it may have been freed")
        }
    };
    Error::new(ERR_KEYVAL, text)
}

/// Creates a key and returns its number.
pub fn create<H: Holder>(
    copy: CopyFunction<H>,
    delete: DeleteFunction<H>,
    extra: *mut c_void,
) -> Result<c_int> {
    let functions = Functions {
        copy,
        delete,
        extra: extra as usize,
    };
    let made = H::keys().0.insert(KeyInUse {
        functions,
        is_freed: false,
        attributes: 0,
    });
    // Handles have 31 bits.
    made.map(|handle| handle as c_int).ok_or_else(|| {
        let text =
            "all key numbers are in use: free unused keys (MPI_Comm_free_keyval and similar)";
        Error::new(ERR_NO_MEM, text)
    })
}

/// Frees a key. Its attributes stay. While there are any, the key may be freed again, as programs do in delete
/// callbacks.
pub fn free<H: Holder>(number: c_int) -> Result {
    H::keys().let_go(number, |key| key.is_freed = true)
}

/// The attributes of one object.
pub struct Attributes<H: Holder>(Mutex<Vec<Attribute<H>>>);

struct Attribute<H: Holder> {
    /// The number of the key, which exists at least as long as this attribute.
    number: c_int,
    functions: Functions<H>,
    value: usize,
}

impl<H: Holder> Attribute<H> {
    /// Makes an attribute under a key. Fails if there is no such key.
    fn new(number: c_int, value: usize) -> Result<Attribute<H>> {
        let functions = H::keys().with(number, |key| {
            key.attributes += 1;
            key.functions
        })?;
        Ok(Attribute {
            number,
            functions,
            value,
        })
    }
}

impl<H: Holder> Clone for Attribute<H> {
    fn clone(&self) -> Attribute<H> {
        // The key exists because of this attribute.
        let _ = H::keys().with(self.number, |key| key.attributes += 1);
        Attribute {
            number: self.number,
            functions: self.functions,
            value: self.value,
        }
    }
}

impl<H: Holder> Drop for Attribute<H> {
    fn drop(&mut self) {
        let _ = H::keys().let_go(self.number, |key| key.attributes -= 1);
    }
}

impl<H: Holder> Default for Attributes<H> {
    fn default() -> Attributes<H> {
        Attributes::new()
    }
}

impl<H: Holder> Attributes<H> {
    /// Returns an empty set of attributes.
    pub const fn new() -> Attributes<H> {
        Attributes(Mutex::new(Vec::new()))
    }

    fn list(&self) -> MutexGuard<'_, Vec<Attribute<H>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, number: c_int) -> Option<Attribute<H>> {
        let list = self.list();
        list.iter().find(|it| it.number == number).cloned()
    }

    /// Returns whether the object has no attribute.
    pub fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    /// Returns the value of an attribute, or `None` if the object does not have it. Fails if there is no such key.
    pub fn get(&self, number: c_int) -> Result<Option<*mut c_void>> {
        let found = (self.list().iter())
            .find(|it| it.number == number)
            .map(|it| it.value as *mut c_void);
        match found {
            Some(value) => Ok(Some(value)),
            None => H::keys().with(number, |_| None),
        }
    }

    /// Attaches an attribute to the object with this handle. An existing attribute under the key is deleted first.
    ///
    /// # Safety
    /// The key's callbacks may be called.
    pub unsafe fn set(&self, object: H, number: c_int, value: *mut c_void) -> Result {
        let new = Attribute::new(number, value as usize)?;
        let before = self.find(number);
        if let Some(before) = &before {
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { before.end(object)? };
        }
        let mut list = self.list();
        if before.is_some() {
            list.retain(|it| it.number != number);
        }
        list.push(new);
        Ok(())
    }

    /// Deletes an attribute of the object with this handle. If its callback fails, the attribute stays.
    ///
    /// # Safety
    /// The key's callbacks may be called.
    pub unsafe fn delete(&self, object: H, number: c_int) -> Result {
        let Some(found) = self.find(number) else {
            H::keys().with(number, |_| ())?;
            let text = format!("the object has no attribute with the key {number}");
            return Err(Error::new(ERR_KEYVAL, text));
        };
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { found.end(object)? };
        self.list().retain(|it| it.number != number);
        Ok(())
    }

    /// Deletes all attributes, last set first, because the object with this handle is being freed. If a callback fails,
    /// its attribute and those set before it stay, and the caller should not free the object.
    ///
    /// # Safety
    /// The keys' callbacks may be called.
    pub unsafe fn delete_all(&self, object: H) -> Result {
        loop {
            let Some(last) = self.list().last().cloned() else {
                return Ok(());
            };
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { last.end(object)? };
            self.list().retain(|it| it.number != last.number);
        }
    }

    /// Returns the attributes of a duplicate of the object with this handle.
    ///
    /// # Safety
    /// The keys' callbacks may be called.
    pub unsafe fn copies(&self, object: H) -> Result<Attributes<H>> {
        let all = self.list().clone();
        let mut copies = Vec::new();
        for attribute in all {
            // SAFETY: the caller upholds the safety contract of this function.
            if let Some(value) = unsafe { attribute.copy(object)? } {
                copies.push(Attribute::new(attribute.number, value)?);
            }
        }
        Ok(Attributes(Mutex::new(copies)))
    }
}

impl<H: Holder> Attribute<H> {
    /// Returns the value for a duplicate, or `None` if the duplicate does not get the attribute.
    unsafe fn copy(&self, object: H) -> Result<Option<usize>> {
        let key = &self.functions;
        let Some(copy) = key.copy else {
            return Ok(None);
        };
        if copy as usize == DUP_FN {
            return Ok(Some(self.value));
        }
        let (mut value, mut wanted) = (0usize, 0);
        // SAFETY: the caller guarantees that the callback may be called; it may write the last two arguments.
        let code = unsafe {
            copy(
                object,
                self.number,
                key.extra as *mut c_void,
                self.value as *mut c_void,
                (&raw mut value).cast(),
                &mut wanted,
            )
        };
        failed(code, "copies", self.number)?;
        Ok((wanted != 0).then_some(value))
    }

    /// Calls the delete callback.
    unsafe fn end(&self, object: H) -> Result {
        let key = &self.functions;
        let Some(delete) = key.delete else {
            return Ok(());
        };
        // SAFETY: the caller upholds the safety contract of this function.
        let code = unsafe {
            delete(
                object,
                self.number,
                self.value as *mut c_void,
                key.extra as *mut c_void,
            )
        };
        failed(code, "deletes", self.number)
    }
}

/// Returns an error with the code that a callback of the program has returned.
fn failed(code: c_int, what: &str, number: c_int) -> Result {
    match code {
        SUCCESS => Ok(()),
        _ => Err(Error::new(
            code,
            format!(
                "the program's function that {what} attributes under the key {number} returned {code}"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    unsafe extern "C" fn next(
        _object: Datatype,
        _key: c_int,
        _extra: *mut c_void,
        value: *mut c_void,
        out: *mut c_void,
        wanted: *mut c_int,
    ) -> c_int {
        // SAFETY: MPI's caller passes valid pointers for the results.
        unsafe {
            *out.cast::<usize>() = value as usize + 1;
            *wanted = 1;
        }
        SUCCESS
    }

    /// Fails for the value 13; counts the other calls.
    unsafe extern "C" fn count(
        _object: Datatype,
        _key: c_int,
        value: *mut c_void,
        extra: *mut c_void,
    ) -> c_int {
        if value as usize == 13 {
            return ERR_OTHER;
        }
        // SAFETY: `extra` points to the counter of the test.
        unsafe { *extra.cast::<usize>() += 1 };
        SUCCESS
    }

    #[test]
    fn attributes_are_copied_and_deleted_by_the_functions_of_their_keys() {
        let mut ended = 0usize;
        let extra = (&raw mut ended).cast();
        let key = create::<Datatype>(Some(next), Some(count), extra).expect("a key");
        let quiet = create::<Datatype>(None, None, null_mut()).expect("a key");
        let of = Attributes::<Datatype>::new();
        // SAFETY: the callbacks are those of this test.
        unsafe {
            of.set(INT, key, 5 as *mut c_void).expect("set");
            of.set(INT, quiet, 6 as *mut c_void).expect("set");
            of.set(INT, key, 7 as *mut c_void).expect("set again");
            assert_eq!(ended, 1);
            let copies = of.copies(INT).expect("copies");
            assert_eq!(copies.get(key).expect("a key"), Some(8 as *mut c_void));
            assert_eq!(copies.get(quiet).expect("a key"), None);
            free::<Datatype>(key).expect("a key");
            free::<Datatype>(key).expect("in use");
            assert_eq!(of.get(key).expect("kept"), Some(7 as *mut c_void));
            of.delete_all(INT).expect("deleted");
            assert_eq!(ended, 2);
            copies.delete(INT, key).expect("deleted");
            assert_eq!(ended, 3);
            assert_eq!(copies.get(key).expect_err("gone").class(), ERR_KEYVAL);
            assert!(free::<Datatype>(key).is_err());
        }
    }

    #[test]
    fn an_attribute_stays_if_its_function_fails() {
        let mut ended = 0usize;
        let extra = (&raw mut ended).cast();
        let key = create::<Datatype>(None, Some(count), extra).expect("a key");
        let of = Attributes::<Datatype>::new();
        // SAFETY: the callbacks are those of this test.
        unsafe {
            of.set(INT, key, 13 as *mut c_void).expect("set");
            assert_eq!(of.delete(INT, key).expect_err("fails").class(), ERR_OTHER);
            assert!(of.delete_all(INT).is_err());
            assert!(of.set(INT, key, null_mut()).is_err());
        }
        assert_eq!(of.get(key).expect("a key"), Some(13 as *mut c_void));
    }

    #[test]
    fn a_key_is_for_one_kind_of_object() {
        let key = create::<Win>(None, None, null_mut()).expect("a key");
        assert!(Attributes::<Comm>::new().get(key).is_err());
        assert!(Attributes::<Win>::new().get(key).expect("a key").is_none());
        assert!(Attributes::<Comm>::new().get(TAG_UB).is_err());
    }
}
