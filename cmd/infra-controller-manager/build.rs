//! Tells the binary which commit and compiler it was built from.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    println!("cargo:rustc-env=ICM_RUSTC={}", first_line(&rustc, &["--version"]));
    // A build outside a checkout (a source archive) has no commit unless it is told one.
    let commit =
        std::env::var("ICM_COMMIT").unwrap_or_else(|_| first_line("git", &["rev-parse", "HEAD"]));
    println!("cargo:rustc-env=ICM_COMMIT={commit}");
    println!("cargo:rerun-if-env-changed=ICM_COMMIT");
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/refs/heads");
}

fn first_line(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
    text.lines().next().filter(|line| !line.is_empty()).unwrap_or("unknown").to_owned()
}
