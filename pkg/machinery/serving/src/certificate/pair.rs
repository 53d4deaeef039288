//! A certificate chain and its key as PEM, and the files that hold them.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use pem_problem::PemProblem;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::fs;
use tokio::io::AsyncWriteExt;

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
        let key = prepare(&paths.key, &self.key, 0o600).await?;
        let chain = prepare(&paths.cert, &self.chain, 0o644).await?;
        move_into_place(&key, &paths.key).await?;
        move_into_place(&chain, &paths.cert).await
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

/// Writes `content` beside `path`, to the disk itself.
async fn prepare(path: &Path, content: &[u8], mode: u32) -> Result<PathBuf, ServeError> {
    let mut name = OsString::from(path);
    name.push(format!(".{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let written: io::Result<()> = async {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(mode);
        let mut file = options.open(&temporary).await?;
        file.write_all(content).await?;
        file.sync_all().await
    }
    .await;
    written.map_err(|why| ServeError::WritePair { path: path.to_owned(), why })?;
    Ok(temporary)
}

async fn move_into_place(temporary: &Path, path: &Path) -> Result<(), ServeError> {
    let failed = |why| ServeError::WritePair { path: path.to_owned(), why };
    fs::rename(temporary, path).await.map_err(failed)
}
