//! Errors: NX's numbers, and the two ways in which a call reports an error.
//!
//! A call by its plain name prints the error and ends the program, as on NX. The same call with an underscore in front
//! sets `errno` and returns -1.

use std::ffi::{CStr, c_int, c_long};
use std::io::Write;

use crate::rg;
use crate::state::library;

/// NX's error numbers, as in `nx.h`.
macro_rules! codes {
    ($($name:ident = $value:literal: $meaning:literal,)*) => {
        $(#[allow(dead_code)] pub const $name: c_int = $value;)*

        /// Returns the name and the meaning of a number.
        fn meaning(code: c_int) -> (&'static str, &'static str) {
            match code {
                $($value => (stringify!($name), $meaning),)*
                _ => ("an error", "a system call failed"),
            }
        }
    };
}

codes! {
    EQDRVERR = 150: "Regatta could not complete the call",
    EQPBUF = 151: "there is no such buffer",
    EQLEN = 153: "the length is not valid",
    EQTIME = 154: "the time limit has passed",
    EQMSGLONG = 155: "the message is longer than the buffer",
    EQPID = 156: "the pid is not valid",
    EQNODE = 157: "there is no such node",
    EQTYPE = 158: "the message type is not valid",
    EQMID = 159: "no started message has this id",
    EQHND = 160: "there is no handler",
    EQNOPROC = 161: "no more processes can be started",
    EQUSEPID = 162: "another process already has this pid",
    EQNOACT = 163: "no process runs there",
    EQBADFIL = 164: "the file cannot be executed",
    EQPARAM = 165: "an argument is not valid",
    EQPFIL = 166: "the name of the file is missing",
    EQPCNODE = 167: "the pointer for the node is NULL",
    EQPCPID = 168: "the pointer for the pid is NULL",
    EQPCCODE = 169: "the pointer for the code is NULL",
    EQPRIV = 170: "the call is not allowed in this kind of process",
    EQMEM = 171: "memory is used up",
    EQNOMID = 174: "too many messages have been started",
    EQSET = 175: "the pid has already been set",
    EQNOSET = 176: "the pid has not been set",
    EQCUBEEXISTS = 178: "a cube with processes already exists",
    EQCUBENOTEXIST = 179: "there is no such cube",
    ENFPS = 210: "the nodes are not at the same position in the file",
    EMIXIO = 211: "the nodes do not make the same call on the file",
    EIMODE = 212: "the I/O mode is not valid",
    ERDEOF = 219: "the end of the file was reached",
    EAEXIST = 220: "an application has already been started",
    EANOEXIST = 221: "there is no such application",
    EPINVALPART = 222: "there is no such partition",
    EPPARTEXIST = 223: "the partition already exists",
    EPALLOCERR = 224: "the partition has fewer nodes",
    EPINVALPRI = 225: "the priority is not valid",
    EPNOTEMPTY = 226: "the partition is not empty",
    EPACCES = 227: "the partition is the whole job and cannot be changed",
    EPBADNODE = 228: "the partition has no such node",
}

/// The error of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The value of `errno`.
    pub code: c_int,
    /// The argument that caused the error, and its value.
    pub argument: Option<(&'static str, c_long)>,
    /// Whether Regatta's last error message describes it.
    told: bool,
}

impl Fault {
    /// Returns a fault without an argument.
    pub const fn plain(code: c_int) -> Fault {
        Fault {
            code,
            argument: None,
            told: false,
        }
    }

    /// Returns this fault with another number.
    pub fn as_code(self, code: c_int) -> Fault {
        Fault { code, ..self }
    }

    /// Returns the fault of an argument.
    pub const fn of(code: c_int, argument: &'static str, value: c_long) -> Fault {
        Fault {
            code,
            argument: Some((argument, value)),
            told: false,
        }
    }
}

/// The result of a call: its value, or a fault.
pub type Answer = Result<c_long, Fault>;

/// Converts the result of a Regatta call.
#[inline(always)]
pub fn check(code: c_int) -> Result<(), Fault> {
    if code == rg::OK {
        return Ok(());
    }
    Err(fault(code))
}

#[cold]
#[inline(never)]
pub fn fault(code: c_int) -> Fault {
    Fault {
        code: number(code),
        argument: None,
        told: true,
    }
}

/// Returns the fault of a system call that has just failed.
#[cold]
pub fn system() -> Fault {
    let code = std::io::Error::last_os_error().raw_os_error();
    Fault::plain(code.unwrap_or(EQDRVERR))
}

/// Returns NX's number for an error of Regatta's.
fn number(code: c_int) -> c_int {
    match code {
        rg::ERR_ARGUMENT => EQPARAM,
        rg::ERR_TASK => EQNODE,
        rg::ERR_TAG => EQTYPE,
        rg::ERR_NOTHING => EQTIME,
        rg::ERR_HANDLE | rg::ERR_CANCELLED => EQMID,
        rg::ERR_TRUNCATED => EQMSGLONG,
        rg::ERR_DEAD | rg::ERR_LEFT => EQNOACT,
        rg::ERR_MEMORY | rg::ERR_CYCLE => EQMEM,
        rg::ERR_PROGRAM => EQBADFIL,
        _ => EQDRVERR,
    }
}

/// Returns the value of a call by its plain name, or ends the program.
#[inline(always)]
pub fn value_or_exit(name: &str, answer: Answer) -> c_long {
    match answer {
        Ok(value) => value,
        Err(fault) => end(name, fault),
    }
}

/// Returns the value of a call by its underscored name, or sets `errno` and returns -1.
#[inline(always)]
pub fn value_or_errno(answer: Answer) -> c_long {
    match answer {
        Ok(value) => value,
        Err(fault) => set_errno(fault.code),
    }
}

#[cold]
#[inline(never)]
fn set_errno(code: c_int) -> c_long {
    // SAFETY: `__errno_location` returns the calling thread's own errno.
    unsafe { *libc::__errno_location() = code };
    -1
}

/// Prints the error and ends the program. The task counts as failed, so it does not call `rg_finalize`.
#[cold]
#[inline(never)]
pub fn end(name: &str, fault: Fault) -> ! {
    let library = library();
    library.failed = true;
    let mut text = match library.joined {
        true if library.cube.is_some() => format!("host pid {}: {name}: ", library.ptype),
        true => format!(
            "node {} pid {}: {name}: ",
            library.node_of_mine(),
            library.ptype
        ),
        false => format!("{name}: "),
    };
    text += &sentence(fault);
    let _ = std::io::stderr().write_all(text.as_bytes());
    // SAFETY: a program may call `exit`; its atexit functions run.
    unsafe { libc::exit(1) }
}

/// Returns the text for a value of `errno`, with its name if it is one of NX's.
pub fn words(code: c_int) -> String {
    let (name, meaning) = meaning(code);
    match code < EQDRVERR {
        true => std::io::Error::from_raw_os_error(code).to_string(),
        false => format!("{meaning} ({name})"),
    }
}

/// Returns the message for a fault, with a newline.
fn sentence(fault: Fault) -> String {
    let (name, meaning) = meaning(fault.code);
    let mut text = String::new();
    if let Some((argument, value)) = fault.argument {
        text += &format!("{argument} {value}: ");
    }
    match fault.code < EQDRVERR {
        true => text += &std::io::Error::from_raw_os_error(fault.code).to_string(),
        false => text += meaning,
    }
    if fault.told {
        // SAFETY: the string is NUL-terminated and valid until this thread's next failure.
        let why = unsafe { CStr::from_ptr(rg::rg_last_error()) };
        text += &format!(": {}", why.to_string_lossy());
    }
    if fault.code >= EQDRVERR {
        text += &format!(" ({name})");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_argument_its_meaning_and_the_number() {
        let text = sentence(Fault::of(EQNODE, "node", 9));
        assert_eq!(text, "node 9: there is no such node (EQNODE)\n");
        assert_eq!(sentence(Fault::plain(EQMEM)), "memory is used up (EQMEM)\n");
    }

    #[test]
    fn an_error_of_the_system_has_its_words() {
        let said = sentence(Fault::plain(libc::EBADF));
        assert!(said.starts_with("Bad file descriptor"), "{said}");
    }

    #[test]
    fn every_error_of_regatta_s_has_a_number_with_a_meaning() {
        for code in -23..0 {
            let number = number(code);
            assert!((EQDRVERR..=EQCUBENOTEXIST).contains(&number), "{code}");
            assert!(meaning(number).0.starts_with("EQ"), "{code}");
        }
    }
}
