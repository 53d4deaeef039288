//! [`Client`]: a member cluster as the prober sees it: its addresses, how they are reached, and
//! what was learnt of it.

use std::fmt;

use bytes::Bytes;
use health::{Code, Endpoints, Lifetime, PathMemory};
use http::{HeaderName, HeaderValue, Request, Uri, header};
use http_body_util::Empty;
use parking_lot::Mutex;
use rustls_pki_types::ServerName;
use secrecy::ExposeSecret as _;
use transport::{Asker, ClientCertificate, Endpoint, Protocol, Proxy, TlsConfigs, Trust};

use crate::credentials::{headers, lifetime_of_certificate, lifetime_of_token};
use crate::failure::{Failure, Problem};
use crate::inputs::{Fingerprint, Inputs, WaivedChecks};
use crate::link::Link;
use validation::Address;

/// Most addresses of one cluster that are tried.
const ADDRESSES_MAX: usize = 64;

/// Reads a variable of the environment.
pub(crate) type Environment = fn(&str) -> Option<String>;

/// A client of one member cluster. Dropping it closes its connection and overwrites what secrets
/// it holds.
pub struct Client {
    fingerprint: Fingerprint,
    servers: Vec<Server>,
    endpoint: Endpoint,
    /// The way through the proxy of the environment.
    proxied: Option<Endpoint>,
    /// Looks up the addresses of all its hosts.
    pub(crate) asker: Asker,
    /// Whether `endpoint` has a proxy.
    has_proxy: bool,
    /// Without the table of a `HeaderMap`, which is larger than they are.
    headers: Box<[(HeaderName, HeaderValue)]>,
    credential: Option<Lifetime>,
    waived: WaivedChecks,
    /// Where its credential is renewed.
    pub(crate) renewed_in: &'static str,
    pub(crate) session: Mutex<Session>,
}

/// One address of a cluster.
struct Server {
    address: Address,
    uri: Uri,
    host: HeaderValue,
    /// Whether the environment wants a proxy for it.
    is_proxied: bool,
}

/// State that probes of a cluster hand to the next one.
#[derive(Default)]
pub(crate) struct Session {
    /// A connection that may still be used.
    pub(crate) link: Option<Link>,
    /// A reader has it, and may give it back.
    pub(crate) is_lent: bool,
    pub(crate) learnt: Learnt,
}

/// State of a cluster's addresses, independent of its credential.
#[derive(Clone, Copy, Default)]
pub(crate) struct Learnt {
    pub(crate) path: PathMemory,
    /// The address that answered last.
    pub(crate) first_endpoint: u8,
    pub(crate) silent: Silent,
    /// Lifetime of the server's certificate, as last shown.
    pub(crate) certificate: Option<Lifetime>,
}

impl Client {
    pub(crate) fn new(
        inputs: &Inputs,
        configs: &TlsConfigs,
        environment: Environment,
    ) -> Result<Self, Problem> {
        if inputs.addresses.is_empty() {
            return Err(Problem::new(Code::BadEndpoint, "the cluster has no address"));
        }
        if !inputs.allow_plaintext && inputs.addresses.iter().any(Address::is_plaintext) {
            let secret = inputs.token.is_some() || inputs.pair.is_some();
            let text = if secret {
                "the address of the API server is plain http, over which credentials are not sent; use https, or set --allow-plaintext-endpoints"
            } else {
                "the address of the API server is plain http; use https, or set --allow-plaintext-endpoints"
            };
            return Err(Problem::new(Code::BadEndpoint, text));
        }
        let pair = client_certificate(inputs)?;
        let token = inputs.token.as_ref().and_then(lifetime_of_token);
        let certificate = pair.as_ref().and_then(|pair| lifetime_of_certificate(pair.validity()?));
        let endpoint = endpoint(inputs, pair.as_ref(), configs)?;
        let addresses = inputs.addresses.iter().take(ADDRESSES_MAX);
        let mut servers: Vec<_> = addresses.map(Server::new).collect();
        let proxied = match &inputs.proxy {
            Some(_) => None,
            None => through_environment(&endpoint, &mut servers, inputs, configs, environment)?,
        };
        Ok(Self {
            fingerprint: inputs.fingerprint(),
            servers,
            endpoint,
            proxied,
            asker: Asker::default(),
            has_proxy: inputs.proxy.is_some(),
            headers: headers(inputs)?
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            credential: Lifetime::sooner(token, certificate),
            waived: inputs.tls,
            renewed_in: if inputs.renewed_in.is_empty() { "its source" } else { inputs.renewed_in },
            session: Mutex::default(),
        })
    }

