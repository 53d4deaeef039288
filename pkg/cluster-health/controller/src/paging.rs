//! Lists of member clusters, read page by page: [`list`] reads a whole one, [`Pager`] says what to ask
//! for next, `splitter.rs` cuts a page into its objects as it comes.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use health::Code;
use http::StatusCode;
use kube_api::ListMeta;
use probe::{Client, Prober, Reader};
use serde::de::DeserializeOwned;
use splitter::{Fault, Part, Splitter};

mod splitter;

/// Most objects of one page, whatever was asked for: no more can be asked for.
const PAGE_ITEMS_MAX: usize = 5_000;

/// The API of a member cluster, for reads that are no probes.
pub(crate) trait Member: Send {
    /// One GET of a path with its query. The body of an answer of status 200 goes to `take` piece by
    /// piece, until that returns false.
    fn get<'a>(
        &'a mut self,
        path: &'a str,
        take: &'a mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> BoxFuture<'a, Result<StatusCode, Unread>>;
}

/// Why a page could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The page is longer than allowed.
    TooLong,
    /// The request failed. One line without secrets.
    Failed(Box<str>),
}

/// Collects the objects of a list.
pub(crate) trait Collect: Send {
    /// The fields of an object that are needed.
    type Item: DeserializeOwned;

    /// Takes one object.
    ///
    /// # Errors
    /// There are more of something than any cluster has.
    fn add(&mut self, item: Self::Item) -> Result<(), Abort>;
}

/// Reads all pages of `path` with this query into what `start` gives, `limit` objects at a time.
/// Each page counts once, whatever goes wrong on the way; where pages are
/// too long the list is started again with smaller ones (`rule:lists-of-members-are-bounded`).
pub(crate) async fn list<C: Collect>(
    member: &mut dyn Member,
    path: &str,
    query: &[(&str, &str)],
    mut limit: usize,
    start: impl Fn() -> C + Send,
) -> Result<C, Abort> {
    let (mut pager, mut collected) = (Pager::default(), start());
    loop {
        let path = page_path(path, query, limit, pager.token());
        let mut page = Page::into(&mut collected);
        let answer = member.get(&path, &mut |bytes| page.push(bytes)).await;
        let next = match answer {
            Ok(StatusCode::OK) => {
                let (token, items) = page.finish()?;
                pager.page(token, items)?
            }
            Ok(StatusCode::GONE) => pager.expired()?,
            Ok(other) => {
                let why = format!("the API server answered {}", other.as_u16());
                return Err(Abort::Failed(why.into()));
            }
            Err(Unread::TooLong) if limit > 1 => {
                limit /= 2;
                pager.restart()
            }
            Err(Unread::TooLong) => return Err(Abort::TooLarge("an object is too long")),
            Err(Unread::Failed(why)) => return Err(Abort::Failed(why)),
        };
        match next {
            Next::Page => {}
            Next::Restart => collected = start(),
            Next::End => return Ok(collected),
        }
    }
}

fn page_path(path: &str, query: &[(&str, &str)], limit: usize, token: Option<&str>) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.append_pair("limit", &limit.to_string());
    pairs.extend_pairs(query).extend_pairs(token.map(|token| ("continue", token)));
    format!("{path}?{}", pairs.finish())
}

/// One page on its way into what is made of it.
struct Page<'a, C> {
    splitter: Splitter,
    collected: &'a mut C,
    token: Option<Box<str>>,
    items: usize,
    fault: Option<Abort>,
}

impl<'a, C: Collect> Page<'a, C> {
    fn into(collected: &'a mut C) -> Self {
        Self { splitter: Splitter::default(), collected, token: None, items: 0, fault: None }
    }

    /// Whether the page is good so far.
    fn push(&mut self, bytes: &[u8]) -> bool {
        let Self { splitter, collected, token, items, .. } = self;
        let pushed = splitter.push(bytes, &mut |part| match part {
            Part::Metadata(json) => {
                *token = read::<ListMeta>(json, || "metadata".to_owned())?.token;
                Ok(())
            }
            Part::Item(_) if *items == PAGE_ITEMS_MAX => {
                Err(Abort::TooLarge("a page has more than 5000 objects"))
            }
            Part::Item(json) => {
                let item = read(json, || format!("items[{items}]"))?;
                *items += 1;
                collected.add(item)
            }
        });
        self.fault = pushed.err();
        self.fault.is_none()
    }

