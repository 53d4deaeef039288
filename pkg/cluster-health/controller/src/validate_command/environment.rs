//! The environment file: other objects, licence and answers of the network.

use std::path::Path;

use anyhow::anyhow;
use manager::command::manifests;
use serde_json::Value;
use validation::Environment;

/// Reads it.
///
/// # Errors
/// It cannot be read, or has a field that means nothing. Its values are not quoted.
pub(super) fn read(path: &Path) -> anyhow::Result<Environment> {
    let document = manifests::document(path)?;
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
