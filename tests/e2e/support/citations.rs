//! `scripts/check-citations` on small repositories: what it lets pass and what it finds.

use std::fs;
use std::process::Command;

use tests::programs::workspace;
use tests::temp_dir::TempDir;

const SCRIPT: &str = "scripts/check-citations";
const RULES: &str =
    "# Rules\n\n### never-twice\nNothing is given out twice: no client could tell.\n";
const CODE: &str =
    "// See rule:never-twice and https://github.com/kubernetes/kubernetes/issues/5.\n";

/// The findings in a repository of these files.
fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let dir = TempDir::new("citations").unwrap();
    fs::create_dir(dir.join("scripts")).unwrap();
    fs::copy(workspace().join(SCRIPT), dir.join(SCRIPT)).unwrap();
    for (path, text) in files {
        fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
        fs::write(dir.join(path), text).unwrap();
    }
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(&*dir).status();
    assert!(git.unwrap().success());
    let output = Command::new(dir.join(SCRIPT)).output().unwrap();
    let mut lines: Vec<_> =
        String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(output.status.success(), lines.is_empty(), "{lines:?}");
    lines.pop(); // how many there are
    lines
}

/// Asserts that there is exactly one finding with this text.
fn one_finding(files: &[(&str, &str)], wanted: &str) {
    let lines = findings(files);
    assert!(matches!(&*lines, [line] if line.contains(wanted)), "{wanted}: {lines:#?}");
}

#[test]
fn a_rule_that_stands_in_the_repository_and_is_cited_passes() {
    assert_eq!(findings(&[("a/RULES.md", RULES), ("a/src/lib.rs", CODE)]), [""; 0]);
}

#[test]
fn rules_without_citation_and_citations_without_rule_are_found() {
    one_finding(&[("a/src/lib.rs", CODE)], "a/src/lib.rs:1: rule:never-twice stands in no");
    one_finding(&[("a/RULES.md", RULES)], "a/RULES.md:3: no code and no test cites");
    let document = [("a/RULES.md", RULES), ("README.md", "See rule:never-twice.\n")];
    one_finding(&document, "a/RULES.md:3: no code and no test cites");
}

#[test]
fn a_rule_of_two_crates_and_a_name_in_capitals_are_found() {
    let twice = [("a/RULES.md", RULES), ("b/RULES.md", RULES), ("a/src/lib.rs", CODE)];
    one_finding(&twice, "never-twice is also a rule of ");
    let titled = RULES.replace("never-twice", "Never twice");
    one_finding(&[("a/RULES.md", &titled)], "in lower case with dashes");
}

#[test]
fn texts_that_are_not_in_the_repository_are_found_wherever_they_are_cited() {
    for (path, text) in [
        ("a/src/lib.rs", "/// As host.md 3.4 says.\n"),
        ("scripts/run", "# README decision 12\n"),
        ("a.md", "Scenarios are numbered: scenario 28.\n"),
        ("a/src/lib.rs", "let x = 1; // R2: never\n"),
        ("a.toml", "opt-level = 1 # D10\n"),
        ("a/src/tests.rs", "fn r5_duplicates_are_found() {}\n"),
    ] {
        one_finding(&[(path, text)], path);
    }
    let not_citations = "let r2 = \"R2\"; // KEP-5504, kubernetes#55271, IPv6, HTTP/2\n";
    assert_eq!(findings(&[("a/src/lib.rs", not_citations)]), [""; 0]);
}
