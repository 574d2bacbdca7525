//! Scattered items of a message. Regatta transfers them directly from and to their addresses.

use std::ffi::{c_int, c_void};

use crate::fault::{Fault, checked};
use crate::place::length;
use crate::rg;

/// The program's memory: `items` of `size` bytes; the beginnings of consecutive items are `offset` bytes apart.
#[derive(Clone, Copy)]
pub struct Items {
    base: *mut c_void,
    size: usize,
    offset: isize,
    items: usize,
}

impl Items {
    pub fn new(
        base: *mut c_void,
        size: c_int,
        offset: c_int,
        items: c_int,
    ) -> Result<Items, Fault> {
        let whole = i64::from(size) * i64::from(items);
        if size < 0 || items < 0 || whole > i64::from(c_int::MAX) {
            return Err(Fault::says(format!(
                "{items} items of {size} bytes are not a valid message"
            )));
        }
        if base.is_null() && whole > 0 {
            return Err(Fault::says("the buffer is NULL"));
        }
        Ok(Items {
            base,
            size: size as usize,
            offset: offset as isize,
            items: items as usize,
        })
    }

    pub fn bytes(&self) -> usize {
        self.size * self.items
    }

    /// Returns a contiguous block of this many bytes.
    #[inline(always)]
    pub fn block(base: *mut c_void, len: c_int) -> Result<Items, Fault> {
        let size = length(len)?;
        Ok(Items {
            base,
            size,
            offset: 0,
            items: 1,
        })
    }

    /// Returns the first items, of this many bytes in total; for a block, any number. Returns `None` if that would cut
    /// an item.
    pub fn front(self, bytes: usize) -> Option<Items> {
        if bytes >= self.bytes() {
            return Some(self);
        }
        if self.items == 1 {
            return Some(Items {
                size: bytes,
                ..self
            });
        }
        bytes.is_multiple_of(self.size).then(|| Items {
            items: bytes / self.size,
            ..self
        })
    }

    /// Returns whether the items are contiguous.
    fn is_block(&self) -> bool {
        self.items <= 1 || self.offset == self.size as isize
    }

    fn view(&self) -> rg::View {
        rg::View {
            base: self.base,
            block: self.size,
            count: self.items,
            stride: self.offset,
        }
    }

    /// Sends the items, without waiting for the receiver.
    ///
    /// # Safety
    /// The items are readable.
    #[inline(always)]
    pub unsafe fn send(self, task: c_int, tag: c_int, group: rg::Group) -> Result<(), Fault> {
        // SAFETY: the caller guarantees that the memory is valid.
        checked(unsafe {
            match self.is_block() {
                true => rg::rg_bsend(self.base, self.bytes(), task, tag, group),
                false => rg::rg_bsendv(&self.view(), 1, task, tag, group),
            }
        })
    }

    /// Receives the items. If the message is too long, returns its status together with a fault.
    ///
    /// # Safety
    /// There is room for the items.
    #[inline(always)]
    pub unsafe fn receive(
        self,
        task: c_int,
        tag: c_int,
        group: rg::Group,
    ) -> (Option<rg::Status>, Result<(), Fault>) {
        let mut status = rg::Status::default();
        // SAFETY: the caller guarantees that the memory is valid.
        let code = unsafe {
            match self.is_block() {
                true => rg::rg_recv(self.base, self.bytes(), task, tag, group, &mut status),
                false => rg::rg_recvv(&self.view(), 1, task, tag, group, &mut status),
            }
        };
        let met = code == rg::OK || code == rg::ERR_TRUNCATED;
        (met.then_some(status), checked(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_ends_with_an_item() {
        let mut bytes = [0_u8; 12];
        let at = bytes.as_mut_ptr().cast();
        let items = Items::new(at, 2, 4, 3).unwrap();
        let fronts = [0, 2, 4, 6, 9].map(|bytes| items.front(bytes).map(|front| front.bytes()));
        assert_eq!(fronts, [Some(0), Some(2), Some(4), Some(6), Some(6)]);
        assert!(items.front(3).is_none());
        assert_eq!(Items::block(at, 12).unwrap().front(5).unwrap().bytes(), 5);
    }

    #[test]
    fn nonsense_is_refused() {
        let mut byte = 0_u8;
        let at = (&raw mut byte).cast();
        for (base, size, items) in [(at, -1, 1), (at, 1, -1), (at, 1 << 16, 1 << 16)] {
            assert!(Items::new(base, size, 1, items).is_err());
        }
        assert!(Items::new(std::ptr::null_mut(), 1, 1, 1).is_err());
        assert!(Items::new(std::ptr::null_mut(), 1, 1, 0).is_ok());
    }
}
