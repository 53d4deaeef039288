//! [`Pager`]: what to ask for next while a list is read in pages, and when to give up
//! (`rule:every-page-once`). Pure.

use std::collections::HashSet;
use std::fmt;

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

/// What follows an answer.
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
    /// The server sent the same token twice: it would go on for ever.
    Stalled,
    /// The snapshot that the pages are of was gone, twice.
    Expired,
    /// There is no end to it.
    Limit,
    /// There is more of something than any cluster has, or an object is longer than any store takes
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
            return Err(Abort::TooLarge("it has more than a million objects"));
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
        Ok(self.begin_anew())
    }

    /// Forgets all pages.
    pub(crate) fn begin_anew(&mut self) -> Next {
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

    /// rule:every-page-once
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

    /// rule:every-page-once
    #[test]
    fn a_token_that_came_before_stops_the_list() {
        let mut pager = Pager::default();
        for name in ["a", "b"] {
            assert_eq!(pager.page(Some(token(name)), 1), Ok(Next::Page));
        }
        assert_eq!(pager.page(Some(token("a")), 1), Err(Abort::Stalled));
    }

    /// rule:every-page-once
    #[test]
    fn an_expired_list_is_begun_anew_once() {
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
