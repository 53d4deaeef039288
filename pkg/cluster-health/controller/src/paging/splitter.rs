//! [`Splitter`]: cuts a list as it comes from the wire into its objects, so that no page is held
//! whole (`rule:lists-of-members-are-bounded`). Pure.

/// The longest object that is read: API servers take requests of 3 MiB.
const ITEM_MAX: usize = 3 << 20;
/// The longest metadata of a list: a version and a token.
const METADATA_MAX: usize = 64 << 10;
/// Names of the fields of a list are shorter.
const KEY_MAX: usize = 64;

/// A part of a list, as JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Metadata(&'a [u8]),
    Item(&'a [u8]),
}

/// Why a page cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The page is not a list in JSON.
    Form,
    /// An object of the page is too long.
    Length,
}

/// The state of one page that is being read.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    at: At,
    value: Value,
    /// The part that is being read, or the name of a field.
    part: Vec<u8>,
}

/// Where in the page the next byte stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Start,
    /// Before the name of a field, or the end.
    Field,
    Key,
    Colon(Kind),
    /// Before the value of a field.
    Before(Kind),
    Within(Kind),
    /// Between the objects of the list.
    Items,
    Item,
    End,
}

/// A field of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Items,
    Metadata,
    Other,
}

/// A value whose end is looked for.
#[derive(Debug, Default)]
struct Value {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Splitter {
    /// Takes the next bytes of the page and hands each part that is whole to `take`.
    pub(super) fn push<E: From<Fault>>(
        &mut self,
        mut bytes: &[u8],
        take: &mut impl FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            bytes = match self.at {
                At::Within(kind) => self.value(kind, bytes, take)?,
                At::Item => self.item(bytes, take)?,
                At::Key => self.key(bytes)?,
                _ => self.between(bytes)?,
            };
        }
        Ok(())
    }

    /// Whether the page has come to its end.
    pub(super) fn is_whole(&self) -> bool {
        self.at == At::End
    }

    /// One byte between names and values; those that begin a value are left to be read with it.
    fn between<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Fault> {
        let (byte, rest) = (bytes[0], &bytes[1..]);
        if byte.is_ascii_whitespace() {
            return Ok(rest);
        }
        let (next, left) = match (self.at, byte) {
            (At::Start, b'{') | (At::Field, b',') | (At::Items, b']') => (At::Field, rest),
            (At::Field, b'"') => (At::Key, rest),
            (At::Field, b'}') => (At::End, rest),
            (At::Colon(kind), b':') => (At::Before(kind), rest),
            (At::Before(Kind::Items), b'[') | (At::Items, b',') => (At::Items, rest),
            (At::Before(kind), _) => (At::Within(kind), bytes),
            (At::Items, b'{') => (At::Item, bytes),
            _ => return Err(Fault::Form),
        };
        if matches!(next, At::Key | At::Within(_) | At::Item) {
            self.part.clear();
            self.value = Value::default();
        }
        self.at = next;
        Ok(left)
    }

    fn key<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Fault> {
        let end = bytes.iter().position(|byte| *byte == b'"');
        self.keep(&bytes[..end.unwrap_or(bytes.len())], KEY_MAX)?;
        let Some(end) = end else { return Ok(&[]) };
        self.at = At::Colon(match &*self.part {
            b"items" => Kind::Items,
            b"metadata" => Kind::Metadata,
            _ => Kind::Other,
        });
        Ok(&bytes[end + 1..])
    }

    fn value<'a, E: From<Fault>>(
        &mut self,
        kind: Kind,
        bytes: &'a [u8],
        take: &mut impl FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<&'a [u8], E> {
        let end = self.value.end(bytes)?;
        let (read, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if kind != Kind::Other {
            self.keep(read, METADATA_MAX)?;
        }
        if end.is_some() {
            // A list without objects may be null.
            let is_null = self.part.trim_ascii() == b"null";
            match kind {
                Kind::Items if !is_null => return Err(Fault::Form.into()),
                Kind::Metadata if !is_null => take(Part::Metadata(&self.part))?,
                Kind::Items | Kind::Metadata | Kind::Other => {}
            }
            self.at = At::Field;
        }
        Ok(rest)
    }

