//! [`Schema`]: what the CRD of a kind says about its fields, and the check of an object against it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::field::{Field, type_of, whole};
use super::findings::Findings;
use super::formats::{cidr, decoded, is_date_time};
use super::kind::Kind;
use super::kind::purpose;

/// The only rule in CEL that is read. All others, and `pattern`, are judged by the rules of the kinds.
const NOT_EMPTY: &str = "self != ''";

/// Fields whose `enum` the rules of a kind replace by the words of flags or of other fields.
const OTHER_WORDS: [&str; 2] = ["spec.type", "spec.addresses[].type"];

/// The OpenAPI schema of a field, with the keywords that `config/crd` uses.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Schema {
    #[serde(rename = "type")]
    of: Type,
    format: String,
    #[serde(rename = "enum")]
    words: Vec<Value>,
    all_of: Vec<Schema>,
    minimum: Option<i64>,
    maximum: Option<i64>,
    min_length: usize,
    max_length: Option<usize>,
    max_items: Option<usize>,
    max_properties: Option<usize>,
    required: Vec<String>,
    properties: BTreeMap<String, Schema>,
    items: Option<Box<Schema>>,
    additional_properties: Option<Box<Schema>>,
    #[serde(rename = "x-kubernetes-validations")]
    rules: Vec<Rule>,
    /// The fields that no two items of a list may share.
    #[serde(rename = "x-kubernetes-list-map-keys")]
    map_keys: Vec<String>,
    /// What an error says about the missing field.
    #[serde(skip)]
    purpose: Option<&'static str>,
    #[serde(skip)]
    has_other_words: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Type {
    /// A schema without a type accepts every value.
    #[default]
    Any,
    String,
    Integer,
    Boolean,
    Array,
    Object,
}

/// A rule in CEL.
#[derive(Debug, Deserialize)]
struct Rule {
    rule: String,
    #[serde(default)]
    message: String,
}

/// Reads a CRD at its first use.
macro_rules! schema {
    ($kind:expr, $crd:literal) => {{
        const CRD: &str = include_str!(concat!("../../../../config/crd/", $crd, ".yaml"));
        static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::read($kind, CRD));
        &SCHEMA
    }};
}

/// The schema of a kind, without the status.
pub(crate) fn of(kind: Kind) -> &'static Schema {
    match kind {
        Kind::Cluster => schema!(Kind::Cluster, "platform.tkestack.io_clusters"),
        Kind::ClusterCredential => {
            schema!(Kind::ClusterCredential, "platform.tkestack.io_clustercredentials")
        }
        Kind::Machine => schema!(Kind::Machine, "platform.tkestack.io_machines"),
        Kind::KubeFedCluster => schema!(Kind::KubeFedCluster, "core.kubefed.io_kubefedclusters"),
        Kind::KubeFedConfig => schema!(Kind::KubeFedConfig, "core.kubefed.io_kubefedconfigs"),
        Kind::ClusterCidr => schema!(Kind::ClusterCidr, "networking.x-k8s.io_clustercidrs"),
        Kind::AwsCluster => {
            schema!(Kind::AwsCluster, "infrastructure.cluster.x-k8s.io_awsclusters")
        }
    }
}

#[derive(Deserialize)]
struct Crd {
    spec: Versions,
}

#[derive(Deserialize)]
struct Versions {
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    schema: Validation,
}

#[derive(Deserialize)]
struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    schema: Schema,
}

impl Schema {
    /// The schema in a CRD, whose versions have one schema. A test reads every CRD, so none is unreadable.
    fn read(kind: Kind, crd: &str) -> Self {
        let read = serde_saphyr::from_str::<Crd>(crd).ok();
        let version = read.and_then(|crd| crd.spec.versions.into_iter().next());
        let mut root = version.map(|version| version.schema.schema).unwrap_or_default();
        // What every object has; a CRD names little of it.
        for name in ["apiVersion", "kind", "status"] {
            root.properties.remove(name);
        }
        let name = Self { of: Type::String, ..Self::default() };
        let properties = BTreeMap::from([("name".to_owned(), name)]);
        let metadata = Self { of: Type::Object, properties, ..Self::default() };
        root.properties.insert("metadata".to_owned(), metadata);
        root.prepare(kind, "");
        root
    }

    /// Keeps of the rules those that are read, and adds what depends on the path.
    fn prepare(&mut self, kind: Kind, path: &str) {
        self.rules.retain(|rule| rule.rule == NOT_EMPTY);
        self.purpose = purpose(kind, path);
        self.has_other_words = OTHER_WORDS.contains(&path);
        let dot = if path.is_empty() { "" } else { "." };
        for (name, field) in &mut self.properties {
            field.prepare(kind, &format!("{path}{dot}{name}"));
        }
        if let Some(items) = &mut self.items {
            items.prepare(kind, &format!("{path}[]"));
        }
    }

