//! Safe wrappers with Rust types for the library's functions.
//!
//! The library may be used by one thread only, so this type is neither `Send` nor `Sync`.

use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr;

use crate::machine::{Answer, Class, Code, Entry, Host, Task};

use super::symbols::Symbols;

/// The functions of PVM's library, looked up when it was loaded.
pub struct Calls {
    symbols: Symbols,
    _one_thread: PhantomData<*const ()>,
}

/// A received message.
pub(super) struct Message {
    pub tag: c_int,
    pub length: usize,
}

fn checked(code: c_int) -> Answer<c_int> {
    if code < 0 { Err(Code(code)) } else { Ok(code) }
}

/// Converts a text for the library. Fails if it contains a NUL, since the library would read only the part before.
fn text(text: &str) -> Answer<CString> {
    CString::new(text).map_err(|_| Code(-2))
}

/// An array of C strings: pointers, with a null pointer at the end.
struct Texts {
    pointers: Vec<*mut c_char>,
    _texts: Vec<CString>,
}

impl Texts {
    fn new(words: &[String]) -> Answer<Texts> {
        let texts = words
            .iter()
            .map(|word| text(word))
            .collect::<Answer<Vec<_>>>()?;
        let pointers = texts.iter().map(|text| text.as_ptr().cast_mut());
        Ok(Texts {
            pointers: pointers.chain([ptr::null_mut()]).collect(),
            _texts: texts,
        })
    }
}

/// Returns the text behind a pointer of the library, or an empty text if it is null.
///
/// # Safety
///
/// The pointer must be null or point to a NUL-terminated string.
unsafe fn said(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller guarantees that the pointer is NUL-terminated; it is not null here.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

/// Returns the elements of an array of the library.
///
/// # Safety
///
/// The pointer must be null or point to `count` items, which the caller uses only until the next call of the library.
unsafe fn items<'a, T>(pointer: *const T, count: c_int) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: the caller guarantees that the pointer is valid for `count` items for as long as the slice is used.
        Ok(count) if count > 0 && !pointer.is_null() => unsafe {
            std::slice::from_raw_parts(pointer, count)
        },
        _ => &[],
    }
}

impl Calls {
    pub(super) fn load() -> Result<Calls, String> {
        Ok(Calls {
            symbols: Symbols::load()?,
            _one_thread: PhantomData,
        })
    }

    /// Returns the meaning of a code.
    pub fn explain(&self, code: Code) -> String {
        self.symbols
            .meaning(code.0)
            .unwrap_or_else(|| format!("error {}", code.0))
    }

    pub(super) fn start(&self, arguments: &[String]) -> Answer<()> {
        let mut words = Texts::new(arguments)?;
        // SAFETY: `words` has `arguments.len()` strings, which live until the call returns.
        checked(unsafe {
            (self.symbols.pvm_start_pvmd)(arguments.len() as c_int, words.pointers.as_mut_ptr(), 1)
        })?;
        Ok(())
    }

    pub(super) fn mytid(&self) -> Answer<c_int> {
        // SAFETY: `pvm_mytid` takes no arguments.
        checked(unsafe { (self.symbols.pvm_mytid)() })
    }

    pub(super) fn leave(&self) {
        // SAFETY: `pvm_exit` takes no arguments. Its error is ignored, since the process ends.
        unsafe { (self.symbols.pvm_exit)() };
    }

    pub(super) fn halt(&self) -> Answer<()> {
        // SAFETY: `pvm_halt` takes no arguments.
        checked(unsafe { (self.symbols.pvm_halt)() }).map(|_| ())
    }

    pub(super) fn version(&self) -> String {
        // SAFETY: `pvm_version` takes no arguments and returns a string that is never freed.
        unsafe { said((self.symbols.pvm_version)()) }
    }

    pub(super) fn option(&self, option: c_int) -> c_int {
        // SAFETY: `pvm_getopt` accepts any number.
        unsafe { (self.symbols.pvm_getopt)(option) }
    }

    pub(super) fn set_option(&self, option: c_int, value: c_int) -> c_int {
        // SAFETY: `pvm_setopt` accepts any numbers.
        unsafe { (self.symbols.pvm_setopt)(option, value) }
    }

