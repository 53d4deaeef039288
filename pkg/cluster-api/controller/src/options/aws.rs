//! [`AwsOptions`]: how AWSClusters are kept, judged from flag values without I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ::flags::{Flag, Problem, Values};
use aws::{Endpoints, Rate, Rates};
use aws_network::NatMode;

use crate::aws_spec::is_region;
use crate::contract::Contract;
use crate::flags::{NAMESPACE, PERIOD_MIN, WATCH_FILTER, aws as flags, concurrency, period};

const TAG_KEY_MAX: usize = 128;
const BURST_MAX: i64 = 10_000;

/// How AWSClusters are kept.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct AwsOptions {
    /// AWSClusters worked on at once.
    pub(crate) concurrency: usize,
    /// From one comparison of everything to the next.
    pub(crate) deep_check_period: Duration,
    /// Where a spec names no mode.
    pub(crate) default_nat_mode: NatMode,
    /// A DNS name has to resolve before it is published, where a spec does not say.
    pub(crate) checks_dns: bool,
    /// Key of the tag that holds the identity of an AWSCluster.
    pub(crate) owner_tag_key: String,
    /// Rules of others stay in our security groups.
    pub(crate) keep_foreign_rules: bool,
    /// Owned subnets that no spec names are deleted.
    pub(crate) prune_subnets: bool,
    /// In which words AWSClusters say what has become of them.
    pub(crate) contract: Contract,
    /// The ids of what was made are written into the spec.
    pub(crate) mirror_ids: bool,
    /// How often leaks are looked for; `None` for never.
    pub(crate) leak_scan_period: Option<Duration>,
    /// Regions in which they are looked for in any case.
    pub(crate) leak_scan_regions: BTreeSet<String>,
    /// Where the APIs of regions are.
    pub(crate) endpoints: BTreeMap<String, Endpoints>,
    pub(crate) plan_only: bool,
    /// How often AWS is called.
    pub(crate) rates: Rates,
    /// How often AWS is read for clusters at rest.
    pub(crate) idle_read_qps: f64,
}

impl AwsOptions {
    /// How AWS is called. The environment says where and by whom.
    pub(crate) fn calls(&self, sync_period: Duration) -> aws::Options {
        aws::Options {
            controller: "awscluster",
            endpoint: None,
            region_endpoints: self.endpoints.clone(),
            credentials: None,
            request_timeout: aws::Options::REQUEST_TIMEOUT,
            rates: self.rates,
            sync_period,
        }
    }
}

/// Judges the values; what cannot be is added to the problems, and stands for its default.
pub(super) fn judge(values: &Values, problems: &mut Vec<Problem>) -> AwsOptions {
    AwsOptions {
        concurrency: concurrency(values, &flags::AWSCLUSTER_CONCURRENCY, problems),
        deep_check_period: period(values, &flags::DEEP_CHECK_PERIOD, problems),
        default_nat_mode: nat_mode(values, problems),
        checks_dns: checks_dns(values, problems),
        owner_tag_key: owner_tag_key(values, problems),
        keep_foreign_rules: values.get(&flags::KEEP_FOREIGN_SG_RULES),
        prune_subnets: values.get(&flags::PRUNE_SUBNETS),
        contract: Contract::given(values).unwrap_or_else(|problem| {
            problems.push(problem);
            Contract::default()
        }),
        mirror_ids: values.get(&flags::MIRROR_IDS_TO_SPEC),
        leak_scan_period: leak_scan_period(values, problems),
        leak_scan_regions: leak_scan_regions(values, problems),
        endpoints: region_endpoints(values, problems),
        plan_only: values.get(&flags::PLAN_ONLY),
        rates: Rates {
            read: rate(values, &flags::AWS_READ_QPS, &flags::AWS_READ_BURST, problems),
            write: rate(values, &flags::AWS_WRITE_QPS, &flags::AWS_WRITE_BURST, problems),
        },
        idle_read_qps: qps(values, &flags::AWS_IDLE_READ_QPS, problems),
    }
}

fn nat_mode(values: &Values, problems: &mut Vec<Problem>) -> NatMode {
    let word = values.get(&flags::DEFAULT_NAT_MODE);
    let is_default = NatMode::DEFAULTS.contains(&&*word);
    NatMode::from_word(&word).filter(|_| is_default).unwrap_or_else(|| {
        let problem = format!("{word:?} is not one of {}", NatMode::DEFAULTS.join(", "));
        problems.push(flags::DEFAULT_NAT_MODE.problem(problem));
        NatMode::default()
    })
}

fn checks_dns(values: &Values, problems: &mut Vec<Problem>) -> bool {
    match &*values.get(&flags::DNS_RESOLUTION_CHECK) {
        "Enabled" => true,
        "None" => false,
        other => {
            let problem = format!("{other:?} is not one of Enabled, None");
            problems.push(flags::DNS_RESOLUTION_CHECK.problem(problem));
            true
        }
    }
}

