//! Gives freed memory that the allocator keeps back to the system. After a thousand connections at once
//! that is most of the memory of the process, and looks like a memory leak on a graph.

use std::convert::Infallible;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// The time between two trims. A trim takes a few milliseconds; memory in constant use has few spare
/// pages.
const EVERY: Duration = Duration::from_secs(30);

/// Gives spare memory back every half minute, on a blocking thread of the runtime.
pub async fn trim_periodically() -> Infallible {
    loop {
        sleep(EVERY).await;
        // It cannot fail, and a runtime that ends takes nothing on.
        spawn_blocking(give_back).await.ok();
    }
}

/// Gives back the memory that the allocator does not use now. Does nothing with other allocators than glibc's.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "the C library offers it in this form only")]
    // SAFETY: it takes any number, may be called by any thread at any time, and touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests;
