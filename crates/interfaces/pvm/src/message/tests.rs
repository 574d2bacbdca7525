//! Tests: messages keep their items, and buffers refuse invalid calls.

use std::ffi::c_void;

use super::buffer::{Buffer, Info};
use super::codes::{self, *};
use super::kind::Kind;
use super::storage::{HEAD, Shelf};
use super::table::Buffers;
use super::xdr_body::Body;

const KINDS: [Kind; 11] = [
    Kind::Byte,
    Kind::Short,
    Kind::Int,
    Kind::Long,
    Kind::UShort,
    Kind::UInt,
    Kind::ULong,
    Kind::Float,
    Kind::Double,
    Kind::Complex,
    Kind::DoubleComplex,
];

fn pack<T>(
    buffers: &mut Buffers,
    kind: Kind,
    items: &[T],
    count: usize,
    stride: isize,
) -> Result<(), i32> {
    let (buffer, shelf) = buffers.sending()?;
    // SAFETY: the tests stay within their arrays.
    unsafe { buffer.pack(shelf, kind, items.as_ptr().cast(), count, stride) }
}

fn unpack<T>(
    buffers: &mut Buffers,
    kind: Kind,
    items: &mut [T],
    count: usize,
    stride: isize,
) -> Result<(), i32> {
    let buffer = buffers.receiving()?;
    // SAFETY: the tests stay within their arrays.
    unsafe { buffer.unpack(kind, items.as_mut_ptr().cast::<c_void>(), count, stride) }
}

fn reread(buffers: &mut Buffers) {
    let (send, _) = buffers.current();
    buffers.set_receive(send).unwrap();
}

/// Returns arbitrary bytes, except that the upper half of a `long` is 0, which XDR does not keep.
fn items(kind: Kind, count: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..count * kind.width())
        .map(|at| (at * 37 + 11) as u8)
        .collect();
    if matches!(kind, Kind::Long | Kind::ULong) {
        bytes.chunks_mut(8).for_each(|long| long[4..].fill(0));
    }
    bytes
}

#[test]
fn what_is_packed_is_unpacked_in_every_encoding_and_with_every_stride() {
    for (encoding, kind) in [encoding::DEFAULT, encoding::RAW]
        .iter()
        .flat_map(|e| KINDS.map(|k| (*e, k)))
    {
        for (count, out, back) in [
            (0, 1, 1),
            (1, 1, 1),
            (7, 1, 3),
            (40, 2, 1),
            (1500, 1, 1),
            (90, 3, 2),
        ] {
            let mut buffers = Buffers::new();
            buffers.init_send(encoding).unwrap();
            let all = items(kind, count * 3);
            pack(&mut buffers, kind, &all, count, out).unwrap();
            pack(&mut buffers, Kind::Int, &[77i32], 1, 1).unwrap();
            reread(&mut buffers);
            let mut got = vec![0u8; count * 3 * kind.width()];
            unpack(&mut buffers, kind, &mut got, count, back).unwrap();
            let width = kind.width();
            for at in 0..count {
                let (from, to) = (at * out as usize * width, at * back as usize * width);
                assert_eq!(
                    all[from..from + width],
                    got[to..to + width],
                    "{kind:?} {encoding} {count} {at}"
                );
            }
            let mut end = [0i32];
            unpack(&mut buffers, Kind::Int, &mut end, 1, 1).unwrap();
            assert_eq!(end[0], 77);
            assert_eq!(unpack(&mut buffers, kind, &mut got, 1, 1), Err(NO_DATA));
        }
    }
}

