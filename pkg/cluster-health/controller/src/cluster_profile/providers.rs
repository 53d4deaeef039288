//! [`Providers`]: the access providers in the order in which they are looked for. Without
//! `--cluster-health-profile-providers` they are the two that are built in; the file has the format of
//! cluster-inventory-api. Pure.

use std::path::Path;

use client::PluginSpec;
use kube::config::ExecConfig;
use serde::Deserialize;

/// The providers that need no plugin, whatever the file says of them.
const BUILT_IN: [(&str, Kind); 2] =
    [("kubeconfig-secretreader", Kind::Kubeconfig), ("secretreader", Kind::Token)];
/// The only policy under which a profile adds no argument and no variable to a plugin, which runs as this process does.
const IGNORE: &str = "Ignore";

/// The access providers that are used.
#[derive(Clone, Debug)]
pub(crate) struct Providers {
    pub(super) all: Vec<Provider>,
    /// Whether plugins are run.
    pub(super) may_run: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Where the credential of a provider comes from.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A Secret with a kubeconfig; the user of one context in it is used.
    Kubeconfig,
    /// The key `token` of a Secret.
    Token,
    /// An exec plugin, and whether it is told of the cluster.
    Plugin(PluginSpec, bool),
}

#[derive(Deserialize)]
struct File {
    providers: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: Option<String>,
    exec_config: Option<ExecConfig>,
    #[serde(rename = "profileSourcedCLIArgsPolicy")]
    args_policy: Option<String>,
    profile_sourced_env_vars_policy: Option<String>,
}

impl Providers {
    /// Those that are built in.
    pub(crate) fn built_in() -> Self {
        let all = BUILT_IN.map(|(name, kind)| Provider { name: name.to_owned(), kind });
        Self { all: all.into(), may_run: false }
    }

    /// Those of a file. `may_run`: whether plugins are run. Unknown fields are ignored, as upstream does.
    ///
    /// # Errors
    /// The first thing that cannot be used; no value of a variable is quoted.
    pub(crate) fn parse(text: &[u8], may_run: bool) -> Result<Self, String> {
        let file: File = serde_json::from_slice(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("line {line}, column {column}: it is not the JSON of access providers")
        })?;
        let entries = file.providers.unwrap_or_default();
        if entries.is_empty() {
            return Err("it has no providers".to_owned());
        }
        let mut all: Vec<Provider> = Vec::new();
        for (entry, number) in entries.into_iter().zip(1..) {
            let name = entry.name.clone().unwrap_or_default();
            if name.is_empty() {
                return Err(format!("provider {number} has no name"));
            }
            if all.iter().any(|it| it.name == name) {
                return Err(format!("it has provider {name:?} twice"));
            }
            let built_in = BUILT_IN.into_iter().find(|(built_in, _)| *built_in == name);
            let kind = match built_in {
                Some((_, kind)) => kind,
                None => plugin(entry).map_err(|why| format!("provider {name:?}: {why}"))?,
            };
            all.push(Provider { name, kind });
        }
        Ok(Self { all, may_run })
    }

    /// The names, for messages.
    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.all.iter().map(|it| &*it.name).collect();
        names.join(" or ")
    }
}

