//! The rows of the library's own tests, which the command judges in the same words.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use tests::programs::product;
use tests::temp_dir::TempDir;

use crate::row::{Row, lines};

pub(crate) fn rows() -> Vec<Row> {
    [
        crate::aws_cluster::rows(),
        crate::cluster::rows(),
        crate::cluster_cidr::rows(),
        crate::cluster_network::rows(),
        crate::cluster_updates::rows(),
        crate::kubefed::rows(),
        crate::licence::rows(),
        crate::machine::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The command's errors and warnings.
fn by_command(row: &Row, folder: &TempDir) -> Vec<String> {
    let file = |name: &str, content: &Value| {
        let path = folder.join(name);
        std::fs::write(&path, content.to_string()).unwrap();
        path
    };
    let mut command = Command::new(product());
    command.args(["validate", "-ojson", "-f"]).arg(file("object.json", &row.object()));
    command.arg("--environment").arg(file("environment.json", &row.known()));
    if let Some(old) = row.stored() {
        command.arg("--old").arg(file("old.json", &old));
    }
    let output = command.output().unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!("{}: {}", row.rule, String::from_utf8_lossy(&output.stderr));
    });
    let judged = &printed["objects"][0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let errors = judged["errors"].as_array().unwrap().iter().map(|error| {
        format!("{}: {}: {}", text(&error["field"]), text(&error["type"]), text(&error["detail"]))
    });
    let warnings = judged["warnings"].as_array().unwrap().iter();
    let said: Vec<String> =
        errors.chain(warnings.map(|warning| format!("warning: {}", text(warning)))).collect();
    let is_valid = judged["errors"].as_array().unwrap().is_empty();
    assert_eq!(output.status.success(), is_valid, "{}", row.rule);
    said
}

/// The results of the rows of a rule.
#[derive(Default)]
struct Tally {
    accepted: usize,
    refused: usize,
}

#[test]
fn library_and_command_refuse_the_same_fields_in_the_same_words() {
    let folder = TempDir::new("rows").unwrap();
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in rows() {
        let tally = tallies.entry(row.rule).or_default();
        *(if row.is_refusal() { &mut tally.refused } else { &mut tally.accepted }) += 1;
        row.holds();
        let (said, library) = (by_command(&row, &folder), lines(&row.judge()));
        if said != library {
            wrong.push(format!("{} of {}: {said:?}, not {library:?}", row.rule, row.object()));
        }
    }
    println!("| rule | accepted | refused |\n|---|---|---|");
    for (rule, Tally { accepted, refused }) in &tallies {
        println!("| {rule} | {accepted} | {refused} |");
    }
    assert!(wrong.is_empty(), "{} of them\n{}", wrong.len(), wrong.join("\n"));
}
