//! A certificate chain and its key as PEM, and the files that hold them.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::fs;
use tokio::io::AsyncWriteExt;
use transport::PemProblem;

use crate::ServeError;

/// Where a pair lives on disk.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

/// PEM text of a chain, leaf first, and of the leaf's key. Not `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) chain: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl Pair {
    pub(super) async fn read(paths: &Paths) -> Result<Self, ServeError> {
        Ok(Self { chain: read(&paths.cert).await?, key: read(&paths.key).await? })
    }

    /// Writes both files, the key readable by its owner only. They change places with the old ones
    /// back to back, so that a crash can hardly leave two halves that do not fit.
    pub(super) async fn write(&self, paths: &Paths) -> Result<(), ServeError> {
        let key = Prepared::write(&paths.key, &self.key, 0o600).await?;
        let chain = Prepared::write(&paths.cert, &self.chain, 0o644).await?;
        key.move_into_place().await?;
        chain.move_into_place().await
    }

    /// Parses both and checks that they belong together; `name` is for the message.
    pub(super) fn certified_key(&self, name: &str) -> Result<CertifiedKey, ServeError> {
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
    pub(super) async fn exist(&self) -> bool {
        fs::try_exists(&self.cert).await.unwrap_or(false)
            && fs::try_exists(&self.key).await.unwrap_or(false)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    let failed = |why| ServeError::ReadFile { path: path.to_owned(), why };
    fs::read(path).await.map_err(failed)
}

/// Content on the disk under a temporary name beside its place.
struct Prepared<'a> {
    temporary: PathBuf,
    path: &'a Path,
}

impl<'a> Prepared<'a> {
    /// Writes a file that was not there before, under a name that nobody can guess: in a folder
    /// that others may write to, a link of theirs would lead the key elsewhere.
    async fn write(path: &'a Path, content: &[u8], mode: u32) -> Result<Self, ServeError> {
        let failed = |why| ServeError::WritePair { path: path.to_owned(), why };
        let prepared = Self { temporary: beside(path).map_err(failed)?, path };
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

/// What never came into its place must not stay: it may be a key.
impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        std::fs::remove_file(&self.temporary).ok();
    }
}

/// The name of `path` with a random end.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 16];
    let source = ring::default_provider().secure_random;
    source.fill(&mut random).map_err(|_| io::Error::other("the system has no random numbers"))?;
    let mut name = OsString::from(path);
    name.push(format!(".{:032x}", u128::from_ne_bytes(random)));
    Ok(PathBuf::from(name))
}
