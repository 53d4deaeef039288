//! The life of a serving pair, from the first handshake to its renewal.

use super::*;
use crate::reloader::Reloader;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::{ServerName, UnixTime};

use crate::CertificateSource;
use crate::certificate::made_at;
use crate::guard::ClientCa;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("serving-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

const EVERYWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

fn in_folder(folder: &Folder) -> CertificateSource {
    CertificateSource::Directory { folder: folder.join("pki"), name: "infra-controller-manager" }
}

async fn load(source: &CertificateSource) -> Result<Reloader, crate::ServeError> {
    Reloader::load(source, &[], vec![EVERYWHERE], None).await
}

/// Writes a pair as an operator's tool would, and names it.
fn operators_files(folder: &Folder) -> CertificateSource {
    write_operators_pair(folder);
    CertificateSource::Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key") }
}

fn write_operators_pair(folder: &Folder) {
    let pair = rcgen::generate_simple_self_signed(["manager.example".to_owned()]).unwrap();
    fs::write(folder.join("tls.crt"), pair.cert.pem()).unwrap();
    fs::write(folder.join("tls.key"), pair.signing_key.serialize_pem()).unwrap();
}

fn leaf(reloader: &Reloader) -> Vec<u8> {
    reloader.certificates().standard.0.read().cert[0].to_vec()
}

/// Whether a client that trusts the chain's CA accepts the leaf for `name` at `time`.
fn accepted(reloader: &Reloader, name: &str, time: SystemTime) -> bool {
    let key = reloader.certificates().standard.0.read().clone();
    let mut roots = RootCertStore::empty();
    roots.add(key.cert[1].clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let time = UnixTime::since_unix_epoch(time.duration_since(UNIX_EPOCH).unwrap());
    verifier.verify_server_cert(&key.cert[0], &key.cert[1..], &name, &[], time).is_ok()
}

#[tokio::test]
async fn without_files_the_chain_names_localhost_and_the_bind_address() {
    let now = SystemTime::now();
    let everywhere = load(&CertificateSource::Memory).await.unwrap();
    assert!(accepted(&everywhere, "localhost", now));
    assert!(accepted(&everywhere, "127.0.0.1", now));
    assert!(!accepted(&everywhere, "10.1.2.3", now));

    let bind_addresses = ["10.1.2.3", "fd00::7"].map(|ip| ip.parse().unwrap()).to_vec();
    let bound =
        Reloader::load(&CertificateSource::Memory, &[], bind_addresses, None).await.unwrap();
    for name in ["localhost", "127.0.0.1", "10.1.2.3", "fd00::7"] {
        assert!(accepted(&bound, name, now), "{name}");
    }
}

#[tokio::test]
async fn the_chain_lives_from_an_hour_ago_for_a_year() {
    let reloader = load(&CertificateSource::Memory).await.unwrap();
    let now = SystemTime::now();
    let minutes = |count: u64| Duration::from_secs(count * 60);
    for (time, expected) in [
        (now - minutes(61), false),
        (now - minutes(59), true),
        (now + 364 * DAY, true),
        (now + 366 * DAY, false),
    ] {
        assert_eq!(accepted(&reloader, "localhost", time), expected, "{time:?}");
    }
}

#[tokio::test]
async fn a_chain_in_memory_is_renewed_at_two_thirds_of_its_life() {
    let mut reloader = load(&CertificateSource::Memory).await.unwrap();
    let (first, start) = (leaf(&reloader), SystemTime::now());
    assert!(!reloader.reload(start + 243 * DAY).await.unwrap());
    assert_eq!(leaf(&reloader), first);
    assert!(reloader.reload(start + 244 * DAY).await.unwrap());
    assert!(accepted(&reloader, "localhost", start + 600 * DAY), "the new one has a year again");
    assert!(!reloader.reload(start + 244 * DAY).await.unwrap());
}

#[tokio::test]
async fn changed_files_are_taken_over() {
    let folder = Folder::new("changed");
    let mut reloader = load(&operators_files(&folder)).await.unwrap();
    let first = leaf(&reloader);
    assert!(!reloader.reload(SystemTime::now()).await.unwrap());
    write_operators_pair(&folder);
    assert!(reloader.reload(SystemTime::now()).await.unwrap());
    assert_ne!(leaf(&reloader), first);
}

#[tokio::test]
async fn a_bad_new_file_keeps_the_old_pair() {
    let folder = Folder::new("bad");
    let mut reloader = load(&operators_files(&folder)).await.unwrap();
    let (first, now) = (leaf(&reloader), SystemTime::now());
    let good_key = fs::read(folder.join("tls.key")).unwrap();

    write_operators_pair(&folder);
    fs::write(folder.join("tls.key"), &good_key).unwrap();
    let mismatch = reloader.reload(now).await.unwrap_err().to_string();
    assert!(mismatch.contains("tls.crt"), "{mismatch}");

    fs::write(folder.join("tls.crt"), "not a certificate").unwrap();
    reloader.reload(now).await.unwrap_err();
    fs::remove_file(folder.join("tls.crt")).unwrap();
    reloader.reload(now).await.unwrap_err();
    assert_eq!(leaf(&reloader), first);

    write_operators_pair(&folder);
    assert!(reloader.reload(now).await.unwrap(), "and recovers when the files do");
}

#[tokio::test]
async fn bad_files_at_start_are_errors_that_name_them() {
    let folder = Folder::new("start");
    let options = operators_files(&folder);
    fs::write(folder.join("tls.key"), "garbage").unwrap();
    let message = load(&options).await.err().unwrap().to_string();
    assert!(message.contains("tls.crt") && message.contains("private key"), "{message}");
    assert!(!message.contains("garbage"), "no key material: {message}");
    fs::remove_file(folder.join("tls.key")).unwrap();
    let error = load(&options).await.err().unwrap();
    let message = error.to_string();
    assert!(message.contains("tls.key"), "{message}");
    assert!(std::error::Error::source(&error).is_none(), "it would be told twice");
}

#[tokio::test]
async fn a_key_whose_line_breaks_are_lost_is_not_quoted_by_the_error() {
    let folder = Folder::new("one-line");
    let options = operators_files(&folder);
    let key = fs::read_to_string(folder.join("tls.key")).unwrap();
    for broken in [
        key.replace('\n', " "),
        key.replace("-----END PRIVATE KEY-----", ""),
        key.replacen("KEY-----\n", "KEY\n", 1),
        key.replacen("KEY-----\n", "KEY-----\n!", 1),
    ] {
        for (file, good) in [("tls.key", &key), ("tls.crt", &certificate(&folder))] {
            fs::write(folder.join(file), &broken).unwrap();
            let error = load(&options).await.err().unwrap();
            fs::write(folder.join(file), good).unwrap();
            assert_hides(&key, &format!("{error} {error:?}"));
        }
        fs::write(folder.join("ca.crt"), &broken).unwrap();
        let error = ClientCa::load(&folder.join("ca.crt")).await.err().unwrap();
        assert_hides(&key, &format!("{error} {error:?}"));
    }
    load(&options).await.unwrap();
}

fn certificate(folder: &Folder) -> String {
    fs::read_to_string(folder.join("tls.crt")).unwrap()
}

/// Fails when `shown` holds a line of `key`, or bytes of it as a `Debug` of bytes prints them.
fn assert_hides(key: &str, shown: &str) {
    for line in key.lines() {
        let decimal = format!("{:?}", &line.as_bytes()[..line.len().min(8)]);
        let decimal = decimal.trim_matches(['[', ']']);
        assert!(!shown.contains(line) && !shown.contains(decimal), "{shown}");
    }
}

#[tokio::test]
async fn a_folder_keeps_the_pair_over_restarts_and_the_key_private() {
    let folder = Folder::new("kept");
    let first = leaf(&load(&in_folder(&folder)).await.unwrap());
    let second = leaf(&load(&in_folder(&folder)).await.unwrap());
    assert_eq!(first, second);
    let mode = |name: &str| {
        fs::metadata(folder.join("pki").join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("infra-controller-manager.key"), 0o600);
    assert_eq!(fs::read_dir(folder.join("pki")).unwrap().count(), 2, "no leftovers");
}

#[tokio::test]
async fn a_link_at_a_name_that_can_be_guessed_leads_no_key_elsewhere() {
    let folder = Folder::new("link");
    let pki = folder.join("pki");
    fs::create_dir_all(&pki).unwrap();
    let stolen = folder.join("stolen");
    let process = std::process::id();
    for name in ["infra-controller-manager.key", "infra-controller-manager.crt"] {
        std::os::unix::fs::symlink(&stolen, pki.join(format!("{name}.{process}"))).unwrap();
    }
    load(&in_folder(&folder)).await.unwrap();
    assert!(!stolen.exists());
    assert_eq!(fs::read_dir(&pki).unwrap().count(), 4, "two links and the pair");
}

#[tokio::test]
async fn a_pair_that_cannot_be_put_in_place_leaves_nothing_behind() {
    let folder = Folder::new("in-the-way");
    fs::create_dir_all(folder.join("pki/infra-controller-manager.key/full")).unwrap();
    load(&in_folder(&folder)).await.err().unwrap();
    assert_eq!(fs::read_dir(folder.join("pki")).unwrap().count(), 1, "only what was in the way");
}

#[tokio::test]
async fn a_pair_of_ours_in_a_folder_is_renewed_there() {
    let folder = Folder::new("renewed");
    let mut reloader = load(&in_folder(&folder)).await.unwrap();
    let later = SystemTime::now() + 250 * DAY;
    assert!(reloader.reload(later).await.unwrap());
    let on_disk = load(&in_folder(&folder)).await.unwrap();
    assert_eq!(leaf(&on_disk), leaf(&reloader));
    assert!(
        made_at(&reloader.certificates().standard.0.read()).unwrap()
            > SystemTime::now() + 249 * DAY
    );
}

#[tokio::test]
async fn a_pair_that_an_operator_put_into_the_folder_is_never_overwritten() {
    let folder = Folder::new("theirs");
    write_operators_pair(&folder);
    fs::create_dir_all(folder.join("pki")).unwrap();
    for (from, to) in [("tls.crt", "crt"), ("tls.key", "key")] {
        let to = folder.join("pki").join(format!("infra-controller-manager.{to}"));
        fs::rename(folder.join(from), to).unwrap();
    }
    let mut reloader = load(&in_folder(&folder)).await.unwrap();
    assert_eq!(made_at(&reloader.certificates().standard.0.read()), None);
    assert!(!reloader.reload(SystemTime::now() + 4000 * DAY).await.unwrap());
}
