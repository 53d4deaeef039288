//! Creation and upkeep of what an AWSCluster asks for, and the publication of its endpoint.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use aws_network::{FoundZone, Goal, Rest, SpecError, network_ids};
use events::EventType;
use objects::{Error, Object};
use tokio::net::lookup_host;
use tokio::time::timeout;
use workqueue::{Next, Retry};

use super::admission::{Access, Admission};
use super::aws_clusters::AwsClusters;
use super::goal::{Wanted, Zones};
use super::owner::Owner;
use super::pass::Pass;
use super::reconciliations::{Pause, Turn, place};
use super::report::{CREDENTIALS, Findings, Report};
use super::{goal, metrics, stored_memory};
use crate::api::APPLIED_TAGS_ANNOTATION;
use crate::api::aws_cluster::AwsCluster;
use crate::api::cluster::{Cluster, Endpoint};
use crate::aws_spec;

/// Until credentials that may not be used are looked at again.
const DENIED_AGAIN: Duration = Duration::from_secs(30);
/// Until zones that may not be used are looked at again: the user opts in at AWS.
const ZONES_AGAIN: Duration = Duration::from_secs(60);
const BALANCER: &str = "LoadBalancerReady";

impl AwsClusters {
    pub(super) async fn build(
        &self,
        object: &Arc<Object<AwsCluster>>,
        owner: &Owner,
        cluster: &Object<Cluster>,
    ) -> Result<Next, Retry> {
        let (key, uid) = (&object.metadata.key, &object.metadata.uid);
        let zones = match Self::known_zones(object) {
            Some(zones) => zones,
            None => match self.admit(object).await? {
                ControlFlow::Continue(access) => match self.zones(object, owner, &access).await? {
                    ControlFlow::Continue(zones) => zones,
                    ControlFlow::Break(next) => return Ok(next),
                },
                ControlFlow::Break(next) => return Ok(next),
            },
        };
        let wanted = match goal::present(object, owner, cluster, zones, &self.options) {
            Ok(wanted) => wanted,
            Err(errors) => return self.refuse(object, &errors).await,
        };
        let access = match self.admit(object).await? {
            ControlFlow::Continue(access) => access,
            ControlFlow::Break(next) => return Ok(next),
        };
        let goal = Goal::Present(Box::new(wanted.desired.clone()));
        if self.options.plan_only {
            return self.only_plan(object, &wanted.desired.identity, goal, &access).await;
        }
        let noted = self.note(object, true).await.map_err(manager::retry)?;
        let is_news = noted.status.observed_generation != Some(noted.metadata.generation);
        let stored = || stored_memory::read(object);
        let turn = self.reconciliations.turn(key, uid, &goal, &place(object), is_news, stored);
        let (identity, period) =
            (&wanted.desired.identity, self.options.deep_check_period.as_secs());
        let is_judged = matches!(turn, Turn::Judge(_));
        let pass = match turn {
            Turn::Rest(left) => return Ok(Next::After(left)),
            Turn::Publish(reconciliation, left) => Pass::at_rest(*reconciliation, left),
            Turn::Go(reconciliation) => {
                let reconciliation = reconciliation.with_deep_check_period(period);
                self.lead(&noted, identity, reconciliation, &access).await
            }
            Turn::Judge(reconciliation) => {
                let reconciliation = reconciliation.with_deep_check_period(period);
                match self.lead_at_rest(&noted, identity, reconciliation, &access).await {
                    Ok(pass) => pass,
                    Err((reconciliation, reads)) => {
                        let at_once = Pause::of(Duration::ZERO);
                        let pause = Pause { is_idle: true, reads, ..at_once };
                        let next = self.reconciliations.keep(key, uid, goal, reconciliation, pause);
                        return Ok(Next::After(next));
                    }
                }
            }
        };
        if pass.is_broken_off {
            return Ok(Next::Done);
        }
        let published = self.publish_pass(&noted, &wanted, &pass).await;
        let mirrors = self.options.mirror_ids && pass.rest == Rest::Reached;
        let found =
            mirrors.then(|| network_ids(&wanted.desired, pass.reconciliation.observed())).flatten();
        let is_idle = pass.rest == Rest::Reached;
        // The next sweep judges the same clusters together.
        let length = match pass.age {
            Some(age) if is_judged && is_idle => self.sync_period.saturating_sub(age),
            _ => self.length(pass.rest),
        };
        let pause = match published {
            // The next pass comes at once, and publishes again.
            Err(_) => Pause::of(Duration::ZERO),
            Ok(None) => Pause { is_idle, by_sweep: is_idle, ..Pause::of(length) },
            Ok(Some(Again::Read(after))) => Pause::of(length.min(after)),
            Ok(Some(Again::Publish(after))) => Pause { publish: Some(after), ..Pause::of(length) },
        };
        let pause = Pause { reads: pass.reads, ..pause };
        let next = self.reconciliations.keep(key, uid, goal, pass.reconciliation, pause);
        published.map_err(manager::retry)?;
        if pass.rest == Rest::Reached {
            let noted = self.note(&noted, false).await.map_err(manager::retry)?;
            if let Some(found) = found {
                self.mirror(&noted, owner.dialect, &found).await.map_err(manager::retry)?;
            }
        }
        Ok(Next::After(next))
    }

