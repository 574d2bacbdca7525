//! The Fortran calls for files, and Fortran's 64-bit numbers. A file is named by its unit (`units.rs`), a 64-bit number
//! is an array of two INTEGERs, and a call that returns such a number in C has a last argument for it.

use std::ffi::{CString, c_char, c_int, c_long, c_uint, c_void};

use crate::error::{Answer, EQLEN, EQPARAM, Fault};
use crate::extended::{self, Extended, Pair, wide};
use crate::files;
use crate::forms::{Argument, fortran_forms, fortran_raw_forms};
use crate::host_fortran::text;
use crate::units::Unit;

/// Flags with which `gopen` opens a file: for reading and writing, or else read-only.
const WAYS: [c_int; 2] = [libc::O_RDWR | libc::O_CREAT, libc::O_RDONLY];
/// Permissions of a file that `gopen` creates, before the umask.
const PERMISSIONS: libc::mode_t = 0o666;

fn size(count: c_long) -> Result<c_uint, Fault> {
    c_uint::try_from(count).map_err(|_| Fault::of(EQLEN, "count", count))
}

unsafe fn read(unit: Unit, memory: *mut c_void, count: c_long) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { files::read(unit.descriptor()?, memory, size(count)?) }
}

unsafe fn write(unit: Unit, memory: *const c_void, count: c_long) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { files::write(unit.descriptor()?, memory, size(count)?) }
}

unsafe fn begin_read(unit: Unit, memory: *mut c_void, count: c_long) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    files::begun(unsafe { read(unit, memory, count) })
}

unsafe fn begin_write(unit: Unit, memory: *const c_void, count: c_long) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    files::begun(unsafe { write(unit, memory, count) })
}

unsafe fn mode(unit: Unit) -> Answer {
    // SAFETY: the call takes plain values only.
    unsafe { files::mode(unit.descriptor()?) }
}

/// Takes part in the collective even if this node does not have the unit: the others wait for it.
unsafe fn change_mode(unit: Unit, mode: c_long) -> Answer {
    let fd = unit.descriptor();
    let mode = c_int::try_from(mode).unwrap_or(-1);
    // SAFETY: the call takes plain values only.
    let done = unsafe { files::change_mode(fd.unwrap_or(-1), mode) };
    fd.and(done)
}

unsafe fn is_at_end(unit: Unit) -> Answer {
    // SAFETY: the call takes plain values only.
    unsafe { files::is_at_end(unit.descriptor()?) }
}

unsafe fn resize(unit: Unit, offset: c_long, whence: c_long) -> Answer {
    files::resize(unit.descriptor()?, wide(offset), whence as c_int).map(|size| size as c_long)
}

unsafe fn seek(unit: Unit, offset: c_long, whence: c_long) -> Answer {
    let position = files::seek(unit.descriptor()?, wide(offset), whence as c_int)?;
    Ok(position as c_long)
}

unsafe fn restrict(unit: Unit, _: c_long, _: *const c_int) -> Answer {
    unit.descriptor().map(|_| 0)
}

fortran_forms! {
    cread_, _cread_: (unit: Unit, memory: *mut c_void, count: c_long) = read;
    cwrite_, _cwrite_: (unit: Unit, memory: *const c_void, count: c_long) = write;
    iread_, _iread_: (unit: Unit, memory: *mut c_void, count: c_long) = begin_read;
    iwrite_, _iwrite_: (unit: Unit, memory: *const c_void, count: c_long) = begin_write;
    iowait_, _iowait_: (id: c_long) = files::wait;
    iodone_, _iodone_: (id: c_long) = files::done;
    iomode_, _iomode_: (unit: Unit) = mode;
    setiomode_, _setiomode_: (unit: Unit, mode: c_long) = change_mode;
    iseof_, _iseof_: (unit: Unit) = is_at_end;
    lsize_, _lsize_: (unit: Unit, offset: c_long, whence: c_long) = resize;
    lseek_, _lseek_: (unit: Unit, offset: c_long, whence: c_long) = seek;
    restrictvol_, _restrictvol_: (unit: Unit, number: c_long, volumes: *const c_int) = restrict;
}

unsafe fn open(
    unit: *const c_int,
    path: *const c_char,
    mode: *const c_int,
    length: usize,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let (unit, mode, path) = unsafe { (Unit::take(unit), c_long::take(mode), text(path, length)) };
    let path = unit.is_free().and(path);
    let path = path.and_then(|path| CString::new(path).map_err(|_| Fault::plain(EQPARAM)));
    let path = path.as_deref().map_err(|fault| *fault);
    let mode = c_int::try_from(mode).unwrap_or(-1);
    let fd = files::open_on_all(path, &WAYS, mode, PERMISSIONS)?;
    unit.open(fd as c_int);
    Ok(0)
}

