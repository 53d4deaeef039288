//! [`ProcessSettings`]: the whole command line as typed settings. No I/O; every problem is found before
//! anything starts.

mod serving;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ::serving::Exposition;
use client::ClientOptions;
use election::ElectionConfig;
use events::ObjectRef;
use flags::controllers::{Known, Selection};
use flags::{Problem, Spec, Values, controllers};
use informer::Format;
use manager::{Activity, CrdLabel, Hosted, Placement};

use super::build;
use super::controllers::Controllers;
use super::flags::table::generic::{
    CONTROLLER_SHUTDOWN_TIMEOUT, CONTROLLER_START_INTERVAL, CONTROLLERS, DRY_RUN, INSTALL_CRDS,
    KUBE_API_CONTENT_TYPE, KUBECONFIG, LEADER_ELECT, MASTER, MIN_RESYNC_PERIOD,
    USE_SERVICE_ACCOUNT_CREDENTIALS,
};
use super::flags::table::serving::{
    ALLOW_METRIC_LABELS, ALLOW_METRIC_LABELS_MANIFEST, DISABLED_METRICS, PROFILING,
};
use super::flags::{
    election_config, event_rate, features, has_flagz, has_statusz, label_values, own_rates,
    release_on_exit, reported_version, work_rate,
};

pub use serving::ServingSettings;
use serving::given;

/// Longest wait for the answer of a controller's write; the fence shortens it as the lease runs
/// out (rule:writes-end-with-their-timeout).
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Everything that the command line decides.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ProcessSettings {
    /// Controllers to run.
    pub controllers: Vec<Hosted>,
    /// For the log: enabled controllers without work, and those turned off.
    pub idle: Vec<(&'static str, String)>,
    /// For the log.
    pub warnings: Vec<String>,
    /// `None` with `--leader-elect=false`, and when all controllers run in every replica.
    pub election: Option<ElectionConfig>,
    /// The Lease of the leader, also without election.
    pub lease: ObjectRef,
    /// Whether a clean exit gives the lease back.
    pub release_on_exit: bool,
    /// Reported version.
    pub version: String,
    /// Where the API server is.
    pub client: ClientOptions,
    /// HTTPS server; `None` with `--secure-port=0`.
    pub serving: Option<ServingSettings>,
    /// Content of the pages about the process.
    pub shown: Shown,
    /// What `/metrics` shows, but for the file of `--allow-metric-labels-manifest`.
    pub exposition: Exposition,
    /// `--allow-metric-labels-manifest`.
    pub label_manifest: Option<PathBuf>,
    /// `--kube-api-content-type`.
    pub format: Format,
    /// `--min-resync-period`.
    pub min_resync: Duration,
    /// `--install-crds`.
    pub install_crds: bool,
    /// Labels of CRDs that flags decide.
    pub crd_labels: Vec<CrdLabel>,
    /// `--use-service-account-credentials`.
    pub service_accounts: bool,
    /// For each controller's client.
    pub work_rate: (f64, u32),
    /// `--controller-qps`, by canonical name.
    pub own_rates: BTreeMap<&'static str, (f64, u32)>,
    /// `--dry-run`.
    pub dry_run: bool,
    /// For the client that sends events.
    pub event_rate: (f64, u32),
    /// `--controller-start-interval`.
    pub start_interval: Duration,
    /// `--controller-shutdown-timeout`.
    pub shutdown_timeout: Duration,
    /// Bounds one write of a controller.
    pub write_timeout: Duration,
}

/// The names that `--controllers` may use.
pub fn known(hosted: Controllers) -> Result<Known, controllers::RegistryError> {
    let controllers = hosted.iter().map(|controller| controllers::Controller {
        name: controller.name(),
        aliases: controller.aliases(),
        on_by_default: controller.is_on_by_default(),
    });
    Known::new(controllers.collect())
}

/// The flags that the controllers own.
pub fn controller_flags(hosted: Controllers) -> Vec<&'static [Spec]> {
    hosted.iter().map(|controller| controller.flags()).collect()
}

