//! Commands of the program, such as `probe`: how the binary knows them, and what they share.
//! Files with objects, for `-f`.

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::Args;
use clap::error::ErrorKind;
use client::{ClientOptions, Clients, Profile, RequestMetrics};
use kube::config::Kubeconfig;
use prometheus::Registry;
use serde_json::{Map, Value, json};

/// A command that a controller group brings along: it does its work and ends.
pub struct Command {
    /// The name of the command, which follows the program's name.
    pub name: &'static str,
    /// What the command does, in one line for `--help`.
    pub about: &'static str,
    /// Runs it with the arguments after its name.
    pub start: fn(Program, Vec<OsString>) -> ExitCode,
}

/// The program, as servers know it by its user agent.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Name of the binary.
    pub product: &'static str,
    /// Version of the build.
    pub version: &'static str,
    /// Commit of the build.
    pub commit: &'static str,
}

/// Result of parsing a command line.
pub enum Parsed<Arguments> {
    /// To do the work.
    Run(Arguments),
    /// To print this and to end.
    Print {
        /// Help, or the problem of the command line.
        text: String,
        /// Whether the command line is wrong.
        is_error: bool,
    },
}

impl<Arguments> From<Result<Arguments, clap::Error>> for Parsed<Arguments> {
    fn from(parsed: Result<Arguments, clap::Error>) -> Self {
        match parsed {
            Ok(arguments) => Self::Run(arguments),
            Err(error) => {
                let is_error = error.kind() != ErrorKind::DisplayHelp;
                Self::Print { text: error.to_string(), is_error }
            }
        }
    }
}

/// How the result of a command is printed.
#[derive(Debug, Args)]
pub struct Output {
    /// Output format.
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = ["text", "json"])]
    format: String,
}

impl Output {
    /// Whether it is JSON for programs instead of text for people.
    pub fn is_json(&self) -> bool {
        self.format == "json"
    }
}

/// A table for people, of lines of equal length: each column is as wide as its longest cell.
pub fn table(lines: &[Vec<String>]) -> String {
    let longest = |column: usize| lines.iter().map(move |line| line[column].chars().count()).max();
    let columns = lines.first().map_or(0, Vec::len);
    let widths: Vec<_> = (0..columns).map(|at| longest(at).unwrap_or_default()).collect();
    let line = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    lines.iter().map(line).collect()
}

/// Prints it where it belongs; an error ends with code 1. Nothing can be done about a closed
/// stream.
pub fn print_output(text: &str, is_error: bool) -> ExitCode {
    if is_error {
        to_stderr(text);
        return ExitCode::FAILURE;
    }
    to_stdout(text);
    ExitCode::SUCCESS
}

/// Prints the result.
pub fn to_stdout(text: &str) {
    let _closed = std::io::stdout().write_all(text.as_bytes());
}

/// Prints messages.
pub fn to_stderr(text: &str) {
    let _closed = std::io::stderr().write_all(text.as_bytes());
}

/// User agent suffix in place of a controller's name.
const AGENT: &str = "command";

/// A client of the server and user in the current context of a kubeconfig.
///
/// # Errors
/// What is wrong with the kubeconfig.
pub async fn client_of_kubeconfig(
    program: Program,
    file: Kubeconfig,
) -> anyhow::Result<kube::Client> {
    let clients = Clients::from_own(file, &options(program), &metrics()?).await?;
    Ok(clients.build(Profile::root(AGENT))?)
}

/// A client that follows the files of its credentials as long as it lives: of a kubeconfig, or without one of the service
/// account of the pod.
///
/// # Errors
/// What is wrong with the kubeconfig, or that there is neither.
pub async fn following_client(
    program: Program,
    kubeconfig: Option<PathBuf>,
) -> anyhow::Result<kube::Client> {
    let options = ClientOptions { kubeconfig, ..options(program) };
    let clients = Clients::load(&options, &metrics()?).await?;
    Ok(clients.build(Profile::root(AGENT))?)
}

/// A client without credentials that accepts any server certificate.
///
/// # Errors
/// The address can be that of no server.
pub async fn client_of_stranger(program: Program, address: &str) -> anyhow::Result<kube::Client> {
    let kubeconfig = serde_json::from_value(json!({
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "anonymous"}}],
        "clusters": [{"name": "it", "cluster": {"server": address, "insecure-skip-tls-verify": true}}],
        "users": [{"name": "anonymous", "user": {}}],
    }))?;
    client_of_kubeconfig(program, kubeconfig).await
}

fn options(program: Program) -> ClientOptions {
    ClientOptions {
        kubeconfig: None,
        master: None,
        product: program.product.into(),
        version: program.version.into(),
        commit: program.commit.into(),
    }
}

/// Nobody asks a command for them.
fn metrics() -> anyhow::Result<RequestMetrics> {
    Ok(RequestMetrics::new(&Registry::new())?)
}

/// The objects of a file with any number of documents in YAML, or JSON; `-` is standard input.
/// Lists are taken apart, and empty documents left out.
///
/// # Errors
/// It cannot be read. What it holds is not quoted: it may be secret.
pub fn objects_of_file(path: &Path) -> anyhow::Result<Vec<Value>> {
    let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text(path)?);
    let documents = documents.map_err(|error| not_yaml(path, &error))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).flat_map(items).collect())
}

/// The one document of a file.
///
/// # Errors
/// As [`objects_of_file`].
pub fn document_of_file(path: &Path) -> anyhow::Result<Value> {
    serde_saphyr::from_str(&text(path)?).map_err(|error| not_yaml(path, &error))
}

/// Where it cannot be read, and not what stands there.
fn not_yaml(path: &Path, error: &serde_saphyr::Error) -> anyhow::Error {
    let place =
        error.location().map(|at| format!(", see line {}, column {}", at.line(), at.column()));
    anyhow!("{} is neither YAML nor JSON{}", path.display(), place.unwrap_or_default())
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    text.with_context(|| format!("cannot read {}", path.display()))
}

/// The items of a list. In a list of one kind they need not say what they are.
fn items(document: Value) -> Vec<Value> {
    let Value::Object(mut list) = document else { return vec![document] };
    let items = match list.remove("items") {
        Some(Value::Array(items)) => items,
        Some(other) => {
            list.insert("items".to_owned(), other);
            return vec![list.into()];
        }
        None => return vec![list.into()],
    };
    let version = list.get("apiVersion").cloned();
    let kind = list.get("kind").and_then(Value::as_str);
    let kind = kind.and_then(|kind| kind.strip_suffix("List")).filter(|kind| !kind.is_empty());
    let whole = |item: Value| match (item, kind, &version) {
        (Value::Object(mut item), Some(kind), Some(version)) => {
            set_if_missing(&mut item, "apiVersion", version.clone());
            set_if_missing(&mut item, "kind", kind.into());
            item.into()
        }
        (item, ..) => item,
    };
    items.into_iter().map(whole).collect()
}

fn set_if_missing(item: &mut Map<String, Value>, name: &str, value: Value) {
    item.entry(name).or_insert(value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_split_and_items_without_kind_get_the_kind_of_the_list() {
        let item = json!({"metadata": {"name": "a"}});
        let list = json!({"apiVersion": "a/v1", "kind": "MachineList", "items": [item]});
        let whole = json!({"apiVersion": "a/v1", "kind": "Machine", "metadata": {"name": "a"}});
        assert_eq!(items(list), std::slice::from_ref(&whole));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [whole, 7]});
        assert_eq!(items(list), [whole, json!(7)]);
        for other in [json!({"items": "none"}), json!([1])] {
            assert_eq!(items(other.clone()), [other]);
        }
    }
}
