//! Time passes, and replicas read and write in any order: no API server ever meets a certificate
//! that it cannot check.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::*;

const LIVES: Lives = Lives {
    authority: Duration::from_secs(9000),
    notice: Duration::from_secs(100),
    leaf: Duration::from_secs(2700),
};

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect()
}

/// Checks a certificate like an API server.
fn is_trusted(leaf: &str, bundle: &str, now: SystemTime) -> bool {
    let (bundle, leaf) = (certificates(bundle), certificates(leaf));
    let anchors: Vec<_> =
        bundle.iter().map(|it| webpki::anchor_from_trusted_cert(it).unwrap()).collect();
    let leaf = webpki::EndEntityCert::try_from(&leaf[0]).unwrap();
    let time = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap());
    let usage = webpki::KeyUsage::server_auth();
    let chain = leaf.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &anchors,
        &[],
        time,
        usage,
        None,
        None,
    );
    let name = ServerName::try_from("a.b.svc").unwrap();
    chain.is_ok() && leaf.verify_is_valid_for_subject_name(&name).is_ok()
}

#[test]
fn an_authority_is_published_before_it_signs_and_trusted_until_it_expires() {
    let mut now = Authorities::make(at(0), &LIVES).unwrap();
    let first = now.current.certificate.clone();
    assert!(now.step(at(5999), &LIVES, true).unwrap().is_none());
    now = now.step(at(6000), &LIVES, true).unwrap().unwrap();
    assert!(now.current.certificate == first && now.next.is_some());
    assert!(now.step(at(6099), &LIVES, true).unwrap().is_none(), "not known for long enough");
    assert!(now.step(at(8000), &LIVES, false).unwrap().is_none(), "API servers do not have it");
    now = now.step(at(6100), &LIVES, true).unwrap().unwrap();
    assert!(now.current.certificate != first && now.next.is_none());
    assert!(now.bundle().contains(first.trim_end()));
    assert!(now.step(at(8999), &LIVES, true).unwrap().is_none());
    now = now.step(at(9000), &LIVES, true).unwrap().unwrap();
    assert!(!now.bundle().contains(first.trim_end()));
}

#[test]
fn an_authority_that_has_expired_unseen_is_replaced_at_once() {
    let old = Authorities::make(at(0), &LIVES).unwrap();
    let new = old.step(at(20_000), &LIVES, false).unwrap().unwrap();
    assert!(new.previous.is_empty() && new.current.until > at(20_000));
}

#[test]
fn a_certificate_has_its_names_and_does_not_outlive_its_authority() {
    let authority = Authority::make(at(0), LIVES.authority).unwrap();
    let names = ["a.b.svc".to_owned(), "127.0.0.1".to_owned()];
    let leaf = authority.sign(&names, at(8500), LIVES.leaf).unwrap();
    assert_eq!(leaf.until, at(9000));
    assert!(is_trusted(&leaf.certificate, authority.certificate(), at(8999)));
    assert!(!is_trusted(&leaf.certificate, authority.certificate(), at(9001)));
    let other = Authority::make(at(0), LIVES.authority).unwrap();
    assert!(!is_trusted(&leaf.certificate, other.certificate(), at(8600)));
    assert!(authority.sign(&["\u{fc}.example".to_owned()], at(0), LIVES.leaf).is_err());
    let read = Authority::read(&authority.certificate, &authority.key).unwrap();
    assert!(read == authority);
}

/// The objects, as the API server has them: each with its version.
struct Server {
    secret: (Authorities, u64),
    /// The bundle of the registration.
    bundle: (String, u64),
}

/// A round that takes longer may come too late for a certificate: a third of its life is left when it
/// must be renewed, and two rounds may pass with changes of the authority.
const SLOW: u64 = 250;

/// One replica between two of its requests.
#[derive(Default)]
struct Replica {
    /// When its last round was over, and whether one was slow since it has its certificate.
    ended: u64,
    was_slow: bool,
    registration: Option<(String, u64)>,
    secret: Option<(Authorities, u64)>,
    leaf: Option<String>,
    renew: u64,
}

impl Replica {
    /// The next request of its round, at this second. As in `Keeper::round`.
    fn go_on(&mut self, server: &mut Server, now: u64) {
        let Some((bundle, version)) = self.registration.clone() else {
            // rule:known-before-used
            self.registration = Some(server.bundle.clone());
            return;
        };
        let Some((authorities, read)) = self.secret.clone() else {
            self.secret = Some(server.secret.clone());
            return;
        };
        let wanted = authorities.bundle();
        let mut is_published = bundle == wanted;
        if !is_published && server.bundle.1 == version {
            server.bundle = (wanted, version + 1);
            is_published = true;
        }
        let after = authorities.step(at(now), &LIVES, is_published).unwrap();
        if let Some(after) = after {
            if server.secret.1 == read {
                server.secret = (after, read + 1);
            }
        } else if is_published && (self.leaf.is_none() || self.renew <= now) {
            let names = ["a.b.svc".to_owned()];
            let leaf = authorities.current.sign(&names, at(now), LIVES.leaf).unwrap();
            (self.leaf, self.renew) = (Some(leaf.certificate), now + LIVES.leaf.as_secs() * 2 / 3);
            self.was_slow = false;
        }
        (self.registration, self.secret, self.ended) = (None, None, now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// rule:known-before-used
    #[test]
    fn whatever_the_order_of_their_requests_each_replica_is_trusted_at_every_moment(
        turns in proptest::collection::vec((0_usize..3, 0_u64..20), 100..1500),
    ) {
        let first = Authorities::make(at(0), &LIVES).unwrap();
        let mut server = Server { secret: (first, 1), bundle: (String::new(), 1) };
        let mut replicas = [Replica::default(), Replica::default(), Replica::default()];
        let mut now = 0;
        for (turn, pause) in turns {
            now += pause;
            for replica in &mut replicas {
                replica.was_slow |= now - replica.ended > SLOW;
            }
            replicas[turn].go_on(&mut server, now);
            for replica in replicas.iter().filter(|replica| !replica.was_slow) {
                let Some(leaf) = &replica.leaf else { continue };
                prop_assert!(is_trusted(leaf, &server.bundle.0, at(now)), "at {now}");
            }
        }
    }
}