    /// Publishes the result of a pass. When to look again for something that is not of the
    /// network.
    async fn publish_pass(
        &self,
        object: &Arc<Object<AwsCluster>>,
        wanted: &Wanted,
        pass: &Pass,
    ) -> Result<Option<Again>, Error> {
        let problems = pass.reconciliation.problems();
        let counts = metrics::of(&wanted.desired.identity, pass.reconciliation.observed());
        let nat = wanted.desired.nat_in_effect(pass.reconciliation.memory());
        let nat = nat.unwrap_or(&wanted.desired.nat).word();
        self.metrics.saw(object, nat, &counts, pass.age);
        let mut report = Report::of_a_pass(pass.denied.as_ref());
        report.unsupported(&wanted.unsupported);
        let is_complete = report.judge(&wanted.desired, &pass.reconciliation, &problems);
        report.findings = Findings::of(
            &wanted.desired,
            pass.reconciliation.observed(),
            pass.reconciliation.memory(),
        );
        let mut again = None;
        if is_complete {
            let host = report.findings.host.clone();
            match self.publication(object, wanted, host).await? {
                Publication::Done(endpoint) => {
                    report.is_ready = true;
                    report.endpoint = Some(endpoint);
                }
                Publication::Awaits { reason, message, again: after } => {
                    again = after;
                    report.conditions.stated.retain(|it| it.kind != BALANCER);
                    report.conditions.mark_false(BALANCER, reason, message);
                }
            }
        }
        report.sum_up();
        self.report_problems(object, &pass.before, &problems);
        self.publish(object, &report, Some(pass.reconciliation.memory())).await?;
        Ok(again)
    }

    /// AWS, if it may be called; otherwise why not is published.
    async fn admit(
        &self,
        object: &Arc<Object<AwsCluster>>,
    ) -> Result<ControlFlow<Next, Access>, Retry> {
        let denial = match self.admission(object).await.map_err(manager::retry)? {
            Admission::Granted(access) => return Ok(ControlFlow::Continue(access)),
            Admission::Noted => return Ok(ControlFlow::Break(Next::Done)),
            Admission::Denied(denial) => denial,
        };
        // Whatever is done meanwhile in the right account is looked at afterwards.
        self.reconciliations.forget(&object.metadata.key);
        self.event_once(object, CREDENTIALS, denial.reason, &denial.message);
        let mut report = Report::of_a_pass(Some(&denial));
        report.sum_up();
        self.publish(object, &report, None).await.map_err(manager::retry)?;
        Ok(ControlFlow::Break(Next::After(DENIED_AGAIN)))
    }

    /// The zones of its region, where AWS need not be asked for them.
    fn known_zones(object: &Object<AwsCluster>) -> Option<Zones> {
        let (spec, resources) = (&object.body.spec, object.status.resources.as_ref());
        if !aws_spec::is_region(&spec.region) {
            return Some(Zones::default());
        }
        let of_default_subnets = resources.map(|it| it.zones.clone()).unwrap_or_default();
        let known = resources.map(|it| it.known_zones.clone()).unwrap_or_default();
        let is_known = |(_, name): (usize, &str)| known.iter().any(|zone| zone.name == name);
        let are_known = aws_spec::named_edges(spec).all(is_known)
            && (!aws_spec::needs_zones(spec) || !of_default_subnets.is_empty());
        are_known.then_some(Zones { of_default_subnets, known })
    }

    /// The zones of its region. Those of default subnets stay what they were when the subnets were chosen.
    async fn zones(
        &self,
        object: &Arc<Object<AwsCluster>>,
        owner: &Owner,
        access: &Access,
    ) -> Result<ControlFlow<Next, Zones>, Retry> {
        let spec = &object.body.spec;
        let identity = goal::identity(object, &owner.name, &self.options);
        let found = match access.executor(&identity).zones().await {
            Ok(found) => found,
            Err(error) => {
                let report = Report::without_zones(&spec.region, &error);
                self.publish(object, &report, None).await.map_err(manager::retry)?;
                return Err(Retry::new(error));
            }
        };
        let known = match aws_spec::usable_zones(spec, &found) {
            Ok(known) => known,
            Err(errors) => {
                self.refuse(object, &errors).await?;
                return Ok(ControlFlow::Break(Next::After(ZONES_AGAIN)));
            }
        };
        let usable = found.into_iter().filter(FoundZone::is_default).map(|it| it.zone.name);
        let chosen = if aws_spec::needs_zones(spec) { usable.collect() } else { Vec::new() };
        let zones = Zones { of_default_subnets: chosen, known };
        let noted = self.client.change_status(object, |_, status| {
            let resources = status.resources.get_or_insert_default();
            if !zones.of_default_subnets.is_empty() {
                resources.zones.clone_from(&zones.of_default_subnets);
            }
            resources.known_zones.clone_from(&zones.known);
        });
        noted.await.map_err(manager::retry)?;
        Ok(ControlFlow::Continue(zones))
    }

