//! Private keys of the forms that programs write: PKCS#8, and the older forms of RSA and ECDSA
//! keys, which are put into PKCS#8 because that is what `ring` reads.

use rcgen::KeyPair;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

const SEQUENCE: u8 = 0x30;
const OCTET_STRING: u8 = 0x04;
/// `INTEGER 0`.
const VERSION: [u8; 3] = [0x02, 0x01, 0x00];
/// What algorithm a key is for: `rsaEncryption`, with `NULL`.
const RSA: &[u8] =
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
/// `ecPublicKey` with `prime256v1`.
const P256: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
    0xce, 0x3d, 0x03, 0x01, 0x07,
];
/// `ecPublicKey` with `secp384r1`.
const P384: &[u8] = &[
    0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04,
    0x00, 0x22,
];

/// The first private key of a PEM text, after whatever else stands in it.
pub(super) fn read(pem: &str) -> Option<KeyPair> {
    match PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()? {
        PrivateKeyDer::Pkcs8(key) => KeyPair::try_from(&key).ok(),
        PrivateKeyDer::Pkcs1(key) => wrapped(RSA, key.secret_pkcs1_der()),
        PrivateKeyDer::Sec1(key) => {
            let key = key.secret_sec1_der();
            wrapped(P256, key).or_else(|| wrapped(P384, key))
        }
        _ => None,
    }
}

fn wrapped(algorithm: &[u8], key: &[u8]) -> Option<KeyPair> {
    let key = element(OCTET_STRING, &[key]);
    let pkcs8 = element(SEQUENCE, &[&VERSION, algorithm, &key]);
    KeyPair::try_from(&PrivatePkcs8KeyDer::from(&**pkcs8)).ok()
}

/// One element of DER. Its contents are shorter than 64 KiB, as keys are.
fn element(tag: u8, parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let [high, low] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    // So large that it does not move while it grows: what it held before would not be wiped.
    let mut der = Vec::with_capacity(length + 4);
    match (high, low) {
        (0, 0..0x80) => der.extend([tag, low]),
        (0, _) => der.extend([tag, 0x81, low]),
        _ => der.extend([tag, 0x82, high, low]),
    }
    for part in parts {
        der.extend_from_slice(part);
    }
    Zeroizing::new(der)
}
