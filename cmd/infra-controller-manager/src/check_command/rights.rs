//! Rights of the program and of its service accounts.

use client::AnswerError;
use manager::dormancy::{Awaited, CrdOf, is_served};
use manager::{Hosted, Permission, Runner, is_allowed};
use serde_json::{Value, json};

use super::cluster::{Cluster, is_ours};
use super::report::{Check, Report, Severity};
use super::stock::NODE_IPAM;
use crate::settings::ProcessSettings;

const VERBS: [&str; 2] = ["list", "watch"];

/// The kind is served by a CRD of another program.
const DORMANT: &str = "needed only when the CRD has the label of this program";
/// Records in the namespace of the Lease.
const RECORDS: &str = "pod CIDRs are assigned without it; needed for the record of the pools";

/// A right that is needed.
struct Need {
    /// The service account that needs it; `None` for the identity of `--kubeconfig`.
    account: Option<&'static str>,
    /// `resourceAttributes` of a SubjectAccessReview.
    attributes: Value,
    cure: String,
    /// What works without it, where it is not needed in any case.
    optional: Option<&'static str>,
}

/// Asks for each right, also of the service accounts that the program will act as.
pub(super) async fn check(cluster: &Cluster, settings: &ProcessSettings, report: &mut Report) {
    let mut needs = needs(settings);
    needs.extend(of_kinds(cluster, settings, report).await);
    let mut granted = 0;
    for need in &needs {
        match is_allowed(cluster.client(), need.attributes.clone(), need.account).await {
            Ok(true) => granted += 1,
            Ok(false) => {
                let message = need.said("may not");
                let (severity, message) = match need.optional {
                    Some(why) => (Severity::Warning, format!("{message} ({why})")),
                    None => (Severity::Error, message),
                };
                report.push(severity, Check::Rights, message, &need.cure);
            }
            Err(error) => {
                let message = format!("cannot check whether {}: {error}", need.said("may"));
                let advice = "allow the identity of --kubeconfig to create subjectaccessreviews, \
                    for example with the ClusterRole system:auth-delegator";
                report.error(Check::Rights, message, advice);
            }
        }
    }
    if granted == needs.len() {
        report.note(Check::Rights, format!("all {granted} needed permissions are granted"));
    }
}

impl Need {
    fn said(&self, may: &str) -> String {
        let text = |name: &str| self.attributes[name].as_str().unwrap_or_default();
        let behind = |mark: &str, name| match text(name) {
            "" => String::new(),
            text => format!("{mark}{text}"),
        };
        let who = self.account.map_or_else(
            || "the identity of --kubeconfig".to_owned(),
            |account| format!("service account kube-system/{account}"),
        );
        let (verb, resource, group) = (text("verb"), text("resource"), behind(".", "group"));
        let (part, name) = (behind("/", "subresource"), behind(" ", "name"));
        let place = behind(" in ", "namespace");
        format!("{who} {may} {verb} {resource}{group}{part}{name}{place}")
    }
}

fn needs(settings: &ProcessSettings) -> Vec<Need> {
    let mut needs = of_process(settings);
    for planned in &settings.controllers {
        let runner = &planned.runner;
        let account = settings.service_accounts.then(|| runner.service_account());
        let cure = cure(runner.as_ref(), account);
        needs.extend(runner.permissions().iter().map(|permission| Need {
            account,
            attributes: permission.into(),
            cure: cure.clone(),
            optional: None,
        }));
        let records = runner.optional_permissions().into_iter();
        needs.extend(records.flat_map(|(rights, manifest)| {
            let namespace = Some(&*settings.lease.namespace);
            let cure = match account {
                Some(_) => format!("apply {manifest}"),
                None => format!("apply {manifest} with this identity among its subjects"),
            };
            rights.iter().map(move |right| Need {
                account,
                attributes: (&right.clone().in_namespace_of(namespace)).into(),
                cure: cure.clone(),
                optional: Some(RECORDS),
            })
        }));
    }
    needs
}

