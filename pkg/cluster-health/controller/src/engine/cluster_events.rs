//! The events of clusters: published transitions and causes, the first of a run of failures, and
//! [`Notices`] about ends of credentials and certificates, and about addresses that are down.

use std::mem;

use events::{EventType, ObjectRef, Recorder};
use health::{
    Change, Code, Effect, Endpoints, ExpiryNotice, ExpiryStage, Health, Lifetime, Report, Verdict,
};
use jiff::Timestamp;

use super::flavour::{AnnouncedEnds, Contact};

/// Records what a probe, or the lack of probes, did. `said`
/// is what is published, and the message about it.
pub(crate) fn record_effect(
    recorder: &Recorder,
    object: impl Fn() -> ObjectRef,
    report: Option<&Report>,
    effect: Effect,
    said: impl FnOnce() -> (Option<Health>, String),
) {
    let say = |kind, reason, message| recorder.event(object(), kind, reason, message);
    let published = matches!(effect.change, Change::Ready { .. });
    // The event of a published change says what failed.
    if let Some(report) = report.filter(|_| effect.first_failure && !published) {
        let reason = first_failure_reason(report);
        say(EventType::Warning, reason, health::one_line(&sentence(report)));
    }
    if (published || effect.new_cause) && !effect.is_ours {
        let (health, message) = said();
        match health {
            // The first result of a healthy cluster is no news.
            Some(Health::Ready) if matches!(effect.change, Change::Ready { from: None, .. }) => {}
            Some(health) => {
                let (kind, reason) = transition(health);
                say(kind, reason, message);
            }
            None => {}
        }
    }
    if effect.path_down {
        let text = "probes do not reach the cluster, but it still renews its Lease: check the network between this \
                    program and the cluster"
            .to_owned();
        say(EventType::Warning, "ProbePathDown", text);
    }
    if effect.flapping {
        let text = "readiness changes often; the cluster is published as ready only after \
                    --cluster-health-flap-min-success consecutive successful probes"
            .to_owned();
        say(EventType::Warning, "ClusterFlapping", text);
    }
}

fn sentence(report: &Report) -> String {
    match &report.detail {
        Some(detail) => format!("{}: {detail}", report.finding),
        None => report.finding.to_string(),
    }
}

fn first_failure_reason(report: &Report) -> &'static str {
    match (report.finding.verdict(), report.finding.code()) {
        (Verdict::Config, _) => "MalformedClusterConfig",
        (_, Some(Code::Unauthorized | Code::Forbidden)) => "CredentialRejected",
        // Its health was retrieved.
        (_, Some(Code::NodesNotReady)) => "NodesNotReady",
        (_, Some(Code::Check)) => "CheckFailed",
        _ => "RetrievingClusterHealthFailed",
    }
}

fn transition(health: Health) -> (EventType, &'static str) {
    match health {
        Health::Ready => (EventType::Normal, "ClusterReady"),
        Health::NotReady => (EventType::Warning, "ClusterNotReady"),
        Health::Unreachable => (EventType::Warning, "ClusterOffline"),
        Health::Malformed => (EventType::Warning, "MalformedClusterConfig"),
        Health::Unknown => (EventType::Warning, "ClusterStatusUnknown"),
        Health::HubPartition | Health::HeartbeatStopped => {
            (EventType::Warning, health.ready_reason())
        }
    }
}

/// The notices that were recorded about one cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notices {
    credential: ExpiryNotice,
    certificate: ExpiryNotice,
    /// The notices that were recorded before the cluster came to this process.
    announced: AnnouncedEnds,
    /// Whether a credential, and a certificate, was seen since.
    seen: [bool; 2],
    /// Addresses that are down, as the last notice said and as the last probe found.
    endpoints_down: u8,
    seen_down: u8,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) kind: EventType,
    pub(crate) reason: &'static str,
    pub(crate) text: String,
}

impl Notices {
    /// Continues after a process that announced this: a restart, or a move to another replica, does not
    /// repeat the events of thousands of clusters (`rule:a-restart-changes-nothing`).
    pub(crate) fn after(announced: AnnouncedEnds) -> Self {
        Self { announced, ..Self::default() }
    }

    /// Takes in the contact at `now` and returns the new notices.
    pub(crate) fn note(&mut self, contact: &Contact, now: Timestamp) -> Vec<Notice> {
        let Contact { credential, certificate, endpoints, .. } = contact;
        let of_credential = self.credential.note(*credential, now);
        let of_certificate = self.certificate.note(*certificate, now);
        let ends = [
            (of_credential, credential, "the credential", "CredentialExpiring"),
            (of_certificate, certificate, "the serving certificate", "ServingCertificateExpiring"),
        ];
        let (announced, seen) = (&self.announced, &mut self.seen);
        let ends = ends.into_iter().zip(seen);
        let ends = ends.filter_map(|((stage, lifetime, what, reason), seen)| {
            let lifetime = (*lifetime)?;
            let is_first = !mem::replace(seen, true);
            let text = ends_soon(what, lifetime, stage?)?;
            let is_old = match announced {
                AnnouncedEnds::Nothing => false,
                // It has room for one of the two.
                AnnouncedEnds::Shown(shown) => {
                    **shown == *text || is_first && !shown.starts_with(what)
                }
                AnnouncedEnds::Unknown => is_first,
            };
            (!is_old).then_some(Notice { kind: EventType::Warning, reason, text })
        });
        let ends: Vec<_> = ends.collect();
        ends.into_iter().chain(self.addresses(*endpoints)).collect()
    }

