//! A temporary directory that is removed on drop, and by the [`watchdog`] when
//! this process dies without dropping.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::watchdog;

/// Owned by us alone (mode 0700): it holds private keys.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Makes `<temporary directory>/icm-<purpose>-<random>`.
    pub fn new(purpose: &str) -> anyhow::Result<Self> {
        let name = format!("icm-{purpose}-{}", uuid::Uuid::new_v4().simple());
        let path = std::env::temp_dir().join(name);
        watchdog::remove_at_exit(&path);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot create the directory {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Deref for TempDir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}
