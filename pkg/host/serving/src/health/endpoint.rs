//! The three health paths, and which of them a check belongs to.

/// The three sets a check can belong to. The names are those of Kubernetes' paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Fails `/livez`: the kubelet restarts the container.
    pub livez: bool,
    /// Fails `/readyz`.
    pub readyz: bool,
    /// Fails `/healthz`.
    pub healthz: bool,
}

impl Endpoints {
    /// Part of all three.
    pub const ALL: Self = Self { livez: true, readyz: true, healthz: true };
    /// Part of `/readyz` only.
    pub const READY: Self = Self { livez: false, readyz: true, healthz: false };

    pub(crate) fn include(self, endpoint: Endpoint) -> bool {
        match endpoint {
            Endpoint::Healthz => self.healthz,
            Endpoint::Livez => self.livez,
            Endpoint::Readyz => self.readyz,
        }
    }
}

/// One of the three health paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Healthz,
    Livez,
    Readyz,
}

impl Endpoint {
    pub(crate) const EVERY: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];

    /// The path without its slash, which is also the word that ends the body.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}
