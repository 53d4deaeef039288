//! [`MemberReader`]: the API of a member cluster by way of its client.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use health::Code;
use http::StatusCode;
use probe::{Client, Prober, Reader};

use super::listing::{Member, Unread};

/// One read.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// The longest page: 500 Pods of 32 KiB. It is not held whole.
const PAGE_MAX: usize = 16 << 20;

/// Reads lists of one member.
pub(crate) struct MemberReader<'a>(Reader<'a>);

impl<'a> MemberReader<'a> {
    pub(crate) fn new(prober: &'a Prober, client: &'a Arc<Client>) -> Self {
        Self(prober.reader(client))
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
