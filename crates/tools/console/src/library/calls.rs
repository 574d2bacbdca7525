//! The library's functions, with Rust's types: nothing here can be called wrongly.
//!
//! The library may be used by one thread only, which is why this cannot be shared.

use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr;

use crate::machine::{Answer, Class, Code, Entry, Host, Task};

use super::symbols::Symbols;

/// The functions of PVM's library, found in it when it was loaded.
pub struct Calls {
    symbols: Symbols,
    _one_thread: PhantomData<*const ()>,
}

/// A message that has come.
pub(super) struct Message {
    pub tag: c_int,
    pub length: usize,
}

fn checked(code: c_int) -> Answer<c_int> {
    if code < 0 { Err(Code(code)) } else { Ok(code) }
}

/// A text for the library. One with a zero byte inside would be another text there.
fn text(text: &str) -> Answer<CString> {
    CString::new(text).map_err(|_| Code(-2))
}

/// Texts as C has them: pointers, and a null pointer at the end.
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

/// The value behind a pointer of the library's; none if it is null.
///
/// # Safety
/// It is null or points at a text that ends in a zero byte.
unsafe fn said(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

/// The elements of an array of the library's.
///
/// # Safety
/// The pointer is null or points at as many items.
unsafe fn items<'a, T>(pointer: *const T, count: c_int) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: by contract; the caller has done with it before the next call.
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

    /// The meaning of a code.
    pub fn explain(&self, code: Code) -> String {
        self.symbols
            .meaning(code.0)
            .unwrap_or_else(|| format!("error {}", code.0))
    }

    pub(super) fn start(&self, arguments: &[String]) -> Answer<()> {
        let mut words = Texts::new(arguments)?;
        // SAFETY: as many texts as are said, which live until the call is over.
        checked(unsafe {
            (self.symbols.pvm_start_pvmd)(arguments.len() as c_int, words.pointers.as_mut_ptr(), 1)
        })?;
        Ok(())
    }

    pub(super) fn mytid(&self) -> Answer<c_int> {
        // SAFETY: it takes nothing.
        checked(unsafe { (self.symbols.pvm_mytid)() })
    }

    pub(super) fn leave(&self) {
        // SAFETY: it takes nothing. An error would change nothing: the process ends.
        unsafe { (self.symbols.pvm_exit)() };
    }

    pub(super) fn halt(&self) -> Answer<()> {
        // SAFETY: it takes nothing.
        checked(unsafe { (self.symbols.pvm_halt)() }).map(|_| ())
    }

    pub(super) fn version(&self) -> String {
        // SAFETY: it takes nothing and returns a text that stays.
        unsafe { said((self.symbols.pvm_version)()) }
    }

    pub(super) fn option(&self, option: c_int) -> c_int {
        // SAFETY: any number may be given.
        unsafe { (self.symbols.pvm_getopt)(option) }
    }

    pub(super) fn set_option(&self, option: c_int, value: c_int) -> c_int {
        // SAFETY: any numbers may be given.
        unsafe { (self.symbols.pvm_setopt)(option, value) }
    }

    pub(super) fn set_trace_mask(&self, mask: &str) -> Answer<()> {
        const CHILDREN: c_int = 1;
        let mut bytes = [0; 36];
        for (to, from) in bytes[..35].iter_mut().zip(mask.bytes()) {
            *to = from as c_char;
        }
        // SAFETY: a mask is 36 characters, the last of them zero.
        checked(unsafe { (self.symbols.pvm_settmask)(CHILDREN, bytes.as_mut_ptr()) }).map(|_| ())
    }

    pub(super) fn hosts(&self) -> Answer<(c_int, Vec<Host>)> {
        let (mut count, mut formats, mut list) = (0, 0, ptr::null_mut());
        // SAFETY: three places to write to.
        checked(unsafe { (self.symbols.pvm_config)(&mut count, &mut formats, &mut list) })?;
        // SAFETY: after success the list has this many entries, until the next such call.
        let hosts = unsafe { items(list, count) }.iter().map(|host| Host {
            tid: host.tid,
            // SAFETY: texts of the library's.
            name: unsafe { said(host.name) },
            // SAFETY: as above.
            arch: unsafe { said(host.arch) },
            speed: host.speed,
            signature: host.signature,
        });
        Ok((formats, hosts.collect()))
    }

    pub(super) fn add(&self, lines: &[String]) -> Answer<Vec<Answer<c_int>>> {
        let (mut words, mut answers) = (Texts::new(lines)?, vec![0; lines.len()]);
        // SAFETY: as many texts and places for answers as are said.
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
        // SAFETY: as many texts and places for answers as are said.
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
        // SAFETY: a text, which is only read.
        checked(unsafe { (self.symbols.pvm_mstat)(name.as_ptr().cast_mut()) }).map(|_| ())
    }

    pub(super) fn watch_hosts(&self, tag: c_int) {
        const HOST_ADD: c_int = 3;
        // SAFETY: of this kind of news no tasks are named. Without it the console only does not tell of new hosts.
        unsafe { (self.symbols.pvm_notify)(HOST_ADD, tag, -1, ptr::null_mut()) };
    }

    pub(super) fn tasks(&self, host: c_int) -> Answer<Vec<Task>> {
        let (mut count, mut list) = (0, ptr::null_mut());
        // SAFETY: two places to write to.
        checked(unsafe { (self.symbols.pvm_tasks)(host, &mut count, &mut list) })?;
        // SAFETY: after success the list has this many entries, until the next such call.
        let tasks = unsafe { items(list, count) }.iter().map(|task| Task {
            tid: task.tid,
            parent: task.parent,
            host: task.host,
            flags: task.flags,
            // SAFETY: a text of the library's.
            program: unsafe { said(task.program) },
            pid: task.pid,
        });
        Ok(tasks.collect())
    }

    pub(super) fn task_state(&self, tid: c_int) -> Answer<()> {
        // SAFETY: any number may be given.
        checked(unsafe { (self.symbols.pvm_pstat)(tid) }).map(|_| ())
    }

    pub(super) fn kill(&self, tid: c_int) -> Answer<()> {
        // SAFETY: any number may be given.
        checked(unsafe { (self.symbols.pvm_kill)(tid) }).map(|_| ())
    }

    pub(super) fn signal(&self, tid: c_int, signal: c_int) -> Answer<()> {
        // SAFETY: any numbers may be given.
        checked(unsafe { (self.symbols.pvm_sendsig)(tid, signal) }).map(|_| ())
    }

    /// Starts `count` tasks, of which there is at least one, of a program: the first of `words`.
    pub(super) fn spawn(
        &self,
        words: &[String],
        flags: c_int,
        place: &str,
        count: c_int,
    ) -> Answer<Vec<Answer<c_int>>> {
        /// More tasks than any machine has room for.
        const MAX_TASKS: c_int = 1 << 18;
        let (program, arguments) = words.split_first().ok_or(Code(-2))?;
        let (program, place, mut arguments) =
            (text(program)?, text(place)?, Texts::new(arguments)?);
        let mut tids = vec![0; count.clamp(0, MAX_TASKS) as usize];
        // SAFETY: texts that are only read, the list of them with its end, and room for as many tids as are asked for.
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
        // SAFETY: two places to write to.
        checked(unsafe { (self.symbols.pvm_getnoresets)(&mut list, &mut count) })?;
        // SAFETY: after success the list has this many entries, until the next such call.
        Ok(unsafe { items(list, count) }.to_vec())
    }

    pub(super) fn names(&self, pattern: &str) -> Answer<Vec<Class>> {
        let pattern = text(pattern)?;
        let (mut count, mut list) = (0, ptr::null_mut());
        // SAFETY: a text that is only read, and two places to write to.
        checked(unsafe {
            (self.symbols.pvm_getmboxinfo)(pattern.as_ptr().cast_mut(), &mut count, &mut list)
        })?;
        // SAFETY: after success the list has this many entries, until the next such call.
        let classes = unsafe { items(list, count) }.iter().map(|class| {
            // SAFETY: of each of the class's entries its index, its owner and its flags.
            let (indices, owners, flags) = unsafe {
                (
                    items(class.indices, class.entries),
                    items(class.owners, class.entries),
                    items(class.flags, class.entries),
                )
            };
            let entries = indices.iter().zip(owners).zip(flags);
            Class {
                // SAFETY: a text of the library's.
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
        // SAFETY: numbers only.
        let buffer = checked(unsafe { (self.symbols.pvm_initsend)(0) })?;
        // SAFETY: one number to read.
        checked(unsafe { (self.symbols.pvm_pkint)(&mut value, 1, 1) })?;
        // SAFETY: a text that is only read.
        checked(unsafe { (self.symbols.pvm_putinfo)(name.as_ptr().cast_mut(), buffer, flags) })
    }

    pub(super) fn forget(&self, name: &str, index: c_int, flags: c_int) -> Answer<()> {
        let name = text(name)?;
        // SAFETY: a text that is only read.
        checked(unsafe { (self.symbols.pvm_delinfo)(name.as_ptr().cast_mut(), index, flags) })
            .map(|_| ())
    }

    pub(super) fn tickle(&self, words: &[c_int]) -> Answer<Vec<c_int>> {
        // The library takes ten and answers ten at most.
        let (mut asked, mut answers, mut count) = ([0; 10], [0; 10], 0);
        let given = words.len().min(asked.len());
        asked[..given].copy_from_slice(&words[..given]);
        // SAFETY: as many numbers as are said, and room for the most that are answered.
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
        // SAFETY: a place to write to.
        let count = unsafe { (self.symbols.pvm_getfds)(&mut list) };
        // SAFETY: the list has this many entries, until the next such call.
        let list = unsafe { items(list, count) }.iter().filter(|fd| **fd >= 0);
        // SAFETY: the library keeps its descriptors open until it is called again, and they are only waited for.
        list.map(|fd| unsafe { BorrowedFd::borrow_raw(*fd) })
            .collect()
    }

    /// The next message, if one has come; it is then the one that is read from.
    pub(super) fn receive(&self) -> Answer<Option<Message>> {
        // SAFETY: numbers only.
        let buffer = checked(unsafe { (self.symbols.pvm_nrecv)(-1, -1) })?;
        if buffer == 0 {
            return Ok(None);
        }
        let (mut length, mut tag, mut source) = (0, 0, 0);
        // SAFETY: three places to write to.
        checked(unsafe { (self.symbols.pvm_bufinfo)(buffer, &mut length, &mut tag, &mut source) })?;
        let length = usize::try_from(length).unwrap_or(0);
        Ok(Some(Message { tag, length }))
    }

    /// The next number of the message that has come.
    pub(super) fn number(&self) -> Answer<c_int> {
        let mut number = 0;
        // SAFETY: one place to write to.
        checked(unsafe { (self.symbols.pvm_upkint)(&mut number, 1, 1) })?;
        Ok(number)
    }

    /// The next bytes of the message that has come.
    pub(super) fn bytes(&self, count: usize) -> Answer<Vec<u8>> {
        let mut bytes = vec![0; count];
        let count = c_int::try_from(count).map_err(|_| Code(-5))?;
        // SAFETY: room for this many bytes.
        checked(unsafe { (self.symbols.pvm_upkbyte)(bytes.as_mut_ptr().cast(), count, 1) })?;
        Ok(bytes)
    }
}

/// Changes a variable of the environment.
pub(super) fn set_variable(name: &str, value: &str) {
    // SAFETY: the console is a process of one thread, so nobody reads the environment meanwhile. That no name is empty
    // or has a sign of equality in it, and neither a zero byte, its caller has checked.
    unsafe { std::env::set_var(name, value) };
}

/// Tells on standard error how the memory of this process is used, where the system can tell.
#[cfg(not(target_env = "gnu"))]
pub(super) fn memory() {}

/// Tells on standard error how the memory of this process is used.
#[cfg(target_env = "gnu")]
pub(super) fn memory() {
    unsafe extern "C" {
        fn malloc_stats();
    }
    // SAFETY: it takes nothing, and writes to standard error.
    unsafe { malloc_stats() };
}
