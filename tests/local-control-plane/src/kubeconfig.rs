//! Kubeconfig files with everything inside, so that one file can be copied or mounted alone.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use k8s_openapi::ByteString;

use crate::pki::{Ca, Identity};

/// Writes a kubeconfig for `identity` at `server`; replaces an older one. Mode 0600.
pub(crate) fn write(
    path: &Path,
    server: &str,
    ca: &Ca,
    user: &str,
    identity: &Identity,
) -> anyhow::Result<()> {
    let [ca, certificate, key] =
        [ca.pem(), &identity.certificate_pem, &identity.key_pem].map(base64);
    // YAML takes a JSON string anywhere, which spares us its quoting rules.
    let user = serde_json::to_string(user)?;
    let text = format!(
        "apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: test
  context:
    cluster: test
    user: {user}
current-context: test
"
    );
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write the kubeconfig {}", path.display()))
}

fn base64(pem: &str) -> String {
    let bytes = ByteString(pem.as_bytes().to_vec());
    let value = serde_json::to_value(bytes).expect("bytes are JSON");
    value.as_str().expect("bytes are a JSON string").to_owned()
}
