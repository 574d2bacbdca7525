//! The picture that is open, and the frame of each call.

use std::ffi::c_int;

use regatta_nodes::fault::{Fault, answer};
use regatta_nodes::own::Own;
use regatta_nodes::place::{joined, place};

use crate::frames::Frames;
use crate::pen::Pen;

/// The name under which failures are told.
const LIBRARY: &str = "plotix";

/// A picture between `openpl` and `closepl`.
pub struct Open {
    pub pen: Pen,
    pub frames: Frames,
}

static OPEN: Own<Option<Open>> = Own::new(None);
/// The name for files that the program has chosen last.
static NAME: Own<Option<String>> = Own::new(None);

/// Does the work of a call. A program becomes a node by its first one.
pub fn call(function: &str, work: impl FnOnce() -> Result<c_int, Fault>) -> c_int {
    answer(LIBRARY, function, joined().and_then(|()| work()))
}

/// The picture that is open.
pub fn opened<'a>() -> Result<&'a mut Open, Fault> {
    let open = OPEN.get().as_mut();
    open.ok_or(Fault::says("no picture is open; openpl opens one"))
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
        return Err(Fault::says("a picture is open already; closepl ends it"));
    }
    static WATCHED: Own<bool> = Own::new(false);
    if !std::mem::replace(WATCHED.get(), true) {
        // SAFETY: the function takes nothing and stays.
        unsafe { libc::atexit(at_end) };
    }
    *OPEN.get() = Some(Open {
        pen: Pen::new(),
        frames: Frames::new(NAME.get().as_deref()),
    });
    Ok(())
}

/// Forgets the picture that is open.
pub fn close() {
    *OPEN.get() = None;
}

/// Chooses the name of files: of the open picture from its frame on, and of those that follow.
pub fn name(name: &str) {
    *NAME.get() = Some(name.to_owned());
    if let Some(open) = OPEN.get() {
        open.frames.rename(name);
    }
}

/// Parts of a picture are brought together by calls of all nodes: at the end of one it is too late.
extern "C" fn at_end() {
    if OPEN.get().is_some() && place().node <= 0 {
        let left = Fault::says("a picture is left open, and is not written; closepl does that");
        answer(LIBRARY, "exit", Err(left));
    }
}