impl ProcessSettings {
    /// Judges all values.
    pub fn new(values: &Values, known: &Known, hosted: Controllers) -> Result<Self, Vec<Problem>> {
        let mut problems = super::flags::validate(values);
        let mut warnings = super::flags::warnings(values);
        let selection = known.select(&values.get(&CONTROLLERS));
        if let Err(bad) = &selection {
            problems.push(Problem::new("controllers", bad.to_string()));
        }
        let mut idle = Vec::new();
        let mut planned = configure(
            values,
            hosted,
            selection.ok().as_ref(),
            &mut idle,
            &mut warnings,
            &mut problems,
        );
        let own_rates = own_rates(values, known).unwrap_or_else(|found| {
            problems.extend(found);
            BTreeMap::new()
        });
        let dry_run = values.get(&DRY_RUN);
        if dry_run {
            keep_what_runs_dry(&mut planned, &mut idle);
        }
        let version = reported_version(values, &build::INFO);
        let install_crds = values.get(&INSTALL_CRDS);
        let crd_labels = crd_labels(values, hosted, &mut problems);
        let leads = install_crds || planned.iter().any(is_for_leaders) || planned.is_empty();
        let config = election_config(values, build::identity());
        let lease = ObjectRef::lease(&config.namespace, &config.name, "");
        let election = (leads && values.get(&LEADER_ELECT)).then_some(config);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            controllers: planned,
            idle,
            warnings,
            write_timeout: WRITE_TIMEOUT,
            election,
            lease,
            release_on_exit: release_on_exit(values),
            client: client_options(values, &version),
            version,
            serving: ServingSettings::new(values),
            shown: Shown::new(values),
            exposition: exposition(values),
            label_manifest: given(values, &ALLOW_METRIC_LABELS_MANIFEST).map(Into::into),
            format: format(values),
            min_resync: values.get(&MIN_RESYNC_PERIOD).to_std(),
            install_crds,
            crd_labels,
            service_accounts: values.get(&USE_SERVICE_ACCOUNT_CREDENTIALS),
            work_rate: work_rate(values),
            own_rates,
            dry_run,
            event_rate: event_rate(values),
            start_interval: values.get(&CONTROLLER_START_INTERVAL).to_std(),
            shutdown_timeout: values.get(&CONTROLLER_SHUTDOWN_TIMEOUT).to_std(),
        })
    }

    /// Whether there is anything that one process alone may do.
    pub fn has_leader_work(&self) -> bool {
        self.install_crds || self.controllers.iter().any(is_for_leaders)
    }
}

/// The labels of CRDs that flags decide, of controllers that are not to run, too.
fn crd_labels(values: &Values, hosted: Controllers, problems: &mut Vec<Problem>) -> Vec<CrdLabel> {
    let mut labels = Vec::new();
    for controller in hosted {
        match controller.crd_label(values) {
            Ok(label) => labels.extend(label),
            // A controller that is configured has judged the flag, too.
            Err(problem) if problems.iter().any(|known| known.flag == problem.flag) => {}
            Err(problem) => problems.push(problem),
        }
    }
    labels
}

/// Whether it runs in the process that leads, and there only.
pub(crate) fn is_for_leaders(planned: &Hosted) -> bool {
    planned.runner.placement() == Placement::Leader
}

/// Removes controllers that cannot run without storing their writes.
fn keep_what_runs_dry(planned: &mut Vec<Hosted>, idle: &mut Vec<(&'static str, String)>) {
    let cannot = planned.extract_if(.., |planned| !planned.runner.can_run_dry());
    idle.extend(cannot.map(|planned| (planned.name, "it cannot run with --dry-run".to_owned())));
}

/// Without a selection, because the list is wrong, every controller is asked for its problems.
fn configure(
    values: &Values,
    hosted: Controllers,
    selection: Option<&Selection>,
    idle: &mut Vec<(&'static str, String)>,
    warnings: &mut Vec<String>,
    problems: &mut Vec<Problem>,
) -> Vec<Hosted> {
    let mut planned = Vec::new();
    for controller in hosted {
        let name = controller.name();
        if selection.is_some_and(|selection| !selection.is_enabled(name)) {
            idle.push((name, "--controllers disables it".into()));
            continue;
        }
        match controller.configure(values) {
            Err(found) => problems.extend(found),
            Ok(configured) => {
                warnings.extend(configured.warnings);
                match configured.activity {
                    Activity::Idle { reason } => idle.push((name, reason)),
                    Activity::Run(runner) => planned.push(Hosted {
                        name,
                        alias: controller.aliases().first().copied().unwrap_or(name),
                        by_name: selection.is_some_and(|selection| selection.is_named(name)),
                        runner,
                    }),
                }
            }
        }
    }
    planned
}

fn exposition(values: &Values) -> Exposition {
    Exposition {
        disabled: values.get(&DISABLED_METRICS).into_iter().collect(),
        // Judged by then.
        label_values: label_values(values.get(&ALLOW_METRIC_LABELS)).unwrap_or_default(),
    }
}

fn format(values: &Values) -> Format {
    match values.get(&KUBE_API_CONTENT_TYPE).as_str() {
        "application/json" => Format::Json,
        _ => Format::Protobuf,
    }
}

fn client_options(values: &Values, version: &str) -> ClientOptions {
    ClientOptions {
        kubeconfig: given(values, &KUBECONFIG).map(Into::into),
        master: given(values, &MASTER),
        product: build::PRODUCT.into(),
        version: version.into(),
        commit: build::INFO.commit.into(),
    }
}

/// Pages about the process that are served, and their content.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Name, stage and value of each feature gate.
    pub features: Vec<(&'static str, &'static str, bool)>,
    /// Every flag with its effective value, in order of name: paths and settings, never secrets.
    pub flags: Vec<(&'static str, String)>,
    /// `/flagz` is served.
    pub flagz: bool,
    /// `/statusz` is served.
    pub statusz: bool,
    /// `/debug/flags/v` is served.
    pub profiling: bool,
}

impl Shown {
    fn new(values: &Values) -> Self {
        Self {
            features: features(values),
            flags: values.effective().collect(),
            flagz: has_flagz(values),
            statusz: has_statusz(values),
            profiling: values.get(&PROFILING),
        }
    }
}
