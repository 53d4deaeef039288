//! Lists of member clusters, read page by page (`rule:every-page-once`).
//!
//! | file | holds |
//! |---|---|
//! | `pager.rs` | [`Pager`](pager::Pager): what to ask for next, and when a list cannot be had |
//! | `listing.rs` | [`list`]: a whole list through a pager; [`MemberReader`]: the member that is read |
//! | `splitter.rs` | a page, cut into its objects as it comes |

mod listing;
mod pager;
mod splitter;

#[cfg(test)]
pub(crate) use listing::Unread;
pub(crate) use listing::{Collect, Member, MemberReader, list};
pub(crate) use pager::Abort;
