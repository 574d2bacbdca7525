//! Events for a tracer: those that the program defines, and its calls.

mod around;
pub mod calls;
pub mod record;
mod tally;

use std::ffi::{CStr, c_char, c_int};

use crate::last_results::Kept;
use crate::message::{codes, error};
use crate::send::send_buffer;
use crate::state::library;
use crate::system::events;

pub use around::{Telling, apart, begins, code, ends, flush, ints, numbers, text, texts, traced};
pub use record::Value;

/// The tid to which a program sends its own events; the library forwards them.
pub const TID: i32 = -1111;
/// The tag with which it sends them.
const CODE: i32 = -2222;

/// Sends the event in the current send buffer to the tracer, if there is one.
pub fn user_event(tag: i32) -> Result<(), i32> {
    if tag != CODE {
        return Err(codes::BAD_PARAM);
    }
    let (to, tag, context) = library().options.trace();
    if to <= 0 {
        return Ok(());
    }
    crate::message::end_event()?;
    send_buffer(0, to, tag, context)
}

/// Number of letters of a mask. Each letter says which of four events are wanted.
const LETTERS: usize = 35;
/// Variables with which children inherit the mask, the buffer size and the trace options.
const VARIABLE: &str = "PVMTMASK";
const BUFFER: &str = "PVMTRCBUF";
const OPTIONS: &str = "PVMTRCOPT";
/// The letter that wants no event.
const NOTHING: u8 = b'@';

/// The trace settings of a task, as PVM's library exports them to programs. `pvmctrc` contains those for children.
#[repr(C)]
struct Traced {
    /// Destinations of events and output. Unused: the options contain them.
    places: [c_int; 6],
    buffer: c_int,
    options: c_int,
    /// The events that a tracer wants, NUL-terminated.
    mask: [u8; LETTERS + 1],
}

impl Traced {
    const fn nothing() -> Traced {
        let mut mask = [NOTHING; LETTERS + 1];
        mask[LETTERS] = 0;
        Traced {
            places: [0; 6],
            buffer: 0,
            options: 0,
            mask,
        }
    }
}

#[unsafe(no_mangle)]
static pvmtrc: Kept<Traced> = Kept::new(Traced::nothing());
#[unsafe(no_mangle)]
static pvmctrc: Kept<Traced> = Kept::new(Traced::nothing());

/// Returns the settings of this task (0) or of its children (1).
fn of(which: usize) -> &'static mut Traced {
    match which {
        0 => pvmtrc.get(),
        _ => pvmctrc.get(),
    }
}

/// Sets a mask. Ignores letters beyond its length.
fn write(which: usize, letters: &[u8]) {
    let mask = &mut of(which).mask;
    mask[..LETTERS].fill(NOTHING);
    for (place, letter) in mask.iter_mut().take(LETTERS).zip(letters) {
        *place = *letter;
    }
}

/// Sets the mask of a tracer for this task and its children, unless the parent has set one.
pub fn begin(letters: &[u8]) {
    if std::env::var_os(VARIABLE).is_none() {
        (0..2).for_each(|which| write(which, letters));
    }
}

/// The trace options (`PvmTraceFull` etc.): each event by itself, counts and times of calls, or only counts.
mod way {
    pub const FULL: i32 = 1;
    pub const TIME: i32 = 2;
    pub const COUNT: i32 = 3;
}

/// Returns whether the tracer wants an event of this task.
fn wants(event: usize) -> bool {
    of(0).mask[event / 4] & (1 << (event % 4)) != 0
}

/// Decides, after a change of the trace settings or of the tid, whether calls have to check for tracing.
pub fn settle() {
    let me = library().tid;
    let (to, _, _) = library().options.trace();
    let sends =
        to > 0 && to != me && (way::FULL..=way::COUNT).contains(&library().options.trace_way());
    let wanted = of(0).mask[..LETTERS]
        .iter()
        .any(|&letter| letter != NOTHING);
    library().telling.look(me == 0 || sends && wanted);
}

/// Takes over the settings that the parent has passed.
pub fn inherit() {
    events::begin();
    if let Some(letters) = std::env::var_os(VARIABLE) {
        (0..2).for_each(|which| write(which, letters.as_encoded_bytes()));
    }
    let number = |name| std::env::var(name).ok()?.parse().ok();
    if let (Some(buffer), Some(options)) = (number(BUFFER), number(OPTIONS)) {
        library().options.trace_so(buffer, options);
    }
}

/// Returns the variables for children, if they are traced.
pub fn variables() -> Vec<String> {
    let (buffer, options) = library().options.children_trace_way();
    let letters = &of(1).mask[..LETTERS];
    let wanted = letters.iter().any(|&letter| letter != NOTHING);
    let (to, _, _) = library().options.children_trace();
    match wanted || to > 0 {
        false => Vec::new(),
        true => vec![
            format!("{VARIABLE}={}", String::from_utf8_lossy(letters)),
            format!("{BUFFER}={buffer}"),
            format!("{OPTIONS}={options}"),
        ],
    }
}

/// Returns the index of the settings for this task (0) or its children (1), for [`of`].
fn mask(who: c_int, text: *const c_char) -> Result<usize, i32> {
    let which = usize::try_from(who).map_err(|_| codes::BAD_PARAM)?;
    match which < 2 && !text.is_null() {
        true => Ok(which),
        false => Err(codes::BAD_PARAM),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_gettmask(who: c_int, text: *mut c_char) -> c_int {
    let got = mask(who, text).map(|which| {
        let mask = &of(which).mask;
        // SAFETY: by the C contract there is room for a mask and its NUL.
        unsafe { std::ptr::copy_nonoverlapping(mask.as_ptr().cast(), text, mask.len()) };
    });
    error::result("pvm_gettmask", got.err().unwrap_or(0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_settmask(who: c_int, text: *const c_char) -> c_int {
    let set = mask(who, text).map(|which| {
        // SAFETY: by the C contract the string is NUL-terminated.
        write(which, unsafe { CStr::from_ptr(text) }.to_bytes());
        settle();
    });
    error::result("pvm_settmask", set.err().unwrap_or(0))
}