    pub(super) fn set_trace_mask(&self, mask: &str) -> Answer<()> {
        const CHILDREN: c_int = 1;
        let mut bytes = [0; 36];
        for (to, from) in bytes[..35].iter_mut().zip(mask.bytes()) {
            *to = from as c_char;
        }
        // SAFETY: the mask is an array of 36 characters, the last of them NUL.
        checked(unsafe { (self.symbols.pvm_settmask)(CHILDREN, bytes.as_mut_ptr()) }).map(|_| ())
    }

    pub(super) fn hosts(&self) -> Answer<(c_int, Vec<Host>)> {
        let (mut count, mut formats, mut list) = (0, 0, ptr::null_mut());
        // SAFETY: the pointers are to three local variables, which live across the call.
        checked(unsafe { (self.symbols.pvm_config)(&mut count, &mut formats, &mut list) })?;
        // SAFETY: after success the list has `count` entries, which live until the next such call.
        let hosts = unsafe { items(list, count) }.iter().map(|host| Host {
            tid: host.tid,
            // SAFETY: `name` is null or a NUL-terminated string of the library.
            name: unsafe { said(host.name) },
            // SAFETY: `arch` is null or a NUL-terminated string of the library.
            arch: unsafe { said(host.arch) },
            speed: host.speed,
            signature: host.signature,
        });
        Ok((formats, hosts.collect()))
    }

    pub(super) fn add(&self, lines: &[String]) -> Answer<Vec<Answer<c_int>>> {
        let (mut words, mut answers) = (Texts::new(lines)?, vec![0; lines.len()]);
        // SAFETY: `words` and `answers` have `lines.len()` elements, and live across the call.
        checked(unsafe {
            (self.symbols.pvm_addhosts)(
                words.pointers.as_mut_ptr(),
                lines.len() as c_int,
                answers.as_mut_ptr(),
            )
        })?;
        Ok(answers.into_iter().map(checked).collect())
    }

    pub(super) fn delete(&self, names: &[String]) -> Answer<Vec<Answer<()>>> {
        let (mut words, mut answers) = (Texts::new(names)?, vec![0; names.len()]);
        // SAFETY: `words` and `answers` have `names.len()` elements, and live across the call.
        checked(unsafe {
            (self.symbols.pvm_delhosts)(
                words.pointers.as_mut_ptr(),
                names.len() as c_int,
                answers.as_mut_ptr(),
            )
        })?;
        Ok(answers
            .into_iter()
            .map(|answer| checked(answer).map(|_| ()))
            .collect())
    }

    pub(super) fn host_state(&self, name: &str) -> Answer<()> {
        let name = text(name)?;
        // SAFETY: `name` is NUL-terminated and is only read.
        checked(unsafe { (self.symbols.pvm_mstat)(name.as_ptr().cast_mut()) }).map(|_| ())
    }

    pub(super) fn watch_hosts(&self, tag: c_int) {
        const HOST_ADD: c_int = 3;
        // SAFETY: for HOST_ADD no list of tasks is read. If the call fails, the console does not report new hosts.
        unsafe { (self.symbols.pvm_notify)(HOST_ADD, tag, -1, ptr::null_mut()) };
    }

    pub(super) fn tasks(&self, host: c_int) -> Answer<Vec<Task>> {
        let (mut count, mut list) = (0, ptr::null_mut());
        // SAFETY: the pointers are to two local variables, which live across the call.
        checked(unsafe { (self.symbols.pvm_tasks)(host, &mut count, &mut list) })?;
        // SAFETY: after success the list has `count` entries, which live until the next such call.
        let tasks = unsafe { items(list, count) }.iter().map(|task| Task {
            tid: task.tid,
            parent: task.parent,
            host: task.host,
            flags: task.flags,
            // SAFETY: `program` is null or a NUL-terminated string of the library.
            program: unsafe { said(task.program) },
            pid: task.pid,
        });
        Ok(tasks.collect())
    }

