//! The primitives of the handshake: AES-256-GCM, SHA-256 and random numbers from `ring`, X25519 from
//! `curve25519-dalek`.
//!
//! snow's resolver for `ring` has no key exchange.

use curve25519_dalek::montgomery::MontgomeryPoint;
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};

use crate::cipher::erase;

/// Provides the primitives to snow.
pub(crate) struct Primitives;

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        RingResolver.resolve_rng()
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let known = matches!(choice, DHChoice::Curve25519);
        known.then(|| Box::new(X25519::default()) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

/// X25519 with a key pair that is used for one handshake.
#[derive(Default)]
struct X25519 {
    private: [u8; 32],
    public: [u8; 32],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        self.public.len()
    }

    fn priv_len(&self) -> usize {
        self.private.len()
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = MontgomeryPoint::mul_base_clamped(self.private).to_bytes();
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), Error> {
        let mut private = [0; 32];
        random.try_fill_bytes(&mut private)?;
        self.set(&private);
        erase(&mut private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = public.first_chunk::<32>().ok_or(Error::Dh)?;
        let place = out.first_chunk_mut::<32>().ok_or(Error::Dh)?;
        *place = MontgomeryPoint(*public)
            .mul_clamped(self.private)
            .to_bytes();
        Ok(())
    }
}

impl Drop for X25519 {
    fn drop(&mut self) {
        erase(&mut self.private);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use snow::{Builder, HandshakeState};

    pub(crate) fn bytes(hex: &str) -> Vec<u8> {
        let digit = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    /// Returns one side of the test vector's handshake, with that side's ephemeral key.
    fn side(ephemeral: &str, called: bool) -> HandshakeState {
        let psk = *b"This is my Austrian perspective!";
        let ephemeral = bytes(ephemeral);
        let builder = Builder::with_resolver(
            crate::handshake::PATTERN.parse().unwrap(),
            Box::new(Primitives),
        );
        let builder = builder
            .psk(0, &psk)
            .unwrap()
            .prologue(b"John Galt")
            .unwrap();
        let builder = builder.fixed_ephemeral_key_for_testing_only(&ephemeral);
        match called {
            true => builder.build_initiator().unwrap(),
            false => builder.build_responder().unwrap(),
        }
    }

    /// The test vector of `cacophony`, another implementation of Noise, for this protocol.
    #[test]
    fn the_primitives_do_what_another_implementation_does() {
        let mut caller = side(
            "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
            true,
        );
        let mut callee = side(
            "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
            false,
        );
        let mut room = [0; 100];
        let n = caller
            .write_message(b"Ludwig von Mises", &mut room)
            .unwrap();
        let first = "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79447c37a89fc17813788d30df2d59501d6066f5f8aecc3406bbd9829f2d24a531b1";
        assert_eq!(room[..n], bytes(first));
        callee.read_message(&bytes(first), &mut [0; 16]).unwrap();
        let n = callee.write_message(b"Murray Rothbard", &mut room).unwrap();
        let second = "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088432f29d79368ef9de4e1ae7a362fb05bf0ad668e026bf5714554497b3a720461";
        assert_eq!(room[..n], bytes(second));
        caller.read_message(&bytes(second), &mut [0; 15]).unwrap();
        let [mut caller, mut callee] =
            [caller, callee].map(|side| side.into_transport_mode().unwrap());
        let n = caller.write_message(b"F. A. Hayek", &mut room).unwrap();
        let third = "7c01e898a6201f36aecee532e29cd0b7f8ffa29d3366ad0dce39a6";
        assert_eq!(room[..n], bytes(third));
        callee.read_message(&bytes(third), &mut [0; 11]).unwrap();
        let n = callee.write_message(b"Carl Menger", &mut room).unwrap();
        let fourth = "a9ff535aace3db6a1da1a7fb00fe2de2622bb373abad9fb42c00e0";
        assert_eq!(room[..n], bytes(fourth));
        caller.read_message(&bytes(fourth), &mut [0; 11]).unwrap();
    }
}