/// # Safety
/// `place` points to two INTEGERs or is NULL.
unsafe fn put(value: i64, place: *mut Pair) -> Answer {
    if place.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { place.write_unaligned(Pair::new(value)) };
    Ok(0)
}

/// # Safety
/// `of` points to two INTEGERs.
unsafe fn value(of: *const Pair) -> i64 {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { of.read_unaligned() }.value()
}

/// Calls `call` with a descriptor, an offset and its base, and returns a 64-bit number to the program.
///
/// # Safety
/// All are references to INTEGERs; the offset and the result are two INTEGERs each.
unsafe fn at_wide_offset(
    call: impl FnOnce(c_int, i64, c_int) -> Result<i64, Fault>,
    (unit, offset, whence): (*const c_int, *const Pair, *const c_int),
    place: *mut Pair,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let (unit, offset, whence) =
        unsafe { (Unit::take(unit), value(offset), whence.read_unaligned()) };
    let number = call(unit.descriptor()?, offset, whence)?;
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { put(number, place) }
}

unsafe fn wide_seek(
    unit: *const c_int,
    offset: *const Pair,
    whence: *const c_int,
    place: *mut Pair,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { at_wide_offset(files::seek, (unit, offset, whence), place) }
}

unsafe fn wide_resize(
    unit: *const c_int,
    offset: *const Pair,
    whence: *const c_int,
    place: *mut Pair,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { at_wide_offset(files::resize, (unit, offset, whence), place) }
}

unsafe fn add(a: *const Pair, b: *const Pair, sum: *mut Pair) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { put(value(a).wrapping_add(value(b)), sum) }
}

unsafe fn subtract(a: *const Pair, b: *const Pair, difference: *mut Pair) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { put(value(a).wrapping_sub(value(b)), difference) }
}

unsafe fn multiply(a: *const Pair, b: *const c_int, product: *mut Pair) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { put(value(a).wrapping_mul(b.read_unaligned().into()), product) }
}

unsafe fn divide(a: *const Pair, b: *const c_int) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { extended::divide(Extended::new(value(a)), c_long::take(b)) }
}

unsafe fn remainder(a: *const Pair, b: *const c_int) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { extended::remainder(Extended::new(value(a)), c_long::take(b)) }
}

unsafe fn compare(a: *const Pair, b: *const Pair) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { Ok(value(a).cmp(&value(b)) as c_long) }
}

/// Writes the number as text, padded with blanks.
unsafe fn to_text(number: *const Pair, place: *mut c_char, length: usize) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let digits = unsafe { value(number) }.to_string();
    if place.is_null() || digits.len() > length {
        return Err(Fault::of(EQLEN, "length of the text", length as c_long));
    }
    // SAFETY: the caller guarantees that the text has this length.
    let place = unsafe { std::slice::from_raw_parts_mut(place.cast::<u8>(), length) };
    let (digits_place, blanks) = place.split_at_mut(digits.len());
    digits_place.copy_from_slice(digits.as_bytes());
    blanks.fill(b' ');
    Ok(0)
}

unsafe fn from_text(digits: *const c_char, place: *mut Pair, length: usize) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let digits = unsafe { text(digits, length) }?;
    let number = digits.parse().map_err(|_| Fault::plain(EQPARAM))?;
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { put(number, place) }
}

fortran_raw_forms! {
    gopen_, _gopen_: (unit: *const c_int, path: *const c_char, mode: *const c_int, length: usize) = open;
    eseek_, _eseek_: (unit: *const c_int, offset: *const Pair, whence: *const c_int, place: *mut Pair) = wide_seek;
    esize_, _esize_: (unit: *const c_int, offset: *const Pair, whence: *const c_int, place: *mut Pair) = wide_resize;
    eadd_, _eadd_: (a: *const Pair, b: *const Pair, sum: *mut Pair) = add;
    esub_, _esub_: (a: *const Pair, b: *const Pair, difference: *mut Pair) = subtract;
    emul_, _emul_: (a: *const Pair, b: *const c_int, product: *mut Pair) = multiply;
    ediv_, _ediv_: (a: *const Pair, b: *const c_int) = divide;
    emod_, _emod_: (a: *const Pair, b: *const c_int) = remainder;
    ecmp_, _ecmp_: (a: *const Pair, b: *const Pair) = compare;
    etos_, _etos_: (number: *const Pair, place: *mut c_char, length: usize) = to_text;
    stoe_, _stoe_: (digits: *const c_char, place: *mut Pair, length: usize) = from_text;
}
