//! Answers of describe calls: all pages of them, their tags, and [`Flaws`], what an answer lacks
//! (`rule:only-ours-spoils-an-answer`).

use std::str::FromStr;

use aws_network::{AwsResource, Tags};

use super::Describe;
use crate::call::{AwsError, Call};
use crate::region::Region;
use crate::requests;

/// More pages than the quotas of a region allow: AWS may answer with pages that are nearly empty.
const PAGES: usize = 500;
/// More items than the quotas of a region allow. What is read stays in memory until all is read.
const ITEMS: usize = 20_000;

/// Reads page after page. `fetch` sends the call for the page of a token, `open` takes a page apart
/// into its items and the token of the next page.
pub(super) async fn pages<Page, Item, Error, Fetch, Fetched>(
    region: &Region,
    call: Call,
    fetch: Fetch,
    open: impl Fn(Page) -> (Option<Vec<Item>>, Option<String>),
) -> Result<Vec<Item>, AwsError>
where
    AwsError: From<Error>,
    Fetch: Fn(Option<String>) -> Fetched,
    Fetched: Future<Output = Result<Page, Error>>,
{
    let (fetch, open) = (&fetch, &open);
    let read = |token: Option<String>| async move {
        Ok(open(one(region, call, || fetch(token.clone())).await?))
    };
    follow(read).await
}

/// Reads all pages of a call of EC2: its operation, the request, and the field with the items.
macro_rules! ec2_pages {
    ($describe:expr, $operation:expr, $request:expr, $items:ident) => {{
        let (request, call) = ($request, $crate::call::Call::ec2_read($operation));
        $crate::describe::answers::pages(
            $describe.region,
            call,
            move |token| request.clone().set_next_token(token).send(),
            |page| (page.$items, page.next_token),
        )
        .await
    }};
}

/// Reads all pages of a call of load balancers, as [`ec2_pages`] those of EC2.
macro_rules! balancer_pages {
    ($describe:expr, $operation:expr, $request:expr, $items:ident) => {{
        let (request, call) = ($request, $crate::call::Call::balancer_read($operation));
        $crate::describe::answers::pages(
            $describe.region,
            call,
            move |token| request.clone().set_marker(token).send(),
            |page| (page.$items, page.next_marker),
        )
        .await
    }};
}

pub(super) use {balancer_pages, ec2_pages};

/// All items of all pages. `read` gives the items of the page of a token and the next token.
async fn follow<Item, Fetched>(
    read: impl Fn(Option<String>) -> Fetched,
) -> Result<Vec<Item>, AwsError>
where
    Fetched: Future<Output = Result<(Option<Vec<Item>>, Option<String>), AwsError>>,
{
    let (mut found, mut token) = (Vec::new(), None);
    for _ in 0..PAGES {
        let (items, next) = read(token.clone()).await?;
        found.extend(items.unwrap_or_default());
        if found.len() > ITEMS {
            return Err(endless(ITEMS, "items"));
        }
        match next.filter(|next| !next.is_empty()) {
            // A server that answers with the token of the request would never end.
            Some(next) if token.as_ref() == Some(&next) => {
                return Err(AwsError::without("token of a new page"));
            }
            Some(next) => token = Some(next),
            None => return Ok(found),
        }
    }
    Err(endless(PAGES, "pages"))
}

fn endless(most: usize, of: &str) -> AwsError {
    AwsError::Unanswered { reason: format!("the answer does not end within {most} {of}") }
}

/// A call with one answer.
pub(super) async fn one<Answer, Error, Fetched>(
    region: &Region,
    call: Call,
    fetch: impl Fn() -> Fetched,
) -> Result<Answer, AwsError>
where
    AwsError: From<Error>,
    Fetched: Future<Output = Result<Answer, Error>>,
{
    let send = || async { Box::pin(fetch()).await.map_err(AwsError::from) };
    requests::send(region, call, None, send).await
}

/// Fields that an answer lacks about one resource.
#[derive(Debug, Default)]
pub(super) struct Flaws {
    first: Option<AwsError>,
    has_no_id: bool,
}

impl Flaws {
    /// An id. A resource of others without one is left out: nothing can be said about it.
    pub(super) fn id(&mut self, id: Option<String>, what: &'static str) -> String {
        self.has_no_id |= id.is_none();
        self.needed(id, what, String::new())
    }