    /// The hash of the inputs that it was made of.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The lifetime of the first of its credentials to end, as far as they say.
    pub fn credential(&self) -> Option<Lifetime> {
        self.credential
    }

    /// The lifetime of the certificate that the server showed last.
    pub fn certificate(&self) -> Option<Lifetime> {
        self.session.lock().learnt.certificate
    }

    /// How its addresses did when each was last asked.
    pub fn endpoints(&self) -> Endpoints {
        let down = self.session.lock().learnt.silent.count();
        Endpoints { down, total: self.address_count() }
    }

    /// Takes over what `before`, a client of the same cluster with another credential, has learnt
    /// of the addresses; nothing when they are others
    pub fn learn_from(&self, before: &Self) {
        if !self.servers.iter().map(Server::address).eq(before.servers.iter().map(Server::address))
        {
            return;
        }
        let learnt = before.session.lock().learnt;
        self.session.lock().learnt = learnt;
    }

    /// The checks of the server's certificate that are left out.
    pub fn waived(&self) -> WaivedChecks {
        self.waived
    }

    pub(crate) fn address_count(&self) -> u8 {
        u8::try_from(self.servers.len()).unwrap_or(u8::MAX)
    }

    /// Closes the connection that is kept, so that the next probe opens one.
    pub fn close_connection(&self) {
        let mut session = self.session.lock();
        session.is_lent = false;
        let link = session.link.take();
        drop(session);
        drop(link);
    }

    /// The server at the address of number `endpoint`; a client that took the place of another one
    /// may have fewer.
    fn server(&self, endpoint: u8) -> &Server {
        &self.servers[usize::from(endpoint) % self.servers.len()]
    }

    pub(crate) fn address(&self, endpoint: u8) -> &Address {
        &self.server(endpoint).address
    }

    pub(crate) fn uri(&self, endpoint: u8) -> &Uri {
        &self.server(endpoint).uri
    }

    /// How connections to the address of number `endpoint` are made.
    pub(crate) fn endpoint(&self, endpoint: u8) -> &Endpoint {
        let proxied = self.proxied.as_ref().filter(|_| self.server(endpoint).is_proxied);
        proxied.unwrap_or(&self.endpoint)
    }

    pub(crate) fn is_proxied(&self, endpoint: u8) -> bool {
        self.has_proxy || self.server(endpoint).is_proxied
    }

    /// A GET of `path`.
    ///
    /// # Errors
    /// `path` is no path: the answer for `/` must not count as its answer.
    pub(crate) fn request(
        &self,
        endpoint: u8,
        path: &str,
    ) -> Result<Request<Empty<Bytes>>, Failure> {
        let server = self.server(endpoint);
        let mut request = Request::new(Empty::new());
        let target = server.address.request_target(path);
        *request.uri_mut() = target.parse().map_err(|_| Failure {
            code: Code::BadEndpoint,
            detail: format!("{target:?} is no path of a URL"),
        })?;
        for (name, value) in &self.headers {
            request.headers_mut().append(name.clone(), value.clone());
        }
        request.headers_mut().insert(header::HOST, server.host.clone());
        Ok(request)
    }
}

impl Server {
    fn address(&self) -> &Address {
        &self.address
    }

    fn new(address: &Address) -> Self {
        let host = HeaderValue::from_str(address.authority());
        let host = host.unwrap_or(HeaderValue::from_static("kubernetes"));
        Self { address: address.clone(), uri: address.server(), host, is_proxied: false }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<_> = self.servers.iter().map(|server| &server.address).collect();
        write!(f, "Client({} {addresses:?})", self.fingerprint)
    }
}