/// The rights for custom kinds that are served, those of other owners included.
async fn of_kinds(cluster: &Cluster, settings: &ProcessSettings, report: &mut Report) -> Vec<Need> {
    let mut needs = Vec::new();
    for planned in &settings.controllers {
        for kind in planned.runner.awaited() {
            match is_dormant(cluster, planned, &kind).await {
                Ok(None) => {}
                Ok(Some(dormant)) => {
                    let account =
                        settings.service_accounts.then(|| planned.runner.service_account());
                    let cure = cure(planned.runner.as_ref(), account);
                    needs.extend(of_kind(&kind, account, &cure, dormant));
                }
                Err(error) => {
                    let message =
                        format!("cannot check whether {} are served: {error}", kind.kind.plural);
                    report.warn(Check::Rights, message, "their permissions were not checked");
                }
            }
        }
    }
    needs
}

/// Whether a kind that is served is not for us; `None` where it is not served.
async fn is_dormant(
    cluster: &Cluster,
    planned: &Hosted,
    kind: &Awaited,
) -> Result<Option<bool>, AnswerError> {
    let resource = &kind.kind;
    if !is_served(cluster.client(), resource).await? {
        return Ok(None);
    }
    if kind.crd == CrdOf::Anybody || (kind.crd == CrdOf::Default && planned.by_name) {
        return Ok(Some(false));
    }
    let crd = cluster.crd(&format!("{}.{}", resource.plural, resource.group)).await?;
    Ok(Some(!crd.as_ref().is_some_and(is_ours)))
}

/// Rights on one kind: those of the controller, and list and watch of the process.
fn of_kind(
    kind: &Awaited,
    account: Option<&'static str>,
    cure: &str,
    dormant: bool,
) -> impl Iterator<Item = Need> {
    let watched = VERBS.map(|verb| {
        let attributes = json!({
            "verb": verb, "group": kind.kind.group, "resource": kind.kind.plural,
            "namespace": kind.namespace.as_deref().unwrap_or_default(),
        });
        (None, attributes)
    });
    let done = kind.rights.iter().map(move |right| (account, right.into()));
    let all: Vec<_> = watched.into_iter().chain(done).collect();
    let cure = cure.to_owned();
    all.into_iter().map(move |(account, attributes)| Need {
        account,
        attributes,
        cure: cure.clone(),
        optional: dormant.then_some(DORMANT),
    })
}

fn cure(runner: &dyn Runner, account: Option<&str>) -> String {
    match (runner.manifest(), account) {
        (Some(manifest), _) => format!("apply {manifest}"),
        (None, Some(account)) => {
            format!("restore the ClusterRole system:controller:{account} and its binding")
        }
        (None, None) => "set --use-service-account-credentials".to_owned(),
    }
}