    /// Nothing is done until the spec is another one.
    async fn refuse(
        &self,
        object: &Arc<Object<AwsCluster>>,
        errors: &[SpecError],
    ) -> Result<Next, Retry> {
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let message = texts.join("; ");
        self.reconciliations.forget(&object.metadata.key);
        self.metrics.rests(&object.metadata.key);
        if object.status.error_message.as_ref() != Some(&message) {
            self.event(object, EventType::Warning, "InvalidConfiguration", &message);
        }
        let mut report = Report::not_paused();
        report.invalid(&message);
        self.publish(object, &report, None).await.map_err(manager::retry)?;
        Ok(Next::Done)
    }

    /// Notes which additional tags may be on AWS: before they are set those
    /// that were and those that shall be, and `before` no longer, those that are. Writes a refusal of a
    /// regional NAT gateway again where a user has removed it (`rule:memory-is-in-the-status`).
    async fn note(
        &self,
        object: &Arc<Object<AwsCluster>>,
        before: bool,
    ) -> Result<Arc<Object<AwsCluster>>, Error> {
        let noted = self.client.change(object, |now_there, draft| {
            let wanted = draft.body.spec.additional_tags.keys().cloned();
            let mut keys: BTreeSet<_> = wanted.collect();
            if before {
                keys.extend(goal::applied_tags(&now_there.metadata));
            }
            if keys.is_empty() {
                draft.metadata.annotations.remove(APPLIED_TAGS_ANNOTATION);
            } else {
                let keys: Vec<_> = keys.into_iter().collect();
                let keys = keys.join("\n");
                draft.metadata.annotations.insert(APPLIED_TAGS_ANNOTATION.to_owned(), keys);
            }
            if let Some(memory) = self.reconciliations.memory(&now_there.metadata) {
                let owner_id = stored_memory::owner_id(&now_there.metadata);
                stored_memory::annotate(&memory, owner_id, &mut draft.metadata.annotations);
            }
        });
        Ok(noted.await?.object)
    }
}

/// Until a name may resolve that did not.
const NAME_AGAIN: Duration = Duration::from_secs(15);
/// For one look at a name.
const NAME_LIMIT: Duration = Duration::from_secs(5);

/// State of the endpoint.
pub(super) enum Publication {
    Done(Endpoint),
    Awaits { reason: &'static str, message: String, again: Option<Again> },
}

/// When to look again for what the endpoint lacks.
#[derive(Clone, Copy)]
pub(super) enum Again {
    /// AWS may show it by then.
    Read(Duration),
    /// AWS has nothing to do with it.
    Publish(Duration),
}

impl AwsClusters {
    /// Writes the endpoint into the spec, once, before the status says ready: readers of ready copy
    /// the endpoint and never read it again.
    pub(super) async fn publication(
        &self,
        object: &Arc<Object<AwsCluster>>,
        wanted: &Wanted,
        host: Option<String>,
    ) -> Result<Publication, Error> {
        let there = object.body.spec.control_plane_endpoint.clone().filter(Endpoint::is_set);
        if let Some(endpoint) = there {
            return Ok(Publication::Done(endpoint));
        }
        if wanted.desired.load_balancer.is_none() {
            let message =
                "set spec.controlPlaneEndpoint: the AWSCluster has no load balancer".to_owned();
            let reason = "WaitForExternalControlPlaneEndpoint";
            return Ok(Publication::Awaits { reason, message, again: None });
        }
        let Some(host) = host else {
            let message = "the load balancer has no DNS name yet".to_owned();
            let again = Some(Again::Read(NAME_AGAIN));
            return Ok(Publication::Awaits { reason: "WaitForDNSName", message, again });
        };
        let endpoint = Endpoint { host, port: i32::from(wanted.api_port) };
        if goal::checks_dns(object, &self.options) && !resolves(&endpoint).await {
            let message = format!("{} does not resolve yet", endpoint.host);
            let (reason, again) = ("WaitForDNSNameResolve", Some(Again::Publish(NAME_AGAIN)));
            return Ok(Publication::Awaits { reason, message, again });
        }
        let written = self.client.change(object, |_, draft| {
            let endpoint_of_spec = &mut draft.body.spec.control_plane_endpoint;
            if !endpoint_of_spec.as_ref().is_some_and(Endpoint::is_set) {
                *endpoint_of_spec = Some(endpoint.clone());
            }
        });
        let written = written.await?.object;
        let published = written.body.spec.control_plane_endpoint.clone();
        Ok(Publication::Done(published.unwrap_or(endpoint)))
    }
}

async fn resolves(endpoint: &Endpoint) -> bool {
    let port = u16::try_from(endpoint.port).unwrap_or_default();
    let looked = timeout(NAME_LIMIT, lookup_host((&*endpoint.host, port))).await;
    looked.is_ok_and(|found| found.is_ok_and(|mut addresses| addresses.next().is_some()))
}
