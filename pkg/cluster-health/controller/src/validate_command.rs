//! `infra-controller-manager validate`: judges the objects of manifests as the API server would be
//! asked to store them, one after the other. Exit code 0 when all may be stored, else 1. It asks no
//! server for objects: what it must know of others it reads from a file. The network it asks, unless
//! that file has the answers or it is told to stay offline.

mod arguments;
mod judged;
mod printed;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use arguments::Arguments;
use judged::Judged;
use judged::Network;
use manager::command::{
    Command, Parsed, Program, document_of_file, objects_of_file, print_output, to_stderr, to_stdout,
};
use serde_json::Value;
use validation::Environment;

/// The texts for users of the command.
pub(crate) const COMMAND: Command = Command {
    name: "validate",
    about: "Checks manifests against the rules of the validation webhook",
    start,
};

/// Runs it with the arguments after its name.
fn start(_: Program, args: Vec<OsString>) -> ExitCode {
    let arguments = match Arguments::read(args) {
        Parsed::Run(arguments) => arguments,
        Parsed::Print { text, is_error } => return print_output(&text, is_error),
    };
    match run(&arguments) {
        Ok(judged) => {
            if arguments.output.is_json() {
                to_stdout(&printed::json(&judged));
            } else {
                to_stdout(&printed::errors(&judged));
                to_stderr(&printed::remarks(&judged));
            }
            let is_valid = judged.iter().all(Judged::is_valid);
            if is_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => print_output(&format!("error: {error:#}\n"), true),
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<Vec<Judged>> {
    let objects = all(&arguments.filename)?;
    if objects.is_empty() {
        bail!("the files of -f contain no object");
    }
    let old = all(&arguments.old)?;
    let environment = arguments.environment.as_deref().map(read).transpose()?;
    let asks = !arguments.offline && environment.is_none();
    let environment = environment.unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let network = if asks { Some(Network::new([&objects[..], &old[..]].concat())?) } else { None };
    let judging = judged::all(&objects, &old, arguments.operation, environment, network.as_ref());
    let judged = runtime.block_on(judging);
    // A DNS name without an answer must not delay the exit.
    runtime.shutdown_background();
    Ok(judged)
}

fn all(files: &[PathBuf]) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for file in files {
        objects.extend(objects_of_file(file)?);
    }
    Ok(objects)
}

/// Reads it.
///
/// # Errors
/// It cannot be read, or has a field that means nothing. Its values are not quoted.
fn read(path: &Path) -> anyhow::Result<Environment> {
    let document = document_of_file(path)?;
    parse(&document).map_err(|why| anyhow!("cannot use the environment {}: {why}", path.display()))
}

fn parse(document: &Value) -> Result<Environment, String> {
    let read: Result<Environment, _> = serde_path_to_error::deserialize(document);
    read.map_err(|error| {
        let text = error.inner().to_string();
        let why = match text.split_once(", expected ") {
            // What was found there may be secret.
            Some((_, expected)) if text.starts_with("invalid") => format!("expected {expected}"),
            _ => text,
        };
        format!("{}: {why}", error.path())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_environment_with_a_mistake_is_refused_by_the_field_and_without_its_value() {
        assert!(parse(&json!({"clusters": [{"odd": 1}], "licence": {"maxNodes": 3}})).is_ok());
        for (document, expected) in [
            (json!({"licence": {"maxNodes": "planted"}}), "licence.maxNodes: expected u64"),
            (json!({"clusters": "planted"}), "clusters: expected a sequence"),
            (
                json!({"networkChecks": {"ssh": {"a:1": "Not Planted"}}}),
                "networkChecks.ssh.a:1: the result of a check is ok, or a code such as connect-refused",
            ),
            (json!({"planted": []}), "planted: unknown field `planted`"),
        ] {
            let why = parse(&document).err().unwrap();
            assert!(why.starts_with(expected), "{why}");
        }
    }
}