fn plugin(entry: Entry) -> Result<Kind, String> {
    let policies = [
        ("profileSourcedCLIArgsPolicy", entry.args_policy),
        ("profileSourcedEnvVarsPolicy", entry.profile_sourced_env_vars_policy),
    ];
    for (field, policy) in policies {
        if let Some(policy) = policy.filter(|it| !it.is_empty() && it != IGNORE) {
            return Err(format!(
                "{field} {policy:?} would have a ClusterProfile change what is run here; only {IGNORE} is allowed"
            ));
        }
    }
    let exec = entry.exec_config.ok_or("it has no execConfig")?;
    if exec.other.get("config").is_some_and(|config| !config.is_null()) {
        return Err(
            "its execConfig has a field config; it belongs to the ClusterProfile".to_owned()
        );
    }
    // A path is relative to the working directory.
    let spec = PluginSpec::new(&exec, Path::new(""));
    let spec = spec.map_err(|error| format!("its execConfig cannot be used: {error}"))?;
    Ok(Kind::Plugin(spec, exec.provide_cluster_info))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const V1: &str = "client.authentication.k8s.io/v1";

    fn parse(file: &Value) -> Result<Providers, String> {
        Providers::parse(file.to_string().as_bytes(), true)
    }

    fn of(exec: &Value) -> Value {
        json!({"providers": [{"name": "google", "execConfig": exec}]})
    }

    #[test]
    fn the_file_has_the_providers_in_their_order_and_two_names_are_built_in() {
        let built_in = json!({"command": "./bin/secretreader", "apiVersion": "unknown"});
        let exec = json!({"command": "login", "args": ["a"], "apiVersion": V1, "installHint": "h",
            "env": [{"name": "A", "value": "b"}, {"name": "C"}], "provideClusterInfo": true,
            "interactiveMode": "IfAvailable", "unknown": 1});
        let providers = parse(&json!({"more": 1, "providers": [
            {"name": "google", "execConfig": exec, "profileSourcedCLIArgsPolicy": "Ignore",
                "profileSourcedEnvVarsPolicy": ""},
            {"name": "secretreader", "execConfig": built_in, "profileSourcedCLIArgsPolicy": "Append"},
        ]}));
        let providers = providers.unwrap();
        assert_eq!(providers.names(), "google or secretreader");
        let [google, reader] = &providers.all[..] else { panic!("{providers:?}") };
        assert!(matches!(reader.kind, Kind::Token), "{reader:?}");
        let Kind::Plugin(spec, true) = &google.kind else { panic!("{google:?}") };
        let env = [("A", "b"), ("C", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = PluginSpec {
            command: "login".into(),
            args: vec!["a".into()],
            env: env.into(),
            api_version: V1.to_owned(),
            cluster: None,
        };
        assert!(*spec == expected, "{spec:?}");
        let names = "kubeconfig-secretreader or secretreader";
        assert_eq!(Providers::built_in().names(), names);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_refused_with_the_cause() {
        let good = json!({"command": "login", "apiVersion": V1});
        let with = |field: &str, value: &Value| {
            let mut exec = good.clone();
            exec[field] = value.clone();
            of(&exec)
        };
        let policy = |field: &str, value: &str| {
            let mut file = of(&good);
            file["providers"][0][field] = value.into();
            file
        };
        let twice = json!({"providers": [{"name": "secretreader"}, {"name": "secretreader"}]});
        let rows = [
            (json!({}), "it has no providers"),
            (json!({"providers": null}), "it has no providers"),
            (json!([1]), "it is not the JSON"),
            (json!({"providers": [{"name": 1}]}), "it is not the JSON"),
            (json!({"providers": [{"name": ""}]}), "provider 1 has no name"),
            (twice, "it has provider \"secretreader\" twice"),
            (json!({"providers": [{"name": "google"}]}), "\"google\": it has no execConfig"),
            (with("command", &json!("")), "has no command"),
            (with("command", &json!(["login"])), "it is not the JSON"),
            (with("interactiveMode", &json!("Always")), "interactiveMode: Always"),
            (with("config", &json!({"a": 1})), "field config"),
            (with("apiVersion", &json!("v1alpha1")), "\"v1alpha1\" is not known"),
            (with("env", &json!([{"value": "planted"}])), "has no name, or one with ="),
            (
                with("env", &json!([{"name": "A=B", "value": "planted"}])),
                "has no name, or one with =",
            ),
            (with("env", &json!([{"name": "A", "value": ["planted"]}])), "it is not the JSON"),
            (policy("profileSourcedCLIArgsPolicy", "Append"), "only Ignore is allowed"),
            (policy("profileSourcedEnvVarsPolicy", "Replace"), "only Ignore is allowed"),
            (policy("profileSourcedEnvVarsPolicy", "ignore"), "only Ignore is allowed"),
        ];
        for (file, said) in rows {
            let error = parse(&file).unwrap_err();
            assert!(error.contains(said) && !error.contains("planted"), "{error}");
        }
        assert!(parse(&of(&good)).is_ok());
    }
}