/// After bytes were missing, reading no bytes goes back to the front of an XDR message, unless a number was read in
/// between. Reading no doubles does not count as reading a number; reading none of another type does.
#[test]
fn to_read_nothing_moves_as_it_does_in_pvm() {
    let nothing = |buffers: &mut Buffers, kind: Kind| unpack(buffers, kind, &mut [0f64; 2], 0, 1);
    for (between, next) in [
        (None, 0),
        (Some(Kind::Double), 0),
        (Some(Kind::DoubleComplex), 0),
        (Some(Kind::Int), 5),
        (Some(Kind::Complex), 5),
    ] {
        let mut buffers = Buffers::new();
        buffers.init_send(encoding::DEFAULT).unwrap();
        pack(&mut buffers, Kind::Int, &[0, 1, 2, 3, 100_000, 5], 6, 1).unwrap();
        reread(&mut buffers);
        unpack(&mut buffers, Kind::Int, &mut [0i32; 4], 4, 1).unwrap();
        let mut text = [0u8; 8];
        // SAFETY: fewer bytes than the length that the message gives are left, so no more than `text` can hold is
        // written.
        let cut = unsafe {
            buffers
                .receiving()
                .unwrap()
                .unpack_string(text.as_mut_ptr().cast())
        };
        assert_eq!(cut, Err(NO_DATA));
        if let Some(kind) = between {
            nothing(&mut buffers, kind).unwrap();
        }
        nothing(&mut buffers, Kind::Byte).unwrap();
        let mut got = [-1i32];
        unpack(&mut buffers, Kind::Int, &mut got, 1, 1).unwrap();
        assert_eq!(got, [next], "{between:?}");
    }
}

#[test]
fn strides_may_be_zero_or_point_backwards() {
    for encoding in [encoding::DEFAULT, encoding::RAW] {
        let mut buffers = Buffers::new();
        buffers.init_send(encoding).unwrap();
        let doubles = [1.5f64, 2.5, 3.5];
        pack(&mut buffers, Kind::Double, &doubles[2..], 3, -1).unwrap();
        pack(&mut buffers, Kind::Double, &doubles[1..], 2, 0).unwrap();
        reread(&mut buffers);
        let mut got = [0f64; 5];
        unpack(&mut buffers, Kind::Double, &mut got, 5, 1).unwrap();
        assert_eq!(got, [3.5, 2.5, 1.5, 2.5, 2.5]);
    }
}

#[test]
fn xdr_is_xdr() {
    let mut buffers = Buffers::new();
    let id = buffers.init_send(encoding::DEFAULT).unwrap();
    pack(&mut buffers, Kind::Int, &[-2i32], 1, 1).unwrap();
    pack(&mut buffers, Kind::Byte, b"abcde", 5, 1).unwrap();
    pack(&mut buffers, Kind::Short, &[-3i16], 1, 1).unwrap();
    pack(&mut buffers, Kind::UShort, &[0xfffeu16], 1, 1).unwrap();
    pack(&mut buffers, Kind::Double, &[1.0f64], 1, 1).unwrap();
    pack(&mut buffers, Kind::Complex, &[1.0f32, 2.0], 1, 1).unwrap();
    pack(&mut buffers, Kind::Long, &[-5i64], 1, 1).unwrap();
    let text = c"hi!!";
    let (buffer, shelf) = buffers.sending().unwrap();
    buffer.pack_string(shelf, text).unwrap();
    let expected = [
        &[0xff, 0xff, 0xff, 0xfe][..],
        b"abcde\0\0\0",
        &[0xff, 0xff, 0xff, 0xfd],
        &[0xff, 0xff, 0xff, 0xfe],
        &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0],
        &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0],
        &[0xff, 0xff, 0xff, 0xfb],
        &[0, 0, 0, 5],
        b"hi!!\0\0\0\0",
    ];
    assert_eq!(buffers.buffer(id).unwrap().body(), expected.concat());
    reread(&mut buffers);
    let mut word = [0i32];
    unpack(&mut buffers, Kind::Int, &mut word, 1, 1).unwrap();
    let mut bytes = [0u8; 5];
    unpack(&mut buffers, Kind::Byte, &mut bytes, 5, 1).unwrap();
    let mut shorts = [0u16; 2];
    unpack(&mut buffers, Kind::UShort, &mut shorts, 2, 1).unwrap();
    assert_eq!((word[0], &bytes, shorts), (-2, b"abcde", [0xfffd, 0xfffe]));
}

