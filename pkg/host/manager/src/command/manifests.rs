//! Manifests: files with objects, for the commands that take `-f`.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use serde_json::{Map, Value};

/// The objects of a file with any number of documents in YAML, or JSON; `-` is standard input.
/// Lists are taken apart, and empty documents left out.
///
/// # Errors
/// It cannot be read. What it holds is not quoted: it may be secret.
pub fn objects(path: &Path) -> anyhow::Result<Vec<Value>> {
    let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text(path)?);
    let documents = documents.map_err(|error| not_yaml(path, &error))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).flat_map(items).collect())
}

/// The one document of a file.
///
/// # Errors
/// As [`objects`].
pub fn document(path: &Path) -> anyhow::Result<Value> {
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
            say(&mut item, "apiVersion", version.clone());
            say(&mut item, "kind", kind.into());
            item.into()
        }
        (item, ..) => item,
    };
    items.into_iter().map(whole).collect()
}

fn say(item: &mut Map<String, Value>, name: &str, value: Value) {
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
