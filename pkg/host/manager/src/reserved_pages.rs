//! The pages of controllers that are not at work in this process: a person who asks a standby for
//! them is not to think that there is no such page.

use http::StatusCode;
use serving::{Access, Page, Pages, reply};

use crate::{Hosted, debug_page};

/// Adds a page for each path that these controllers will serve; theirs take its place.
pub fn reserve_pages(pages: &Pages, controllers: &[Hosted]) {
    for Hosted { name, runner, .. } in controllers {
        let own = runner.pages().iter().map(|&path| path.to_owned());
        for path in own.chain([debug_page::path(name)]) {
            let text = format!(
                "{name} is not at work in this process: another replica leads, or it has just \
                 begun, or there is nothing for it to do yet. The log tells which.\n"
            );
            pages.add(Page::new(path, Access::Authorized, move |_| {
                std::future::ready(reply::text(StatusCode::SERVICE_UNAVAILABLE, text.clone()))
            }));
        }
    }
}
