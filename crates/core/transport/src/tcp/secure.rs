//! Encrypted connections: TLS 1.3, each side known to the other by a key that only the two can know.
//!
//! The handshake (see `handshake`) leaves both sides with a seed: a keyed hash, under the job's key, of everything said, with a
//! fresh nonce of each. From the seed both derive the same Ed25519 key pair; in TLS, which begins after that, each
//! shows it as a raw public key, demands exactly it of the other, and checks the other's signature. So TLS
//! succeeds only with somebody who knows the job's key *and* took part in this very handshake: ranks cannot be
//! exchanged by somebody in the middle, nor two connections spliced. TLS signs different words as client and as
//! server, so nobody is taken in by his own signature. Its key exchange is ephemeral: who learns the job's key later
//! cannot read what was said before.
//!
//! The handshake over, rustls gives its keys away, and [`records`] goes on with them; the traffic secrets stay with rustls,
//! which derives from them the keys that follow (RFC 8446, section 7.2).

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    AlwaysResolvesClientRawPublicKeys, ClientConnectionData, Resumption, UnbufferedClientConnection,
};
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::kernel::KernelConnection;
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{
    AlwaysResolvesServerRawPublicKeys, ServerConnectionData, UnbufferedServerConnection,
};
use rustls::sign::CertifiedKey;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error,
    PeerIncompatible, ServerConfig, SignatureScheme, version,
};

use super::records::{self, NextKeys, Opener, Sealer, Secrets};

/// The bytes before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410).
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Takes exactly one key, and only signatures by it.
#[derive(Debug)]
struct Only {
    key: SubjectPublicKeyInfoDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Only {
    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        match shown.as_ref() == self.key.as_ref() {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn signed(
        &self,
        message: &[u8],
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &self.key, signature, known)
    }
}

/// The common part of both verifiers of TLS: only Ed25519 and bare keys, and nothing older than TLS 1.3.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _cert: &CertificateDer<'_>,
            _dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(PeerIncompatible::ServerDoesNotSupportTls12Or13.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            _cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.signed(message, dss)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for Only {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity)
            .map(|()| ServerCertVerified::assertion())
    }

    signatures!();
}

impl ClientCertVerifier for Only {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity)
            .map(|()| ClientCertVerified::assertion())
    }

    signatures!();
}

/// Bytes of whole records that may wait for the rest of a message of the handshake.
const MOST_WAITING: usize = 64 << 10;

/// Which end of TLS this is.
enum Side {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
}

impl std::fmt::Debug for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Side::Client(_) => "Client",
            Side::Server(_) => "Server",
        })
    }
}

/// The next need of a handshake.
enum Next {
    Nothing,
    /// That all that is to be sent is sent.
    Sent,
    /// One more record.
    Record,
    Over,
}

/// TLS's handshake. It is fed a record at a time, so that what comes after it is not swallowed with its end.
#[derive(Debug)]
pub(crate) struct Handshake {
    side: Side,
    /// The record that is coming.
    record: Vec<u8>,
    /// Whole records that rustls has not done with.
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    over: bool,
}

fn failed(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// Does what rustls asks for, as far as that needs no socket; how many bytes it is done with, and what it needs next.
fn handle_status<D>(
    status: UnbufferedStatus<'_, '_, D>,
    outgoing: &mut Vec<u8>,
) -> (usize, Result<Next, Error>) {
    let next = status.state.and_then(|state| match state {
        ConnectionState::EncodeTlsData(data) => encode(data, outgoing).map(|()| Next::Nothing),
        ConnectionState::TransmitTlsData(data) if outgoing.is_empty() => {
            data.done();
            Ok(Next::Nothing)
        }
        ConnectionState::TransmitTlsData(_) => Ok(Next::Sent),
        ConnectionState::BlockedHandshake => Ok(Next::Record),
        ConnectionState::WriteTraffic(_) => Ok(Next::Over),
        _ => Err(Error::General("a handshake ends too early".into())),
    });
    (status.discard, next)
}

fn encode<D>(mut data: EncodeTlsData<'_, D>, outgoing: &mut Vec<u8>) -> Result<(), Error> {
    let begin = outgoing.len();
    // Without room it says how much it needs.
    let needed = match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(size)) => size.required_size,
        _ => 0,
    };
    outgoing.resize(begin + needed, 0);
    let encoded = data.encode(&mut outgoing[begin..]);
    let length = encoded.map_err(|error| Error::General(error.to_string()))?;
    outgoing.truncate(begin + length);
    Ok(())
}

