//! CRDs of other programs under the names of `config/crd`: what neither `--install-crds` nor an operator may
//! overwrite (rule:crds-of-others-are-not-touched).

use informer::MANAGED_BY;
use serde_json::Value;

use super::cluster::Cluster;
use super::report::{Check, Report, Severity};
use crate::build;
use crate::controllers::{ALL, Controllers};
use crate::settings::ProcessSettings;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Looks for the CRDs of the controllers that run.
pub(super) async fn check(cluster: &Cluster, settings: &ProcessSettings, report: &mut Report) {
    let runs = |name: &str| settings.controllers.iter().any(|planned| planned.name == name);
    for name in names(ALL, runs) {
        // The program may list CRDs, and get none by its name.
        let path = format!("{CRDS}?fieldSelector=metadata.name%3D{name}");
        match cluster.list::<Value>(&path).await {
            Ok(found) => judge(&name, found.first(), settings.install_crds, report),
            Err(error) => {
                let message =
                    format!("cannot check whether another program owns CRD {name}: {error}");
                report.warn(Check::Crds, message, "let the identity of --kubeconfig list CRDs");
            }
        }
    }
}

/// The names of the CRDs of these controllers.
fn names(controllers: Controllers, runs: impl Fn(&str) -> bool) -> Vec<String> {
    let running = controllers.iter().filter(|controller| runs(controller.name()));
    let manifests = running.flat_map(|controller| controller.crds());
    let names = manifests.filter_map(|manifest| {
        let fields: Value = serde_saphyr::from_str(manifest).ok()?;
        fields["metadata"]["name"].as_str().map(str::to_owned)
    });
    names.collect()
}

fn judge(name: &str, crd: Option<&Value>, install: bool, report: &mut Report) {
    let Some(crd) = crd else { return };
    let owner = crd["metadata"]["labels"][MANAGED_BY].as_str();
    if owner == Some(build::PRODUCT) {
        report.note(Check::Crds, format!("CRD {name} is ours"));
        return;
    }
    let label = format!("{MANAGED_BY}={}", build::PRODUCT);
    let message = format!("CRD {name} belongs to another program: it lacks the label {label}");
    let (severity, advice) = if install {
        let advice = "--install-crds leaves it as it is; turn its controller off by --controllers, \
                      or apply the other CRDs with deploy/crds instead of --install-crds";
        (Severity::Error, advice)
    } else {
        (Severity::Warning, "do not apply the file of config/crd over it; deploy/crds refuses to")
    };
    report.push(severity, Check::Crds, message, advice);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crd_of_another_program_is_an_error_where_it_would_be_installed_and_a_warning_elsewhere() {
        let judged = |crd: Option<Value>, install| {
            let mut report = Report::default();
            judge("clusters.cluster.x-k8s.io", crd.as_ref(), install, &mut report);
            report.lines().first().map(|line| line.severity)
        };
        let labelled = |owner: &str| Some(json!({"metadata": {"labels": {MANAGED_BY: owner}}}));
        for install in [true, false] {
            assert_eq!(judged(None, install), None);
            assert_eq!(judged(labelled(build::PRODUCT), install), Some(Severity::Note));
        }
        for foreign in [labelled("Helm"), Some(json!({"metadata": {"name": "a"}}))] {
            assert_eq!(judged(foreign.clone(), true), Some(Severity::Error));
            assert_eq!(judged(foreign, false), Some(Severity::Warning));
        }
    }

    #[test]
    fn only_the_crds_of_controllers_that_run_are_looked_for() {
        assert_eq!(names(ALL, |_| true).len(), crate::crds::manifests().count());
        let ours = names(ALL, |name| name == "node-ipam-controller");
        assert_eq!(ours, ["clustercidrs.networking.x-k8s.io"]);
    }
}
