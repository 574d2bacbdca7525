//! The identity of a host: one run of one daemon, at one address.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use regatta_wire::fields::{Bytes, Field};
use regatta_wire::{Malformed, fields};

/// Identifies one run of the daemon of one host.
///
/// A daemon that is restarted at the same address has a higher session and is a different host: what was promised to
/// the old one, and what it had promised, is void. A living daemon that the others have declared dead goes on with the
/// next session for the same reason. The nonce distinguishes two runs within one second.
///
/// Stored as plain bytes of a known size, because in a machine of ten thousand hosts every daemon has ten thousand of
/// them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId {
    ip: [u8; 16],
    port: u16,
    nonce: u16,
    session: u32,
}
fields!(HostId {
    ip,
    port,
    nonce,
    session
});

impl HostId {
    /// Encoded size, in bytes.
    pub const BYTES: usize = 24;

    /// Returns the id of run `session` of the daemon at `address`. `session` must increase from run to run (seconds
    /// since 1970 do), `nonce` is any number. Scope and flow of an IPv6 address are not kept: a link-local address
    /// cannot identify a host for other hosts.
    pub fn new(address: SocketAddr, session: u32, nonce: u16) -> HostId {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        HostId {
            ip: ip.octets(),
            port: address.port(),
            nonce,
            session,
        }
    }

    /// Returns the address at which its daemon listens.
    pub fn address(&self) -> SocketAddr {
        let ip = Ipv6Addr::from(self.ip);
        let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
        SocketAddr::new(ip, self.port)
    }

    /// Returns the number of the run.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// Returns the nonce, which distinguishes two runs that began within one second.
    pub fn nonce(&self) -> u16 {
        self.nonce
    }

    /// Returns whether both are runs of the daemon at the same address.
    pub fn same_place(&self, other: &HostId) -> bool {
        self.place() == other.place()
    }

    /// Returns whether its address is ordered before that of `other`, whatever their runs.
    pub(crate) fn is_before(&self, other: &HostId) -> bool {
        self.place() < other.place()
    }

    /// Returns whether this is a later run than `other` of the same daemon.
    pub fn succeeds(&self, other: &HostId) -> bool {
        self.same_place(other) && self.run() > other.run()
    }

    /// Returns the id under which a living daemon goes on after `taken` was declared dead: with the session after it.
    pub(crate) fn next(&self, taken: &HostId) -> HostId {
        HostId {
            session: self.session.max(taken.session).saturating_add(1),
            ..*self
        }
    }

    fn place(&self) -> ([u8; 16], u16) {
        (self.ip, self.port)
    }

    fn run(&self) -> (u32, u16) {
        (self.session, self.nonce)
    }
}

impl std::fmt::Debug for HostId {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}#{}.{}", self.address(), self.session, self.nonce)
    }
}

impl foca::Identity for HostId {
    type Addr = ([u8; 16], u16);

    fn renew(&self) -> Option<HostId> {
        Some(self.next(self))
    }

    fn addr(&self) -> Self::Addr {
        self.place()
    }

    fn win_addr_conflict(&self, other: &HostId) -> bool {
        self.run() > other.run()
    }
}

/// Facts about a host besides its address. They are spread once, when the host arrives.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Facts {
    /// The name that people use. Only the address is unique.
    pub name: String,
    /// Number of cores that tasks may use.
    pub cores: u16,
    /// The architecture, as the compiler calls it.
    pub architecture: String,
}

impl Facts {
    /// Maximum length of the name and of the architecture, in bytes. Longer ones are cut.
    pub const TEXT: usize = 64;
}

/// Texts are short, and are encoded with a length of one byte.
impl Field for Facts {
    fn put(&self, to: &mut Vec<u8>) {
        self.cores.put(to);
        for text in [&self.name, &self.architecture] {
            let end = text.floor_char_boundary(Facts::TEXT);
            to.push(end as u8);
            to.extend_from_slice(&text.as_bytes()[..end]);
        }
    }

    fn take(from: &mut Bytes) -> Result<Facts, Malformed> {
        let cores = Field::take(from)?;
        let mut text = || {
            let [length] = <[u8; 1]>::take(from)?;
            let length = Some(usize::from(length)).filter(|&length| length <= Facts::TEXT);
            let text = from.split(length.ok_or(Malformed)?)?;
            String::from_utf8(text.to_vec()).map_err(|_| Malformed)
        };
        Ok(Facts {
            name: text()?,
            architecture: text()?,
            cores,
        })
    }
}
