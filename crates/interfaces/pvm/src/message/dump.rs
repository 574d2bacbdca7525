//! `i_dump`: lists the memory that messages use, to find leaks. Other memory is not counted.

use std::ffi::c_int;
use std::fmt::Write;

use super::error::print_line;
use super::state;
use super::table::Buffers;

/// Number of bytes of a message that are shown.
const SHOWN: usize = 24;

fn dump(buffers: &Buffers) -> String {
    let all = || buffers.in_use();
    let total: usize = all().map(|(_, buffer)| buffer.storage.capacity()).sum();
    let mut text = format!("i_dump() {total} bytes total\n");
    for (number, buffer) in all() {
        let (base, room) = (buffer.storage.as_mut_ptr(), buffer.storage.capacity());
        let bytes = buffer.body();
        let shown = bytes[..bytes.len().min(SHOWN)].escape_ascii();
        let _ = writeln!(
            text,
            "{number:5} mesg 0x{:08x}[{room:4}] {shown}",
            base.addr()
        );
    }
    text
}

/// Prints to standard error how much memory messages use and, for each buffer, its number, its address and its first
/// bytes. PVM can also report writes past the end of a block; this library does not know of these, so the argument is
/// ignored.
#[unsafe(no_mangle)]
extern "C" fn i_dump(_asked: c_int) {
    print_line(&dump(state()));
}

#[cfg(test)]
mod tests {
    use super::super::codes::encoding;
    use super::*;

    #[test]
    fn buffers_are_told_as_long_as_they_are_there() {
        let mut buffers = Buffers::new();
        assert_eq!(dump(&buffers), "i_dump() 0 bytes total\n");
        let made = buffers.make(encoding::RAW).expect("a buffer");
        buffers.set_send(made).expect("the buffer");
        let (buffer, shelf) = buffers.sending().expect("the buffer");
        let text = c"a\tb";
        buffer.pack_formatted_string(shelf, text, 4).expect("room");
        let told = dump(&buffers);
        assert!(told.contains("\n    1 mesg 0x"), "{told}");
        assert!(told.contains("a\\tb"), "{told}");
        buffers.free(made).expect("the buffer");
        assert_eq!(dump(&buffers), "i_dump() 0 bytes total\n");
    }
}
