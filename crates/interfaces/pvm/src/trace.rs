//! Events of a program for a tracer: its own, and its calls.

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

/// The receiver of a program's own events; the library knows where they go.
pub const TID: i32 = -1111;
/// The tag it sends them with.
const CODE: i32 = -2222;

/// The current send buffer is an event: it goes to the tracer, if there is one.
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

/// Letters of a mask: each says of four events whether they are wanted.
const LETTERS: usize = 35;
/// The variables that tell children what of them is wanted, how many bytes of it are sent together, and how it is told.
const VARIABLE: &str = "PVMTMASK";
const BUFFER: &str = "PVMTRCBUF";
const OPTIONS: &str = "PVMTRCOPT";
/// No event is wanted.
const NOTHING: u8 = b'@';

/// The trace settings of a task, as programs see them that look into PVM's library: `pvmctrc` has those of children.
#[repr(C)]
struct Traced {
    /// Where events and output go, which is kept among the options.
    places: [c_int; 6],
    buffer: c_int,
    options: c_int,
    /// Which events a tracer wants, with its end.
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

/// That of ourselves (0) or of children (1).
fn of(which: usize) -> &'static mut Traced {
    match which {
        0 => pvmtrc.get(),
        _ => pvmctrc.get(),
    }
}

/// Have this mask: as many letters as there are, and nothing behind them.
fn write(which: usize, letters: &[u8]) {
    let mask = &mut of(which).mask;
    mask[..LETTERS].fill(NOTHING);
    for (place, letter) in mask.iter_mut().take(LETTERS).zip(letters) {
        *place = *letter;
    }
}

/// A tracer wants this of us and of our children, unless somebody who has started us has said what is wanted.
pub fn begin(letters: &[u8]) {
    if std::env::var_os(VARIABLE).is_none() {
        (0..2).for_each(|which| write(which, letters));
    }
}

/// A tracer's choice (`PvmTraceFull` and its like): each event by itself; how often each call is made and how long
/// that takes; or only how often.
mod way {
    pub const FULL: i32 = 1;
    pub const TIME: i32 = 2;
    pub const COUNT: i32 = 3;
}

/// Whether the tracer wants to hear of an event of ours.
fn wants(event: usize) -> bool {
    of(0).mask[event / 4] & (1 << (event % 4)) != 0
}

/// The trace settings, or our number, have changed: has calls look for them, or not.
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

/// Take up what has been said of us by who started us.
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

/// The variables for children, if they are traced.
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

/// Ours (0) or that of children (1).
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
        // SAFETY: the C contract: room for a mask and its end.
        unsafe { std::ptr::copy_nonoverlapping(mask.as_ptr().cast(), text, mask.len()) };
    });
    error::result("pvm_gettmask", got.err().unwrap_or(0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_settmask(who: c_int, text: *const c_char) -> c_int {
    let set = mask(who, text).map(|which| {
        // SAFETY: the C contract: a text.
        write(which, unsafe { CStr::from_ptr(text) }.to_bytes());
        settle();
    });
    error::result("pvm_settmask", set.err().unwrap_or(0))
}
