//! `tests/CHECKED.md` is what `scripts/seeded-faults` would write: its faults fit the code, and each has its row.

use std::process::Command;

use tests::programs::workspace;

#[test]
fn each_seeded_fault_fits_the_code_and_has_a_row_in_the_page() {
    let mut check = Command::new(workspace().join("scripts/seeded-faults"));
    let output = check.arg("--check").current_dir(workspace()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
