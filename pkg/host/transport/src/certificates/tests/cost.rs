//! rule:chains-are-bounded

use super::*;

/// The longest time of one verification, on a machine that is slow and busy and without optimisation: a
/// thousandth of what the same chains take when every path is tried.
const PATIENCE: Duration = Duration::from_millis(500);

#[test]
fn a_chain_of_too_many_certificates_or_bytes_is_refused_unread() {
    let ca = root(as_ca("ca"));
    let (authorities, leaf) = (trusting(&[&ca]), leaf(&ca));
    let garbage = |count, length| vec![CertificateDer::from(vec![0x30; length]); count];
    for others in [garbage(257, 100), garbage(MOST_CERTIFICATES, 1), garbage(1, MOST_BYTES)] {
        assert_eq!(judge(&authorities, &leaf, &others), (Err(Refused::TooLong), 0));
    }
    let others = garbage(MOST_CERTIFICATES - 1, 1000);
    assert_eq!(judge(&authorities, &leaf, &others).1, 1, "what leads nowhere costs nothing");
    assert!(judge(&authorities, &leaf, &others).0.is_ok());
}

/// Nine CAs that could each have signed each other: webpki tries more than 60,000 paths.
#[test]
fn cas_of_one_subject_are_refused_before_any_path_is_tried() {
    let ca = root(as_ca("ca"));
    let branches: Vec<_> = (0..9).map(|_| root(as_ca("same"))).collect();
    let shown = leaf(&branches[0]);
    let others: Vec<_> = branches.iter().map(|one| one.der().clone()).collect();
    let begun = Instant::now();
    assert_eq!(judge(&trusting(&[&ca]), &shown, &others), (Err(Refused::Branches), 0));
    // Also where one of them is trusted, and on the second step.
    assert_eq!(judge(&trusting(&[&branches[0]]), &shown, &others).0, Err(Refused::Branches));
    let between = intermediate(as_ca("between"), &branches[3]);
    let mut longer = others[..8].to_vec();
    longer.push(between.der().clone());
    let (verdict, cost) = judge(&trusting(&[&ca]), &leaf(&between), &longer);
    assert_eq!((verdict, cost), (Err(Refused::Branches), 0));
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

#[test]
fn the_same_certificate_twice_and_any_order_are_one_path() {
    let ca = root(as_ca("ca"));
    let upper = intermediate(as_ca("upper"), &ca);
    let lower = intermediate(as_ca("lower"), &upper);
    let others = [&ca, &upper, &lower, &upper].map(|signer| signer.der().clone());
    let (verdict, cost) = judge(&trusting(&[&ca]), &leaf(&lower), &others);
    assert!(verdict.is_ok(), "{verdict:?}");
    assert_eq!(cost, 3);
}

/// The author of a member's CA bundle is no friend either.
#[test]
fn authorities_of_one_subject_cost_a_bounded_number_of_signatures() {
    let roots: Vec<_> = (0..300).map(|_| root(as_ca("ca"))).collect();
    let roots: Vec<_> = roots.iter().collect();
    let stranger = root(as_ca("ca"));
    let begun = Instant::now();
    let (verdict, cost) = judge(&trusting(&roots), &leaf(&stranger), &[]);
    assert_eq!(verdict, Err(Refused::TooCostly));
    assert!(cost > MOST_SIGNATURES, "only the first {MOST_SIGNATURES} of {cost} were checked");
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());

    let few = trusting(&roots[..4]);
    assert!(judge(&few, &leaf(roots[3]), &[]).0.is_ok(), "a CA that was renewed three times");
}

#[test]
fn a_leaf_in_the_bundle_is_judged_without_the_rest_of_the_chain() {
    let own = root(params("server"));
    let others: Vec<_> = (0..9).map(|_| root(as_ca("server")).der().clone()).collect();
    let (verdict, cost) = judge(&trusting(&[&own]), own.der(), &others);
    assert_eq!((verdict.is_ok(), cost), (true, 0));
}
