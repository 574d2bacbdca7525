//! Lists the entries under names, for other modules and for programs: `pvm_getmboxinfo`.

use std::ffi::{CStr, CString, c_char, c_int};

use crate::last_results::Kept;
use crate::life::enrol;
use crate::mailbox::{BEGINNING, place, refused};
use crate::message::error;
use crate::pattern::occurs;
use crate::trace::{self, Value, calls, traced};
use crate::{rg, tid};

/// Result of `pvm_getmboxinfo` for the entries under one name.
#[repr(C)]
pub struct MailboxInfo {
    name: *mut c_char,
    entries: c_int,
    indices: *mut c_int,
    owners: *mut c_int,
    flags: *mut c_int,
}

/// The entries under one name: [`MailboxInfo`] with the memory to which it points.
pub struct Class {
    pub name: CString,
    pub indices: Vec<c_int>,
    /// Tids of the owners; 0 if the owner is gone.
    pub owners: Vec<c_int>,
    pub flags: Vec<c_int>,
}

/// Returns the entries under one name.
pub fn class(name: &CStr) -> Result<Option<Class>, i32> {
    // A star in the name would match others as well.
    let found = classes(name)?;
    Ok(found
        .into_iter()
        .find(|class| class.name.as_c_str() == name))
}

/// Returns all entries whose names match a pattern of Regatta's, grouped by name.
pub fn classes(pattern: &CStr) -> Result<Vec<Class>, i32> {
    enrol()?;
    let pattern = place(pattern)?;
    let empty = rg::Entry {
        index: 0,
        owner: 0,
        flags: 0,
        length: 0,
        name: [0; 112],
    };
    let mut entries = vec![empty; 64];
    let mut count = 0;
    loop {
        let room = entries.len() as c_int;
        // SAFETY: the array has the length that is passed, and the count is writable.
        let code =
            unsafe { rg::rg_names(pattern.as_ptr(), entries.as_mut_ptr(), room, &mut count) };
        if code != rg::OK {
            return Err(refused(code));
        }
        if count <= room {
            break;
        }
        entries.resize(count as usize, empty);
    }
    entries.truncate(count.max(0) as usize);
    let mut classes: Vec<Class> = Vec::new();
    for entry in entries {
        // SAFETY: the string is NUL-terminated inside the array.
        let name = unsafe { CStr::from_ptr(entry.name.as_ptr()) };
        let name = CString::from(name.to_bytes().strip_prefix(BEGINNING).map_or(name, |_| {
            // SAFETY: the rest of a NUL-terminated string is NUL-terminated.
            unsafe { CStr::from_ptr(entry.name.as_ptr().add(BEGINNING.len())) }
        }));
        let at = classes.iter().position(|class| class.name == name);
        let at = at.unwrap_or_else(|| {
            classes.push(Class {
                name,
                indices: Vec::new(),
                owners: Vec::new(),
                flags: Vec::new(),
            });
            classes.len() - 1
        });
        let class = &mut classes[at];
        class.indices.push(entry.index);
        class.owners.push(tid::of_task(entry.owner).unwrap_or(0));
        class.flags.push(entry.flags);
    }
    Ok(classes)
}

/// Returns the owners of all entries whose names match a pattern of Regatta's.
pub fn owners(pattern: &CStr) -> Result<Vec<(CString, i32)>, i32> {
    let mut all = Vec::new();
    for class in classes(pattern)? {
        let owners = class.owners.iter();
        all.extend(owners.map(|&owner| (class.name.clone(), owner)));
    }
    Ok(all)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_getmboxinfo(
    pattern: *const c_char,
    count: *mut c_int,
    infos: *mut *mut MailboxInfo,
) -> c_int {
    static CLASSES: Kept<Vec<Class>> = Kept::new(Vec::new());
    static INFOS: Kept<Vec<MailboxInfo>> = Kept::new(Vec::new());
    let pattern = match pattern.is_null() {
        true => c"",
        // SAFETY: by the C contract the string is NUL-terminated.
        false => unsafe { CStr::from_ptr(pattern) },
    };
    let matches = |class: &Class| occurs(pattern.to_bytes(), class.name.to_bytes());
    let listed = || {
        let found = match classes(c"*") {
            Ok(found) => found.into_iter().filter(matches).collect(),
            Err(code) => return error::result("pvm_getmboxinfo", code),
        };
        let kept = CLASSES.get();
        *kept = found;
        let told = INFOS.get();
        *told = kept
            .iter_mut()
            .map(|class| MailboxInfo {
                name: class.name.as_ptr().cast_mut(),
                entries: class.indices.len() as c_int,
                indices: class.indices.as_mut_ptr(),
                owners: class.owners.as_mut_ptr(),
                flags: class.flags.as_mut_ptr(),
            })
            .collect();
        // SAFETY: by the C contract the results are writable or NULL.
        unsafe {
            if !count.is_null() {
                *count = told.len() as c_int;
            }
            if !infos.is_null() {
                *infos = told.as_mut_ptr();
            }
        }
        0
    };
    let entry = || [Value::Text(pattern.to_bytes())];
    traced(calls::GETMBOXINFO, entry, listed, trace::code)
}
