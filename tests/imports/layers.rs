//! Rules for dependencies between crates, by their folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tests::programs::workspace;

/// A crate of the workspace.
pub(crate) struct Crate {
    pub(crate) folder: PathBuf,
    pub(crate) name: String,
    /// Crates that it is built with; those of its tests do not count.
    dependencies: Vec<String>,
}

/// All folders below these ones that have a manifest, with its text.
pub(crate) fn manifests(tops: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open: Vec<_> = tops.iter().map(|name| workspace().join(name)).collect();
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        open.extend(entries.filter(|path| path.is_dir()));
        if let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) {
            found.push((folder, manifest));
        }
    }
    found
}

/// All crates under `pkg` and `cmd`.
pub(crate) fn crates() -> Vec<Crate> {
    manifests(&["cmd", "pkg"])
        .into_iter()
        .map(|(folder, manifest)| read(folder, &manifest))
        .collect()
}

fn read(folder: PathBuf, manifest: &str) -> Crate {
    let (mut section, mut name, mut dependencies) = ("", String::new(), Vec::new());
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        match (section, key.trim()) {
            ("[package]", "name") => value.trim().trim_matches('"').clone_into(&mut name),
            ("[dependencies]" | "[build-dependencies]", key) => {
                dependencies.push(key.trim_end_matches(".workspace").to_owned());
            }
            _ => {}
        }
    }
    Crate { folder, name, dependencies }
}

/// Layer of a folder, from the bottom up.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Layer {
    /// `pkg/kube-api` and `pkg/cidr`, which depend on no crate of ours.
    Base,
    /// `pkg/host`: what every controller stands on.
    Host,
    /// `pkg/NAME/PART`: the controllers of one domain and what only they use.
    Domain(String, String),
    /// `cmd`, which knows the controllers of the domains and nothing behind them.
    Command,
}

impl Layer {
    /// The layer of a folder, by its path in the repository.
    fn of(folder: &Path) -> Self {
        let names: Vec<_> = folder.iter().filter_map(|name| name.to_str()).collect();
        match *names {
            ["cmd", ..] => Self::Command,
            ["pkg", "kube-api" | "cidr"] => Self::Base,
            ["pkg", "host", _] => Self::Host,
            ["pkg", domain, part] => Self::Domain(domain.to_owned(), part.to_owned()),
            _ => panic!("{} is in no layer", folder.display()),
        }
    }

    /// Whether a crate of this layer may depend on one of the other.
    fn may_use(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Base, _) | (_, Self::Command) | (Self::Host, Self::Domain(..)) => false,
            (Self::Domain(one, _), Self::Domain(other, _)) => one == other,
            (Self::Command, Self::Domain(_, part)) => part == "controller",
            (_, Self::Base | Self::Host) => true,
        }
    }
}

#[test]
fn crates_depend_on_the_layers_below_them_and_on_their_own_domain_only() {
    let crates = crates();
    assert!(crates.len() > 20, "only {}", crates.len());
    let layer = |krate: &Crate| Layer::of(krate.folder.strip_prefix(workspace()).unwrap());
    let layers: BTreeMap<_, _> = crates.iter().map(|it| (&*it.name, layer(it))).collect();
    let mut found = Vec::new();
    for krate in &crates {
        let own = &layers[&*krate.name];
        for dependency in &krate.dependencies {
            let Some(other) = layers.get(&**dependency) else { continue };
            if !own.may_use(other) {
                found.push(format!("{} ({own:?}) uses {dependency} ({other:?})", krate.name));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_host_that_uses_a_domain_and_domains_that_use_each_other_are_found() {
    let layer = |path: &str| Layer::of(Path::new(path));
    let rows = [
        ("pkg/host/client", "pkg/host/transport", true),
        ("pkg/host/client", "pkg/kube-api", true),
        ("pkg/node-ipam/controller", "pkg/host/client", true),
        ("pkg/node-ipam/controller", "pkg/node-ipam/gce", true),
        ("cmd/infra-controller-manager", "pkg/node-ipam/controller", true),
        ("cmd/infra-controller-manager", "pkg/node-ipam/gce", false),
        ("pkg/host/client", "pkg/node-ipam/gce", false),
        ("pkg/host/client", "cmd/infra-controller-manager", false),
        ("pkg/node-ipam/controller", "pkg/cluster-api/aws", false),
        ("pkg/kube-api", "pkg/host/client", false),
        ("pkg/kube-api", "pkg/cidr", false),
    ];
    for (one, other, may) in rows {
        assert_eq!(layer(one).may_use(&layer(other)), may, "{one} uses {other}");
    }
}
