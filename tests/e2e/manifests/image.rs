//! `deploy/image` and `scripts/sbom`: what a release is packed with.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tests::programs::workspace;
use tests::temp_dir::TempDir;

const AMD64: u16 = 62;
const ARM64: u16 = 183;

/// What a build needs besides its output and its programs.
const BUILD: [&str; 3] = ["build", "--version=v1", "--ca-certificates=roots"];
/// A bundle of one certificate, of which only the form matters.
const ROOTS: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

/// The head of a program for a machine; a dynamic one asks for a linker.
fn elf(machine: u16, dynamic: bool) -> Vec<u8> {
    let mut elf = vec![0; 64 + 56];
    elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
    elf[18..20].copy_from_slice(&machine.to_le_bytes());
    elf[32..40].copy_from_slice(&64_u64.to_le_bytes());
    elf[54..56].copy_from_slice(&56_u16.to_le_bytes());
    elf[56..58].copy_from_slice(&1_u16.to_le_bytes());
    elf[64] = if dynamic { 3 } else { 1 };
    elf
}

fn layout(arguments: &[&str], folder: &Path) -> Output {
    Command::new(workspace().join("deploy/image/oci-layout"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn fails(output: &Output, with: &str) {
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && reported.contains(with), "{reported}");
}

fn files(folder: &Path) -> BTreeSet<(String, Vec<u8>)> {
    let blobs = fs::read_dir(folder.join("blobs/sha256")).unwrap();
    let paths = blobs.map(|blob| blob.unwrap().path()).chain([folder.join("index.json")]);
    let named = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.map(|path| (named(&path), fs::read(&path).unwrap())).collect()
}

#[test]
fn an_image_is_the_same_to_the_byte_each_time_and_a_changed_one_is_noticed() {
    let folder = TempDir::new("image").unwrap();
    // Of the other architecture: `check` would run one of ours.
    let (arch, machine) =
        if cfg!(target_arch = "aarch64") { ("amd64", AMD64) } else { ("arm64", ARM64) };
    fs::write(folder.join("program"), elf(machine, false)).unwrap();
    fs::write(folder.join("roots"), ROOTS).unwrap();
    let program = format!("{arch}=program");
    for name in ["one", "two"] {
        let made = layout(&[&BUILD[..], &["--output", name, &program]].concat(), &folder);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let checked = layout(&["check", name], &folder);
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        let told = String::from_utf8_lossy(&checked.stdout);
        assert!(told.contains("1 root certificates"), "{told}");
    }
    let (one, two) = (files(&folder.join("one")), files(&folder.join("two")));
    assert_eq!(one, two);
    for (name, content) in one.iter().filter(|(name, _)| name != "index.json") {
        let path = folder.join("one/blobs/sha256").join(name);
        fs::write(&path, [content, &b"x"[..]].concat()).unwrap();
        fails(&layout(&["check", "one"], &folder), "is not what its descriptor says");
        fs::write(&path, content).unwrap();
    }
    fs::write(folder.join("one/blobs/sha256/stray"), "").unwrap();
    fails(&layout(&["check", "one"], &folder), "no manifest refers to");
}

#[test]
fn a_program_that_is_not_static_or_for_another_machine_makes_no_image() {
    let folder = TempDir::new("image").unwrap();
    fs::write(folder.join("roots"), ROOTS).unwrap();
    for (name, content, reported) in [
        ("dynamic", elf(AMD64, true), "not static"),
        ("other", elf(ARM64, false), "not for amd64"),
        ("script", b"#!/bin/sh\n".to_vec(), "no 64-bit little-endian ELF"),
    ] {
        fs::write(folder.join(name), content).unwrap();
        let output = format!("{name}.out");
        let program = format!("amd64={name}");
        let made = layout(&[&BUILD[..], &["--output", &output, &program]].concat(), &folder);
        fails(&made, reported);
    }
}

#[test]
fn an_image_without_root_certificates_or_with_a_private_key_is_refused() {
    let folder = TempDir::new("image").unwrap();
    fs::write(folder.join("program"), elf(AMD64, false)).unwrap();
    let key = format!("{ROOTS}-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n");
    for (number, roots) in ["", "# nothing\n", &key].into_iter().enumerate() {
        fs::write(folder.join("roots"), roots).unwrap();
        let output = format!("{number}.out");
        let made = layout(&[&BUILD[..], &["--output", &output, "amd64=program"]].concat(), &folder);
        fails(&made, "the CA bundle has no certificate in PEM, or a private key");
    }
}

#[test]
fn the_provenance_names_the_commit_and_the_digest_of_each_file() {
    let folder = TempDir::new("provenance").unwrap();
    fs::write(folder.join("infra-controller-manager-linux-amd64"), "program").unwrap();
    fs::write(folder.join("ca-certificates.crt"), ROOTS).unwrap();
    let made = Command::new(workspace().join("deploy/image/provenance"))
        .args(["--version=v1.2.3", "--revision=0123abc"])
        .arg(folder.join(""))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let statement: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let [program] = &statement["subject"].as_array().unwrap()[..] else { panic!("{statement}") };
    assert_eq!(program["name"], "infra-controller-manager-linux-amd64");
    assert_eq!(program["digest"]["sha256"].as_str().unwrap().len(), 64);
    let definition = &statement["predicate"]["buildDefinition"];
    assert_eq!(definition["externalParameters"]["version"], "v1.2.3");
    let digests = definition["resolvedDependencies"].as_array().unwrap();
    assert!(digests.iter().any(|it| it["digest"]["gitCommit"] == "0123abc"), "{digests:?}");
    assert!(digests.iter().any(|it| it["name"] == "ca-certificates.crt"), "{digests:?}");
}

#[test]
fn the_bill_of_materials_has_what_is_linked_and_nothing_else() {
    let output = Command::new(workspace().join("scripts/sbom")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bill: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(bill["metadata"]["component"]["name"], "infra-controller-manager");
    let components = bill["components"].as_array().unwrap();
    let names: BTreeSet<_> = components.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains("tokio") && names.contains("node-ipam"), "{names:?}");
    for other in ["proptest", "log-capture", "tests"] {
        assert!(!names.contains(other), "{other} is linked nowhere");
    }
    let tokio = components.iter().find(|it| it["name"] == "tokio").unwrap();
    assert_eq!(tokio["hashes"][0]["content"].as_str().unwrap().len(), 64);
    assert_eq!(tokio["licenses"][0]["expression"], "MIT");
    let unlicensed: Vec<_> = components.iter().filter(|it| it["licenses"].is_null()).collect();
    assert!(unlicensed.is_empty(), "{unlicensed:?}");
}
