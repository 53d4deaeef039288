//! [`GceStub`]: what a test says and asks.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::cloud::{PROJECT, SECONDARY_RANGE, Vm, alias, key};
use crate::faults::Fault;
pub use crate::server::Call;
use crate::server::{Shared, serve};

/// The stub, on a free loopback port. Dropped, it ends with all of its connections.
#[derive(Debug)]
pub struct GceStub {
    /// `127.0.0.1:<port>`, which is the metadata server too.
    pub host: String,
    state: Shared,
    _serving: JoinSet<()>,
}

impl GceStub {
    /// A project without VMs, whose lists come in pages of 40.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let host = listener.local_addr().expect("it is bound").to_string();
        let state = Shared::default();
        state.lock().cloud.page = 40;
        Self { host, _serving: serve(listener, Arc::clone(&state)), state }
    }

    /// A file for `--cloud-config` that leads here.
    pub fn config(&self) -> String {
        format!(
            "[global]\nproject-id = {PROJECT}\napi-endpoint = http://{}/compute/v1/\n\
             secondary-range-name = {}\n",
            self.host, SECONDARY_RANGE.0
        )
    }

    /// `spec.providerID` of a VM.
    pub fn provider_id(zone: &str, name: &str) -> String {
        format!("gce://{PROJECT}/{zone}/{name}")
    }

    /// Makes a VM with these aliases.
    pub fn add_vm(&self, zone: &str, name: &str, aliases: &[&str]) {
        let aliases = aliases.iter().map(|range| alias(range)).collect();
        let vm = Vm { aliases, interfaces: 1, ..Vm::default() };
        self.state.lock().cloud.vms.insert(key(zone, name), vm);
    }

    /// Deletes a VM.
    pub fn remove_vm(&self, zone: &str, name: &str) {
        self.state.lock().cloud.vms.remove(&key(zone, name));
    }

    /// Gives a VM these aliases in place of the existing ones, like another client.
    pub fn set_aliases(&self, zone: &str, name: &str, aliases: &[&str]) {
        let aliases = aliases.iter().map(|range| alias(range)).collect();
        self.change(zone, name, |vm| vm.change(aliases));
    }

    /// Gives a VM this IPv6 address.
    pub fn set_ipv6(&self, zone: &str, name: &str, address: &str) {
        self.change(zone, name, |vm| address.clone_into(&mut vm.ipv6));
    }

    /// Takes all network interfaces from a VM.
    pub fn take_interfaces(&self, zone: &str, name: &str) {
        self.change(zone, name, |vm| vm.interfaces = 0);
    }

    fn change(&self, zone: &str, name: &str, change: impl FnOnce(&mut Vm)) {
        let mut state = self.state.lock();
        change(state.cloud.vms.get_mut(&key(zone, name)).expect("the VM is there"));
    }

    /// The aliases of a VM.
    pub fn aliases(&self, zone: &str, name: &str) -> Vec<String> {
        let state = self.state.lock();
        let vm = state.cloud.vms.get(&key(zone, name));
        let aliases = vm.into_iter().flat_map(|vm| &vm.aliases);
        aliases.filter_map(|alias| Some(alias["ipCidrRange"].as_str()?.to_owned())).collect()
    }

    /// The next `count` calls of this name go wrong so.
    pub fn fail(&self, call: &str, count: usize, fault: Fault) {
        self.state.lock().faults.add(call, count, fault);
    }

    /// Lists come in pages of so many VMs at the most.
    pub fn pages_of(&self, vms: usize) {
        self.state.lock().cloud.page = vms;
    }

    /// Every call is answered after this time.
    pub fn delay(&self, delay: Duration) {
        self.state.lock().delay = delay;
    }

    /// No token that was given so far is good any more.
    pub fn expire_tokens(&self) {
        self.state.lock().tokens.expire();
    }

    /// Number of tokens that were given.
    pub fn tokens_given(&self) -> usize {
        self.state.lock().tokens.given()
    }

    /// All calls.
    pub fn calls(&self) -> Vec<Call> {
        self.state.lock().calls.clone()
    }

    /// Number of calls of this name.
    pub fn count(&self, name: &str) -> usize {
        self.state.lock().calls.iter().filter(|call| call.name == name).count()
    }

    /// The most calls that were under way at one moment.
    pub fn most_at_once(&self) -> usize {
        self.state.lock().most_at_once
    }
}