#[test]
fn the_library_writes_what_packing_writes() {
    let mut buffers = Buffers::new();
    let id = buffers.init_send(encoding::DEFAULT).unwrap();
    pack(&mut buffers, Kind::Int, &[1, -1, 3], 3, 1).unwrap();
    let (buffer, shelf) = buffers.sending().unwrap();
    buffer.pack_string(shelf, c"name").unwrap();
    let written = Body::new().int(1).ints(&[-1, 3]).string("name").into_vec();
    assert_eq!(buffers.buffer(id).unwrap().body(), written);
}

#[test]
fn a_buffer_that_was_freed_is_nobody() {
    let mut buffers = Buffers::new();
    let first = buffers.make(encoding::RAW).unwrap();
    assert_eq!(buffers.free(first), Ok(()));
    let second = buffers.make(encoding::RAW).unwrap();
    assert_ne!(first, second);
    for stale in [first, second + 1, i32::MAX] {
        assert_eq!(buffers.free(stale), Err(NO_SUCH_BUF));
        assert_eq!(buffers.set_send(stale), Err(NO_SUCH_BUF));
    }
    assert_eq!(
        (buffers.free(0), buffers.free(-1)),
        (Ok(()), Err(BAD_PARAM))
    );
    assert_eq!(buffers.buffer(0).err(), Some(BAD_PARAM));
}

#[test]
fn numbers_of_buffers_stay_positive_however_often_a_slot_is_used() {
    let mut buffers = Buffers::new();
    let kept = buffers.make(encoding::RAW).unwrap();
    let mut last = 0;
    for _ in 0..10_000 {
        let id = buffers.init_send(encoding::RAW).unwrap();
        assert!(id > 0 && id != last && id != kept);
        assert_eq!(buffers.current().0, id);
        last = id;
    }
    assert_eq!(buffers.slots_in_use(), 2);
}

#[test]
fn the_number_of_a_freed_buffer_is_none_of_the_next_millions() {
    const BUFFERS_MADE_LATER: usize = 4 << 20;
    let mut buffers = Buffers::new();
    let stale = buffers.make(encoding::RAW).unwrap();
    buffers.free(stale).unwrap();
    for _ in 0..BUFFERS_MADE_LATER {
        let id = buffers.make(encoding::RAW).unwrap();
        assert_ne!(id, stale);
        buffers.free(id).unwrap();
    }
    let stale = buffers.init_send(encoding::RAW).unwrap();
    for _ in 0..BUFFERS_MADE_LATER {
        assert_ne!(buffers.init_send(encoding::RAW), Ok(stale));
    }
    assert_eq!(buffers.slots_in_use(), 1);
}

#[test]
fn a_buffer_is_not_both_for_sending_and_for_receiving() {
    let mut buffers = Buffers::new();
    let id = buffers.init_send(encoding::RAW).unwrap();
    assert_eq!(buffers.set_receive(id), Ok(0));
    assert_eq!(buffers.current(), (0, id));
    assert_eq!(pack(&mut buffers, Kind::Int, &[1], 1, 1), Err(NO_BUF));
    assert_eq!(buffers.set_send(id), Ok(0));
    assert_eq!(buffers.current(), (id, 0));
    assert_eq!(buffers.set_send(0), Ok(id));
    assert_eq!(buffers.current(), (0, 0));
}

#[test]
fn a_message_in_place_is_where_the_user_has_it() {
    let mut buffers = Buffers::new();
    let id = buffers.init_send(encoding::IN_PLACE).unwrap();
    let mut doubles = vec![0f64; 1000];
    let few = [7i32, 8];
    pack(&mut buffers, Kind::Int, &few, 2, 1).unwrap();
    assert_eq!(pack(&mut buffers, Kind::Int, &few, 1, 2), Err(NOT_IMPL));
    assert_eq!(buffers.sending().unwrap().0.reported_length(), 0);
    let small = buffers.outgoing(id).unwrap();
    assert!(small.pieces.is_null());
    assert_eq!(
        (small.len, small.total, small.encoding),
        (HEAD + 8, 8, codes::RAW)
    );
    pack(&mut buffers, Kind::Double, &doubles, 1000, 1).unwrap();
    doubles[999] = 4.5;
    let large = buffers.outgoing(0).unwrap();
    assert_eq!((large.count, large.total), (3, 8008));
    // SAFETY: the pieces are valid until the buffer changes.
    let pieces = unsafe { std::slice::from_raw_parts(large.pieces, large.count) };
    assert_eq!((pieces[0].base.cast(), pieces[0].block), (large.head, HEAD));
    assert_eq!(pieces[1].base.cast_const(), few.as_ptr().cast());
    assert_eq!(pieces[2].block, 8000);
    buffers.set_receive(id).unwrap();
    assert_eq!(
        unpack(&mut buffers, Kind::Int, &mut [0], 1, 1),
        Err(BAD_MSG)
    );
    assert_eq!(
        unpack(&mut buffers, Kind::Byte, &mut [0u8], 1, 1),
        Err(BAD_MSG)
    );
}