fn owner_tag_key(values: &Values, problems: &mut Vec<Problem>) -> String {
    let key = values.get(&flags::OWNER_TAG_KEY);
    let is_letter = |letter: char| letter.is_alphanumeric() || " _.:/=+-@".contains(letter);
    let is_long = key.chars().count() > TAG_KEY_MAX;
    if key.is_empty()
        || is_long
        || !key.chars().all(is_letter)
        || key.to_lowercase().starts_with("aws:")
    {
        let problem = format!("{key:?} is not the key that a tag of AWS can have");
        problems.push(flags::OWNER_TAG_KEY.problem(problem));
    }
    key
}

/// Where some AWSClusters are not seen, what they own would count as leaked.
fn leak_scan_period(values: &Values, problems: &mut Vec<Problem>) -> Option<Duration> {
    if values.get(&flags::LEAK_SCAN_PERIOD).to_std().is_zero() {
        return None;
    }
    let period = period(values, &flags::LEAK_SCAN_PERIOD, problems);
    if period >= PERIOD_MIN
        && (!values.get(&NAMESPACE).is_empty() || !values.get(&WATCH_FILTER).is_empty())
    {
        let problem = "resources of AWSClusters that --namespace or --watch-filter excludes \
            would count as leaked";
        problems.push(flags::LEAK_SCAN_PERIOD.problem(problem.to_owned()));
    }
    Some(period)
}

fn leak_scan_regions(values: &Values, problems: &mut Vec<Problem>) -> BTreeSet<String> {
    let text = values.get(&flags::LEAK_SCAN_REGIONS);
    let regions = text.split(',').map(str::trim).filter(|region| !region.is_empty());
    let regions: BTreeSet<_> = regions.map(str::to_owned).collect();
    if let Some(wrong) = regions.iter().find(|region| !is_region(region)) {
        problems.push(
            flags::LEAK_SCAN_REGIONS.problem(format!("{wrong:?} is not the name of a region")),
        );
    }
    regions
}

/// `region:api=URL,api=URL;region:…`.
fn region_endpoints(values: &Values, problems: &mut Vec<Problem>) -> BTreeMap<String, Endpoints> {
    let text = values.get(&flags::AWS_REGION_ENDPOINTS);
    let mut found = BTreeMap::new();
    for of_region in text.split(';').filter(|part| !part.is_empty()) {
        match endpoints(of_region) {
            Some((region, endpoints)) => drop(found.insert(region, endpoints)),
            None => {
                // A URL may hold a password.
                let problem = "it is not of the form region:ec2=URL,elasticloadbalancing=URL;region:… with URLs of http or https and without a user";
                problems.push(flags::AWS_REGION_ENDPOINTS.problem(problem.to_owned()));
                break;
            }
        }
    }
    found
}

/// Endpoints in the environment. The SDK panics at an empty one.
const ENDPOINT_VARIABLES: [&str; 5] = [
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_EC2",
    "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING",
    "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2",
    "AWS_ENDPOINT_URL_STS",
];

/// What the SDK cannot use of the environment, which `variable` reads.
pub(crate) fn environment(variable: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
    let is_wrong = |name: &&str| variable(name).is_some_and(|url| host(&url).is_none());
    let wrong = ENDPOINT_VARIABLES.into_iter().filter(is_wrong).map(|name| {
        let problem = format!(
            "the environment variable {name} is not a URL of http or https; correct or remove it"
        );
        flags::AWS_REGION_ENDPOINTS.problem(problem)
    });
    wrong.collect()
}

/// Host, port and path of a URL of http or https.
fn host(url: &str) -> Option<&str> {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    Some(host).filter(|host| !host.is_empty())
}

fn endpoints(text: &str) -> Option<(String, Endpoints)> {
    let (region, apis) = text.split_once(':')?;
    let mut endpoints = Endpoints::default();
    for api in apis.split(',') {
        let (name, url) = api.split_once('=')?;
        let host = host(url)?;
        let url_of_api = match name {
            "ec2" => &mut endpoints.ec2,
            "elasticloadbalancing" => &mut endpoints.load_balancing,
            "sts" => &mut endpoints.sts,
            _ => return None,
        };
        if host.contains(['@', ' ']) || url_of_api.is_some() {
            return None;
        }
        *url_of_api = Some(url.to_owned());
    }
    (!region.is_empty()).then(|| (region.to_owned(), endpoints))
}

/// One request in a quarter of an hour; less is a mistake.
const QPS_MIN: f64 = 0.001;

fn qps(values: &Values, flag: &Flag<f64>, problems: &mut Vec<Problem>) -> f64 {
    let per_second = values.get(flag);
    if !per_second.is_finite() || per_second < QPS_MIN {
        problems.push(flag.problem(format!("{per_second} is not a rate of {QPS_MIN} or more")));
    }
    per_second
}

fn rate(values: &Values, flag: &Flag<f64>, burst: &Flag<i64>, problems: &mut Vec<Problem>) -> Rate {
    let (per_second, at_once) = (qps(values, flag, problems), values.get(burst));
    if !(1..=BURST_MAX).contains(&at_once) {
        problems.push(burst.problem(format!("{at_once} is not between 1 and {BURST_MAX}")));
    }
    Rate { per_second, burst: u32::try_from(at_once).unwrap_or(1) }
}
