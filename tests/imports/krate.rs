//! The files of a crate, and which of them an import leads to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path as FilePath;

use crate::circles::circles;
use crate::source::{Path, Source};

/// Re-exports of re-exports are followed so far.
const DEEPEST: usize = 16;

/// All modules of a crate by their path; the root's is empty.
pub(crate) struct Krate {
    name: String,
    modules: BTreeMap<Path, Module>,
}

struct Module {
    /// The file it stands in, for the report.
    file: String,
    source: Source,
}

impl Krate {
    /// Reads the crate with this root: a `lib.rs` or `main.rs`.
    pub(crate) fn read(root: &FilePath) -> Self {
        let folder = root.parent().expect("a file lies in a folder");
        let mut krate = Self { name: root.display().to_string(), modules: BTreeMap::new() };
        krate.add_file(folder, root, folder, Path::new());
        krate
    }

    /// `folder` is where the files of its child modules are.
    fn add_file(&mut self, top: &FilePath, file: &FilePath, folder: &FilePath, at: Path) {
        let text = fs::read_to_string(file);
        let text = text.unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
        let name = file.strip_prefix(top).unwrap_or(file).display().to_string();
        self.add_module(top, folder, at, name, Source::read(&text));
    }

    fn add_module(
        &mut self,
        top: &FilePath,
        folder: &FilePath,
        at: Path,
        file: String,
        mut source: Source,
    ) {
        for child in &source.children {
            let own = folder.join(child);
            let candidates = [folder.join(format!("{child}.rs")), own.join("mod.rs")];
            let found = candidates.iter().find(|path| path.exists());
            // What compiles and is not there has a #[path]: it is a file of another crate.
            let Some(found) = found else { continue };
            self.add_file(top, found, &own, joined(&at, child));
        }
        for (name, inline) in std::mem::take(&mut source.inline) {
            self.add_module(top, &folder.join(&name), joined(&at, &name), file.clone(), inline);
        }
        self.modules.insert(at, Module { file, source });
    }

    /// Every circle, as the list of its imports.
    pub(crate) fn circles(&self) -> Vec<String> {
        let mut edges: BTreeMap<&str, BTreeMap<&str, &Path>> = BTreeMap::new();
        for (at, module) in &self.modules {
            let source = &module.source;
            for import in source.imports.iter().chain(&source.mentions).chain(&source.globs) {
                let Some(target) = self.file_of(at, import, 0) else { continue };
                if target != module.file {
                    edges.entry(&module.file).or_default().entry(target).or_insert(import);
                }
            }
        }
        let graph = |from: &str| -> BTreeSet<&str> {
            edges.get(from).map(|to| to.keys().copied().collect()).unwrap_or_default()
        };
        let tell = |circle: Vec<&str>| {
            let pairs = circle.iter().flat_map(|from| {
                edges[from].iter().filter(|(to, _)| circle.contains(*to)).map(move |e| (from, e))
            });
            let pairs = pairs
                .map(|(from, (to, path))| format!("  {from} takes {} from {to}", path.join("::")));
            format!("{}:\n{}", self.name, pairs.collect::<Vec<_>>().join("\n"))
        };
        circles(edges.keys().copied(), graph).into_iter().map(tell).collect()
    }

    /// The file that defines what this path means in the module `at`; none for what is of another
    /// crate, a local name, or a module as such.
    fn file_of(&self, at: &Path, path: &Path, depth: usize) -> Option<&str> {
        let (first, rest) = path.split_first()?;
        if depth > DEEPEST {
            return None;
        }
        match first.as_str() {
            "crate" => self.item(&Path::new(), rest, depth),
            "self" => self.item(at, rest, depth),
            "super" => {
                self.file_of(&at[..at.len().checked_sub(1)?].to_vec(), &with_self(rest), depth)
            }
            _ if self.modules.contains_key(&joined(at, first)) => {
                self.item(&joined(at, first), rest, depth)
            }
            _ => {
                let imported = self.modules[at].source.names.get(first)?;
                // `use name::…` of a crate of that name is not about ourselves.
                (imported.first() != Some(first) || imported.len() > 1).then_some(())?;
                let whole = [imported, rest].concat();
                self.file_of(at, &whole, depth + 1)
            }
        }
    }

    /// The file that defines the item that `rest` means inside the module `at`.
    fn item(&self, at: &Path, rest: &[String], depth: usize) -> Option<&str> {
        let (first, deeper) = rest.split_first()?;
        let child = joined(at, first);
        let module = &self.modules[at];
        if self.modules.contains_key(&child) {
            return self.item(&child, deeper, depth);
        }
        if matches!(first.as_str(), "self" | "super") {
            return self.file_of(at, &rest.to_vec(), depth);
        }
        match module.source.names.get(first) {
            Some(handed_on) => self.file_of(at, &[handed_on, deeper].concat(), depth + 1),
            None => Some(&module.file),
        }
    }
}

fn joined(path: &Path, name: &str) -> Path {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

/// A path that is meant inside a module.
fn with_self(rest: &[String]) -> Path {
    [&["self".to_owned()], rest].concat()
}