#[test]
fn a_message_arrives_as_a_buffer_and_goes_on_as_it_came() {
    let mut buffers = Buffers::new();
    buffers.init_send(encoding::RAW).unwrap();
    pack(&mut buffers, Kind::Double, &[2.5f64], 1, 1).unwrap();
    let out = buffers.outgoing(0).unwrap();
    let storage = buffers.shelf.take(out.total).unwrap();
    // SAFETY: both blocks are as long as the message.
    unsafe { std::ptr::copy_nonoverlapping(out.head, storage.as_mut_ptr(), out.len) };
    let info = Info {
        src: 5,
        tag: 6,
        encoding: out.encoding,
        ..Info::default()
    };
    let id = buffers.accept(storage, out.total, info).unwrap();
    buffers.set_received(id);
    let mut got = [0f64];
    unpack(&mut buffers, Kind::Double, &mut got, 1, 1).unwrap();
    assert_eq!((got[0], buffers.buffer(id).unwrap().info), (2.5, info));
    let next = buffers.put(b"1234", info).unwrap();
    buffers.set_received(next);
    assert_eq!(
        buffers.buffer(id).err(),
        Some(NO_SUCH_BUF),
        "a receive frees the buffer before"
    );
    let copy = buffers.copy(next).unwrap();
    assert_eq!(buffers.buffer(copy).unwrap().body(), b"1234");
}

#[test]
fn messages_travel_inside_messages() {
    for (outer, inner) in [(0, 0), (0, 1), (1, 0), (1, 1), (4, 0)] {
        let mut buffers = Buffers::new();
        let inside = buffers.init_send(inner).unwrap();
        pack(&mut buffers, Kind::Short, &[1i16, 2, 3], 3, 1).unwrap();
        buffers.buffer(inside).unwrap().info.wid = 42;
        buffers.set_send(0).unwrap();
        let around = buffers.init_send(outer).unwrap();
        assert_eq!(buffers.pack_message(around), Err(BAD_PARAM));
        buffers.pack_message(inside).unwrap();
        pack(&mut buffers, Kind::Int, &[9], 1, 1).unwrap();
        reread(&mut buffers);
        if outer == 4 {
            // A trace message contains marks that no reader skips.
            assert_eq!(buffers.unpack_message(), Err(BAD_MSG));
            continue;
        }
        let again = buffers.unpack_message().unwrap();
        let body = buffers.buffer(inside).unwrap().body().to_vec();
        assert_eq!(buffers.buffer(again).unwrap().body(), body);
        assert_eq!(buffers.buffer(again).unwrap().info.wid, 42);
        let mut end = [0];
        unpack(&mut buffers, Kind::Int, &mut end, 1, 1).unwrap();
        assert_eq!(end[0], 9);
    }
}

#[test]
fn only_bodies_of_one_encoding_are_joined() {
    let mut buffers = Buffers::new();
    let first = buffers.init_send(encoding::DEFAULT).unwrap();
    pack(&mut buffers, Kind::Int, &[1], 1, 1).unwrap();
    buffers.set_send(0).unwrap();
    buffers.init_send(encoding::RAW).unwrap();
    assert_eq!(buffers.pack_body(first), Err(MISMATCH));
    buffers.init_send(encoding::DEFAULT).unwrap();
    pack(&mut buffers, Kind::Int, &[2], 1, 1).unwrap();
    buffers.pack_body(first).unwrap();
    pack(&mut buffers, Kind::Int, &[3], 1, 1).unwrap();
    reread(&mut buffers);
    let mut got = [0; 3];
    unpack(&mut buffers, Kind::Int, &mut got, 3, 1).unwrap();
    assert_eq!(got, [2, 1, 3]);
}

