//! Names of the tags that the parts of PVM use: `pvmnametag`, which no header declares.

use std::ffi::{CString, c_char, c_int};

use crate::last_results::Kept;

/// The first tag of a kind, the prefix of its names, and the names from that tag on.
type Kind = (u32, &'static str, &'static [&'static str]);

const KINDS: [Kind; 4] = [
    (
        0x8001_0001,
        "TM_",
        &[
            "CONNECT", "CONN2", "EXIT", "ADDHOST", "DELHOST", "CONFIG", "MSTAT", "HALT", "TICKLE",
            "SPAWN", "PSTAT", "SENDSIG", "TASK", "MCA", "NOTIFY", "DB", "SCHED", "TASKER",
            "HOSTER", "TRACER", "HOSTSYNC", "SETOPT", "GETOPT", "CONTEXT", "SHMCONN",
        ],
    ),
    (
        0x8002_0001,
        "DM_",
        &[
            "ADD",
            "ADDACK",
            "EXEC",
            "EXECACK",
            "SENDSIG",
            "HTUPD",
            "HTUPDACK",
            "HTCOMMIT",
            "SLCONF",
            "STARTACK",
            "TASK",
            "TASKACK",
            "DELHOST",
            "DELHOSTACK",
            "NULL",
            "TASKOUT",
            "PSTAT",
            "PSTATACK",
            "HALT",
            "MCA",
            "NOTIFY",
            "NOTIFYACK",
            "DB",
            "DBACK",
            "RESET",
            "RESETACK",
            "HTDEL",
            "HOSTSYNC",
            "HOSTSYNCACK",
        ],
    ),
    (
        0x8003_0001,
        "TC_",
        &[
            "CONREQ",
            "CONACK",
            "TASKEXIT",
            "NOOP",
            "OUTPUT",
            "SETTRACE",
            "SETTMASK",
            "SETTRCBUF",
            "SETTRCOPT",
            "SHMAT",
            "OUTPUTX",
            "SIBLINGS",
        ],
    ),
    (
        0x8004_0001,
        "SM_",
        &[
            "SPAWN",
            "EXEC",
            "EXECACK",
            "TASK",
            "CONFIG",
            "ADDHOST",
            "DELHOST",
            "ADD",
            "ADDACK",
            "NOTIFY",
            "TASKX",
            "HOSTX",
            "HANDOFF",
            "SCHED",
            "STHOST",
            "STHOSTACK",
            "STTASK",
        ],
    ),
];

/// Returns the name of a tag, if it has one.
fn name(tag: c_int) -> Option<String> {
    KINDS.iter().find_map(|(first, kind, names)| {
        let at = (tag as u32).checked_sub(*first)?;
        Some(format!("{kind}{}", names.get(at as usize)?))
    })
}

/// Returns the name of a tag, or its number as text if it has none. Sets `*found` accordingly. The text is valid until
/// the next call.
///
/// # Safety
/// `found` is valid or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvmnametag(tag: c_int, found: *mut c_int) -> *const c_char {
    static TEXT: Kept<Option<CString>> = Kept::new(None);
    let name = name(tag);
    if !found.is_null() {
        // SAFETY: by the C contract the arguments are valid.
        unsafe { *found = c_int::from(name.is_some()) };
    }
    let text = name.unwrap_or_else(|| tag.to_string());
    let kept = TEXT.get();
    kept.insert(CString::new(text).unwrap_or_default()).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_the_names_of_the_header() {
        let name = |tag: u32| name(tag as i32);
        assert_eq!(name(0x8004_0011).as_deref(), Some("SM_STTASK"));
        assert_eq!(name(0x8001_0001).as_deref(), Some("TM_CONNECT"));
        assert_eq!(name(0x8002_0003).as_deref(), Some("DM_EXEC"));
        assert_eq!(name(0x8003_0005).as_deref(), Some("TC_OUTPUT"));
        for other in [5, 0x8005_0000, u32::MAX, 0x8004_0012] {
            assert_eq!(name(other), None, "{other:x}");
        }
    }
}
