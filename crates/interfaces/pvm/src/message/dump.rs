//! `i_dump`: the memory that the library has in use, for those who look for leaks. Other memory than messages is not counted.

use std::ffi::c_int;
use std::fmt::Write;

use super::error::print_line;
use super::state;
use super::table::Buffers;

/// This many bytes of a message are shown.
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

/// Say on standard error how much memory messages have, and of each buffer its number, its place and how it begins. With
/// what is asked PVM says as well what has been written past an end, of which the library has no knowledge.
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
