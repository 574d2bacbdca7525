//! PVM's library, loaded at run time, and its functions by name.
//!
//! The console uses PVM like any other program. But the rest of the command does not need the library, so it is loaded
//! only when it is used. All `unsafe` code for calling it is in this folder.

use regatta_trust::Refused;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// `struct pvmhostinfo`.
#[repr(C)]
pub(super) struct HostInfo {
    pub tid: c_int,
    pub name: *const c_char,
    pub arch: *const c_char,
    pub speed: c_int,
    pub signature: c_int,
}

/// `struct pvmtaskinfo`.
#[repr(C)]
pub(super) struct TaskInfo {
    pub tid: c_int,
    pub parent: c_int,
    pub host: c_int,
    pub flags: c_int,
    pub program: *const c_char,
    pub pid: c_int,
}

/// `struct pvmmboxinfo`.
#[repr(C)]
pub(super) struct MailboxInfo {
    pub name: *const c_char,
    pub entries: c_int,
    pub indices: *const c_int,
    pub owners: *const c_int,
    pub flags: *const c_int,
}

type Texts = *mut *mut c_char;

macro_rules! functions {
    ($($name:ident($($kind:ty),*) $(-> $result:ty)?;)*) => {
        /// Functions of the library, with their names there.
        pub(super) struct Symbols {
            handle: Handle,
            $(pub $name: unsafe extern "C" fn($($kind),*) $(-> $result)?,)*
        }

        impl Symbols {
            fn find(handle: Handle) -> Result<Symbols, String> {
                Ok(Symbols {
                    // SAFETY: PVM's headers, for which the library is built, declare a function of this name with this
                    // type.
                    $($name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) $(-> $result)?>(
                            handle.needed(stringify!($name))?.as_ptr(),
                        )
                    },)*
                    handle,
                })
            }
        }
    };
}

functions! {
    pvm_addhosts(Texts, c_int, *mut c_int) -> c_int;
    pvm_bufinfo(c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int;
    pvm_config(*mut c_int, *mut c_int, *mut *mut HostInfo) -> c_int;
    pvm_delhosts(Texts, c_int, *mut c_int) -> c_int;
    pvm_delinfo(*mut c_char, c_int, c_int) -> c_int;
    pvm_exit() -> c_int;
    pvm_getfds(*mut *mut c_int) -> c_int;
    pvm_getmboxinfo(*mut c_char, *mut c_int, *mut *mut MailboxInfo) -> c_int;
    pvm_getnoresets(*mut *mut c_int, *mut c_int) -> c_int;
    pvm_getopt(c_int) -> c_int;
    pvm_halt() -> c_int;
    pvm_initsend(c_int) -> c_int;
    pvm_kill(c_int) -> c_int;
    pvm_mstat(*mut c_char) -> c_int;
    pvm_mytid() -> c_int;
    pvm_notify(c_int, c_int, c_int, *mut c_int) -> c_int;
    pvm_nrecv(c_int, c_int) -> c_int;
    pvm_pkint(*mut c_int, c_int, c_int) -> c_int;
    pvm_pstat(c_int) -> c_int;
    pvm_putinfo(*mut c_char, c_int, c_int) -> c_int;
    pvm_sendsig(c_int, c_int) -> c_int;
    pvm_setopt(c_int, c_int) -> c_int;
    pvm_settmask(c_int, *mut c_char) -> c_int;
    pvm_spawn(*mut c_char, Texts, c_int, *mut c_char, c_int, *mut c_int) -> c_int;
    pvm_start_pvmd(c_int, Texts, c_int) -> c_int;
    pvm_tasks(c_int, *mut c_int, *mut *mut TaskInfo) -> c_int;
    pvm_tickle(c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int;
    pvm_upkbyte(*mut c_char, c_int, c_int) -> c_int;
    pvm_upkint(*mut c_int, c_int, c_int) -> c_int;
    pvm_version() -> *mut c_char;
}

/// A library that stays loaded until the process ends.
#[derive(Clone, Copy)]
struct Handle(NonNull<c_void>);

impl Handle {
    fn open(path: &Path) -> Result<Handle, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "no path".to_owned())?;
        // SAFETY: the name is NUL-terminated. The library's initialisation is the same as in each program that uses it.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        NonNull::new(handle).map(Handle).ok_or_else(last_error)
    }

    fn symbol(self, name: &str) -> Option<NonNull<c_void>> {
        let name = CString::new(name).ok()?;
        // SAFETY: the library stays loaded, and the name is NUL-terminated.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }

    fn needed(self, name: &str) -> Result<NonNull<c_void>, String> {
        self.symbol(name)
            .ok_or_else(|| format!("it has no function {name}"))
    }
}

fn last_error() -> String {
    // SAFETY: `dlerror` returns null or a string that stays valid until the next such call of this thread.
    let text = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text)) };
    text.map_or_else(
        || "it cannot be loaded".to_owned(),
        |text| text.to_string_lossy().into_owned(),
    )
}

impl Symbols {
    /// Loads the library. Fails with a sentence.
    pub(super) fn load() -> Result<Symbols, String> {
        let path = find()?;
        // The library depends on libregatta.so. Loading that first, from the same folder, makes sure that it is the one
        // used.
        let regatta = path.with_file_name("libregatta.so");
        if regatta.exists() {
            let said = |why| format!("{} cannot be loaded: {why}", regatta.display());
            Handle::open(&regatta).map_err(said)?;
        }
        let said = |why| format!("{} cannot be used: {why}", path.display());
        Symbols::find(Handle::open(&path).map_err(said)?).map_err(said)
    }

    /// Returns the library's meaning of a code.
    pub(super) fn meaning(&self, code: c_int) -> Option<String> {
        let index = usize::try_from(code.checked_neg()?).ok()?;
        let count = self.handle.symbol("pvm_nerr")?.cast::<c_int>();
        let list = self.handle.symbol("pvm_errlist")?.cast::<*const c_char>();
        // SAFETY: `int pvm_nerr` is the number of strings in `char *pvm_errlist[]`. Neither changes.
        unsafe {
            let known = usize::try_from(*count.as_ptr()).is_ok_and(|count| index < count);
            let text = known
                .then(|| *list.as_ptr().add(index))
                .filter(|text| !text.is_null())?;
            Some(CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }
}

/// The variable that names another PVM library than Regatta's, for comparisons.
const OTHER: &str = "REGATTA_LIBPVM";

/// Returns the path of the library. Since it is loaded into this process, it must come from a trusted folder.
fn find() -> Result<PathBuf, String> {
    if let Some(other) = std::env::var_os(OTHER) {
        return Ok(other.into());
    }
    let command = std::env::current_exe().unwrap_or_default();
    let folder = command.parent().unwrap_or(&command);
    let candidates = [
        folder.join("libpvm3.so"),
        folder.join("../lib/regatta-pvm/libpvm3.so.3"),
    ];
    let mut refused = String::new();
    for path in candidates {
        match regatta_trust::check(&path) {
            Ok(found) => return Ok(found),
            Err(Refused::Absent) => {}
            Err(Refused::Unsafe(why)) if path.exists() => {
                refused += &format!("; {} is not loaded, because {why}", path.display());
            }
            Err(Refused::Unsafe(_)) => {}
        }
    }
    Err(format!(
        "no usable libpvm3.so.3 was found beside this command or in ../lib/regatta-pvm; `make install` installs it there{refused}"
    ))
}