    /// A notice about addresses of a cluster with several that went down, or all came up again. An
    /// address is down after two probes in a row: between them all are asked again, so a lost packet is
    /// no dead server. With all addresses down the cluster is offline, which has its own event.
    fn addresses(&mut self, endpoints: Endpoints) -> Option<Notice> {
        let Endpoints { down, total } = endpoints;
        if total < 2 || down == total {
            return None;
        }
        let lasting = down.min(mem::replace(&mut self.seen_down, down));
        let announced = self.endpoints_down;
        self.endpoints_down = lasting.max(announced.min(down));
        match down {
            0 if announced > 0 => {
                let text = format!("all {total} API endpoints are up again");
                Some(Notice { kind: EventType::Normal, reason: "EndpointsUp", text })
            }
            _ if lasting > announced => {
                let text = format!("{lasting} of {total} API endpoints are down");
                Some(Notice { kind: EventType::Warning, reason: "EndpointsDown", text })
            }
            _ => None,
        }
    }
}

/// One sentence about an end; `None` while it is far.
pub(crate) fn ends_soon(what: &str, lifetime: Lifetime, stage: ExpiryStage) -> Option<String> {
    let within = match stage {
        ExpiryStage::Far => return None,
        ExpiryStage::Fortnight => "expires within 14 days",
        ExpiryStage::Week => "expires within 7 days",
        ExpiryStage::Day => "expires within a day",
        ExpiryStage::Over => "has expired",
    };
    let end = lifetime.to.strftime("%Y-%m-%dT%H:%M:%SZ");
    Some(format!("{what} {within}: {end}; renew it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(notices: &[Notice]) -> Vec<&'static str> {
        notices.iter().map(|notice| notice.reason).collect()
    }

    #[test]
    fn ends_that_come_near_are_told_with_their_time() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let ending = |text: &str| Some(Lifetime { from: None, to: text.parse().unwrap() });
        let mut notices = Notices::default();
        let credential = ending("2026-11-27T00:00:00Z");
        let contact = Contact { credential, ..Contact::default() };
        let told = notices.note(&contact, now);
        assert_eq!(reasons(&told), ["CredentialExpiring"]);
        let text = "the credential expires within 7 days: 2026-11-27T00:00:00Z; renew it";
        assert_eq!((told[0].kind, &*told[0].text), (EventType::Warning, text));
        assert_eq!(notices.note(&contact, now), []);
        let contact = Contact { certificate: ending("2026-11-21T11:00:00Z"), ..contact };
        let told = notices.note(&contact, now);
        assert_eq!(reasons(&told), ["ServingCertificateExpiring"]);
        assert!(told[0].text.starts_with("the serving certificate has expired"), "{told:?}");
    }

    /// rule:a-restart-changes-nothing
    #[test]
    fn an_end_that_the_object_tells_of_already_is_told_again_when_it_comes_nearer() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let certificate = Some(Lifetime { from: None, to: at("2026-11-27T00:00:00Z") });
        let contact = Contact { certificate, ..Contact::default() };
        let text = "the serving certificate expires within 7 days: 2026-11-27T00:00:00Z; renew it";
        let mut notices = Notices::after(AnnouncedEnds::Shown(text.into()));
        assert_eq!(notices.note(&contact, at("2026-11-21T12:00:00Z")), []);
        let told = notices.note(&contact, at("2026-11-26T12:00:00Z"));
        assert_eq!(reasons(&told), ["ServingCertificateExpiring"]);
        let mut another = Notices::after(AnnouncedEnds::Nothing);
        let told = another.note(&contact, at("2026-11-21T12:00:00Z"));
        assert_eq!((told.len(), &*told[0].text), (1, text));
        // The object has room for one end, or for none.
        let one = AnnouncedEnds::Shown("the credential expires within 7 days".into());
        for unknown in [one, AnnouncedEnds::Unknown] {
            let mut notices = Notices::after(unknown);
            assert_eq!(notices.note(&contact, at("2026-11-21T12:00:00Z")), []);
            let told = notices.note(&contact, at("2026-11-26T12:00:00Z"));
            assert_eq!(reasons(&told), ["ServingCertificateExpiring"]);
        }
    }

    #[test]
    fn addresses_that_go_down_and_come_back_are_told_of_once() {
        let mut notices = Notices::default();
        // (down, total; reason)
        let rows = [
            (0, 3, None),
            (1, 3, None),
            (0, 3, None),
            (1, 3, None),
            (1, 3, Some("EndpointsDown")),
            (1, 3, None),
            (2, 3, None),
            (1, 3, None),
            (2, 3, None),
            (2, 3, Some("EndpointsDown")),
            (3, 3, None),
            (1, 3, None),
            (0, 3, Some("EndpointsUp")),
            (0, 3, None),
            (1, 1, None),
            (0, 1, None),
        ];
        for (down, total, reason) in rows {
            let endpoints = Endpoints { down, total };
            let contact = Contact { endpoints, ..Contact::default() };
            let told = notices.note(&contact, Timestamp::UNIX_EPOCH);
            assert_eq!(reasons(&told).first().copied(), reason, "{down} of {total}");
        }
    }
}
