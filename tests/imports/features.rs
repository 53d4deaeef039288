//! Third-party crates have the same features in unit tests and in end-to-end tests. With other
//! features a crate, and every crate above it, is compiled twice, which takes minutes of each test
//! run.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use tests::programs::workspace;

/// The features of each package, by name and version, that cargo resolves for a selection. A package
/// that build scripts and macros need has them twice.
fn features(selection: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--offline", "--no-dedupe", "--prefix=none"])
        .args(["--edges=normal,build,dev", "--format={p}|{f}"])
        .args(selection)
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut all: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (package, features) in text.lines().filter_map(|line| line.split_once('|')) {
        all.entry(package.to_owned()).or_default().insert(features.to_owned());
    }
    all
}

#[test]
fn unit_tests_and_end_to_end_tests_share_one_build() {
    let of_unit_tests = features(&["--workspace", "--exclude=tests"]);
    let of_end_to_end_tests = features(&["--package=tests"]);
    let differ: Vec<_> = of_end_to_end_tests
        .iter()
        .filter_map(|(package, end_to_end)| {
            let unit = of_unit_tests.get(package)?;
            unit.is_disjoint(end_to_end).then(|| format!("{package}: {unit:?}, {end_to_end:?}"))
        })
        .collect();
    assert!(
        differ.is_empty(),
        "give these the same features, in [workspace.dependencies] for instance: {differ:#?}"
    );
}
