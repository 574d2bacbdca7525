//! Values as bytes: little-endian numbers, and a length in front of each value of variable length. All of this
//! project's messages are made of these.
//!
//! Pure and bounded: no input panics, and none makes the decoder reserve more memory than the input has bytes (times
//! the size of an element). `take(put(x)) == x` for all values, which is tested with arbitrary ones.
//!
//! [`fields!`](crate::fields!) makes a structure a [`Field`], [`choices!`](crate::choices!) an enumeration, and
//! [`messages!`](crate::messages!) declares an enumeration of messages.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::Malformed;

/// The unread part of a message.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// Splits the first `count` bytes off.
    pub fn split(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.split(N)?.try_into().map_err(|_| Malformed)
    }

    /// Takes a number of elements. Fails if it exceeds the bytes that are left, as each element takes at least one
    /// byte.
    fn count(&mut self) -> Result<usize, Malformed> {
        let count = u32::take(self)? as usize;
        (count <= self.0.len()).then_some(count).ok_or(Malformed)
    }
}

/// A value that can be part of a message.
pub trait Field: Sized {
    /// Appends the value's bytes to `to`.
    fn put(&self, to: &mut Vec<u8>);
    /// Takes a value from the front of `from`.
    fn take(from: &mut Bytes) -> Result<Self, Malformed>;
}

/// Returns the bytes of a value.
pub fn bytes_of(value: &impl Field) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.put(&mut bytes);
    bytes
}

/// Decodes a value. Fails if bytes are left over.
pub fn whole<T: Field>(bytes: &[u8]) -> Result<T, Malformed> {
    let mut rest = Bytes(bytes);
    let value = T::take(&mut rest)?;
    rest.0.is_empty().then_some(value).ok_or(Malformed)
}

/// Concatenates the parts of a message, `N` bytes in all, without allocating.
#[inline]
pub(crate) fn joined<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let (mut bytes, mut at) = ([0; N], 0);
    for part in parts {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    bytes
}

/// Returns the bytes of the values one after the other, without a count.
pub fn bytes_of_all<T: Field>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(values));
    values.iter().for_each(|value| value.put(&mut bytes));
    bytes
}

/// Decodes values until no bytes are left.
pub fn all<T: Field>(bytes: &[u8]) -> Result<Vec<T>, Malformed> {
    let (mut rest, mut values) = (Bytes(bytes), Vec::new());
    while !rest.0.is_empty() {
        let before = rest.0.len();
        values.push(T::take(&mut rest)?);
        // A value of no bytes would make this loop endless.
        (rest.0.len() < before).then_some(()).ok_or(Malformed)?;
    }
    Ok(values)
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
    // No such length fits into a frame: the sender refuses the message when it makes the frame.
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// Bytes as they are: used for a program's output and for names, which need not be UTF-8.
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

/// A list of at most 255 elements, whose count takes one byte. Further elements are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Short<T>(pub Vec<T>);

impl<T: Field> Field for Short<T> {
    fn put(&self, to: &mut Vec<u8>) {
        let count = self.0.len().min(u8::MAX.into());
        to.push(count as u8);
        self.0[..count].iter().for_each(|element| element.put(to));
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let [count] = <[u8; 1]>::take(from)?;
        (0..count)
            .map(|_| T::take(from))
            .collect::<Result<_, _>>()
            .map(Short)
    }
}

/// All bytes that are left: the last field of a message whose length is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest(pub Vec<u8>);

impl Field for Rest {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.0);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        from.split(from.0.len()).map(|rest| Rest(rest.to_vec()))
    }
}

/// Encoded as a list of its pairs.
impl<K: Field + Ord, V: Field> Field for BTreeMap<K, V> {
    fn put(&self, to: &mut Vec<u8>) {
        length(self.len()).put(to);
        for (key, value) in self {
            key.put(to);
            value.put(to);
        }
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Ok(Vec::<(K, V)>::take(from)?.into_iter().collect())
    }
}

macro_rules! tuples {
    ($(($($of:ident $at:tt),*))*) => {$(
        impl<$($of: Field),*> Field for ($($of,)*) {
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$at.put(to);)*
            }

            fn take(from: &mut Bytes) -> Result<Self, Malformed> {
                Ok(($($of::take(from)?,)*))
            }
        }
    )*};
}
tuples!((A 0, B 1)(A 0, B 1, C 2)(A 0, B 1, C 2, D 3));

/// Encoded as IPv6; an IPv4 address is mapped.
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

/// Implements [`Field`] for a structure: its fields, one after the other.
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

