//! `infra-controller-manager validate`, as a person at a terminal and a pipeline use it.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tests::programs::{product, workspace};

const SAMPLES: [&str; 3] =
    ["config/samples/tke.yaml", "config/samples/kubefed.yaml", "config/samples/cluster-api.yaml"];
const ENVIRONMENT: &str = "--environment=config/samples/validate/environment.yaml";

/// The exit code, standard output and standard error.
fn validate(arguments: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(product());
    command.arg("validate").args(arguments).current_dir(workspace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may end without having read it.
    let _unread = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn machine(name: &str, port: u32) -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": name},
        "spec": {"clusterName": "cls-1", "type": "Baremetal", "ip": "10.0.0.1", "port": port,
            "username": "root", "password": "cGxhbnRlZA=="},
    })
}

#[test]
fn the_samples_are_valid_and_what_only_the_network_knows_is_named() {
    let arguments = [&["-f"][..], &SAMPLES].concat();
    let (code, printed, said) = validate(&[&["--offline"], &arguments[..]].concat(), "");
    assert_eq!((code, &*printed), (Some(0), ""), "{said}");
    let unchecked = "Machine/mc-sample: spec: not checked: whether SSH answers at 10.20.0.21:22 \
                     (networkChecks.ssh of the environment would tell)\n";
    assert!(said.contains(unchecked), "{said}");
    assert!(said.contains("kind: not checked: there are no rules for Cluster of "), "{said}");
    assert!(said.ends_with("all 9 objects are valid\n"), "{said}");

    let (code, printed, said) = validate(&[&[ENVIRONMENT], &arguments[..]].concat(), "");
    assert_eq!((code, &*printed), (Some(0), ""), "{said}");
    assert!(!said.contains("networkChecks"), "{said}");
}

#[test]
fn errors_are_lines_on_standard_output_and_the_exit_code_is_1() {
    let port = "Invalid: Invalid value: 70000: must be between 1 and 65535, inclusive";
    let one = machine("mc-1", 70_000).to_string();
    let (code, printed, said) = validate(&["-f", "-"], &one);
    assert_eq!((code, printed), (Some(1), format!("spec.port: {port}\n")));
    assert!(said.ends_with("not valid\n"), "{said}");

    // Several documents; one of them is a list.
    let list = json!({"apiVersion": "platform.tkestack.io/v1", "kind": "MachineList",
        "items": [{"metadata": {"name": "mc-2"}, "spec": {"type": "Baremetal"}}]});
    let (code, printed, _) = validate(&["-f", "-"], &format!("---\n{one}\n---\n{list}\n---\n"));
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!((code, lines[0]), (Some(1), &*format!("Machine/mc-1: spec.port: {port}")));
    assert!(
        lines.contains(
            &"Machine/mc-2: spec.ip: Required: Required value: the IP address of the machine"
        ),
        "{printed}"
    );

    let foreign = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
    let (code, printed, _) = validate(&["-f", "-"], foreign);
    assert_eq!(code, Some(1));
    let expected =
        "kind: NotSupported: Unsupported value: \"Deployment of apps/v1\": supported values: ";
    assert!(printed.starts_with(expected), "{printed}");
}

#[test]
fn what_is_stored_and_what_is_known_come_from_files() {
    let old = tests::temp_dir::TempDir::new("validate").unwrap();
    let path = old.join("old.json");
    std::fs::write(&path, machine("mc-1", 22).to_string()).unwrap();
    let old_file = format!("--old={}", path.display());
    let mut changed = machine("mc-1", 22);
    changed["spec"]["clusterName"] = json!("cls-2");
    let (code, printed, _) = validate(&["-f", "-", &old_file], &changed.to_string());
    let expected = "spec.clusterName: Invalid: Invalid value: \"cls-2\": field is immutable\n";
    assert_eq!((code, &*printed), (Some(1), expected));

    let (code, printed, _) =
        validate(&["-f", "-", ENVIRONMENT, "-ojson"], &machine("mc-1", 22).to_string());
    let found: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &found["valid"]), (Some(1), &json!(false)));
    let error = &found["objects"][0]["errors"][0];
    assert_eq!(
        (&error["field"], &error["reason"]),
        (&json!("spec.clusterName"), &json!("FieldValueInvalid"))
    );
}

#[test]
fn a_file_that_cannot_be_parsed_is_named_without_its_content() {
    for (arguments, stdin, expected) in [
        (&["-f", "/nowhere"][..], "", "error: cannot read /nowhere: "),
        (
            &["-f", "-"],
            "token: [planted\n",
            "error: - is neither YAML nor JSON, see line 1, column 8\n",
        ),
        (&["-f", "-"], "---\n", "error: the files of -f contain no object\n"),
        (
            &["-f", SAMPLES[0], "--environment", "-"],
            "clusters: planted\n",
            "error: cannot use the environment -: clusters: expected a sequence\n",
        ),
        (
            &["-f", "-", "--operation=update"],
            "",
            "error: the following required arguments were not provided",
        ),
    ] {
        let (code, printed, said) = validate(arguments, stdin);
        assert_eq!((code, &*printed), (Some(1), ""), "{arguments:?}");
        assert!(said.starts_with(expected) && !said.contains("planted"), "{arguments:?}: {said}");
    }
}
