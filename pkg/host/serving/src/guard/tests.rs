use super::*;
use std::time::Duration;

use futures::FutureExt as _;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tokio::time::timeout;

use crate::client_ca::{AT_ONCE, TURNS};

const PATIENCE: Duration = Duration::from_secs(60);

/// The PEM of a CA, and a chain of one client of it.
fn client() -> (String, ShownChain) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::default();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let leaf = params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
    (pem, ShownChain::new(vec![leaf.der().clone()]))
}

fn roots_of(pem: &str) -> ClientRoots {
    ClientRoots::from_pem(pem.as_bytes()).unwrap()
}

#[tokio::test]
async fn a_chain_is_judged_once_for_the_same_roots_and_again_for_others() {
    let ((pem, chain), (other_pem, _)) = (client(), client());
    assert!(chain.is_vouched_for_by(&roots_of(&pem)).await);
    let no_turns = TURNS.acquire_many(u32::try_from(AT_ONCE).unwrap()).await.unwrap();
    for _ in 0..100 {
        let known = chain.clone().is_vouched_for_by(&roots_of(&pem)).now_or_never();
        assert_eq!(known, Some(true), "roots that were read again are the same");
    }
    let others = roots_of(&other_pem);
    let waiting = chain.is_vouched_for_by(&others);
    assert!(timeout(Duration::from_millis(50), waiting).await.is_err(), "it waits for its turn");
    drop(no_turns);
    assert!(!chain.is_vouched_for_by(&others).await);
    assert!(chain.is_vouched_for_by(&roots_of(&pem)).await, "both checks are kept");
}

#[tokio::test]
async fn a_judgement_whose_caller_has_left_is_not_begun_again() {
    let (pem, chain) = client();
    let roots = roots_of(&pem);
    let no_turns = TURNS.acquire_many(u32::try_from(AT_ONCE).unwrap()).await.unwrap();
    // As a peer that resets its streams.
    assert_eq!(chain.is_vouched_for_by(&roots).now_or_never(), None);
    drop(no_turns);
    let known = async {
        while chain.checked(&roots).is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, known).await.expect("the judgement goes on by itself");
    assert_eq!(chain.checked(&roots), Some(true));
}

#[tokio::test]
async fn a_chain_that_has_ended_since_is_judged_again() {
    let (pem, chain) = client();
    let roots = roots_of(&pem);
    assert!(chain.is_vouched_for_by(&roots).await);
    chain.end_checks(0);
    assert_eq!(chain.checked(&roots), None);
    assert!(chain.is_vouched_for_by(&roots).await);
}

#[test]
fn roots_that_cannot_be_read_are_refused() {
    let (pem, _) = client();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for text in [String::new(), "garbage".to_owned(), format!("{pem}{broken}")] {
        assert!(ClientRoots::from_pem(text.as_bytes()).is_err(), "{text}");
    }
}
