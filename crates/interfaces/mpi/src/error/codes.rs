//! Error codes: their classes and texts, including those that programs add. Available at any time.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Error, PROC_FAILED, PROC_FAILED_PENDING, REVOKED, Result};
use crate::abi::*;

/// A code that the program has added.
#[derive(Clone, Debug)]
struct Added {
    /// The class of the code; equal to the code if it is itself a class.
    class: c_int,
    text: CString,
}

/// The added codes, from MPI_ERR_LASTCODE + 1 on.
static ADDED: Mutex<BTreeMap<c_int, Added>> = Mutex::new(BTreeMap::new());

/// The value of the attribute MPI_LASTUSEDCODE.
pub static LAST_USED: AtomicI32 = AtomicI32::new(ERR_LASTCODE);

const FIRST: c_int = ERR_LASTCODE + 1;

fn added() -> MutexGuard<'static, BTreeMap<c_int, Added>> {
    ADDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the code after the highest one in use, or the lowest free one if there is none.
fn free_code(added: &BTreeMap<c_int, Added>) -> c_int {
    let next = added
        .keys()
        .next_back()
        .map_or(Some(FIRST), |last| last.checked_add(1));
    let gap = || {
        (FIRST..)
            .zip(added.keys())
            .find(|(code, used)| code != *used)
    };
    next.or_else(|| gap().map(|(code, _)| code))
        .unwrap_or(c_int::MAX)
}

/// Returns the class of a code.
pub fn class(code: c_int) -> Result<c_int> {
    if code == ERR_LASTCODE || predefined(code).is_some() {
        return Ok(code);
    }
    added()
        .get(&code)
        .map(|found| found.class)
        .ok_or_else(|| unknown(code))
}

/// Returns the text of a code.
pub fn text(code: c_int) -> Result<CString> {
    if let Some(text) = predefined(code) {
        return Ok(text.to_owned());
    }
    match added().get(&code) {
        Some(found) => Ok(found.text.clone()),
        None if code == ERR_LASTCODE => Ok(c"the last code of an error".to_owned()),
        None => Err(unknown(code)),
    }
}

fn unknown(code: c_int) -> Error {
    Error::new(ERR_ARG, format!("{code} is not an error code"))
}

fn add(of: impl FnOnce(c_int) -> c_int) -> c_int {
    let mut added = added();
    let code = free_code(&added);
    let (class, text) = (of(code), CString::default());
    added.insert(code, Added { class, text });
    note_last(&added);
    code
}

fn note_last(added: &BTreeMap<c_int, Added>) {
    let last = added.keys().next_back().copied();
    LAST_USED.store(last.unwrap_or(ERR_LASTCODE), Ordering::Relaxed);
}

/// Adds a class and returns it.
pub fn add_class() -> c_int {
    add(|code| code)
}

/// Adds a code of a class and returns it.
pub fn add_code(of: c_int) -> Result<c_int> {
    if class(of)? != of {
        let text = format!("{of} is an error code, not an error class");
        return Err(Error::new(ERR_ARG, text));
    }
    Ok(add(|_| of))
}

/// Sets the text of a code that the program has added. An empty text removes it.
pub fn set_text(code: c_int, text: &CStr) -> Result {
    let mut added = added();
    let found = added.get_mut(&code).ok_or_else(|| not_added(code))?;
    found.text = text.to_owned();
    Ok(())
}

/// Removes a class or another code that the program has added. Fails if the code still has a text, or the class still
/// has codes.
pub fn remove(code: c_int, is_class: bool) -> Result {
    let mut added = added();
    let class = added.get(&code).ok_or_else(|| not_added(code))?.class;
    if (class == code) != is_class {
        let text = match is_class {
            true => format!("{code} is not an error class, but a code of class {class}"),
            false => format!("{code} is a class"),
        };
        return Err(Error::new(ERR_ARG, text));
    }
    if added.get(&code).is_some_and(|it| !it.text.is_empty()) {
        let text = format!("{code} still has an error string; remove it first");
        return Err(Error::new(ERR_OTHER, text));
    }
    let codes = added.values().filter(|it| it.class == code).count();
    if is_class && codes > 1 {
        let text = format!("class {code} still has codes; remove them first");
        return Err(Error::new(ERR_OTHER, text));
    }
    added.remove(&code);
    note_last(&added);
    Ok(())
}

fn not_added(code: c_int) -> Error {
    let text = format!("{code} is not a code that this program has added");
    Error::new(ERR_ARG, text)
}

macro_rules! texts {
    ($($code:ident $text:literal)*) => {
        /// Returns the text of a predefined code.
        fn predefined(code: c_int) -> Option<&'static CStr> {
            match code {
                $($code => Some($text),)*
                _ => None,
            }
        }
    };
}