    /// The token of the next page, and how many objects there were.
    fn finish(self) -> Result<(Option<Box<str>>, usize), Abort> {
        match self.fault {
            Some(fault) => Err(fault),
            None if self.splitter.is_whole() => Ok((self.token, self.items)),
            None => Err(Fault::Form.into()),
        }
    }
}

impl From<Fault> for Abort {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Form => Self::Failed("cannot decode a page: it is no list in JSON".into()),
            Fault::Length => Self::TooLarge("an object is too long"),
        }
    }
}

/// Never shows what it could not read.
fn read<T: DeserializeOwned>(json: &[u8], what: impl Fn() -> String) -> Result<T, Abort> {
    let from = &mut serde_json::Deserializer::from_slice(json);
    serde_path_to_error::deserialize(from).map_err(|error| {
        let (what, field) = (what(), error.path().to_string());
        let field = if field == "." { what } else { format!("{what}.{field}") };
        // Names of fields are the member's as well.
        let text = format!("cannot decode a page: {field} is not of the expected form");
        Abort::Failed(health::one_line(&text).into())
    })
}

/// The time limit of one read.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// The longest page: 500 Pods of 32 KiB. It is not held whole.
const PAGE_MAX: usize = 16 << 20;

/// Reads lists of one member.
pub(crate) struct MemberReader<'a>(Reader<'a>);

impl<'a> MemberReader<'a> {
    pub(crate) fn new(prober: &'a Prober, client: &'a Arc<Client>) -> Self {
        Self(prober.reader(client))
    }

    /// See [`Prober::borrowing_reader`].
    pub(crate) fn borrowing(prober: &'a Prober, client: &'a Arc<Client>) -> Self {
        Self(prober.borrowing_reader(client))
    }
}

impl Member for MemberReader<'_> {
    fn get<'a>(
        &'a mut self,
        path: &'a str,
        take: &'a mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> BoxFuture<'a, Result<StatusCode, Unread>> {
        Box::pin(async move {
            let read = self.0.get_in_pieces(path, PAGE_MAX, READ_LIMIT, take).await;
            read.map_err(|error| match error.code {
                Code::Body => Unread::TooLong,
                _ => Unread::Failed(error.to_string().into()),
            })
        })
    }
}

/// More pages than a cluster of 500,000 Pods has.
const PAGES_MAX: usize = 2_000;
/// More objects than any cluster has.
const ITEMS_MAX: usize = 1_000_000;
/// Tokens of API servers have some hundred bytes.
const TOKEN_MAX: usize = 4 << 10;

/// The state of one list that is being read.
#[derive(Debug, Default)]
pub(crate) struct Pager {
    /// The token of the next page; `None` for the first one.
    token: Option<Box<str>>,
    /// Hashes of those that came before.
    seen: HashSet<u64>,
    pages: usize,
    items: usize,
    expired: bool,
}

/// The step after an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask for another page.
    Page,
    /// Forget what was read, and ask for the first page.
    Restart,
    /// The last page was read.
    End,
}

/// Why there is no list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Abort {
    /// The server sent the same token twice: the list would never end.
    Stalled,
    /// The snapshot that the pages are of was gone, twice.
    Expired,
    /// The list has too many pages.
    Limit,
    /// The list has more of something than any cluster has, or an object is longer than any store takes
    /// (`rule:lists-of-members-are-bounded`).
    TooLarge(&'static str),
    /// A page could not be had or read.
    Failed(Box<str>),
}

