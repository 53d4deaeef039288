//! Crates depend on the layers below them, the graph of imports between the files of one crate has
//! no circle, and third-party crates are compiled once.
//!
//! File A imports from file B when code of A names an item that is defined in B, with `use` or by
//! its path. What counts and what does not:
//! - A re-export (`pub use`) is transparent: who takes an item through it imports from the file
//!   that defines the item, and the file with the re-export imports nothing.
//! - A child that uses its parent's items (`super::Item`) imports from the parent, and a parent
//!   that uses its child's items from the child; both at once are a circle. `mod child;` alone is
//!   no import, and neither is an `impl` that a child adds to its parent's type.
//! - Code under `#[cfg(test)]` does not count.
//!
//! | module | part |
//! |---|---|
//! | `layers` | which crates a crate may depend on |
//! | `source` | what one file declares, imports and names |
//! | `krate` | the files of a crate, and which of them an import leads to |
//! | `circles` | the circles of a graph |
//! | `features` | the features of third-party crates |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod circles;
mod features;
mod krate;
mod layers;
mod samples;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use tests::programs::workspace;

use crate::krate::Krate;
use crate::layers::{crates, manifests};

/// The roots of all crates in the workspace: libraries and binaries.
fn roots() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    folders.extend(crates().iter().map(|krate| krate.folder.join("src")));
    for entry in fs::read_dir(workspace().join("tests/e2e")).unwrap() {
        folders.push(entry.unwrap().path());
    }
    folders.extend(
        [
            "support",
            "bench",
            "soak",
            "imports",
            "api-server-double/src",
            "gce-stub/src",
            "local-control-plane/src",
        ]
        .map(|name| workspace().join("tests").join(name)),
    );
    let mut roots: Vec<_> = folders
        .iter()
        .flat_map(|folder| ["lib.rs", "main.rs"].map(|name| folder.join(name)))
        .filter(|root| root.exists())
        .collect();
    roots.sort();
    roots
}

#[test]
fn no_crate_has_files_that_import_from_each_other_in_a_circle() {
    let roots = roots();
    assert!(roots.len() > 10, "only {roots:?}");
    let found: Vec<_> = roots.iter().flat_map(|root| Krate::read(root).circles()).collect();
    assert!(found.is_empty(), "{} circles:\n{found:#?}", found.len());
}

/// Whether the documentation of a file of this folder has an example.
fn has_example(folder: &Path) -> bool {
    let marks = ["//! ```", "/// ```", "//! ~~~", "/// ~~~", "#![doc = include_str!"];
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return has_example(&path);
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        text.lines().any(|line| marks.iter().any(|mark| line.trim_start().starts_with(mark)))
    })
}

/// To look for examples takes a second for each crate.
#[test]
fn crates_with_examples_run_them_and_others_look_for_none() {
    let libraries = crates().into_iter().filter(|it| it.folder.join("src/lib.rs").exists());
    let (mut with, mut wrong) = (0, Vec::new());
    for krate in libraries {
        let manifest = fs::read_to_string(krate.folder.join("Cargo.toml")).unwrap();
        let has_example = has_example(&krate.folder.join("src"));
        with += usize::from(has_example);
        if has_example == manifest.contains("doctest = false") {
            wrong.push(krate.name);
        }
    }
    assert!(wrong.is_empty(), "set or remove `doctest = false` in Cargo.toml of {wrong:?}");
    assert!(with > 2, "only {with} crates have examples");
}

/// The source files of this file or folder.
fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    fs::read_dir(path).unwrap().flat_map(|entry| sources(&entry.unwrap().path())).collect()
}

/// What Cargo.toml excepts from the search for tests: the library, or a program with its folder.
fn without_tests(manifest: &str) -> impl Iterator<Item = &str> {
    manifest.split("\n[").filter(|section| section.lines().any(|line| line == "test = false")).map(
        |section| {
            let path =
                section.lines().find_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"'));
            path.map_or("src", |path| path.trim_end_matches("/main.rs").trim_end_matches("/lib.rs"))
        },
    )
}

/// A test in a target with `test = false` would never run.
#[test]
fn targets_without_tests_hold_none() {
    let mut targets = 0;
    for (folder, manifest) in manifests(&["cmd", "pkg", "tests"]) {
        for target in without_tests(&manifest) {
            targets += 1;
            for file in sources(&folder.join(target)) {
                let text = fs::read_to_string(&file).unwrap_or_default();
                let test = text
                    .lines()
                    .find(|line| line.trim_start().starts_with("#[") && line.contains("test]"));
                assert!(
                    test.is_none(),
                    "the tests of {} never run: Cargo.toml says `test = false`",
                    file.display()
                );
            }
        }
    }
    assert!(targets > 10, "only {targets} targets");
}

/// The tests that `tests/INCIDENTS.md` names, as `path.rs::name`.
fn tests_of_incidents(table: &str) -> Vec<(&str, &str)> {
    table.split('`').filter_map(|text| text.split_once("::")).collect()
}

fn has_test((path, name): (&str, &str)) -> bool {
    let text = fs::read_to_string(workspace().join(path)).unwrap_or_default();
    let Some((before, _)) = text.split_once(&format!("fn {name}()")) else { return false };
    // Only attributes and `async` stand between it and the item before.
    let attributes = before.rsplit_once("\n\n").map_or(before, |(_, attributes)| attributes);
    attributes.contains("#[test]") || attributes.contains("#[tokio::test")
}

#[test]
fn each_incident_names_tests_that_exist() {
    let table = fs::read_to_string(workspace().join("tests/INCIDENTS.md")).unwrap();
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 20, "only {} incidents", rows.len());
    for row in rows {
        let tests = tests_of_incidents(row);
        assert!(!tests.is_empty(), "no test plays {row}");
        let missing: Vec<_> = tests.into_iter().filter(|test| !has_test(*test)).collect();
        assert!(missing.is_empty(), "{missing:?} of {row} does not exist");
    }
    assert!(!has_test(("tests/imports/main.rs", "roots")), "a function that is no test counts");
}
