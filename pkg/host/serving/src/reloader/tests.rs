use super::*;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("named-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a pair whose certificate has these names.
    fn pair(&self, file: &str, in_certificate: &[&str], given: &[&str]) -> NamedCertificate {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let pair = rcgen::generate_simple_self_signed(owned(in_certificate)).unwrap();
        let path = |end: &str| self.0.join(format!("{file}.{end}"));
        fs::write(path("crt"), pair.cert.pem()).unwrap();
        fs::write(path("key"), pair.signing_key.serialize_pem()).unwrap();
        NamedCertificate { certificate: path("crt"), key: path("key"), names: owned(given) }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn of<'a>(certificates: &'a Certificates, name: &str) -> Option<&'a Path> {
    let named = certificates.named_for(name)?;
    named.paths.cert.file_stem().map(Path::new)
}

async fn certificates(of: &[NamedCertificate]) -> Arc<Certificates> {
    let source = crate::CertificateSource::Memory;
    let reloader = crate::reloader::Reloader::load(&source, of, Vec::new(), None).await;
    reloader.unwrap().certificates()
}

#[tokio::test]
async fn the_pair_that_fits_a_name_best_is_shown() {
    let folder = Folder::new("fit");
    let all = [
        folder.pair("found", &["a.example", "*.found.example"], &[]),
        folder.pair("wild", &["x"], &["*.example"]),
        folder.pair("given", &["x"], &["B.example", "c.d.example"]),
        folder.pair("late", &["x"], &["b.example"]),
    ];
    let all = certificates(&all).await;
    for (name, expected) in [
        ("a.example", Some("wild")),
        ("A.Example", Some("wild")),
        ("b.example", Some("given")),
        ("c.d.example", Some("given")),
        ("one.found.example", Some("found")),
        ("two.one.found.example", None),
        (".example", None),
        ("example", None),
        ("x", None),
    ] {
        assert_eq!(of(&all, name), expected.map(Path::new), "{name}");
    }
    let alone = certificates(&[folder.pair("found", &["a.example", "*.example"], &[])]).await;
    assert_eq!(of(&alone, "a.example"), Some(Path::new("found")));
}

#[tokio::test]
async fn a_changed_pair_is_taken_over_and_a_bad_one_is_not() {
    let folder = Folder::new("reload");
    let options = folder.pair("one", &["a.example"], &[]);
    let named = Named::load(&options).await.unwrap();
    assert!(!named.reload().await.unwrap());
    folder.pair("one", &["b.example"], &[]);
    assert!(named.reload().await.unwrap());
    assert_eq!((named.fit("a.example"), named.fit("b.example")), (None, Some(Fit::Found)));
    fs::write(&options.key, "no key").unwrap();
    assert!(named.reload().await.is_err());
    assert_eq!(named.fit("b.example"), Some(Fit::Found));
}

#[tokio::test]
async fn a_pair_for_no_name_is_refused() {
    let folder = Folder::new("nameless");
    let message = Named::load(&folder.pair("one", &[], &[])).await.err().unwrap().to_string();
    assert!(message.contains("one.crt") && message.contains("names no host"), "{message}");
}