impl Pager {
    /// The token to send, exactly as it came.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Takes the token that came with a page of so many objects; an empty one ends the list.
    pub(crate) fn page(&mut self, token: Option<Box<str>>, items: usize) -> Result<Next, Abort> {
        self.pages += 1;
        self.items = self.items.saturating_add(items);
        if self.items > ITEMS_MAX {
            return Err(Abort::TooLarge("it has more than 1,000,000 objects"));
        }
        let Some(token) = token.filter(|token| !token.is_empty()) else { return Ok(Next::End) };
        if token.len() > TOKEN_MAX {
            return Err(Abort::TooLarge("its continue token is too long"));
        }
        if !self.seen.insert(health::hash(&token)) {
            return Err(Abort::Stalled);
        }
        if self.pages >= PAGES_MAX {
            return Err(Abort::Limit);
        }
        self.token = Some(token);
        Ok(Next::Page)
    }

    /// Takes word that the server no longer has the snapshot, status 410.
    pub(crate) fn expired(&mut self) -> Result<Next, Abort> {
        if self.expired {
            return Err(Abort::Expired);
        }
        self.expired = true;
        Ok(self.restart())
    }

    /// Forgets all pages.
    pub(crate) fn restart(&mut self) -> Next {
        *self = Self { expired: self.expired, ..Self::default() };
        Next::Restart
    }
}

impl Abort {
    /// The reason of the condition about it.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Stalled => "PagingStalled",
            Self::Expired => "ListExpired",
            Self::Limit => "PagingLimit",
            Self::TooLarge(_) => "ListTooLarge",
            Self::Failed(_) => "ListFailed",
        }
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stalled => f.write_str("the API server sent the same continue token twice"),
            Self::Expired => f.write_str("the list expired twice while it was read"),
            Self::Limit => write!(f, "the list has more than {PAGES_MAX} pages"),
            Self::TooLarge(what) => write!(f, "the list is too large: {what}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Box<str> {
        text.into()
    }

    #[test]
    fn the_token_of_a_page_is_sent_for_the_next_one_and_an_empty_one_ends_the_list() {
        for last in [None, Some(token(""))] {
            let mut pager = Pager::default();
            assert_eq!(pager.token(), None);
            assert_eq!(pager.page(Some(token("a=b&c/d")), 1), Ok(Next::Page));
            assert_eq!(pager.token(), Some("a=b&c/d"));
            assert_eq!(pager.page(last, 1), Ok(Next::End));
        }
    }

    #[test]
    fn a_token_that_came_before_stops_the_list() {
        let mut pager = Pager::default();
        for name in ["a", "b"] {
            assert_eq!(pager.page(Some(token(name)), 1), Ok(Next::Page));
        }
        assert_eq!(pager.page(Some(token("a")), 1), Err(Abort::Stalled));
    }

    #[test]
    fn an_expired_list_is_restarted_once() {
        let mut pager = Pager::default();
        assert_eq!(pager.page(Some(token("a")), 1), Ok(Next::Page));
        assert_eq!((pager.expired(), pager.token()), (Ok(Next::Restart), None));
        // The new list may have the tokens of the old one.
        assert_eq!(pager.page(Some(token("a")), 1), Ok(Next::Page));
        assert_eq!(pager.expired(), Err(Abort::Expired));
    }

    /// rule:lists-of-members-are-bounded
    #[test]
    fn a_list_of_too_many_objects_or_with_a_huge_token_is_given_up() {
        let mut pager = Pager::default();
        assert_eq!(pager.page(Some(token("a")), ITEMS_MAX), Ok(Next::Page));
        assert!(matches!(pager.page(None, 1), Err(Abort::TooLarge(_))));
        let huge = "x".repeat(TOKEN_MAX + 1);
        assert!(matches!(Pager::default().page(Some(token(&huge)), 1), Err(Abort::TooLarge(_))));
    }

    #[test]
    fn a_list_without_end_is_given_up() {
        let mut pager = Pager::default();
        let pages = (1..=PAGES_MAX).map(|page| pager.page(Some(token(&page.to_string())), 1));
        let aborts: Vec<_> = pages.enumerate().filter(|(_, next)| next.is_err()).collect();
        assert_eq!(aborts, [(PAGES_MAX - 1, Err(Abort::Limit))]);
        let mut pager = Pager { pages: PAGES_MAX - 1, ..Pager::default() };
        assert_eq!(pager.page(None, 1), Ok(Next::End));
    }
}
