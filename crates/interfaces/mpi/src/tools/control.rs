//! Control variables. All are read-only: settings are environment variables, read when MPI is initialized.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use regatta_sys as rg;

use crate::abi::*;
use crate::error::{Error, Result};
use crate::objects::{Kind, Table};
use crate::process;

/// A control variable.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub description: &'static str,
    /// Its scope (MPI_T_SCOPE_).
    pub scope: c_int,
    value: Value,
}

enum Value {
    /// An int.
    Number(fn() -> c_int),
    Version,
    /// The environment variable with this name; empty if it is not set.
    Environment,
}

const fn setting(name: &'static str, description: &'static str) -> Variable {
    Variable {
        name,
        description,
        scope: T_SCOPE_READONLY,
        value: Value::Environment,
    }
}

/// All control variables.
pub static ALL: [Variable; 9] = [
    Variable {
        name: "regatta_version",
        description: "The engine's version",
        scope: T_SCOPE_CONSTANT,
        value: Value::Version,
    },
    Variable {
        name: "regatta_thread_level",
        description: "The level of thread support that MPI was initialized with",
        scope: T_SCOPE_READONLY,
        value: Value::Number(process::thread_level),
    },
    Variable {
        name: "regatta_tag_ub",
        description: "The highest tag",
        scope: T_SCOPE_CONSTANT,
        value: Value::Number(|| c_int::MAX),
    },
    setting(
        "REGATTA_BUFFER",
        "Maximum size of unexpected messages that a process keeps",
    ),
    setting(
        "REGATTA_WAIT",
        "How processes wait: adapt (the default) or spin",
    ),
    setting(
        "REGATTA_FOOTPRINT",
        "Amount of shared memory that messages rotate over: narrow, wide, non-temporal or learn (the default)",
    ),
    setting(
        "REGATTA_UNREACHABLE",
        "Seconds after which processes that cannot reach each other give up, or wait",
    ),
    setting(
        "REGATTA_BYPASS",
        "Whether small messages to other hosts may bypass TCP/IP: use (the default) or off",
    ),
    setting(
        "REGATTA_RECORDS_PER_KEY",
        "Number of records after which a connection between hosts changes its key",
    ),
];

impl Variable {
    /// Returns the datatype of its elements.
    pub fn datatype(&self) -> Datatype {
        match self.value {
            Value::Number(_) => INT,
            Value::Version | Value::Environment => CHAR,
        }
    }

    fn text(&self) -> Vec<u8> {
        match self.value {
            // SAFETY: the engine's text is NUL-terminated and static.
            Value::Version => unsafe { CStr::from_ptr(rg::rg_version()) }
                .to_bytes()
                .to_vec(),
            _ => std::env::var_os(self.name)
                .map(|it| it.into_encoded_bytes())
                .unwrap_or_default(),
        }
    }
}

/// A handle of a variable. The value is copied when the handle is made, so that it never outgrows the caller's buffer.
struct Handle {
    bytes: Vec<u8>,
    variable: usize,
}

static HANDLES: Table<Arc<Handle>> = Table::new(Kind::Tool);

fn find(handle: T_cvar_handle) -> Result<Arc<Handle>> {
    let found = HANDLES.get(handle.0);
    found.ok_or_else(|| super::no_handle("handle of a control variable"))
}

/// Makes a handle of a variable. Returns the handle, and the number of elements of the value.
pub fn open(index: usize) -> Result<(T_cvar_handle, c_int)> {
    let variable = &ALL[index];
    let (bytes, count) = match variable.value {
        Value::Number(number) => (number().to_ne_bytes().to_vec(), 1),
        _ => {
            let mut text = variable.text();
            text.push(0);
            let count = text.len() as c_int;
            (text, count)
        }
    };
    let made = HANDLES.insert(Arc::new(Handle {
        bytes,
        variable: index,
    }));
    let made =
        made.ok_or_else(|| Error::new(T_ERR_OUT_OF_HANDLES, "there are too many handles"))?;
    Ok((T_cvar_handle(made), count))
}

/// Frees a handle.
pub fn close(handle: T_cvar_handle) -> Result {
    let removed = HANDLES.remove(handle.0);
    removed
        .map(drop)
        .ok_or_else(|| super::no_handle("handle of a control variable"))
}

/// Reads the value.
///
/// # Safety
/// The buffer has room for the value.
pub unsafe fn read(handle: T_cvar_handle, to: *mut c_void) -> Result {
    let found = find(handle)?;
    super::given(to, "buf")?;
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { std::ptr::copy_nonoverlapping(found.bytes.as_ptr(), to.cast(), found.bytes.len()) };
    Ok(())
}

/// Returns an error: no variable can be written.
pub fn write(handle: T_cvar_handle) -> Result {
    let name = ALL[find(handle)?.variable].name;
    let text = format!("{name} is read-only: set it before the program starts");
    Err(Error::new(T_ERR_CVAR_SET_NEVER, text))
}
