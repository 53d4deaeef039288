//! All pages of a describe call.

use crate::attempts;
use crate::call::Call;
use crate::call_error::CallError;
use crate::region::Region;

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
) -> Result<Vec<Item>, CallError>
where
    CallError: From<Error>,
    Fetch: Fn(Option<String>) -> Fetched,
    Fetched: Future<Output = Result<Page, Error>>,
{
    let (mut found, mut token) = (Vec::new(), None);
    for _ in 0..PAGES {
        let page = one(region, call, || fetch(token.clone())).await?;
        let (items, next) = open(page);
        found.extend(items.unwrap_or_default());
        if found.len() > ITEMS {
            break;
        }
        match next.filter(|next| !next.is_empty()) {
            // A server that answers with the token it was given would hold us for ever.
            Some(next) if token.as_ref() == Some(&next) => {
                return Err(CallError::without("token of a new page"));
            }
            Some(next) => token = Some(next),
            None => return Ok(found),
        }
    }
    Err(CallError::without("end within 20,000 items"))
}

/// A call with one answer.
pub(super) async fn one<Answer, Error, Fetched>(
    region: &Region,
    call: Call,
    fetch: impl Fn() -> Fetched,
) -> Result<Answer, CallError>
where
    CallError: From<Error>,
    Fetched: Future<Output = Result<Answer, Error>>,
{
    let send = || async { Box::pin(fetch()).await.map_err(CallError::from) };
    attempts::send(region, call, None, send).await
}
