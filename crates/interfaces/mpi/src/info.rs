//! Info objects: keys with values, in the order in which they were first set.

use std::ffi::{CStr, CString};

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::abi::*;
use crate::communicator;
use crate::error::{Error, Result};
use crate::objects::{Kind, Table};
use crate::process;

/// Keys with values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints(IndexMap<CString, CString, FxBuildHasher>);

impl Hints {
    /// Returns the value of a key.
    pub fn get(&self, key: &CStr) -> Option<&CStr> {
        self.0.get(key).map(CString::as_c_str)
    }

    /// Returns the value of a key if it is UTF-8.
    pub fn text(&self, key: &CStr) -> Option<&str> {
        self.get(key)?.to_str().ok()
    }

    /// Sets a key.
    pub fn set(&mut self, key: &CStr, value: &CStr) {
        match self.0.get_mut(key) {
            Some(old) => *old = value.to_owned(),
            None => drop(self.0.insert(key.to_owned(), value.to_owned())),
        }
    }

    /// Sets a key to a text, truncated at its first NUL.
    pub fn set_text(&mut self, key: &CStr, value: &str) {
        let value: Vec<u8> = value.bytes().take_while(|&byte| byte != 0).collect();
        self.set(key, &CString::new(value).unwrap_or_default());
    }

    /// Removes a key. Returns whether it was set.
    pub fn remove(&mut self, key: &CStr) -> bool {
        self.0.shift_remove(key).is_some()
    }

    /// Sets all keys of `others`.
    pub fn merge(&mut self, others: &Hints) {
        for (key, value) in &others.0 {
            self.set(key, value);
        }
    }

    /// Returns the hints whose keys are among these.
    pub fn among(&self, keys: &[&CStr]) -> Hints {
        let known = self.0.iter();
        let known = known.filter(|(key, _)| keys.contains(&key.as_c_str()));
        Hints(
            known
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        )
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key with this index.
    pub fn key(&self, index: usize) -> Option<&CStr> {
        self.0.get_index(index).map(|(key, _)| key.as_c_str())
    }
}

static OBJECTS: Table<Hints> = Table::new(Kind::Info);

/// Makes an info object.
pub fn make(hints: Hints) -> Result<Info> {
    let made = OBJECTS.insert(hints);
    made.map(Info)
        .ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many info objects"))
}

/// Calls `act` with the keys of an object that the program has made. `act` must not use other info objects.
pub fn with_object<T>(info: Info, act: impl FnOnce(&mut Hints) -> T) -> Result<T> {
    OBJECTS.with(info.0, act).ok_or_else(|| none(info))
}

/// Frees an object that the program has made.
pub fn remove(info: Info) -> Result {
    OBJECTS.remove(info.0).map(drop).ok_or_else(|| none(info))
}

#[cold]
fn none(info: Info) -> Error {
    let text = match info {
        INFO_NULL => "the info object is MPI_INFO_NULL".to_owned(),
        INFO_ENV => "MPI_INFO_ENV is read-only".to_owned(),
        Info(value) => format!("{value:#x} is not a valid info object; it may have been freed"),
    };
    Error::new(ERR_INFO, text)
}

/// Calls `use_them` with the keys of any object, including MPI_INFO_ENV; see [`with_object`].
pub fn with_hints<T>(info: Info, use_them: impl FnOnce(&Hints) -> Result<T>) -> Result<T> {
    match info {
        INFO_ENV => use_them(&environment()),
        _ => with_object(info, |hints| use_them(hints))?,
    }
}

/// Returns a copy of the keys of any object, including MPI_INFO_ENV.
pub fn hints(info: Info) -> Result<Hints> {
    with_hints(info, |hints| Ok(hints.clone()))
}

/// Returns a copy of the keys of an object. MPI_INFO_NULL is allowed and has none.
pub fn optional(info: Info) -> Result<Hints> {
    match info {
        INFO_NULL => Ok(Hints::default()),
        _ => hints(info),
    }
}

/// Returns the keys of MPI_INFO_ENV: how this process was started, as far as it is known.
fn environment() -> Hints {
    of_arguments(std::env::args_os().map(|it| it.into_encoded_bytes()))
}

/// Returns keys that state how this process was started with these arguments, of which the first is the program.
pub fn of_arguments(arguments: impl Iterator<Item = Vec<u8>>) -> Hints {
    let mut hints = Hints::default();
    let mut arguments = arguments.map(|it| String::from_utf8_lossy(&it).into_owned());
    if let Some(command) = arguments.next() {
        hints.set_text(c"command", &command);
    }
    let rest: Vec<String> = arguments.collect();
    if !rest.is_empty() {
        hints.set_text(c"argv", &rest.join(" "));
    }
    if let Some(size) = communicator::world_size() {
        hints.set_text(c"maxprocs", &size.to_string());
    }
    hints.set_text(c"arch", std::env::consts::ARCH);
    if let Ok(folder) = std::env::current_dir() {
        hints.set_text(c"wdir", &folder.to_string_lossy());
    }
    hints.set_text(
        c"thread_level",
        process::level_name(process::thread_level()),
    );
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order_in_which_they_were_first_set() {
        let mut hints = Hints::default();
        hints.set(c"b", c"1");
        hints.set(c"a", c"2");
        hints.set(c"b", c"3");
        assert_eq!((hints.key(0), hints.key(1)), (Some(c"b"), Some(c"a")));
        assert_eq!(hints.text(c"b"), Some("3"));
        assert!(hints.remove(c"b") && !hints.remove(c"b"));
        assert_eq!((hints.len(), hints.key(0)), (1, Some(c"a")));
    }
}
