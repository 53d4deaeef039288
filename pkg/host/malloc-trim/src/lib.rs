//! Memory that was freed, and that the allocator keeps for later, goes back to the system
//!.

use std::convert::Infallible;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Between two times. A give-back takes some milliseconds at the most, and what is in use all the time has few spare
/// pages.
const EVERY: Duration = Duration::from_secs(30);

/// Gives back what is spare, again and again. It is done beside the workers of the runtime.
pub async fn trim_periodically() -> Infallible {
    loop {
        sleep(EVERY).await;
        // It cannot fail, and a runtime that ends takes nothing on.
        spawn_blocking(give_back).await.ok();
    }
}

/// Gives back what the allocator has spare at this moment. Other allocators than glibc's do it by themselves, or not.
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
