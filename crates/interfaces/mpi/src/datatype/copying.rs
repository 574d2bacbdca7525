//! Copying of equal blocks with constant strides.

/// Copies `count` blocks of `block` bytes. Block k is copied from `from + k * from_stride` to `to + k * to_stride`.
///
/// # Safety
/// All blocks are valid for reads and writes respectively, and do not overlap.
#[inline]
pub unsafe fn copy_blocks(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    block: usize,
    count: usize,
) {
    if count == 1 {
        // SAFETY: the caller upholds the safety contract of this function.
        return unsafe { copy_one(from, to, block) };
    }
    macro_rules! lengths {
        ($($length:literal)*) => {
            match block {
                // SAFETY: the caller upholds the safety contract of this function, of blocks of this length.
                $($length => unsafe {
                    copy_fixed::<$length>(from, from_stride, to, to_stride, count)
                },)*
                _ => {
                    for index in 0..count as isize {
                        let from = from.wrapping_offset(index * from_stride);
                        let to = to.wrapping_offset(index * to_stride);
                        // SAFETY: the caller upholds the safety contract of this function.
                        unsafe { std::ptr::copy_nonoverlapping(from, to, block) };
                    }
                }
            }
        };
    }
    // The sizes of elements, of pairs of elements, and of points.
    lengths!(1 2 4 8 12 16 24 32 40 48 64);
}

/// Copies one block. Short blocks, of which irregular datatypes have many, are copied without a call, by two moves that
/// may overlap.
#[inline]
unsafe fn copy_one(from: *const u8, to: *mut u8, length: usize) {
    macro_rules! by_two {
        ($word:ty) => {{
            let last = length - size_of::<$word>();
            let (first, second) = (
                from.cast::<$word>().read_unaligned(),
                from.add(last).cast::<$word>().read_unaligned(),
            );
            to.cast::<$word>().write_unaligned(first);
            to.add(last).cast::<$word>().write_unaligned(second);
        }};
    }
    // SAFETY: the caller upholds the safety contract of this function, of a block of this length.
    unsafe {
        match length {
            4..=8 => by_two!(u32),
            9..=16 => by_two!(u64),
            17..=32 => by_two!(u128),
            _ => std::ptr::copy_nonoverlapping(from, to, length),
        }
    }
}

/// Copies blocks whose length the compiler knows, so each takes few instructions.
#[inline]
unsafe fn copy_fixed<const LENGTH: usize>(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    count: usize,
) {
    for index in 0..count as isize {
        let from = from.wrapping_offset(index * from_stride);
        let to = to.wrapping_offset(index * to_stride);
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            to.cast::<[u8; LENGTH]>()
                .write(from.cast::<[u8; LENGTH]>().read())
        };
    }
}
