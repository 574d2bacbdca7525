//! Values as bytes: little-endian numbers, and lengths before everything whose length varies.
//!
//! Pure and bounded: no input panics, and none makes us reserve more memory than it has bytes (times the size of an
//! element). `take(put(x)) == x` for all values; tested with arbitrary ones.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::Malformed;

/// The unread part of a message.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    fn split(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.split(N)?.try_into().map_err(|_| Malformed)
    }

    /// A number of elements, each of which takes at least one byte.
    fn count(&mut self) -> Result<usize, Malformed> {
        let count = u32::take(self)? as usize;
        (count <= self.0.len()).then_some(count).ok_or(Malformed)
    }
}

/// A value that can be part of a message.
pub trait Field: Sized {
    /// Its bytes, behind what is there.
    fn put(&self, to: &mut Vec<u8>);
    /// From the front of what is left.
    fn take(from: &mut Bytes) -> Result<Self, Malformed>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut Bytes) -> Result<Self, Malformed> {
                Ok(Self::from_le_bytes(from.array()?))
            }
        }
    )*};
}
numbers!(u16, u32, i32, u64, i64);

impl Field for bool {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        match from.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl<const N: usize> Field for [u8; N] {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        from.array()
    }
}

fn length(of: usize) -> u32 {
    // Nothing that long fits a frame: the sender refuses it there.
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// Bytes as they are: a program's output, and names, which need not be UTF-8.
impl Field for Vec<u8> {
    fn put(&self, to: &mut Vec<u8>) {
        length(self.len()).put(to);
        to.extend_from_slice(self);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let count = from.count()?;
        from.split(count).map(<[u8]>::to_vec)
    }
}

impl Field for String {
    fn put(&self, to: &mut Vec<u8>) {
        length(self.len()).put(to);
        to.extend_from_slice(self.as_bytes());
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        String::from_utf8(Vec::take(from)?).map_err(|_| Malformed)
    }
}

impl<T: Field> Field for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        length(self.len()).put(to);
        self.iter().for_each(|element| element.put(to));
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let count = from.count()?;
        (0..count).map(|_| T::take(from)).collect()
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        match bool::take(from)? {
            true => T::take(from).map(Some),
            false => Ok(None),
        }
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

/// As IPv6; IPv4 is mapped into it.
impl Field for IpAddr {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => *ip,
        }
        .octets()
        .put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Ok(Ipv6Addr::from(from.array::<16>()?).to_canonical())
    }
}

impl Field for SocketAddr {
    fn put(&self, to: &mut Vec<u8>) {
        self.ip().put(to);
        self.port().put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Ok(SocketAddr::new(IpAddr::take(from)?, u16::take(from)?))
    }
}

/// A structure is its fields, one after the other.
#[macro_export]
macro_rules! fields {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::fields::Field for $name {
            fn put(&self, to: &mut Vec<u8>) {
                $($crate::fields::Field::put(&self.$field, to);)*
            }

            fn take(from: &mut $crate::fields::Bytes) -> Result<Self, $crate::Malformed> {
                Ok(Self { $($field: $crate::fields::Field::take(from)?,)* })
            }
        }
    };
}

/// A message as the bytes of one frame.
pub trait Message: Sized {
    /// Its bytes, behind what is there.
    fn encode(&self, to: &mut Vec<u8>);
    /// From bytes, all of them.
    fn decode(bytes: &[u8]) -> Result<Self, Malformed>;
}

/// An enumeration of messages: a byte that says which, then its fields.
#[macro_export]
macro_rules! messages {
    ($(#[$about:meta])* $visible:vis $name:ident { $($(#[$text:meta])* $code:literal $kind:ident { $($field:ident: $type:ty),* $(,)? })* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each message says what its fields are")]
        $visible enum $name {
            $($(#[$text])* $kind { $($field: $type),* },)*
        }

        impl $crate::fields::Message for $name {
            fn encode(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$kind { $($field),* } => {
                        to.push($code);
                        $($crate::fields::Field::put($field, to);)*
                    })*
                }
            }

            fn decode(bytes: &[u8]) -> Result<Self, $crate::Malformed> {
                let (code, rest) = bytes.split_first().ok_or($crate::Malformed)?;
                let mut rest = $crate::fields::Bytes(rest);
                let message = match code {
                    $($code => Self::$kind { $($field: $crate::fields::Field::take(&mut rest)?),* },)*
                    _ => return Err($crate::Malformed),
                };
                if rest.0.is_empty() { Ok(message) } else { Err($crate::Malformed) }
            }
        }
    };
}
