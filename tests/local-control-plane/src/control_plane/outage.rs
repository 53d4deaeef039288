//! What happens to an API server: it stops and is started again, or stands still.

use rustix::process::Signal;

use super::{ControlPlane, api_server_args, spawn};
use crate::child::Child;
use crate::programs;

impl ControlPlane {
    /// The API server is gone, and its port with it; etcd stays.
    pub async fn stop_api_server(&self) {
        self.api_server.signal(Signal::KILL);
        self.api_server.exited().await;
    }

    /// Starts it again at the same address and waits until it is ready.
    pub async fn start_api_server(&mut self) -> anyhow::Result<()> {
        let (_, api_server) = programs::etcd_and_apiserver()?;
        let args = api_server_args(self.port, &self.options);
        self.api_server = spawn(api_server, &self.dir, args)?;
        self.ready().await
    }

    /// The API server answers nothing, on no connection; the kernel still takes bytes.
    pub fn freeze_api_server(&self) {
        self.api_server.halt();
    }

    /// Ends [`Self::freeze_api_server`].
    pub fn thaw_api_server(&self) {
        self.api_server.signal(Signal::CONT);
    }

    /// etcd stands still until the result is dropped: nothing is read from it or stored.
    #[must_use = "it goes on when this is dropped"]
    pub fn freeze_store(&self) -> FrozenStore<'_> {
        self.etcd.halt();
        FrozenStore(&self.etcd)
    }

    /// The certificate that vouches for its server, in PEM.
    pub fn ca_pem(&self) -> &str {
        self.ca.pem()
    }
}

/// See [`ControlPlane::freeze_store`].
pub struct FrozenStore<'a>(&'a Child);

impl Drop for FrozenStore<'_> {
    fn drop(&mut self) {
        self.0.signal(Signal::CONT);
    }
}
