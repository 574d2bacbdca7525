//! The open picture, and the frame of every call.

use std::ffi::c_int;

use regatta_nodes::fault::{Fault, answer};
use regatta_nodes::own::Own;
use regatta_nodes::place::{joined, place};

use crate::frames::Frames;
use crate::pen::Pen;

/// The name of the library in error messages.
const LIBRARY: &str = "plotix";

/// A picture between `openpl` and `closepl`.
pub struct Open {
    pub pen: Pen,
    pub frames: Frames,
}

static OPEN: Own<Option<Open>> = Own::new(None);
/// The file name that the program has set last.
static NAME: Own<Option<String>> = Own::new(None);

/// Runs the work of a call and converts its result. A program becomes a node by its first call.
pub fn call(function: &str, work: impl FnOnce() -> Result<c_int, Fault>) -> c_int {
    answer(LIBRARY, function, joined().and_then(|()| work()))
}

/// Returns the open picture. Fails if there is none.
pub fn opened<'a>() -> Result<&'a mut Open, Fault> {
    let open = OPEN.get().as_mut();
    open.ok_or(Fault::says("no picture is open; call openpl first"))
}

/// Draws with the pen of the open picture.
pub fn draw(function: &str, work: impl FnOnce(&mut Pen) -> Result<(), String>) -> c_int {
    call(function, || {
        work(&mut opened()?.pen).map_err(Fault::says)?;
        Ok(0)
    })
}

/// Opens a picture.
pub fn open() -> Result<(), Fault> {
    if OPEN.get().is_some() {
        return Err(Fault::says("a picture is already open; call closepl first"));
    }
    static WATCHED: Own<bool> = Own::new(false);
    if !std::mem::replace(WATCHED.get(), true) {
        // SAFETY: `at_end` has the right type and is never unloaded.
        unsafe { libc::atexit(at_end) };
    }
    *OPEN.get() = Some(Open {
        pen: Pen::new(),
        frames: Frames::new(NAME.get().as_deref()),
    });
    Ok(())
}

/// Closes the picture without writing it.
pub fn close() {
    *OPEN.get() = None;
}

/// Sets the file name of the open picture, from its current frame on, and of later pictures.
pub fn name(name: &str) {
    *NAME.get() = Some(name.to_owned());
    if let Some(open) = OPEN.get() {
        open.frames.rename(name);
    }
}

/// Reports a picture that is still open when the program ends. It cannot be written then, because its parts are
/// gathered collectively.
extern "C" fn at_end() {
    if OPEN.get().is_some() && place().node <= 0 {
        let left =
            Fault::says("a picture is still open and is not written; call closepl to write it");
        answer(LIBRARY, "exit", Err(left));
    }
}
