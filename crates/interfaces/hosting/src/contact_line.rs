//! The contact line, with which a launcher reaches an agent that was started separately.
//!
//! ```text
//! ddpro<2316> arch<x86_64> ip<10.0.0.2,127.0.0.1> port<35615> key<00112233445566778899aabbccddeeff>
//! ```
//!
//! The program that starts the agent passes the line on to the launcher unchanged. It looks like the line of PVM's
//! daemons, so that programs that start these recognize it: they skip lines that do not begin with `ddpro`, and have
//! room for 255 bytes. The key is generated for this line, and is valid for one connection. Whoever knows the key is
//! accepted as the agent's launcher.

use std::net::IpAddr;

use regatta_launch::Refusal;
use regatta_segment::place::Key;
use regatta_wire::hello::PROOF_BYTES;

/// Beginning of a line of PVM's daemons, with their protocol's version.
const BEGIN: &str = "ddpro<2316>";
/// Maximum length in bytes of a line that every program that starts daemons can take.
const MAX_LINE_BYTES: usize = 250;
/// Number of random bytes of the key, which is short enough to be typed.
const SECRET: usize = 16;

/// Addresses and key of an agent that was started separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContactLine {
    /// Possible addresses of the agent, the likeliest first.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) port: u16,
    secret: [u8; SECRET],
}

impl ContactLine {
    /// Makes a contact line with a new key.
    pub(crate) fn new(addresses: Vec<IpAddr>, port: u16) -> Result<ContactLine, Refusal> {
        let mut secret = [0; SECRET];
        rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty()).map_err(
            |errno| {
                Refusal::of_regatta(format!(
                    "the system cannot provide random numbers for a key: {errno}"
                ))
            },
        )?;
        Ok(ContactLine {
            addresses,
            port,
            secret,
        })
    }

    /// Returns the key that both ends prove to have.
    pub(crate) fn key(&self) -> Key {
        let mut key = [0; PROOF_BYTES];
        key[..SECRET].copy_from_slice(&self.secret);
        Key::taken(&mut key)
    }

    /// Returns the line without a newline. Addresses that do not fit are left out.
    pub(crate) fn text(&self) -> String {
        let arch = std::env::consts::ARCH;
        let secret: String = self
            .secret
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let with = |addresses: &str| {
            let port = self.port;
            format!("{BEGIN} arch<{arch}> ip<{addresses}> port<{port}> key<{secret}>")
        };
        let mut addresses = String::new();
        for address in &self.addresses {
            let comma = if addresses.is_empty() { "" } else { "," };
            let more = format!("{addresses}{comma}{address}");
            if with(&more).len() <= MAX_LINE_BYTES {
                addresses = more;
            }
        }
        with(&addresses)
    }

    /// Parses a line. Returns `None` if it is no contact line. Ignores unknown words in it.
    pub(crate) fn read(line: &str) -> Option<ContactLine> {
        let line = line.trim();
        if line.len() > MAX_LINE_BYTES || !line.starts_with(BEGIN) {
            return None;
        }
        let value = |name: &str| {
            line.split(' ').find_map(|word| {
                let value = word.strip_prefix(name)?.strip_prefix('<')?;
                value.strip_suffix('>')
            })
        };
        let addresses = value("ip")?.split(',').filter(|text| !text.is_empty());
        let addresses: Option<Vec<IpAddr>> = addresses.map(|text| text.parse().ok()).collect();
        Some(ContactLine {
            addresses: addresses?,
            port: value("port")?.parse().ok().filter(|&port| port != 0)?,
            secret: secret(value("key")?.as_bytes())?,
        })
    }
}

fn secret(digits: &[u8]) -> Option<[u8; SECRET]> {
    let mut bytes = [0; SECRET];
    if digits.len() != 2 * SECRET {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contact_line(count: u8) -> ContactLine {
        let address = |n: u8| {
            IpAddr::from([
                0xfd,
                0,
                0x1234,
                0x5678,
                0x9abc,
                0xdef0,
                0xffff,
                u16::from(n) + 0x1000,
            ])
        };
        ContactLine::new((0..count).map(address).collect(), 35615).expect("a contact line")
    }

    #[test]
    fn a_contact_line_is_read_as_it_was_made() {
        let short = contact_line(2);
        assert_eq!(ContactLine::read(&short.text()), Some(short.clone()));
        assert_eq!(
            ContactLine::read(&format!("  {}\r\n", short.text())),
            Some(short)
        );
    }

    #[test]
    fn a_line_is_never_too_long_for_those_who_read_it() {
        let long = contact_line(20);
        assert!(long.text().len() <= MAX_LINE_BYTES);
        let read = ContactLine::read(&long.text()).expect("a contact line");
        assert_eq!(read.key(), long.key());
        assert!(read.addresses.len() > 2 && long.addresses.starts_with(&read.addresses));
    }

    #[test]
    fn each_contact_line_has_a_key_of_its_own() {
        assert_ne!(contact_line(1).key(), contact_line(1).key());
    }

    #[test]
    fn what_is_no_contact_line_is_none() {
        let line = contact_line(1).text();
        for end in 0..line.len() {
            assert_eq!(ContactLine::read(&line[..end]), None, "{end}");
        }
        for (from, to) in [
            ("key<", "key<g"),
            ("port<35615>", "port<0>"),
            ("port<35615>", "port<65536>"),
            ("ip<", "ip<300.1.1.1,"),
            ("2316", "2315"),
        ] {
            assert_eq!(ContactLine::read(&line.replacen(from, to, 1)), None, "{to}");
        }
        let pvm = "ddpro<2316> arch<LINUX64> ip<7f000001:8b1f> mtu<4080> dsig<4229185>";
        assert_eq!(ContactLine::read(pvm), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_contact_line_or_none(text in "\\PC*", tail in "[<>a-z0-9., ]{0,80}") {
            let _ = ContactLine::read(&text);
            let _ = ContactLine::read(&format!("{BEGIN} {tail}"));
        }
    }
}