    pub(super) fn task_state(&self, tid: c_int) -> Answer<()> {
        // SAFETY: `pvm_pstat` accepts any number.
        checked(unsafe { (self.symbols.pvm_pstat)(tid) }).map(|_| ())
    }

    pub(super) fn kill(&self, tid: c_int) -> Answer<()> {
        // SAFETY: `pvm_kill` accepts any number.
        checked(unsafe { (self.symbols.pvm_kill)(tid) }).map(|_| ())
    }

    pub(super) fn signal(&self, tid: c_int, signal: c_int) -> Answer<()> {
        // SAFETY: `pvm_sendsig` accepts any numbers.
        checked(unsafe { (self.symbols.pvm_sendsig)(tid, signal) }).map(|_| ())
    }

    /// Starts `count` (at least one) tasks of a program. `words` are its name and its arguments.
    pub(super) fn spawn(
        &self,
        words: &[String],
        flags: c_int,
        place: &str,
        count: c_int,
    ) -> Answer<Vec<Answer<c_int>>> {
        /// Maximum number of tasks in one call, above what any machine has room for.
        const MAX_TASKS: c_int = 1 << 18;
        let (program, arguments) = words.split_first().ok_or(Code(-2))?;
        let (program, place, mut arguments) =
            (text(program)?, text(place)?, Texts::new(arguments)?);
        let mut tids = vec![0; count.clamp(0, MAX_TASKS) as usize];
        // SAFETY: the strings are NUL-terminated and only read, the array of arguments ends with a null pointer, and
        // `tids` has room for `count` tids.
        checked(unsafe {
            (self.symbols.pvm_spawn)(
                program.as_ptr().cast_mut(),
                arguments.pointers.as_mut_ptr(),
                flags,
                place.as_ptr().cast_mut(),
                tids.len() as c_int,
                tids.as_mut_ptr(),
            )
        })?;
        Ok(tids.into_iter().map(checked).collect())
    }

    pub(super) fn lasting(&self) -> Answer<Vec<c_int>> {
        let (mut count, mut list) = (0, ptr::null_mut());
        // SAFETY: the pointers are to two local variables, which live across the call.
        checked(unsafe { (self.symbols.pvm_getnoresets)(&mut list, &mut count) })?;
        // SAFETY: after success the list has `count` entries, which live until the next such call.
        Ok(unsafe { items(list, count) }.to_vec())
    }

    pub(super) fn names(&self, pattern: &str) -> Answer<Vec<Class>> {
        let pattern = text(pattern)?;
        let (mut count, mut list) = (0, ptr::null_mut());
        // SAFETY: `pattern` is NUL-terminated and only read, and the pointers are to two local variables.
        checked(unsafe {
            (self.symbols.pvm_getmboxinfo)(pattern.as_ptr().cast_mut(), &mut count, &mut list)
        })?;
        // SAFETY: after success the list has `count` entries, which live until the next such call.
        let classes = unsafe { items(list, count) }.iter().map(|class| {
            // SAFETY: each of the three arrays of a class has `entries` elements.
            let (indices, owners, flags) = unsafe {
                (
                    items(class.indices, class.entries),
                    items(class.owners, class.entries),
                    items(class.flags, class.entries),
                )
            };
            let entries = indices.iter().zip(owners).zip(flags);
            Class {
                // SAFETY: `name` is null or a NUL-terminated string of the library.
                name: unsafe { said(class.name) },
                entries: entries
                    .map(|((index, owner), flags)| Entry {
                        index: *index,
                        owner: *owner,
                        flags: *flags,
                    })
                    .collect(),
            }
        });
        Ok(classes.collect())
    }

    pub(super) fn put(&self, name: &str, flags: c_int, mut value: c_int) -> Answer<c_int> {
        let name = text(name)?;
        // SAFETY: `pvm_initsend` takes a number only.
        let buffer = checked(unsafe { (self.symbols.pvm_initsend)(0) })?;
        // SAFETY: the pointer is to one number, as the count says.
        checked(unsafe { (self.symbols.pvm_pkint)(&mut value, 1, 1) })?;
        // SAFETY: `name` is NUL-terminated and only read.
        checked(unsafe { (self.symbols.pvm_putinfo)(name.as_ptr().cast_mut(), buffer, flags) })
    }

