//! The functions of `plotix.h`.

use std::ffi::{CStr, c_char, c_double, c_int};

use regatta_nodes::fault::Fault;

use crate::frames::End;
use crate::life::{call, close, draw, name, open, opened};

/// A text of the program's; bytes that are no characters are question marks.
///
/// # Safety
/// A text, or NULL.
unsafe fn text<'a>(text: *const c_char) -> Result<std::borrow::Cow<'a, str>, Fault> {
    if text.is_null() {
        return Err(Fault::says("no text is given"));
    }
    // SAFETY: the caller's.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Brings together what the nodes have drawn, and ends a frame if one is at its end.
fn together(end: Option<End>) -> Result<c_int, Fault> {
    let open = opened()?;
    let part = std::mem::take(&mut open.pen.drawn);
    open.frames.together(&part, end)?;
    Ok(0)
}

/// Open a picture. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn openpl() -> c_int {
    call("openpl", || open().map(|()| 0))
}

/// End the picture, with all nodes: node 0 writes its last frame. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn closepl() -> c_int {
    call("closepl", || {
        let ended = together(Some(End::Picture));
        close();
        ended
    })
}

/// Start another frame, with all nodes: node 0 writes the one before. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn erase() -> c_int {
    call("erase", || together(Some(End::Frame)))
}

/// Bring what nodes have drawn to node 0, with all nodes. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn sendplot() -> c_int {
    call("sendplot", || together(None))
}

/// Name the files of pictures. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn plotfile(file: *const c_char) -> c_int {
    call("plotfile", || {
        // SAFETY: the C contract: a text.
        name(&unsafe { text(file)? });
        Ok(0)
    })
}

/// Have the coordinates of these corners fill the page. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn space(x0: c_double, y0: c_double, x1: c_double, y1: c_double) -> c_int {
    draw("space", |pen| pen.space(x0, y0, x1, y1))
}

/// Choose the style of lines that follow. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn linemod(style: *const c_char) -> c_int {
    call("linemod", || {
        // SAFETY: the C contract: a text.
        let style = unsafe { text(style)? };
        opened()?.pen.style(&style).map_err(Fault::says)?;
        Ok(0)
    })
}

/// Move the current point. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn r#move(x: c_double, y: c_double) -> c_int {
    draw("move", |pen| pen.go(x, y))
}

/// Draw a line from the current point. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn cont(x: c_double, y: c_double) -> c_int {
    draw("cont", |pen| pen.draw_to(x, y))
}

/// Draw a line. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn line(x0: c_double, y0: c_double, x1: c_double, y1: c_double) -> c_int {
    draw("line", |pen| pen.line(x0, y0, x1, y1))
}

/// Draw a rectangle. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn r#box(x0: c_double, y0: c_double, x1: c_double, y1: c_double) -> c_int {
    draw("box", |pen| pen.rectangle(x0, y0, x1, y1))
}

/// Draw a point. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn point(x: c_double, y: c_double) -> c_int {
    draw("point", |pen| pen.point(x, y))
}

/// Draw a circle. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn circle(x: c_double, y: c_double, radius: c_double) -> c_int {
    draw("circle", |pen| pen.circle(x, y, radius))
}

/// Draw a part of a circle. Returns 0, or -1.
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

/// Draw a text. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn label(words: *const c_char) -> c_int {
    call("label", || {
        // SAFETY: the C contract: a text.
        let words = unsafe { text(words)? };
        opened()?.pen.label(&words);
        Ok(0)
    })
}