/// Readers of messages that another task has written.
#[test]
fn a_message_with_absurd_numbers_is_refused() {
    let told = |numbers: &[i32]| {
        let mut buffers = Buffers::new();
        let info = Info {
            encoding: codes::XDR,
            ..Info::default()
        };
        let id = buffers
            .put(&Body::new().ints(numbers).into_vec(), info)
            .unwrap();
        buffers.set_received(id);
        buffers.unpack_message()
    };
    assert_eq!(told(&[]), Err(NO_DATA));
    assert_eq!(told(&[4, 0, 0, 0, 0, 0, 0]), Err(NO_DATA));
    assert_eq!(told(&[-4, 0, 0, 0, 0, 0, 0, 0]), Err(BAD_MSG));
    assert_eq!(told(&[4, 0, 0, 0, 0, 0, 0, 0, -4]), Err(BAD_MSG));
    assert_eq!(told(&[4, 0, 0, 0, 0, 0, 0, 0, i32::MAX, 1]), Err(NO_DATA));
    assert_eq!(told(&[i32::MAX, 0, 0, 0, 0, 0, 0, 0, 4, 1]), Err(NO_DATA));
    assert!(told(&[4, 0, 0, 0, 0, 0, 0, 0, 4, 1]).is_ok());
}

#[test]
fn memory_grows_with_a_message_and_is_used_again() {
    let mut buffers = Buffers::new();
    let numbers: Vec<i32> = (0..20_000).collect();
    buffers.init_send(encoding::DEFAULT).unwrap();
    for number in &numbers {
        pack(&mut buffers, Kind::Int, std::slice::from_ref(number), 1, 1).unwrap();
    }
    reread(&mut buffers);
    let mut got = vec![0; numbers.len()];
    unpack(&mut buffers, Kind::Int, &mut got, numbers.len(), 1).unwrap();
    assert_eq!(got, numbers);
    let (_, id) = buffers.current();
    let at = buffers.buffer(id).unwrap().storage.as_mut_ptr();
    buffers.free(id).unwrap();
    assert_eq!(buffers.shelf.take(100_000).unwrap().as_mut_ptr(), at);
}

#[test]
fn an_empty_buffer_has_a_head_all_the_same() {
    let mut buffers = Buffers::new();
    for encoding in [encoding::DEFAULT, encoding::RAW, encoding::IN_PLACE] {
        buffers.init_send(encoding).unwrap();
        let out = buffers.outgoing(0).unwrap();
        assert_eq!((out.len, out.total), (HEAD, 0));
        // SAFETY: `head` points to `HEAD` bytes.
        unsafe { out.head.write_bytes(1, HEAD) };
    }
}

/// PVM 3.4's behaviour for buffers that are read, packed and read again.
#[test]
fn numbers_of_xdr_are_replaced_and_raw_items_are_appended_after_reading() {
    for (encoding, expected) in [(encoding::DEFAULT, vec![7]), (encoding::RAW, vec![1, 2, 7])] {
        let (mut buffer, mut shelf) = (Buffer::empty(), Shelf::new());
        let raw = if encoding == encoding::RAW {
            codes::RAW
        } else {
            codes::XDR
        };
        buffer.restart(Info {
            encoding: raw,
            ..Info::default()
        });
        let mut push = |buffer: &mut Buffer, value: i32| {
            buffer.open_to_pack();
            // SAFETY: the memory is one `int`.
            unsafe { buffer.pack(&mut shelf, Kind::Int, (&raw const value).cast(), 1, 1) }.unwrap();
        };
        push(&mut buffer, 1);
        push(&mut buffer, 2);
        buffer.open_to_unpack();
        assert_eq!(buffer.next_int(), Ok(1));
        push(&mut buffer, 7);
        buffer.open_to_unpack();
        let got: Vec<i32> = std::iter::from_fn(|| buffer.next_int().ok()).collect();
        assert_eq!(got, expected);
    }
}