    pub(super) fn forget(&self, name: &str, index: c_int, flags: c_int) -> Answer<()> {
        let name = text(name)?;
        // SAFETY: `name` is NUL-terminated and only read.
        checked(unsafe { (self.symbols.pvm_delinfo)(name.as_ptr().cast_mut(), index, flags) })
            .map(|_| ())
    }

    pub(super) fn tickle(&self, words: &[c_int]) -> Answer<Vec<c_int>> {
        // The library takes at most ten numbers and returns at most ten.
        let (mut asked, mut answers, mut count) = ([0; 10], [0; 10], 0);
        let given = words.len().min(asked.len());
        asked[..given].copy_from_slice(&words[..given]);
        // SAFETY: `asked` has at least `given` numbers, and `answers` has room for the ten that are returned at most.
        checked(unsafe {
            (self.symbols.pvm_tickle)(
                given as c_int,
                asked.as_mut_ptr(),
                &mut count,
                answers.as_mut_ptr(),
            )
        })?;
        Ok(answers[..usize::try_from(count).unwrap_or(0).min(answers.len())].to_vec())
    }

    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut list = ptr::null_mut();
        // SAFETY: the pointer is to a local variable.
        let count = unsafe { (self.symbols.pvm_getfds)(&mut list) };
        // SAFETY: the list has `count` entries, which live until the next such call.
        let list = unsafe { items(list, count) }.iter().filter(|fd| **fd >= 0);
        // SAFETY: the library keeps its descriptors open until it is called again, and they are only polled.
        list.map(|fd| unsafe { BorrowedFd::borrow_raw(*fd) })
            .collect()
    }

    /// Receives the next message, if there is one. It becomes the message that `number` and `bytes` read from.
    pub(super) fn receive(&self) -> Answer<Option<Message>> {
        // SAFETY: `pvm_nrecv` takes numbers only.
        let buffer = checked(unsafe { (self.symbols.pvm_nrecv)(-1, -1) })?;
        if buffer == 0 {
            return Ok(None);
        }
        let (mut length, mut tag, mut source) = (0, 0, 0);
        // SAFETY: the pointers are to three local variables, which live across the call.
        checked(unsafe { (self.symbols.pvm_bufinfo)(buffer, &mut length, &mut tag, &mut source) })?;
        let length = usize::try_from(length).unwrap_or(0);
        Ok(Some(Message { tag, length }))
    }

    /// Returns the next number of the received message.
    pub(super) fn number(&self) -> Answer<c_int> {
        let mut number = 0;
        // SAFETY: the pointer is to one number, as the count says.
        checked(unsafe { (self.symbols.pvm_upkint)(&mut number, 1, 1) })?;
        Ok(number)
    }

    /// Returns the next bytes of the received message.
    pub(super) fn bytes(&self, count: usize) -> Answer<Vec<u8>> {
        let mut bytes = vec![0; count];
        let count = c_int::try_from(count).map_err(|_| Code(-5))?;
        // SAFETY: `bytes` has room for `count` bytes.
        checked(unsafe { (self.symbols.pvm_upkbyte)(bytes.as_mut_ptr().cast(), count, 1) })?;
        Ok(bytes)
    }
}

/// Sets an environment variable.
pub(super) fn set_variable(name: &str, value: &str) {
    // SAFETY: the console is single-threaded, so the environment is not read meanwhile. The caller has checked that the
    // name is not empty and has no `=`, and that neither text has a NUL.
    unsafe { std::env::set_var(name, value) };
}

/// Prints on standard error how the memory of this process is used. Not supported on this system.
#[cfg(not(target_env = "gnu"))]
pub(super) fn memory() {}

/// Prints on standard error how the memory of this process is used.
#[cfg(target_env = "gnu")]
pub(super) fn memory() {
    unsafe extern "C" {
        fn malloc_stats();
    }
    // SAFETY: `malloc_stats` takes no arguments, and writes to standard error.
    unsafe { malloc_stats() };
}
