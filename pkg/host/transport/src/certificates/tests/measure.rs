//! Measures the verification of the worst chain within the bounds, for `cargo test --release -p
//! certificates -- --ignored --nocapture`.

use super::*;
use rcgen::{CustomExtension, PKCS_ECDSA_P384_SHA384};

/// Judgements of each chain.
const ROUNDS: u32 = 200;

/// A CA whose key is of the slowest kind.
fn slow_root(name: &str) -> Signer {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    CertifiedIssuer::self_signed(as_ca(name), key).unwrap()
}

fn slow_intermediate(name: &str, by: &Signer) -> Signer {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    CertifiedIssuer::signed_by(as_ca(name), key, by).unwrap()
}

/// A leaf as large as the bounds allow together with `others`.
fn large_leaf(by: &Signer, others: &[CertificateDer<'_>]) -> CertificateDer<'static> {
    let rest = others.iter().map(|other| other.len()).sum::<usize>() + 1024;
    let mut params = params("leaf");
    let filler = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1], vec![0; MOST_BYTES - rest]);
    params.custom_extensions = vec![filler];
    signed(params, by)
}

/// CPU of this thread so far.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

#[test]
#[ignore = "measures; run it with --release"]
fn the_worst_chain_within_the_bounds_takes_a_few_milliseconds() {
    let roots: Vec<_> = (0..12).map(|_| slow_root("ca")).collect();
    let trusted = trusting(&roots.iter().collect::<Vec<_>>());
    let stranger = slow_root("ca");
    let mut path = vec![slow_intermediate("0", &stranger)];
    for number in 1..5 {
        path.push(slow_intermediate(&number.to_string(), &path[path.len() - 1]));
    }
    let longer: Vec<_> = path.iter().map(|one| one.der().clone()).collect();
    for (name, by, others) in
        [("authorities of one subject", &stranger, Vec::new()), ("and a path", &path[4], longer)]
    {
        let leaf = large_leaf(by, &others);
        let (mut most, mut asked) = (Duration::ZERO, 0);
        let begun = cpu();
        for _ in 0..ROUNDS {
            let before = cpu();
            let (verdict, cost) = judge(&trusted, &leaf, &others);
            assert!(verdict.is_err());
            (most, asked) = (most.max(cpu().saturating_sub(before)), cost);
        }
        let mean = cpu().saturating_sub(begun) / ROUNDS;
        println!(
            r#"{{"measured":"judgement","chain":"{name}","certificates":{},"asked":{asked},"checked":{},"mean_us":{},"most_us":{}}}"#,
            others.len() + 1,
            asked.min(MOST_SIGNATURES),
            mean.as_micros(),
            most.as_micros()
        );
    }
}