    fn item<'a, E: From<Fault>>(
        &mut self,
        bytes: &'a [u8],
        take: &mut impl FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<&'a [u8], E> {
        let end = self.value.end(bytes)?;
        let (read, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        match end {
            // It came in one piece.
            Some(_) if self.part.is_empty() => take(Part::Item(read))?,
            Some(_) => {
                self.keep(read, ITEM_MAX)?;
                take(Part::Item(&self.part))?;
            }
            None => {
                self.keep(read, ITEM_MAX)?;
                return Ok(rest);
            }
        }
        self.at = At::Items;
        Ok(rest)
    }

    fn keep(&mut self, bytes: &[u8], most: usize) -> Result<(), Fault> {
        if self.part.len() + bytes.len() > most {
            return Err(Fault::Length);
        }
        self.part.extend_from_slice(bytes);
        Ok(())
    }
}

impl Value {
    /// Where the value ends in `bytes`; `None` when it goes on after them.
    fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return Ok(Some(at + 1));
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' if self.depth == 1 => return Ok(Some(at + 1)),
                // A number or a word ends before what follows it.
                b'}' | b',' if self.depth == 0 => return Ok(Some(at)),
                b']' => return Err(Fault::Form),
                _ => {}
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// The metadata and the objects of a page that comes in pieces of this length.
    fn cut(page: &[u8], length: usize) -> Result<(Vec<Value>, Vec<Value>), Fault> {
        let (mut splitter, mut metadata, mut items) = (Splitter::default(), Vec::new(), Vec::new());
        for piece in page.chunks(length) {
            splitter.push(piece, &mut |part: Part<'_>| -> Result<(), Fault> {
                let (kept, json) = match part {
                    Part::Metadata(json) => (&mut metadata, json),
                    Part::Item(json) => (&mut items, json),
                };
                kept.push(serde_json::from_slice(json).map_err(|_| Fault::Form)?);
                Ok(())
            })?;
        }
        if splitter.is_whole() { Ok((metadata, items)) } else { Err(Fault::Form) }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            r#"[a-z\\"{}\[\],: é]{0,8}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(r#"[a-z"\\{]{0,5}"#, inner, 0..4)
                    .prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        /// rule:lists-of-members-are-bounded
        #[test]
        fn any_list_is_cut_into_its_objects_however_it_comes(
            items in prop::collection::vec(any_json(), 0..6),
            other in any_json(),
            pretty in any::<bool>(),
            length in 1_usize..40,
        ) {
            let items: Vec<_> = items.into_iter().map(|it| json!({"of": it})).collect();
            let page = json!({
                "a": other, "metadata": {"continue": "x}\"]"}, "items": items, "z": other,
            });
            let text = if pretty { format!("{page:#}") } else { page.to_string() };
            let found = cut(text.as_bytes(), length);
            prop_assert_eq!(found, Ok((vec![json!({"continue": "x}\"]"})], items)));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), length in 1_usize..9) {
            drop(cut(&bytes, length));
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for page in
            ["", "[]", "hunter2", "{", r#"{"items":[1]}"#, r#"{"items":{}}"#, r#"{"items":[{}"#]
        {
            assert_eq!(cut(page.as_bytes(), 3), Err(Fault::Form), "{page}");
        }
        for empty in ["{}", r#" {"items": null } "#, r#"{"items":[]}"#, r#"{"metadata":null}"#] {
            assert_eq!(cut(empty.as_bytes(), 3), Ok((vec![], vec![])), "{empty}");
        }
    }

    /// rule:lists-of-members-are-bounded
    #[test]
    fn parts_that_are_too_long_are_refused_while_they_come() {
        let long = "x".repeat(1 << 20);
        for (begin, most) in [
            (r#"{"items":[{"a":""#, ITEM_MAX),
            (r#"{"metadata":{"continue":""#, METADATA_MAX),
            (r#"{""#, KEY_MAX),
        ] {
            let mut splitter = Splitter::default();
            let mut push = |text: &str| {
                splitter.push(text.as_bytes(), &mut |_| -> Result<(), Fault> { Ok(()) })
            };
            push(begin).unwrap();
            let pushed = (1..=5).find(|_| push(&long) == Err(Fault::Length));
            assert_eq!(
                pushed,
                Some(most / long.len() + 1 - usize::from(most == ITEM_MAX)),
                "{begin}"
            );
        }
    }
}
