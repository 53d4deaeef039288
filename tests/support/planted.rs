//! [`Planted`] secrets, and [`Discreet`]: the product among them, searched for each of them when it
//! ends. A scene with secrets starts the product so; no test has to remember to look.

use std::ops::Deref;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::Value;

use crate::kubectl::Shell;
use crate::process::{self, Process};

/// Shorter lines of a secret are found in texts that have nothing to do with it.
const LINE_MIN: usize = 12;
/// Pages of the product about clusters.
const PAGES: [&str; 4] = [
    "/metrics",
    "/debug/controllers/cluster-health-controller/",
    "/debug/controllers/cluster-health",
    "/debug/controllers/cluster-health?format=json",
];
/// Kinds whose status the product writes.
const KINDS: [&str; 3] = [
    "kubefedclusters.core.kubefed.io",
    "clusters.platform.tkestack.io",
    "machines.platform.tkestack.io",
];

/// Secrets that only their owners may see. Clones are the same.
#[derive(Clone, Default)]
pub struct Planted(Arc<Mutex<Vec<String>>>);

impl Planted {
    /// Remembers a token, a password, or a key in PEM: each of its lines, the signature of a token,
    /// and the whole as it stands in a Secret.
    pub fn plant(&self, secret: &str) {
        let lines = secret.lines().filter(|line| !line.starts_with("-----"));
        let signature = secret.rsplit_once('.').map(|(_, signature)| signature);
        let encoded = STANDARD.encode(secret);
        let parts = lines.chain(signature).chain([&*encoded]).map(str::trim);
        self.0.lock().extend(parts.filter(|part| part.len() >= LINE_MIN).map(str::to_owned));
    }

    /// The text before a secret in `text`, if `text` contains one.
    #[must_use]
    pub fn found_in(&self, text: &str) -> Option<String> {
        let planted = self.0.lock();
        let at = planted.iter().find_map(|secret| text.find(&**secret))?;
        let before: Vec<char> = text[..at].chars().rev().take(300).collect();
        Some(before.into_iter().rev().collect())
    }
}

/// The product in a scene with planted secrets. When it ends or is dropped its log, metrics and
/// pages, all events, and the status of every object must be without them.
pub struct Discreet {
    process: Process,
    planted: Planted,
    kubectl: Shell,
}

impl Discreet {
    /// `kubectl` is the administrator's of the cluster that the product manages.
    #[must_use]
    pub fn new(process: Process, planted: &Planted, kubectl: &Shell) -> Self {
        Self { process, planted: planted.clone(), kubectl: kubectl.clone() }
    }

    /// Asks it to shut down, after a look at what it serves.
    pub fn terminate(&self) {
        self.search_pages();
        self.process.terminate();
    }

    fn search(&self, what: &str, text: &str) {
        let found = self.planted.found_in(text);
        assert!(found.is_none(), "{what} show a secret after {found:?}");
    }

    fn search_pages(&self) {
        let port = self.port();
        let pages = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let page = |path| runtime.block_on(process::get(port, path));
            PAGES.into_iter().map(page).collect::<anyhow::Result<Vec<_>>>()
        });
        let pages = pages.join().expect("reading pages does not panic").expect("pages answer");
        for (path, (status, text)) in PAGES.into_iter().zip(pages) {
            assert_eq!(status, 200, "{path}: {text}");
            assert!(text.contains("clusterhealth") || path != PAGES[0], "{path}: {text}");
            self.search(path, &text);
        }
    }

    fn search_all(&self) {
        if self.is_running() {
            self.search_pages();
        }
        self.search("log lines", &self.lines().join("\n"));
        self.search("events", &self.kubectl.run("get events -A -o json"));
        let served = self.kubectl.run("api-resources --verbs=list -o name");
        for kind in KINDS.into_iter().filter(|kind| served.lines().any(|line| line == *kind)) {
            let objects = self.kubectl.run(&format!("get {kind} -A -o json"));
            let objects: Value = serde_json::from_str(&objects).expect("kubectl prints JSON");
            for object in objects["items"].as_array().into_iter().flatten() {
                self.search("objects", &object["status"].to_string());
            }
        }
    }
}

impl Deref for Discreet {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Drop for Discreet {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.search_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_whole_by_its_signature_by_a_line_and_encoded() {
        let planted = Planted::default();
        planted.plant("header.payload.a-long-signature");
        planted.plant(
            "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n",
        );
        for text in [
            "token header.payload.a-long-signature is here",
            "cut: a-long-signature",
            "key MIGHAgEAMBMGByqGSM49",
            &STANDARD.encode("header.payload.a-long-signature"),
        ] {
            assert!(planted.found_in(text).is_some(), "{text}");
        }
        assert_eq!(planted.found_in("-----BEGIN PRIVATE KEY----- header payload"), None);
        assert_eq!(planted.found_in("é: a-long-signature").as_deref(), Some("é: "));
    }
}