texts! {
    SUCCESS c"no error"
    ERR_BUFFER c"the address of a buffer is invalid"
    ERR_COUNT c"a count is invalid"
    ERR_TYPE c"a datatype is invalid"
    ERR_TAG c"a tag is invalid"
    ERR_COMM c"a communicator is invalid"
    ERR_RANK c"a rank is invalid"
    ERR_REQUEST c"a request is invalid"
    ERR_ROOT c"the rank of a root is invalid"
    ERR_GROUP c"a group is invalid"
    ERR_OP c"an operator is invalid, or not for this datatype"
    ERR_TOPOLOGY c"the communicator does not have the topology that the call needs"
    ERR_DIMS c"the dimensions of a topology are invalid"
    ERR_ARG c"an argument is invalid"
    ERR_UNKNOWN c"unknown error"
    ERR_TRUNCATE c"a message was longer than its buffer, which holds its first bytes"
    ERR_OTHER c"another error; its error string describes it"
    ERR_INTERN c"an error inside the library"
    ERR_PENDING c"the request is not complete, and has not failed"
    ERR_IN_STATUS c"some requests have failed; see their statuses"
    ERR_ACCESS c"access to the file is denied"
    ERR_AMODE c"the mode in which a file is to be opened is invalid"
    ERR_ASSERT c"an assertion is invalid"
    ERR_BAD_FILE c"the name of a file is invalid"
    ERR_BASE c"the base of a window is invalid"
    ERR_CONVERSION c"a function that converts data has failed"
    ERR_DISP c"a displacement is invalid"
    ERR_DUP_DATAREP c"a data representation with this name already exists"
    ERR_FILE_EXISTS c"the file exists"
    ERR_FILE_IN_USE c"the file is in use"
    ERR_FILE c"a file handle is invalid"
    ERR_INFO_KEY c"the key of an info object is invalid"
    ERR_INFO_NOKEY c"the info object has no such key"
    ERR_INFO_VALUE c"the value of an info object is invalid"
    ERR_INFO c"an info object is invalid"
    ERR_IO c"input or output has failed"
    ERR_KEYVAL c"the key of an attribute is invalid"
    ERR_LOCKTYPE c"the type of a lock is invalid"
    ERR_NAME c"no service of this name is published"
    ERR_NO_MEM c"memory is used up"
    ERR_NOT_SAME c"an argument is not the same on all processes"
    ERR_NO_SPACE c"no space is left for the file"
    ERR_NO_SUCH_FILE c"there is no such file"
    ERR_PORT c"the name of a port is invalid, or the port is closed"
    ERR_QUOTA c"the quota is used up"
    ERR_READ_ONLY c"the file or its file system is read-only"
    ERR_RMA_ATTACH c"memory cannot be attached to the window"
    ERR_RMA_CONFLICT c"accesses to a window conflict"
    ERR_RMA_RANGE c"the target memory is not part of the window"
    ERR_RMA_SHARED c"memory cannot be shared by these processes"
    ERR_RMA_SYNC c"a window is synchronized wrongly"
    ERR_SERVICE c"the service cannot be published or unpublished"
    ERR_SIZE c"a size is invalid"
    ERR_SPAWN c"processes could not be started"
    ERR_UNSUPPORTED_DATAREP c"the data representation is not supported"
    ERR_UNSUPPORTED_OPERATION c"the operation is not supported"
    ERR_WIN c"a window is invalid"
    ERR_RMA_FLAVOR c"the window is not of the kind that the call needs"
    ERR_PROC_ABORTED c"a process has aborted"
    ERR_VALUE_TOO_LARGE c"a value is too large for its variable"
    ERR_SESSION c"a session is invalid"
    ERR_ERRHANDLER c"an error handler is invalid"
    ERR_ABI c"the ABI setting is invalid, or was already made"
    PROC_FAILED c"a process that the call depends on has failed"
    PROC_FAILED_PENDING c"a process that may send has failed; acknowledge its failure to continue"
    REVOKED c"the communicator is revoked"
    T_ERR_CANNOT_INIT c"the tool interface cannot be initialized"
    T_ERR_NOT_ACCESSIBLE c"the value cannot be accessed"
    T_ERR_NOT_INITIALIZED c"the tool interface is not initialized"
    T_ERR_NOT_SUPPORTED c"the tool interface does not support the call"
    T_ERR_MEMORY c"the tool interface has no memory"
    T_ERR_INVALID c"a parameter of the tool interface is invalid"
    T_ERR_INVALID_INDEX c"an index of the tool interface is invalid"
    T_ERR_INVALID_ITEM c"the index of an item is out of range"
    T_ERR_INVALID_SESSION c"a session of the tool interface is invalid"
    T_ERR_INVALID_HANDLE c"a handle of the tool interface is invalid"
    T_ERR_INVALID_NAME c"the tool interface has no item with this name"
    T_ERR_OUT_OF_HANDLES c"there are no more handles of the tool interface"
    T_ERR_OUT_OF_SESSIONS c"there are no more sessions of the tool interface"
    T_ERR_CVAR_SET_NOT_NOW c"the control variable cannot be set now"
    T_ERR_CVAR_SET_NEVER c"the control variable can never be set"
    T_ERR_PVAR_NO_WRITE c"the performance variable cannot be written"
    T_ERR_PVAR_NO_STARTSTOP c"the performance variable cannot be started or stopped"
    T_ERR_PVAR_NO_ATOMIC c"the performance variable cannot be read and reset at once"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_goes_after_its_codes() {
        let class = add_class();
        let code = add_code(class).expect("a class");
        assert_eq!(super::class(code).expect("a code"), class);
        assert_eq!(LAST_USED.load(Ordering::Relaxed), code);
        set_text(code, c"too hot").expect("a code");
        assert_eq!(text(code).expect("a code").as_c_str(), c"too hot");
        assert!(remove(class, true).is_err() && remove(code, true).is_err());
        assert!(remove(code, false).is_err(), "its text is still there");
        set_text(code, c"").expect("a code");
        remove(code, false).expect("a code");
        remove(class, true).expect("a class");
        assert!(super::class(class).is_err() && add_code(code).is_err());
        assert!(set_text(ERR_OTHER, c"x").is_err());
    }

    #[test]
    fn codes_that_were_removed_take_no_room_and_do_not_use_up_the_others() {
        let added = |code| {
            let class = FIRST;
            let text = CString::default();
            (code, Added { class, text })
        };
        assert_eq!(free_code(&BTreeMap::new()), FIRST);
        assert_eq!(free_code(&[FIRST, FIRST + 7].map(added).into()), FIRST + 8);
        let at_the_end = [FIRST, FIRST + 1, c_int::MAX].map(added).into();
        assert_eq!(free_code(&at_the_end), FIRST + 2);
    }
}
