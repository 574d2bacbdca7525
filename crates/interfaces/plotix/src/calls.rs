//! The functions of `plotix.h`.

use std::ffi::{CStr, c_char, c_double, c_int};

use regatta_nodes::fault::Fault;

use crate::frames::End;
use crate::life::{call, close, draw, name, open, opened};

/// Returns a string of the program. Invalid UTF-8 is replaced.
///
/// # Safety
/// `text` is a NUL-terminated string or NULL.
unsafe fn text<'a>(text: *const c_char) -> Result<std::borrow::Cow<'a, str>, Fault> {
    if text.is_null() {
        return Err(Fault::says("the text is NULL"));
    }
    // SAFETY: the caller guarantees that the memory is valid.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Gathers what the nodes have drawn, and ends the frame or the picture if `end` is given.
fn together(end: Option<End>) -> Result<c_int, Fault> {
    let open = opened()?;
    let part = std::mem::take(&mut open.pen.drawn);
    open.frames.together(&part, end)?;
    Ok(0)
}

/// Opens a picture. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn openpl() -> c_int {
    call("openpl", || open().map(|()| 0))
}

/// Ends the picture, collectively: node 0 writes its last frame. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn closepl() -> c_int {
    call("closepl", || {
        let ended = together(Some(End::Picture));
        close();
        ended
    })
}

/// Starts another frame, collectively: node 0 writes the previous one. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn erase() -> c_int {
    call("erase", || together(Some(End::Frame)))
}

/// Gathers at node 0 what the nodes have drawn, collectively. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn sendplot() -> c_int {
    call("sendplot", || together(None))
}

/// Sets the name of the picture's files. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn plotfile(file: *const c_char) -> c_int {
    call("plotfile", || {
        // SAFETY: by the C contract the string is NUL-terminated.
        name(&unsafe { text(file)? });
        Ok(0)
    })
}

/// Sets the coordinates of the page's corners. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn space(x0: c_double, y0: c_double, x1: c_double, y1: c_double) -> c_int {
    draw("space", |pen| pen.space(x0, y0, x1, y1))
}

/// Sets the style of the following lines. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn linemod(style: *const c_char) -> c_int {
    call("linemod", || {
        // SAFETY: by the C contract the string is NUL-terminated.
        let style = unsafe { text(style)? };
        opened()?.pen.style(&style).map_err(Fault::says)?;
        Ok(0)
    })
}

/// Moves the current point. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn r#move(x: c_double, y: c_double) -> c_int {
    draw("move", |pen| pen.go(x, y))
}

/// Draws a line from the current point. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn cont(x: c_double, y: c_double) -> c_int {
    draw("cont", |pen| pen.draw_to(x, y))
}

/// Draws a line. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn line(x0: c_double, y0: c_double, x1: c_double, y1: c_double) -> c_int {
    draw("line", |pen| pen.line(x0, y0, x1, y1))
}

/// Draws a rectangle. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn r#box(x0: c_double, y0: c_double, x1: c_double, y1: c_double) -> c_int {
    draw("box", |pen| pen.rectangle(x0, y0, x1, y1))
}

/// Draws a point. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn point(x: c_double, y: c_double) -> c_int {
    draw("point", |pen| pen.point(x, y))
}

/// Draws a circle. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn circle(x: c_double, y: c_double, radius: c_double) -> c_int {
    draw("circle", |pen| pen.circle(x, y, radius))
}

/// Draws an arc. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn arc(
    x: c_double,
    y: c_double,
    x0: c_double,
    y0: c_double,
    x1: c_double,
    y1: c_double,
) -> c_int {
    draw("arc", |pen| pen.arc([x, y], [x0, y0], [x1, y1]))
}

/// Draws a text. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn label(words: *const c_char) -> c_int {
    call("label", || {
        // SAFETY: by the C contract the string is NUL-terminated.
        let words = unsafe { text(words)? };
        opened()?.pen.label(&words);
        Ok(0)
    })
}