fn client_certificate(inputs: &Inputs) -> Result<Option<ClientCertificate>, Problem> {
    let Some(pair) = &inputs.pair else { return Ok(None) };
    let read = ClientCertificate::from_pem(&pair.certificate, pair.key.expose_secret());
    read.map(Some).map_err(|error| Problem::of_pair(&error))
}

fn endpoint(
    inputs: &Inputs,
    pair: Option<&ClientCertificate>,
    configs: &TlsConfigs,
) -> Result<Endpoint, Problem> {
    let trust = trust(inputs)?;
    let endpoint = Endpoint::new(configs, &trust, pair, Protocol::Slim);
    let endpoint = endpoint.map_err(|error| Problem::of_tls(&error))?.named(server_name(inputs)?);
    let Some(proxy) = &inputs.proxy else { return Ok(endpoint) };
    let proxy = proxy.expose_secret();
    let refused =
        |why: String| Problem::new(Code::BadProxy, format!("cannot use the proxy: {why}"));
    if !proxy.contains("://") {
        return Err(refused("its URL has no scheme".to_owned()));
    }
    let proxy = Proxy::parse(proxy).map_err(|error| refused(error.to_string()))?;
    let trust = if proxy.speaks_tls() { every_check(inputs)? } else { trust };
    endpoint.through(proxy, configs, &trust).map_err(|error| Problem::of_tls(&error))
}

fn server_name(inputs: &Inputs) -> Result<Option<ServerName<'static>>, Problem> {
    let Some(name) = &inputs.server_name else { return Ok(None) };
    let parsed = ServerName::try_from(name.clone());
    parsed.map(Some).map_err(|_| {
        Problem::new(Code::BadEndpoint, "the name of the server's certificate is not a host name")
    })
}

/// The way to those of `servers` for which the environment wants a proxy, as client-go goes; `None`
/// when it wants none.
fn through_environment(
    endpoint: &Endpoint,
    servers: &mut [Server],
    inputs: &Inputs,
    configs: &TlsConfigs,
    environment: Environment,
) -> Result<Option<Endpoint>, Problem> {
    let mut proxy = None;
    for server in servers {
        let wanted = Proxy::from_environment(&server.uri, environment).map_err(|error| {
            Problem::new(Code::BadProxy, format!("cannot use the proxy of HTTPS_PROXY: {error}"))
        })?;
        server.is_proxied = wanted.is_some();
        proxy = proxy.or(wanted);
    }
    let Some(proxy) = proxy else { return Ok(None) };
    let made = endpoint.clone().through(proxy, configs, &every_check(inputs)?);
    made.map(Some).map_err(|error| Problem::of_tls(&error))
}

fn trust(inputs: &Inputs) -> Result<Trust, Problem> {
    if inputs.tls.everything {
        return Ok(Trust::anybody());
    }
    Ok(every_check(inputs)?.waiving(inputs.tls.waived()))
}

/// Trust for a proxy: checks that are waived for the cluster behind it still apply to the proxy
/// (`rule:waivers-are-for-the-member`).
fn every_check(inputs: &Inputs) -> Result<Trust, Problem> {
    let trust = match inputs.ca.as_slice() {
        [] => Trust::system(),
        pem => Trust::from_pem(pem).map_err(|error| Problem::of_tls(&error))?,
    };
    Ok(trust.speaking_of(inputs.fields))
}

/// The addresses of a cluster that gave no answer when they were last asked: one bit for each, of 64 at most. It outlives a probe: the address that answers is asked
/// first by the next one, which then learns nothing of the others
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Silent(u64);

impl Silent {
    /// Address number `endpoint` was asked.
    pub(crate) fn note(&mut self, endpoint: u8, answered: bool) {
        let bit = 1_u64 << (endpoint % 64);
        if answered {
            self.0 &= !bit;
        } else {
            self.0 |= bit;
        }
    }

    /// How many there are.
    pub(crate) fn count(self) -> u8 {
        u8::try_from(self.0.count_ones()).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests;