    /// A field that a resource of ours must have; a resource of others gets `otherwise`.
    pub(super) fn needed<T>(&mut self, value: Option<T>, what: &'static str, otherwise: T) -> T {
        value.unwrap_or_else(|| {
            self.first.get_or_insert_with(|| AwsError::without(what));
            otherwise
        })
    }

    /// A text in its own form, in the same way.
    pub(super) fn parsed<T: FromStr>(
        &mut self,
        text: Option<&str>,
        what: &'static str,
        otherwise: T,
    ) -> T {
        self.needed(text.and_then(|text| text.parse().ok()), what, otherwise)
    }

    /// A part of it; none where that cannot be read.
    pub(super) fn part<T>(&mut self, read: Result<T, AwsError>) -> Option<T> {
        match read {
            Ok(part) => Some(part),
            Err(flaw) => {
                self.first.get_or_insert(flaw);
                None
            }
        }
    }

    /// Whether a resource counts: not one of others without an id.
    ///
    /// # Errors
    /// It is ours and lacks something.
    pub(super) fn admits(self, is_ours: bool) -> Result<bool, AwsError> {
        match self.first {
            Some(flaw) if is_ours => Err(flaw),
            _ => Ok(!self.has_no_id),
        }
    }
}

impl Describe<'_> {
    /// The resources that count, of what was read.
    pub(super) fn admit<T: AwsResource>(
        self,
        read: impl Iterator<Item = (T, Flaws)>,
    ) -> Result<Vec<T>, AwsError> {
        let mut admitted = Vec::new();
        for (found, flaws) in read {
            if flaws.admits(found.known_tags().is_some_and(|tags| self.is_tagged(tags)))? {
                admitted.push(found);
            }
        }
        Ok(admitted)
    }
}

pub(super) fn tags_of_ec2(tags: Option<Vec<aws_sdk_ec2::types::Tag>>) -> Tags {
    let pair = |tag: aws_sdk_ec2::types::Tag| Some((tag.key?, tag.value.unwrap_or_default()));
    tags.unwrap_or_default().into_iter().filter_map(pair).collect()
}

pub(super) fn tags_of_elb(tags: Option<Vec<aws_sdk_elasticloadbalancing::types::Tag>>) -> Tags {
    let pair =
        |tag: aws_sdk_elasticloadbalancing::types::Tag| (tag.key, tag.value.unwrap_or_default());
    tags.unwrap_or_default().into_iter().map(pair).collect()
}

pub(super) fn tags_of_elbv2(tags: Option<Vec<aws_sdk_elasticloadbalancingv2::types::Tag>>) -> Tags {
    let pair = |tag: aws_sdk_elasticloadbalancingv2::types::Tag| {
        Some((tag.key?, tag.value.unwrap_or_default()))
    };
    tags.unwrap_or_default().into_iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Reads from a server with so many pages of so many items each; returns the result and the
    /// pages read.
    async fn read(pages: usize, items: usize) -> (Result<usize, String>, usize) {
        let count = Cell::new(0);
        let all = follow(|token| {
            let page = token.map_or(0, |token| token.parse::<usize>().unwrap());
            count.set(page + 1);
            let next = (page + 1 < pages).then(|| (page + 1).to_string());
            std::future::ready(Ok((Some(vec![(); items]), next)))
        });
        let all = all.await.map(|all| all.len()).map_err(|error| error.to_string());
        (all, count.get())
    }

    #[tokio::test]
    async fn pages_that_never_end_are_given_up_after_a_bound_of_pages_or_items() {
        assert_eq!(read(PAGES, 1).await, (Ok(PAGES), PAGES));
        let (error, count) = read(10 * PAGES, 0).await;
        assert!(error.clone().unwrap_err().contains("does not end within 500 pages"), "{error:?}");
        assert_eq!(count, PAGES);
        let (error, count) = read(PAGES, 1000).await;
        assert!(
            error.clone().unwrap_err().contains("does not end within 20000 items"),
            "{error:?}"
        );
        assert_eq!(count, ITEMS / 1000 + 1);
    }

    #[tokio::test]
    async fn a_page_that_names_itself_as_the_next_one_is_an_error() {
        let all = follow(|_| std::future::ready(Ok((Some(vec![()]), Some("same".to_owned())))));
        let error = all.await.unwrap_err().to_string();
        assert!(error.contains("the answer has no token of a new page"), "{error}");
    }
}
