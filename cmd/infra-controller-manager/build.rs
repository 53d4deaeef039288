//! Tells the binary which version, commit and compiler it was built from, and links it small.

use std::env::var;
use std::process::Command;

fn main() {
    let rustc = var("RUSTC").unwrap_or_else(|_| "rustc".into());
    println!("cargo:rustc-env=ICM_RUSTC={}", first_line(&rustc, &["--version"]));
    // A build outside a checkout (a source archive) has no commit unless it is told one.
    let commit = var("ICM_COMMIT").unwrap_or_else(|_| first_line("git", &["rev-parse", "HEAD"]));
    println!("cargo:rustc-env=ICM_COMMIT={commit}");
    println!("cargo:rerun-if-env-changed=ICM_COMMIT");
    // scripts/release adds the commit to a version that has no tag.
    let version = var("ICM_VERSION").or_else(|_| var("CARGO_PKG_VERSION")).unwrap_or_default();
    println!("cargo:rustc-env=ICM_VERSION={version}");
    println!("cargo:rerun-if-env-changed=ICM_VERSION");
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/refs/heads");
    if target("OS") == "linux" && target("ENV") == "gnu" && glibc_reads_packed_relocations() {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn target(what: &str) -> String {
    var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default()
}

/// glibc does so since 2.36; they take 2 MB less of the file, and of every process.
fn glibc_reads_packed_relocations() -> bool {
    let version = first_line("getconf", &["GNU_LIBC_VERSION"]);
    let minor = version.strip_prefix("glibc 2.").and_then(|rest| rest.split('.').next());
    minor.and_then(|minor| minor.parse::<u32>().ok()).is_some_and(|minor| minor >= 36)
}

fn first_line(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
    text.lines().next().filter(|line| !line.is_empty()).unwrap_or("unknown").to_owned()
}