impl Handshake {
    /// This side's end of an encrypted connection; the caller is TLS's client.
    pub(crate) fn begin(seed: &[u8; 32], called: bool) -> io::Result<Handshake> {
        Ok(Handshake {
            side: side(seed, called).map_err(|error| io::Error::other(error.to_string()))?,
            record: Vec::new(),
            incoming: Vec::new(),
            outgoing: Vec::new(),
            over: false,
        })
    }

    /// Nothing more to read or to write: the keys can be had.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Go on as far as possible with a socket as it is.
    pub(crate) fn advance(&mut self, socket: &mut (impl Read + Write)) -> io::Result<()> {
        while !self.over {
            let may_go_on = match self.step() {
                Ok(Next::Nothing) => true,
                Ok(Next::Sent) => self.flush(socket)?,
                Ok(Next::Record) => self.read_record(socket)?,
                Ok(Next::Over) => {
                    self.over = true;
                    true
                }
                Err(error) => {
                    // The alert goes out if the socket takes it. After an error rustls must not look at what comes again.
                    while self.has_more_to_send() && self.step().is_ok() {}
                    let _ = self.flush(socket);
                    return Err(failed(error));
                }
            };
            if !may_go_on {
                return Ok(());
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Next, Error> {
        let (incoming, outgoing) = (&mut self.incoming, &mut self.outgoing);
        let ((done, next), under) = match &mut self.side {
            Side::Client(tls) => {
                let heeded = handle_status(tls.process_tls_records(incoming), outgoing);
                (heeded, tls.is_handshaking())
            }
            Side::Server(tls) => {
                let heeded = handle_status(tls.process_tls_records(incoming), outgoing);
                (heeded, tls.is_handshaking())
            }
        };
        self.incoming.drain(..done);
        match next? {
            // It could send already; but the other side has not proved who it is.
            Next::Over if under => Ok(Next::Record),
            next => Ok(next),
        }
    }

    /// Has rustls something to send that is not in `outgoing` yet?
    fn has_more_to_send(&self) -> bool {
        match &self.side {
            Side::Client(tls) => tls.wants_write(),
            Side::Server(tls) => tls.wants_write(),
        }
    }

    /// Has all been sent?
    fn flush(&mut self, socket: &mut impl Write) -> io::Result<bool> {
        while !self.outgoing.is_empty() {
            match socket.write(&self.outgoing) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => drop(self.outgoing.drain(..n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Has a whole record come?
    fn read_record(&mut self, socket: &mut impl Read) -> io::Result<bool> {
        loop {
            let whole = match self.record.first_chunk::<{ records::HEAD }>() {
                None => records::HEAD,
                Some(head) => records::HEAD + records::length(head)?,
            };
            let have = self.record.len();
            if have == whole && have >= records::HEAD {
                if self.incoming.len() > MOST_WAITING {
                    return Err(failed(Error::General("a handshake without end".into())));
                }
                self.incoming.append(&mut self.record);
                return Ok(true);
            }
            self.record.resize(whole, 0);
            let read = socket.read(&mut self.record[have..]);
            self.record.truncate(have + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// The two directions from here on, and the source of the keys after the first. This side changes its own after `limit` records.
    pub(crate) fn finish(self, limit: u64) -> io::Result<(Sealer, Opener, Keys)> {
        let is_clean = self.incoming.is_empty() && self.outgoing.is_empty();
        let (secrets, keys) = match self.side {
            Side::Client(tls) => {
                let parts = tls.dangerous_into_kernel_connection();
                let (secrets, keys) = parts.map_err(failed)?;
                (secrets, Keys::Client(Box::new(keys)))
            }
            Side::Server(tls) => {
                let parts = tls.dangerous_into_kernel_connection();
                let (secrets, keys) = parts.map_err(failed)?;
                (secrets, Keys::Server(Box::new(keys)))
            }
        };
        // A record under these keys that rustls has taken already, such as a ticket, is not part of a handshake of ours.
        if !is_clean || (secrets.tx.0, secrets.rx.0) != (0, 0) {
            return Err(failed(Error::General(
                "a handshake is not over at its end".into(),
            )));
        }
        let sealer = Sealer::new(&secrets.tx, limit)?;
        Ok((sealer, Opener::new(&secrets.rx)?, keys))
    }
}

/// The traffic secrets of a connection.
pub(crate) enum Keys {
    Client(Box<KernelConnection<ClientConnectionData>>),
    Server(Box<KernelConnection<ServerConnectionData>>),
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

impl NextKeys for Keys {
    fn sending(&mut self) -> io::Result<Secrets> {
        let next = match self {
            Keys::Client(keys) => keys.update_tx_secret(),
            Keys::Server(keys) => keys.update_tx_secret(),
        };
        next.map_err(failed)
    }

    fn receiving(&mut self) -> io::Result<Secrets> {
        let next = match self {
            Keys::Client(keys) => keys.update_rx_secret(),
            Keys::Server(keys) => keys.update_rx_secret(),
        };
        next.map_err(failed)
    }
}

fn side(seed: &[u8; 32], called: bool) -> Result<Side, Error> {
    let mut provider = ring::default_provider();
    // The quicker of its two ciphers that processors have instructions for, and no more than is needed.
    provider.cipher_suites = vec![TLS13_AES_128_GCM_SHA256];
    let provider = Arc::new(provider);
    let pkcs8 = [&PKCS8[..], seed].concat();
    let signer = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8))?;
    let key = signer
        .public_key()
        .ok_or(Error::General("a key without its public half".into()))?
        .into_owned();
    let shown = CertificateDer::from(key.as_ref().to_vec());
    let own = Arc::new(CertifiedKey::new(vec![shown], signer));
    let only = Arc::new(Only {
        key,
        provider: provider.clone(),
    });
    Ok(if called {
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(only)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        config.enable_secret_extraction = true;
        let name = ServerName::try_from("task").map_err(|e| Error::General(e.to_string()))?;
        let tls = UnbufferedClientConnection::new(Arc::new(config), name)?;
        Side::Client(Box::new(tls))
    } else {
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])?
            .with_client_cert_verifier(only)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
        config.send_tls13_tickets = 0;
        config.enable_secret_extraction = true;
        let tls = UnbufferedServerConnection::new(Arc::new(config))?;
        Side::Server(Box::new(tls))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::IoSlice;

    /// One end of a connection within a test.
    #[derive(Default)]
    struct End {
        comes: Vec<u8>,
        goes: Vec<u8>,
    }

    impl Read for End {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.comes.len());
            bytes[..n].copy_from_slice(&self.comes[..n]);
            self.comes.drain(..n);
            match n {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                n => Ok(n),
            }
        }
    }

    impl Write for End {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Every write is cut short.
            let n = bytes.len().min(100);
            self.goes.extend_from_slice(&bytes[..n]);
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Both ends shake hands, of whom each has a seed, until both are done or one has failed. `on_the_way` gets all that is
    /// sent, with the number of the sender: 0 for the caller.
    fn shake(
        seeds: [[u8; 32]; 2],
        mut on_the_way: impl FnMut(usize, Vec<u8>) -> Vec<u8>,
    ) -> [io::Result<Handshake>; 2] {
        let mut sides = [0, 1].map(|side| Handshake::begin(&seeds[side], side == 0));
        let mut ends = [End::default(), End::default()];
        loop {
            let mut moved = false;
            for me in [0, 1] {
                if let Ok(side) = &mut sides[me]
                    && let Err(error) = side.advance(&mut ends[me])
                {
                    sides[me] = Err(error);
                }
                let bytes = std::mem::take(&mut ends[me].goes);
                moved |= !bytes.is_empty();
                let bytes = on_the_way(me, bytes);
                ends[1 - me].comes.extend(bytes);
            }
            if !moved {
                return sides;
            }
        }
    }

    fn is_met(side: &io::Result<Handshake>) -> bool {
        side.as_ref().is_ok_and(Handshake::is_over)
    }

    /// Each record of a handshake that is not encrypted as two.
    fn in_halves(mut bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        while let Some((head, rest)) = bytes.split_first_chunk::<{ records::HEAD }>() {
            let (body, rest) = rest.split_at(records::length(head).unwrap());
            let parts = match head[0] {
                22 => vec![&body[..body.len() / 2], &body[body.len() / 2..]],
                _ => vec![body],
            };
            for part in parts {
                out.extend_from_slice(&head[..3]);
                out.extend_from_slice(&(part.len() as u16).to_be_bytes());
                out.extend_from_slice(part);
            }
            bytes = rest;
        }
        out
    }

    fn transmit(from: &mut (Sealer, Opener, Keys), to: &mut (Sealer, Opener, Keys), text: &[u8]) {
        let mut wire = vec![];
        let sent = from.0.send(&[IoSlice::new(text)], &mut from.2, |bytes| {
            wire.extend_from_slice(bytes);
            Ok(Some(bytes.len()))
        });
        assert_eq!(sent.unwrap(), text.len());
        let mut got = vec![0; text.len()];
        let received =
            to.1.recv(&mut [io::IoSliceMut::new(&mut got)], &mut to.2, |room| {
                room[..wire.len()].copy_from_slice(&wire);
                Ok(Some(wire.len()))
            });
        assert_eq!((received.unwrap(), &got[..]), (Some(text.len()), text));
    }

    #[test]
    fn two_who_know_the_seed_have_the_same_keys_and_the_same_next_ones() {
        for cut in [false, true] {
            let sides = shake([[1; 32]; 2], |_, bytes| match cut {
                true => in_halves(&bytes),
                false => bytes,
            });
            let [mut caller, mut callee] = sides.map(|side| side.unwrap().finish(0).unwrap());
            // The directions change their keys at different times.
            for number in 0..3 * records::LEAST {
                transmit(&mut caller, &mut callee, &number.to_le_bytes());
                if number % 2 == 0 {
                    transmit(&mut callee, &mut caller, b"answer");
                }
            }
        }
    }

    #[test]
    fn another_seed_ends_the_handshake_and_both_know() {
        let sides = shake([[1; 32], [2; 32]], |_, bytes| bytes);
        assert!(sides.iter().all(Result::is_err));
    }

    proptest! {
        #[test]
        fn a_handshake_changed_on_the_way_gives_both_the_same_keys_or_none(
            who in 0usize..2, at in 0usize..1500, change in 1u8..,
        ) {
            let mut passed = 0;
            let sides = shake([[1; 32]; 2], |from, mut bytes| {
                if from == who {
                    if let Some(byte) = at.checked_sub(passed).and_then(|at| bytes.get_mut(at)) {
                        *byte ^= change;
                    }
                    passed += bytes.len();
                }
                bytes
            });
            // The version in the head of a record means nothing, so that a change there may pass.
            if sides.iter().all(is_met) {
                let [mut caller, mut callee] = sides.map(|side| side.unwrap().finish(0).unwrap());
                transmit(&mut caller, &mut callee, b"question");
                transmit(&mut callee, &mut caller, b"answer");
            }
        }
    }
}
