//! Views of files, data representations, and pointers.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use crate::abi::*;
use crate::datatype::{self, Type};
use crate::error::{Error, Object, Result, not_null};
use crate::files::representation;
use crate::files::view::View;
use crate::files::{Open, get};
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
        // SAFETY: the caller's text.
        let name = unsafe { text::given(datarep, "datarep", MAX_DATAREP_STRING, ERR_ARG)? };
        super::errhandlers::not_none(dtype_file_extent_fn.is_some(), "dtype_file_extent_fn")?;
        let (read, write) = (read_conversion_fn, write_conversion_fn);
        representation::register(name, read, write, dtype_file_extent_fn, extra_state)
    })();
    registered.map_err(|error| error.on(Object::File(FILE_NULL)))
}

pub unsafe fn file_set_view(
    fh: File,
    disp: i64,
    etype: Datatype,
    filetype: Datatype,
    datarep: *const c_char,
    info: Info,
) -> Result {
    let file = get(fh)?;
    let given = (|| {
        let hints = info::optional(info)?;
        // SAFETY: the caller's text.
        let name = unsafe { text::given(datarep, "datarep", MAX_DATAREP_STRING, ERR_ARG)? };
        let (etype, filetype) = (datatype::committed(etype)?, datatype::committed(filetype)?);
        let disp = displacement(&file, disp)?;
        let representation = representation::find(name)?;
        let view = View::new(disp, etype, filetype, representation, file.is_writable())?;
        Ok((view, hints))
    })();
    // The pointer of all is set back when nobody accesses the file through the old view any more.
    let (view, hints) = file.agree(given)?;
    file.set_shared(0)?;
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
                "the displacement is {disp}; it is 0 or more, or MPI_DISPLACEMENT_CURRENT in a file that is open with MPI_MODE_SEQUENTIAL"
            ),
        )),
    }
}

/// A datatype for the program, which it frees unless it is predefined.
fn given(of: &Arc<Type>) -> Result<Datatype> {
    match of.predefined_handle() {
        Some(handle) => Ok(handle),
        None => datatype::insert(of.again()),
    }
}

pub unsafe fn file_get_view(
    fh: File,
    disp: *mut i64,
    etype: *mut Datatype,
    filetype: *mut Datatype,
    datarep: *mut c_char,
) -> Result {
    let file = get(fh)?;
    not_null(disp, "disp")?;
    not_null(etype, "etype")?;
    not_null(filetype, "filetype")?;
    not_null(datarep, "datarep")?;
    let view = file.view();
    // SAFETY: the caller's pointers; there is room for the longest name.
    unsafe {
        *disp = view.displacement;
        *etype = given(&view.etype)?;
        *filetype = given(&view.filetype)?;
        text::give(view.representation.name(), datarep, MAX_DATAREP_STRING);
    }
    Ok(())
}

pub unsafe fn file_get_type_extent(fh: File, datatype: Datatype, extent: *mut i64) -> Result {
    let file = get(fh)?;
    let of = datatype::get(datatype)?;
    not_null(extent, "extent")?;
    let found = file.view().representation.map(&of)?.bounds.extent();
    // SAFETY: the caller's pointer.
    unsafe { *extent = found };
    Ok(())
}

pub unsafe fn file_get_byte_offset(fh: File, offset: i64, disp: *mut i64) -> Result {
    let file = get(fh)?;
    super::file_access::check_offset(offset)?;
    file.check_not_sequential()?;
    not_null(disp, "disp")?;
    // SAFETY: the caller's pointer.
    unsafe { *disp = file.view().byte_of(offset)? };
    Ok(())
}

/// Where a pointer is to be.
fn sought(file: &Open, offset: i64, whence: c_int, current: i64) -> Result<i64> {
    let from = match whence {
        SEEK_SET => 0,
        SEEK_CUR => current,
        SEEK_END => file.end()?,
        _ => {
            let text =
                format!("whence is {whence}; it is MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END");
            return Err(Error::new(ERR_ARG, text));
        }
    };
    from.checked_add(offset)
        .filter(|&to| to >= 0)
        .ok_or_else(|| {
            let text = format!("the offset is {offset} from {from}; a pointer is 0 or more");
            Error::new(ERR_ARG, text)
        })
}

pub unsafe fn file_seek(fh: File, offset: i64, whence: c_int) -> Result {
    let file = get(fh)?;
    file.check_not_sequential()?;
    let current = file.state().position;
    let to = sought(&file, offset, whence, current)?;
    file.state().position = to;
    Ok(())
}

pub unsafe fn file_get_position(fh: File, offset: *mut i64) -> Result {
    let file = get(fh)?;
    file.check_not_sequential()?;
    not_null(offset, "offset")?;
    // SAFETY: the caller's pointer.
    unsafe { *offset = file.state().position };
    Ok(())
}

pub unsafe fn file_seek_shared(fh: File, offset: i64, whence: c_int) -> Result {
    let file = get(fh)?;
    file.check_not_sequential()?;
    file.check_same(offset, "the offset")?;
    file.check_same(i64::from(whence), "whence")?;
    let current = file.shared.get();
    let to = current.and_then(|current| sought(&file, offset, whence, current));
    // All have read the pointer before it moves.
    let to = file.agree(to)?;
    file.set_shared(to)
}

pub unsafe fn file_get_position_shared(fh: File, offset: *mut i64) -> Result {
    let file = get(fh)?;
    not_null(offset, "offset")?;
    // SAFETY: the caller's pointer.
    unsafe { *offset = file.shared.get()? };
    Ok(())
}