/// Implements [`Field`] for an enumeration: a byte that identifies the variant, then the
/// variant's fields.
#[macro_export]
macro_rules! choices {
    ($name:ident { $($code:literal $kind:ident $(($($part:ident),*))? $({ $($field:ident),* })?),* $(,)? }) => {
        impl $crate::fields::Field for $name {
            fn put(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$kind $(($($part),*))? $({ $($field),* })? => {
                        to.push($code);
                        $($($crate::fields::Field::put($part, to);)*)?
                        $($($crate::fields::Field::put($field, to);)*)?
                    })*
                }
            }

            fn take(from: &mut $crate::fields::Bytes) -> Result<Self, $crate::Malformed> {
                Ok(match <[u8; 1] as $crate::fields::Field>::take(from)? {
                    $([$code] => {
                        $($(let $part = $crate::fields::Field::take(from)?;)*)?
                        $($(let $field = $crate::fields::Field::take(from)?;)*)?
                        Self::$kind $(($($part),*))? $({ $($field),* })?
                    })*
                    _ => return Err($crate::Malformed),
                })
            }
        }
    };
}

/// A message that is encoded as one frame.
pub trait Message: Sized {
    /// Appends the message's bytes to `to`.
    fn encode(&self, to: &mut Vec<u8>);
    /// Decodes a message. Fails if bytes are left over.
    fn decode(bytes: &[u8]) -> Result<Self, Malformed>;
}

/// Declares an enumeration of messages: a byte that identifies the message, then its fields.
#[macro_export]
macro_rules! messages {
    ($(#[$about:meta])* $visible:vis $name:ident { $($(#[$text:meta])* $code:literal $kind:ident { $($field:ident: $type:ty),* $(,)? })* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each message says what its fields are")]
        $visible enum $name {
            $($(#[$text])* $kind { $($field: $type),* },)*
        }

        $crate::choices!($name { $($code $kind { $($field),* }),* });

        impl $crate::fields::Message for $name {
            fn encode(&self, to: &mut Vec<u8>) {
                $crate::fields::Field::put(self, to);
            }

            fn decode(bytes: &[u8]) -> Result<Self, $crate::Malformed> {
                $crate::fields::whole(bytes)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    enum Shape {
        Point,
        Circle(u16, Option<bool>),
        Path {
            steps: Short<(u16, i64, [u8; 3])>,
            name: String,
            rest: Rest,
        },
    }
    choices!(Shape {
        3 Point,
        4 Circle(radius, filled),
        7 Path { steps, name, rest }
    });

    fn shape() -> impl Strategy<Value = Shape> {
        let steps = prop::collection::vec(any::<(u16, i64, [u8; 3])>(), 0..4);
        prop_oneof![
            Just(Shape::Point),
            any::<(u16, Option<bool>)>().prop_map(|(radius, filled)| Shape::Circle(radius, filled)),
            (steps, any::<String>(), any::<Vec<u8>>()).prop_map(|(steps, name, rest)| {
                Shape::Path {
                    steps: Short(steps),
                    name,
                    rest: Rest(rest),
                }
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_was_put_is_taken(
            one in shape(), map: BTreeMap<u32, Vec<u16>>, words: Vec<u64>, address: SocketAddr,
        ) {
            prop_assert_eq!(whole(&bytes_of(&one)), Ok(one));
            prop_assert_eq!(whole(&bytes_of(&map)), Ok(map));
            prop_assert_eq!(all(&bytes_of_all(&words)), Ok(words));
            let place = (address.ip().to_canonical(), address.port());
            prop_assert_eq!(whole(&bytes_of(&address)), Ok(SocketAddr::from(place)));
        }

        #[test]
        fn any_bytes_are_taken_or_refused(code in 2_u8..9, mut bytes in prop::collection::vec(0_u8..4, 0..40)) {
            bytes.insert(0, code);
            if let Ok(shape) = whole::<Shape>(&bytes) {
                prop_assert_eq!(bytes_of(&shape), &bytes[..]);
            }
            let _ = whole::<BTreeMap<u32, Vec<u16>>>(&bytes);
            prop_assert_eq!(all::<u16>(&bytes).is_ok(), bytes.len() % 2 == 0);
        }
    }

    #[test]
    fn a_short_list_has_a_byte_for_its_count() {
        assert_eq!(bytes_of(&Short(vec![1_u16, 2])), [2, 1, 0, 2, 0]);
        assert_eq!(bytes_of(&Short(vec![7_u16; 300])).len(), 1 + 255 * 2);
        assert_eq!(bytes_of(&Shape::Point), [3]);
        assert_eq!(whole::<Shape>(&[3, 0]), Err(Malformed));
        assert_eq!(all::<[u8; 0]>(&[1]), Err(Malformed));
    }
}
