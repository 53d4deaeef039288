//! [`MemberReader`]: the API of a member cluster by way of its client.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use probe::{Client, Prober, Reader};

use super::listing::{Answer, Member};

/// One read.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// The longest page: 500 Pods of 32 KiB. There are as many at once as clusters that are read.
const PAGE_MAX: usize = 16 << 20;

/// Reads lists of one member.
pub(crate) struct MemberReader<'a>(Reader<'a>);

impl<'a> MemberReader<'a> {
    pub(crate) fn new(prober: &'a Prober, client: &'a Arc<Client>) -> Self {
        Self(prober.reader(client))
    }
}

impl Member for MemberReader<'_> {
    fn get<'a>(&'a mut self, path: &'a str) -> BoxFuture<'a, Result<Answer, Box<str>>> {
        Box::pin(async move {
            let read = self.0.get(path, PAGE_MAX, READ_LIMIT).await;
            let read = read.map_err(|error| Box::<str>::from(error.to_string()))?;
            Ok(Answer { status: read.status, body: read.body })
        })
    }
}
