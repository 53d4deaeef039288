//! [`list`]: a whole list of a member cluster, read page by page and never held whole.

use futures::future::BoxFuture;
use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::pager::{Abort, Next, Pager};

/// The API of a member cluster, for reads that are no probes.
pub(crate) trait Member: Send {
    /// One GET of a path with its query. The error is one line and holds no secret.
    fn get<'a>(&'a mut self, path: &'a str) -> BoxFuture<'a, Result<Answer, Box<str>>>;
}

/// What a member cluster answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

/// What is made of the objects of a list; the default is that of an empty one.
pub(crate) trait Collect: Default + Send {
    /// The fields of an object that are needed.
    type Item: DeserializeOwned;

    /// Takes one object.
    fn add(&mut self, item: Self::Item);
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default = "Option::default")]
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    token: Option<Box<str>>,
}

/// Reads all pages of `path` with this query. Each page counts once, whatever
/// goes wrong on the way (`rule:every-page-once`).
pub(crate) async fn list<C: Collect>(
    member: &mut dyn Member,
    path: &str,
    query: &[(&str, &str)],
) -> Result<C, Abort> {
    let (mut pager, mut collected) = (Pager::default(), C::default());
    loop {
        let path = page_path(path, query, pager.token());
        let answer = member.get(&path).await.map_err(Abort::Failed)?;
        let next = match answer.status {
            StatusCode::OK => {
                let page: Page<C::Item> = read(&answer.body)?;
                page.items.into_iter().flatten().for_each(|item| collected.add(item));
                pager.page(page.metadata.token)?
            }
            StatusCode::GONE => pager.expired()?,
            other => {
                let why = format!("the API server answered {}", other.as_u16());
                return Err(Abort::Failed(why.into()));
            }
        };
        match next {
            Next::Page => {}
            Next::Restart => collected = C::default(),
            Next::End => return Ok(collected),
        }
    }
}

fn page_path(path: &str, query: &[(&str, &str)], token: Option<&str>) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.extend_pairs(query).extend_pairs(token.map(|token| ("continue", token)));
    format!("{path}?{}", pairs.finish())
}

/// Never shows what it could not read.
fn read<T: DeserializeOwned>(page: &[u8]) -> Result<T, Abort> {
    let from = &mut serde_json::Deserializer::from_slice(page);
    serde_path_to_error::deserialize(from).map_err(|error| {
        let field = error.path().to_string();
        Abort::Failed(format!("cannot decode a page: {field} is not of the expected form").into())
    })
}