    /// The schema of the field at a path, in which `[]` stands for the items of a list.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |schema, name| match name.strip_suffix("[]") {
            Some(list) => schema.properties.get(list)?.items.as_deref(),
            None => schema.properties.get(name),
        })
    }

    /// Checks a value that is there. Nothing is said about what is in a value of another type.
    pub(crate) fn check(&self, field: &Field<'_>, findings: &mut Findings) {
        match (self.of, field.value()) {
            (Type::Any, _) | (Type::Boolean, Value::Bool(_)) => {}
            (Type::String, Value::String(text)) => self.check_text(field, text, findings),
            (Type::Integer, value) if whole(value).is_some() => self.check_number(field, findings),
            (Type::Array, Value::Array(items)) => self.check_items(field, items.len(), findings),
            (Type::Object, Value::Object(fields)) => {
                self.check_fields(field, findings);
                self.check_keys(field, fields, findings);
            }
            (of, found) => return findings.type_invalid(field, type_of(found), of.name()),
        }
        if !self.has_other_words {
            self.check_words(field, findings);
        }
        self.all_of.iter().for_each(|schema| schema.check(field, findings));
    }

    /// Checks the fields of an object. `null` says the same as leaving a field out.
    pub(crate) fn check_fields(&self, object: &Field<'_>, findings: &mut Findings) {
        for (name, schema) in &self.properties {
            let field = object.field(name);
            if !field.is_absent() {
                schema.check(&field, findings);
            } else if self.required.contains(name) {
                findings.required(&field, &self.why_required(schema));
            }
        }
    }

    fn why_required(&self, field: &Self) -> String {
        let message = || field.rules.first().map(|rule| &*rule.message);
        match field.purpose.or_else(message) {
            Some(why) => why.to_owned(),
            None => format!("needed are {}", self.required.join(", ")),
        }
    }

    fn check_keys(&self, field: &Field<'_>, fields: &Map<String, Value>, findings: &mut Findings) {
        if let Some(most) = self.max_properties.filter(|&most| fields.len() > most) {
            findings.too_many(field, fields.len(), most);
        }
        if let Some(schema) = &self.additional_properties {
            fields.keys().for_each(|key| schema.check(&field.field(key), findings));
        }
    }

    fn check_items(&self, field: &Field<'_>, count: usize, findings: &mut Findings) {
        if let Some(most) = self.max_items.filter(|&most| count > most) {
            findings.too_many(field, count, most);
        }
        for item in field.items().filter(|item| !item.is_absent()) {
            self.items.iter().for_each(|schema| schema.check(&item, findings));
        }
        if !self.map_keys.is_empty() {
            self.check_map_keys(field, findings);
        }
    }

    fn check_map_keys(&self, list: &Field<'_>, findings: &mut Findings) {
        let key = |item: &Field<'_>, name: &String| {
            let field = item.field(name);
            whole(field.value()).map_or_else(|| field.value().to_string(), |it| it.to_string())
        };
        let mut known = BTreeSet::new();
        for item in list.items().filter(|item| item.value().is_object()) {
            let keys: Vec<_> = self.map_keys.iter().map(|name| key(&item, name)).collect();
            if !known.insert(keys) {
                findings.duplicate(&item);
            }
        }
    }

    fn check_number(&self, field: &Field<'_>, findings: &mut Findings) {
        let least = self.minimum.unwrap_or(i64::MIN);
        let most = self.maximum.unwrap_or(i64::MAX);
        if field.number().is_some_and(|number| !(least..=most).contains(&number)) {
            findings.invalid(field, &format!("must be between {least} and {most}, inclusive"));
        }
    }

    fn check_text(&self, field: &Field<'_>, text: &str, findings: &mut Findings) {
        let length = text.chars().count();
        if let Some(most) = self.max_length.filter(|&most| length > most) {
            findings.too_long(field, most);
        }
        if length < self.min_length {
            findings.invalid(field, &format!("should be at least {} chars long", self.min_length));
        }
        if let Some(rule) = self.rules.first().filter(|_| text.is_empty()) {
            findings.required(field, &rule.message);
        }
        let (is_it, wanted) = match &*self.format {
            // The API server refuses an empty text, too.
            "byte" => (!text.is_empty() && decoded(text).is_some(), "byte (base64)"),
            "cidr" => (cidr(text).is_some(), "cidr (such as 10.0.0.0/16)"),
            "date-time" => (is_date_time(text), "date-time (such as 2026-01-02T03:04:05Z)"),
            _ => return,
        };
        if !is_it {
            findings.type_invalid(field, "string", wanted);
        }
    }

    /// Checks the value against `enum`.
    pub(crate) fn check_words(&self, field: &Field<'_>, findings: &mut Findings) {
        let value = field.value();
        let is_it =
            |word: &Value| word == value || whole(word).is_some() && whole(word) == whole(value);
        if !self.words.is_empty() && !self.words.iter().any(is_it) {
            let text = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            let words: Vec<String> = self.words.iter().map(text).collect();
            findings.not_supported(field, &field.shown(), words.iter().map(String::as_str));
        }
    }
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

#[cfg(test)]
mod tests;
