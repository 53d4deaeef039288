//! A serving certificate: a chain and its key, from files, made at start ([`self_signed`]), or given by
//! the program ([`SuppliedCertificate`]).

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, io};

use parking_lot::RwLock;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::fs;
use tokio::io::AsyncWriteExt;
use transport::PemProblem;

use crate::ServeError;

/// The pair that new handshakes get, but for names that have one of their own: probes come by IP
/// address.
#[derive(Debug)]
pub(crate) struct Current(RwLock<Arc<CertifiedKey>>);

impl Current {
    pub(crate) fn new(key: CertifiedKey) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(key))))
    }

    pub(crate) fn current(&self) -> Arc<CertifiedKey> {
        self.0.read().clone()
    }

    pub(crate) fn replace(&self, key: CertifiedKey) {
        *self.0.write() = Arc::new(key);
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Where a pair lives on disk.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// PEM text of a chain, leaf first, and of the leaf's key. Not `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) chain: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

impl Pair {
    pub(crate) async fn read(paths: &Paths) -> Result<Self, ServeError> {
        Ok(Self { chain: read(&paths.cert).await?, key: read(&paths.key).await? })
    }

    /// Writes both files, the key readable by its owner only. They change places with the old ones
    /// back to back, so that a crash can hardly leave two halves that do not fit.
    pub(crate) async fn write(&self, paths: &Paths) -> Result<(), ServeError> {
        let key = Prepared::write(&paths.key, &self.key, 0o600).await?;
        let chain = Prepared::write(&paths.cert, &self.chain, 0o644).await?;
        key.move_into_place().await?;
        chain.move_into_place().await
    }

    /// Parses both and checks that they belong together; `name` is for the message.
    pub(crate) fn certified_key(&self, name: &str) -> Result<CertifiedKey, ServeError> {
        let bad = |reason: String| ServeError::BadPair { name: name.to_owned(), reason };
        let chain = CertificateDer::pem_slice_iter(&self.chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| bad(format!("it is not PEM: {}", PemProblem::from(error))))?;
        if chain.is_empty() {
            return Err(bad("the file holds no PEM certificate".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| bad(format!("its private key: {}", PemProblem::from(error))))?;
        CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|error| bad(error.to_string()))
    }
}

impl Paths {
    /// Whether both files are there.
    pub(crate) async fn exist(&self) -> bool {
        fs::try_exists(&self.cert).await.unwrap_or(false)
            && fs::try_exists(&self.key).await.unwrap_or(false)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    let failed = |why| ServeError::ReadFile { path: path.to_owned(), why };
    fs::read(path).await.map_err(failed)
}

/// Content on disk under a temporary name in the folder of its final path.
struct Prepared<'a> {
    temporary: PathBuf,
    path: &'a Path,
}

impl<'a> Prepared<'a> {
    /// Writes a file that was not there before, under a random name: in a folder
    /// that others may write to, a link of theirs would lead the key elsewhere.
    async fn write(path: &'a Path, content: &[u8], mode: u32) -> Result<Self, ServeError> {
        let failed = |why| ServeError::WritePair { path: path.to_owned(), why };
        let prepared = Self { temporary: temporary_path(path).map_err(failed)?, path };
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        let mut file = options.open(&prepared.temporary).await.map_err(failed)?;
        file.write_all(content).await.map_err(failed)?;
        file.sync_all().await.map_err(failed)?;
        Ok(prepared)
    }

    async fn move_into_place(&self) -> Result<(), ServeError> {
        let failed = |why| ServeError::WritePair { path: self.path.to_owned(), why };
        fs::rename(&self.temporary, self.path).await.map_err(failed)
    }
}

/// Removes a file that was not moved into place: it may hold a key.
impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        std::fs::remove_file(&self.temporary).ok();
    }
}

/// The name of `path` with a random end.
fn temporary_path(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 16];
    let source = ring::default_provider().secure_random;
    source.fill(&mut random).map_err(|_| io::Error::other("the system has no random numbers"))?;
    let mut name = OsString::from(path);
    name.push(format!(".{:032x}", u128::from_ne_bytes(random)));
    Ok(PathBuf::from(name))
}

const LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Clocks of clients may be behind.
const BACKDATED: Duration = Duration::from_secs(3600);
/// The issuer's name begins so and ends with the time of making in Unix seconds.
const ISSUER: &str = "localhost-ca@";

/// Makes a fresh chain for localhost and the specific addresses that we listen on.
pub(crate) fn generate(bind: &[IpAddr], now: SystemTime) -> Result<Pair, ServeError> {
    let stamp = unix(now);
    let ca_key = KeyPair::generate()?;
    let mut ca = dated(CertificateParams::default(), now);
    ca.distinguished_name = named(format!("{ISSUER}{stamp}"));
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ca_cert = ca.self_signed(&ca_key)?;

    let mut names = vec!["localhost".to_owned(), Ipv4Addr::LOCALHOST.to_string()];
    let specific = |ip: &&IpAddr| !ip.is_unspecified() && **ip != IpAddr::V4(Ipv4Addr::LOCALHOST);
    names.extend(bind.iter().filter(specific).map(IpAddr::to_string));
    let leaf_key = KeyPair::generate()?;
    let mut leaf = dated(CertificateParams::new(names)?, now);
    leaf.distinguished_name = named(format!("localhost@{stamp}"));
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let leaf_cert = leaf.signed_by(&leaf_key, &Issuer::new(ca, ca_key))?;

    let chain = format!("{}{}", leaf_cert.pem(), ca_cert.pem());
    Ok(Pair { chain: chain.into_bytes(), key: leaf_key.serialize_pem().into_bytes() })
}

/// Whether the leaf is of our making and past 2/3 of its life. One that somebody else put into the
/// folder is theirs to renew.
pub(crate) fn is_due(key: &CertifiedKey, now: SystemTime) -> bool {
    made_at(key).is_some_and(|made| now >= made + LIFE * 2 / 3)
}

/// When we made this leaf; none when we did not. The issuer's name says both, so no X.509 parser
/// is needed for the one date we ask about.
pub(crate) fn made_at(key: &CertifiedKey) -> Option<SystemTime> {
    let leaf: &[u8] = key.cert.first()?;
    let name = leaf.windows(ISSUER.len()).position(|at| at == ISSUER.as_bytes())?;
    // DER puts the length before the text. What follows the text may look like a digit.
    let end = name + usize::from(*leaf.get(name.checked_sub(1)?)?);
    let stamp = std::str::from_utf8(leaf.get(name + ISSUER.len()..end)?).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(stamp.parse().ok()?))
}

fn dated(mut params: CertificateParams, now: SystemTime) -> CertificateParams {
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + LIFE).into();
    params
}

fn named(common_name: String) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The pair of a listener, made and replaced by the owner of the listener. Clones share it.
#[derive(Clone)]
pub struct SuppliedCertificate(Arc<Current>);

impl SuppliedCertificate {
    /// Begins with this pair in PEM: the chain, leaf first, and the key of the leaf.
    pub fn new(chain: &str, key: &str) -> Result<Self, ServeError> {
        Ok(Self(Current::new(Self::read(chain, key)?)))
    }

    /// Shows this pair in the handshakes that come.
    ///
    /// # Errors
    /// They cannot be used; the pair that was there stays.
    pub fn replace(&self, chain: &str, key: &str) -> Result<(), ServeError> {
        self.0.replace(Self::read(chain, key)?);
        Ok(())
    }

    pub(crate) fn current(&self) -> Arc<Current> {
        Arc::clone(&self.0)
    }

    fn read(chain: &str, key: &str) -> Result<rustls::sign::CertifiedKey, ServeError> {
        Pair { chain: chain.into(), key: key.into() }.certified_key("supplied")
    }
}

/// Prints no key.
impl fmt::Debug for SuppliedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SuppliedCertificate(..)")
    }
}

#[cfg(test)]
mod tests;
