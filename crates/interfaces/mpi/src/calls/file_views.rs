//! File views, data representations, and file pointers.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::internal_messages::{Failed, allgather, class_of};
use crate::datatype::{self, Type};
use crate::error::{Error, Object, Result};
use crate::files::two_phase::{number, words};
use crate::files::view::View;
use crate::files::{Open, representation};
use crate::info;
use crate::text;

pub unsafe fn register_datarep(
    datarep: *const c_char,
    read_conversion_fn: Conversion,
    write_conversion_fn: Conversion,
    dtype_file_extent_fn: Datarep_extent_function,
    extra_state: *mut c_void,
) -> Result {
    let registered = (|| {
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        let name = unsafe { text::given(datarep, "datarep", MAX_DATAREP_STRING, ERR_ARG)? };
        super::errhandlers::not_none(dtype_file_extent_fn.is_some(), "dtype_file_extent_fn")?;
        let (read, write) = (read_conversion_fn, write_conversion_fn);
        representation::register(name, read, write, dtype_file_extent_fn, extra_state)
    })();
    registered.map_err(|error| error.on(Object::File(FILE_NULL)))
}

pub unsafe fn file_set_view(
    file: Arc<Open>,
    disp: i64,
    etype: Datatype,
    filetype: Datatype,
    datarep: *const c_char,
    info: Info,
) -> Result {
    let given = (|| {
        let hints = info::optional(info)?;
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        let name = unsafe { text::given(datarep, "datarep", MAX_DATAREP_STRING, ERR_ARG)? };
        let (etype, filetype) = (datatype::committed(etype)?, datatype::committed(filetype)?);
        let disp = displacement(&file, disp)?;
        let representation = representation::find(name)?;
        let view = View::new(disp, etype, filetype, representation, file.is_writable())?;
        Ok((view, hints))
    })();
    // The shared file pointer is reset only when no process accesses the file through the old view any longer.
    let (view, hints) = file.agree(given)?;
    file.shared.set(&file, 0)?;
    let mut state = file.state();
    state.view = Arc::new(view);
    state.position = 0;
    state.hints.merge(&hints);
    Ok(())
}

fn displacement(file: &Open, disp: i64) -> Result<i64> {
    let sequential = file.amode & MODE_SEQUENTIAL != 0;
    match disp {
        DISPLACEMENT_CURRENT if sequential => {
            let position = file.shared.get()?;
            file.view().byte_of(position)
        }
        0.. if !sequential => Ok(disp),
        _ => Err(Error::new(
            ERR_ARG,
            format!(
                "the displacement is {disp}; it must be 0 or more, or MPI_DISPLACEMENT_CURRENT in a file that is open with MPI_MODE_SEQUENTIAL"
            ),
        )),
    }
}

/// Returns a datatype handle for the program, which must free it unless it is predefined.
fn given(of: &Arc<Type>) -> Result<Datatype> {
    match of.predefined_handle() {
        Some(handle) => Ok(handle),
        None => datatype::insert(of.again()),
    }
}

pub unsafe fn file_get_view(
    file: Arc<Open>,
    disp: Out<i64>,
    etype: Out<Datatype>,
    filetype: Out<Datatype>,
    datarep: Out<c_char>,
) -> Result {
    let view = file.view();
    // SAFETY: the caller guarantees that the pointers are valid; there is room for the longest name.
    unsafe {
        disp.put(view.displacement);
        etype.put(given(&view.etype)?);
        filetype.put(given(&view.filetype)?);
        text::give(view.representation.name(), datarep, MAX_DATAREP_STRING);
    }
    Ok(())
}

pub fn file_get_type_extent(file: Arc<Open>, of: Arc<Type>, extent: Out<i64>) -> Result {
    extent.put(file.view().representation.map(&of)?.bounds.extent());
    Ok(())
}

pub fn file_get_byte_offset(file: Arc<Open>, offset: i64, disp: Out<i64>) -> Result {
    super::file_access::check_offset(offset)?;
    file.check_not_sequential()?;
    disp.put(file.view().byte_of(offset)?);
    Ok(())
}

/// Returns the new position of a file pointer.
fn sought(file: &Open, offset: i64, whence: c_int, current: i64) -> Result<i64> {
    let from = match whence {
        SEEK_SET => 0,
        SEEK_CUR => current,
        SEEK_END => file.end()?,
        _ => {
            let text = format!(
                "whence is {whence}; it must be MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END"
            );
            return Err(Error::new(ERR_ARG, text));
        }
    };
    from.checked_add(offset)
        .filter(|&to| to >= 0)
        .ok_or_else(|| {
            let text =
                format!("the offset is {offset} from {from}; a file pointer must be 0 or more");
            Error::new(ERR_ARG, text)
        })
}

pub fn file_seek(file: Arc<Open>, offset: i64, whence: c_int) -> Result {
    file.check_not_sequential()?;
    let current = file.state().position;
    let to = sought(&file, offset, whence, current)?;
    file.state().position = to;
    Ok(())
}

pub fn file_get_position(file: Arc<Open>, offset: Out<i64>) -> Result {
    file.check_not_sequential()?;
    offset.put(file.state().position);
    Ok(())
}

pub fn file_seek_shared(file: Arc<Open>, offset: i64, whence: c_int) -> Result {
    file.check_not_sequential()?;
    let current = file.shared.get();
    let to = current.and_then(|current| sought(&file, offset, whence, current));
    // All processes have read the pointer before it moves. The first process's result is the new position.
    let ([low, high], class) = (words(offset), class_of(&to));
    let [first, second] = words(*to.as_ref().unwrap_or(&0));
    let own = [low, high, whence, class, first, second];
    let all = allgather(file.comm.hidden, own)?;
    if all.iter().any(|it| it[..3] != own[..3]) {
        let text = format!(
            "the offset is {offset} and whence is {whence} here, but they differ on other processes"
        );
        return Err(Error::new(ERR_NOT_SAME, text));
    }
    to?;
    match Failed::first(all.iter().map(|it| it[3])) {
        Some(failed) => Err(failed.error("nothing is changed")),
        None => file.shared.set(&file, number([all[0][4], all[0][5]])),
    }
}

pub fn file_get_position_shared(file: Arc<Open>, offset: Out<i64>) -> Result {
    offset.put(file.shared.get()?);
    Ok(())
}