/// Rights of the identity of `--kubeconfig`, whatever controllers run. The identity of
/// kube-controller-manager has them all.
fn of_process(settings: &ProcessSettings) -> Vec<Need> {
    const ROLE: &str = "run as system:kube-controller-manager, or apply config/rbac/role.yaml";
    const DELEGATED: &str = "apply config/rbac/delegated-auth.yaml";
    let root = |attributes: Value, cure: &str| Need {
        account: None,
        attributes,
        cure: cure.into(),
        optional: None,
    };
    let right = |permission: Permission, cure| root((&permission).into(), cure);
    let mut needs = vec![
        right(Permission::new("create", "", "events"), ROLE),
        right(Permission::new("patch", "", "events"), ROLE),
    ];
    if let Some(election) = &settings.election {
        let (group, resource) = ("coordination.k8s.io", "leases");
        for (verb, name) in [("create", ""), ("get", &*election.name), ("update", &*election.name)]
        {
            let attributes = json!({
                "verb": verb, "group": group, "resource": resource, "name": name,
                "namespace": election.namespace,
            });
            needs.push(root(attributes, ROLE));
        }
    }
    let allocates = |planned: &manager::Hosted| planned.name == NODE_IPAM;
    if settings.controllers.iter().any(allocates) {
        needs.extend(VERBS.map(|verb| right(Permission::new(verb, "", "nodes"), ROLE)));
    }
    if !settings.controllers.iter().all(allocates) {
        let crds =
            |verb| Permission::new(verb, "apiextensions.k8s.io", "customresourcedefinitions");
        needs.extend(VERBS.map(|verb| right(crds(verb), ROLE)));
    }
    if settings.service_accounts {
        for planned in &settings.controllers {
            let account = planned.runner.service_account();
            let of = |verb| {
                Permission::new(verb, "", "serviceaccounts")
                    .in_namespace("kube-system")
                    .named(account)
            };
            needs.push(right(of("get"), ROLE));
            needs.push(right(of("create").subresource("token"), ROLE));
        }
    }
    if let Some(serving) = &settings.serving {
        let own = settings.client.kubeconfig.as_deref();
        let review = |group, resource| right(Permission::new("create", group, resource), DELEGATED);
        if serving.authentication_kubeconfig.as_deref() == own {
            needs.push(review("authentication.k8s.io", "tokenreviews"));
        }
        if serving.authorization_kubeconfig.as_deref() == own {
            needs.push(review("authorization.k8s.io", "subjectaccessreviews"));
        }
    }
    needs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::tests::settings;
    use super::*;

    fn said(args: &[&str]) -> BTreeSet<String> {
        needs(&settings(args)).iter().map(|need| need.said("needs")).collect()
    }

    #[test]
    fn the_rights_are_those_of_what_runs_by_who_does_it() {
        const ROOT: &str = "the identity of --kubeconfig needs";
        const ACCOUNT: &str = "service account kube-system/node-controller needs";
        let allocating =
            ["--controllers=nodeipam", "--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16"];
        let quiet = ["--secure-port=0"];
        let expected = |lines: &[String]| lines.iter().cloned().collect::<BTreeSet<_>>();
        let lease = "leases.coordination.k8s.io";
        let own = [
            format!("{ROOT} create events"),
            format!("{ROOT} patch events"),
            format!("{ROOT} create {lease} in kube-system"),
            format!("{ROOT} get {lease} infra-controller-manager in kube-system"),
            format!("{ROOT} update {lease} infra-controller-manager in kube-system"),
            format!("{ROOT} list nodes"),
            format!("{ROOT} watch nodes"),
        ];
        let of_record = |who: &str| {
            ["create configmaps", "get configmaps icm-pools", "patch configmaps icm-pools"]
                .map(|right| format!("{who} {right} in kube-system"))
        };
        let by_root = [format!("{ROOT} get nodes"), format!("{ROOT} patch nodes")];
        let by_root = [&by_root[..], &of_record(ROOT)].concat();
        let args = [&allocating[..], &quiet].concat();
        assert_eq!(said(&args), expected(&[&own[..], &by_root].concat()));
        let by_account = [
            format!("{ROOT} get serviceaccounts node-controller in kube-system"),
            format!("{ROOT} create serviceaccounts/token node-controller in kube-system"),
            format!("{ACCOUNT} get nodes"),
            format!("{ACCOUNT} patch nodes"),
        ];
        let by_account = [&by_account[..], &of_record(ACCOUNT)].concat();
        let args = [&args[..], &["--use-service-account-credentials"]].concat();
        assert_eq!(said(&args), expected(&[&own[..], &by_account].concat()));
        let alone = [&args[..], &["--leader-elect=false"]].concat();
        assert!(said(&alone).iter().all(|need| !need.contains("leases")));
    }

    /// A file of config/rbac binds the identities of its subjects only.
    #[test]
    fn the_cure_for_the_record_names_the_subjects_for_another_identity() {
        const FILE: &str = "apply config/rbac/node-ipam-records.yaml";
        let own = format!("{FILE} with this identity among its subjects");
        let args =
            ["--controllers=nodeipam", "--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16"];
        for (flag, expected) in [("false", &*own), ("true", FILE)] {
            let flag = format!("--use-service-account-credentials={flag}");
            let needs = needs(&settings(&[&args[..], &[&*flag]].concat()));
            let cures: Vec<_> = needs.iter().filter(|it| it.optional == Some(RECORDS)).collect();
            assert_eq!(cures.len(), 3);
            assert!(cures.iter().all(|need| need.cure == expected), "{flag}");
        }
    }

    #[test]
    fn who_serves_reviews_and_who_waits_for_kinds_watches_for_them() {
        let reviews =
            |args: &[&str]| said(args).into_iter().filter(|need| need.contains("reviews")).count();
        let same =
            ["--kubeconfig=/a", "--authentication-kubeconfig=/a", "--authorization-kubeconfig=/a"];
        assert_eq!(reviews(&same), 2);
        assert_eq!(reviews(&same[..2]), 1, "the other one is asked as the pod");
        let kinds = said(&["--controllers=*"]);
        assert!(kinds.iter().any(|need| need.contains("watch customresourcedefinitions")));
    }
}
