//! An object of an informer. `thread-schedules` compiles this file too.

use std::sync::Arc;

use kube_api::{Cached, Decoding};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Object {
    key: Arc<str>,
    pub(crate) version: u64,
}

impl Object {
    pub(crate) fn new(key: &str, version: u64) -> Self {
        Self { key: key.into(), version }
    }
}

impl Cached for Object {
    const DECODING: Decoding = Decoding::Tolerant;

    fn key(&self) -> &Arc<str> {
        &self.key
    }

    fn uid(&self) -> &str {
        &self.key
    }

    fn resource_version(&self) -> u64 {
        self.version
    }
}
