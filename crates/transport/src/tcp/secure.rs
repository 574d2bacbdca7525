//! Encrypted connections: TLS 1.3, each side known to the other by a key that only the two can know.
//!
//! The handshake (see `shake`) leaves both sides with a seed: a keyed hash, under the job's key, of everything said, with a
//! fresh nonce of each. From the seed both derive the same Ed25519 key pair; in TLS, which begins after that, each
//! shows it as a raw public key, demands exactly it of the other, and checks the other's signature. So TLS
//! succeeds only with somebody who knows the job's key *and* took part in this very handshake: ranks cannot be
//! exchanged by somebody in the middle, nor two connections spliced. TLS signs different words as client and as
//! server, so nobody is taken in by his own signature. Its key exchange is ephemeral: who learns the job's key later
//! cannot read what was said before.
//!
//! The handshake over, rustls gives its keys away, and [`records`] goes on with them.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct,
    DistinguishedName, Error, PeerIncompatible, ServerConfig, ServerConnection, SignatureScheme,
    version,
};

use super::records::{self, Opener, Sealer};

/// What stands before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410).
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

/// What both verifiers of TLS say alike: only Ed25519 and bare keys, and nothing older than TLS 1.3.
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

/// TLS's handshake. It is fed a record at a time, so that what comes after it is not swallowed with its end.
#[derive(Debug)]
pub(crate) struct Handshake {
    tls: Connection,
    /// The record that is coming.
    record: Vec<u8>,
}

fn failed(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl Handshake {
    /// This side's end of an encrypted connection; the caller is TLS's client.
    pub(crate) fn begin(seed: &[u8; 32], called: bool) -> io::Result<Handshake> {
        let tls = connection(seed, called).map_err(|error| io::Error::other(error.to_string()))?;
        let record = Vec::new();
        Ok(Handshake { tls, record })
    }

    /// Nothing more to read or to write: the keys can be had.
    pub(crate) fn is_over(&self) -> bool {
        !self.tls.is_handshaking() && !self.tls.wants_write()
    }

    /// Go on as far as possible with a socket as it is.
    pub(crate) fn advance(&mut self, socket: &mut (impl Read + Write)) -> io::Result<()> {
        loop {
            while self.tls.wants_write() {
                match self.tls.write_tls(socket) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            if !self.tls.is_handshaking() || !self.read_record(socket)? {
                return Ok(());
            }
            self.tls.read_tls(&mut &self.record[..])?;
            self.record.clear();
            let processed = self.tls.process_new_packets();
            if let Err(error) = processed {
                // What it has to say about that, if the socket takes it.
                let _ = self.tls.write_tls(socket);
                return Err(failed(error));
            }
        }
    }

    /// Is a whole record there?
    fn read_record(&mut self, socket: &mut impl Read) -> io::Result<bool> {
        loop {
            let whole = match self.record.first_chunk::<{ records::HEAD }>() {
                None => records::HEAD,
                Some(head) => records::HEAD + records::length(head)?,
            };
            let have = self.record.len();
            if have == whole && whole > records::HEAD {
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

    /// What is sent and what is received from here on.
    pub(crate) fn finish(self) -> io::Result<(Sealer, Opener)> {
        let secrets = self.tls.dangerous_extract_secrets().map_err(failed)?;
        Ok((Sealer::new(&secrets.tx)?, Opener::new(&secrets.rx)?))
    }
}

fn connection(seed: &[u8; 32], called: bool) -> Result<Connection, Error> {
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
    let connection = if called {
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(only)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        config.enable_secret_extraction = true;
        let name = ServerName::try_from("task").map_err(|e| Error::General(e.to_string()))?;
        Connection::from(ClientConnection::new(Arc::new(config), name)?)
    } else {
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])?
            .with_client_cert_verifier(only)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
        config.send_tls13_tickets = 0;
        config.enable_secret_extraction = true;
        Connection::from(ServerConnection::new(Arc::new(config))?)
    };
    Ok(connection)
}
