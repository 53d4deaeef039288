//! What one source file declares, imports and names. Reads tokens, so that the bodies of macros
//! count and comments do not.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The segments of a path.
pub(crate) type Path = Vec<String>;

/// One module: a file, or an inline `mod` of it.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Modules in files of their own: `mod name;`.
    pub(crate) children: BTreeSet<String>,
    /// Modules with a body: `mod name { … }`.
    pub(crate) inline: BTreeMap<String, Source>,
    /// Names that `use` imports, by their name in this file.
    pub(crate) names: BTreeMap<String, Path>,
    /// `use path::*`.
    pub(crate) globs: Vec<Path>,
    /// Imports that this file uses itself, not only exports again.
    pub(crate) imports: BTreeSet<Path>,
    /// Every path in the code, single names included.
    pub(crate) mentions: BTreeSet<Path>,
}

impl Source {
    pub(crate) fn read(text: &str) -> Self {
        let tokens: TokenStream = text.parse().expect("Rust that compiles");
        let mut source = Self::default();
        source.scan(&tokens.into_iter().collect::<Vec<_>>());
        source
    }

    fn scan(&mut self, tokens: &[TokenTree]) {
        let mut at = 0;
        let mut is_public = false;
        while at < tokens.len() {
            let rest = &tokens[at..];
            at += match word(&rest[0]).as_deref() {
                _ if is_test_attribute(rest) => 2 + item_length(&rest[2..]),
                Some("pub") => {
                    is_public = true;
                    let restriction = rest.get(1).is_some_and(|token| body(token).is_some());
                    at += 1 + usize::from(restriction);
                    continue;
                }
                Some("use") => {
                    let length = until_semicolon(rest);
                    self.take_use(&rest[1..length], is_public);
                    length + 1
                }
                Some("mod") => self.take_module(rest),
                Some(_) => {
                    let path = path(rest);
                    let length = path.len() * 3 - 2;
                    self.mentions.insert(path);
                    length
                }
                None => {
                    if let Some(inside) = body(&rest[0]) {
                        self.scan(&inside);
                    }
                    1
                }
            };
            is_public = false;
        }
    }

    /// `mod name;` or `mod name { … }`; the tokens it takes.
    fn take_module(&mut self, tokens: &[TokenTree]) -> usize {
        let Some(name) = tokens.get(1).and_then(word) else { return 1 };
        match tokens.get(2).and_then(body) {
            Some(inside) => self.inline.entry(name).or_default().scan(&inside),
            None => drop(self.children.insert(name)),
        }
        3
    }

    fn take_use(&mut self, tree: &[TokenTree], is_public: bool) {
        for (path, name) in use_tree(&Vec::new(), tree) {
            match name {
                Some(name) => drop(self.names.insert(name, path.clone())),
                None => self.globs.push(path.clone()),
            }
            if !is_public {
                self.imports.insert(path);
            }
        }
    }
}

/// The leaves of what stands behind `use`: path and the name it gets, none for `*`.
fn use_tree(prefix: &Path, tokens: &[TokenTree]) -> Vec<(Path, Option<String>)> {
    let tokens = if starts_with_colons(tokens) { &tokens[2..] } else { tokens };
    let Some(first) = tokens.first() else { return Vec::new() };
    if let Some(inside) = body(first) {
        let branches = inside.split(|token| is_punctuation(token, ','));
        return branches.flat_map(|branch| use_tree(prefix, branch)).collect();
    }
    let Some(name) = word(first) else { return vec![(prefix.clone(), None)] }; // `*`
    let mut path = prefix.clone();
    if name != "self" || prefix.is_empty() {
        path.push(name);
    }
    if starts_with_colons(&tokens[1..]) {
        return use_tree(&path, &tokens[3..]);
    }
    let alias = tokens.get(2).and_then(word); // behind `as`
    let name = alias.or_else(|| path.last().cloned());
    vec![(path, name)]
}

/// `a::b::c`, from its first name on.
fn path(tokens: &[TokenTree]) -> Path {
    let mut path = Path::new();
    let mut rest = tokens;
    while let Some(name) = rest.first().and_then(word) {
        path.push(name);
        if !starts_with_colons(&rest[1..]) {
            break;
        }
        rest = &rest[3..];
    }
    path
}

/// `#[cfg(test)]`, also as one condition of several.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let [hash, attribute, ..] = tokens else { return false };
    let Some(inside) = body(attribute).filter(|_| is_punctuation(hash, '#')) else { return false };
    let text = inside.iter().map(ToString::to_string).collect::<String>();
    text.starts_with("cfg(test")
        || text.starts_with("cfg(any(test")
        || text.starts_with("cfg(all(test")
}

/// The tokens up to the end of the item that starts here.
fn item_length(tokens: &[TokenTree]) -> usize {
    let is_end = |token: &TokenTree| {
        is_punctuation(token, ';')
            || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1)
}

fn until_semicolon(tokens: &[TokenTree]) -> usize {
    tokens.iter().position(|token| is_punctuation(token, ';')).unwrap_or(tokens.len())
}

fn starts_with_colons(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [first, second, third, ..]
        if is_punctuation(first, ':') && is_punctuation(second, ':') && !is_punctuation(third, '<'))
}

fn is_punctuation(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punctuation) if punctuation.as_char() == wanted)
}

fn word(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    }
}

fn body(token: &TokenTree) -> Option<Vec<TokenTree>> {
    match token {
        TokenTree::Group(group) => Some(group.stream().into_iter().collect()),
        _ => None,
    }
}
