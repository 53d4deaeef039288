//! `infra-controller-manager probe`: looks once at an API server as the controller would, and shows
//! what it found and where the time went. Exit code 0 when the server is well, else 1.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use arguments::Arguments;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser as _;
use kube::config::{AuthInfo, Cluster, Kubeconfig, KubeconfigError};
use manager::command::{
    Command, Parsed, Program, client_of_kubeconfig, objects_of_file, print_output,
};
use probe::{
    Address, ClientPair, ConnectionLimits, Fields, Inputs, Meters, Names, Order, Probed, Prober,
    Problem, WaivedChecks,
};
use prometheus::Registry;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;

use crate::secret_data::ReadError;
use crate::{StoredObjects, Subject};

mod arguments;
mod printed;

/// The command for the table of the program.
pub(crate) const COMMAND: Command =
    Command { name: "probe", about: "Probes the API server of a member cluster once", start };

/// Runs it with the arguments after its name.
fn start(program: Program, args: Vec<OsString>) -> ExitCode {
    let arguments = match Parsed::from(Arguments::try_parse_from(args)) {
        Parsed::Run(arguments) => arguments,
        Parsed::Print { text, is_error } => return print_output(&text, is_error),
    };
    match run(program, &arguments) {
        Ok(probed) => {
            let text = printed::of(&probed, arguments.output.is_json());
            let is_well = probed.report.finding.is_ok();
            print_output(&text, false);
            if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => print_output(&format!("error: {error:#}\n"), true),
    }
}

fn run(program: Program, arguments: &Arguments) -> anyhow::Result<Probed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let probed = runtime.block_on(look(program, arguments));
    // A name server that does not answer must not delay the exit.
    runtime.shutdown_background();
    probed
}

async fn look(program: Program, arguments: &Arguments) -> anyhow::Result<Probed> {
    let mut authenticated_read = arguments.authenticated_read;
    let by_object = arguments.object.is_some() || arguments.filename.is_some();
    let inputs = if by_object {
        let Found { subject, inputs } = find(program, arguments).await?;
        authenticated_read |= subject.is_read();
        match inputs {
            Ok(inputs) => inputs,
            // What the controller would publish.
            Err(problem) => return Ok(Probed::of_problem(&problem)),
        }
    } else {
        inputs(program, arguments)?
    };
    let limits = ConnectionLimits { max_age: Duration::ZERO, ..ConnectionLimits::default() };
    let prober = Prober::new(Meters::new(&Registry::new())?, limits, Names::default());
    let client = match prober.client(&inputs) {
        Ok(client) => Arc::new(client),
        Err(problem) if by_object => return Ok(Probed::of_problem(&problem)),
        Err(problem) => return Err(problem.into()),
    };
    drop(inputs);
    let order = Order::once(arguments.timeout, authenticated_read);
    Ok(prober.probe(&client, &order).await)
}

/// Where a person at a terminal mends what is refused.
const ARGUMENTS: Fields = Fields {
    ca: "--certificate-authority",
    other_name: ", or set --disabled-tls-validations=SubjectName",
};

/// The inputs of the client.
///
/// # Errors
/// A file cannot be read, or says something that a probe cannot do.
fn inputs(program: Program, arguments: &Arguments) -> anyhow::Result<Inputs> {
    let inputs = match &arguments.server {
        Some(server) => of_arguments(server, arguments)?,
        None => of_kubeconfig(arguments)?,
    };
    Ok(adjusted(program, inputs, arguments))
}

/// Applies the arguments that are not about the target.
fn adjusted(program: Program, mut inputs: Inputs, arguments: &Arguments) -> Inputs {
    inputs.allow_plaintext = arguments.allow_plaintext_endpoints;
    inputs.user_agent = format!("{}/probe", program.product);
    let WaivedChecks { subject_name, validity_period, everything } = arguments.waived();
    inputs.tls.subject_name |= subject_name;
    inputs.tls.validity_period |= validity_period;
    inputs.tls.everything |= everything;
    inputs
}

fn of_arguments(server: &str, arguments: &Arguments) -> anyhow::Result<Inputs> {
    let pair = match (&arguments.client_certificate, &arguments.client_key) {
        (Some(certificate), Some(key)) => {
            Some(ClientPair { certificate: read(certificate)?, key: read(key)?.into() })
        }
        _ => None,
    };
    Ok(Inputs {
        addresses: vec![Address::parse(server)?],
        ca: arguments.certificate_authority.as_deref().map(read).transpose()?.unwrap_or_default(),
        token: arguments.token_file.as_deref().map(read_token).transpose()?,
        pair,
        proxy: arguments.proxy_url.clone().map(SecretString::from),
        fields: ARGUMENTS,
        renewed_in: "--token-file or --client-certificate",
        ..Inputs::default()
    })
}

/// The file that is named, or that of the environment.
fn kubeconfig(arguments: &Arguments) -> anyhow::Result<Kubeconfig> {
    match &arguments.kubeconfig {
        Some(path) => Kubeconfig::read_from(path)
            .map_err(in_our_words)
            .with_context(|| format!("cannot use the kubeconfig {}", path.display())),
        None => Kubeconfig::read()
            .map_err(in_our_words)
            .context("cannot read a kubeconfig; name one with --kubeconfig"),
    }
}

/// The parser quotes the lines around a mistake, and those may hold a credential; of a file that
/// cannot be read the cause would be printed twice.
fn in_our_words(error: KubeconfigError) -> anyhow::Error {
    match error {
        KubeconfigError::Parse(error) => client::KubeconfigError::not_yaml(&error).into(),
        KubeconfigError::ReadConfig(error, path) => {
            anyhow::Error::new(error).context(format!("cannot read {}", path.display()))
        }
        error => error.into(),
    }
}

fn of_kubeconfig(arguments: &Arguments) -> anyhow::Result<Inputs> {
    let file = kubeconfig(arguments)?;
    let wanted = arguments.context.as_ref().or(file.current_context.as_ref());
    let wanted =
        wanted.context("the kubeconfig has no current context; name one with --context")?;
    let context = file.contexts.iter().find(|context| context.name == *wanted);
    let context = context.and_then(|context| context.context.as_ref());
    let context = context.with_context(|| format!("the kubeconfig has no context {wanted:?}"))?;
    let cluster = file.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.and_then(|cluster| cluster.cluster.as_ref());
    let cluster =
        cluster.with_context(|| format!("the kubeconfig has no cluster {:?}", context.cluster))?;
    of_entries(cluster, &user_of(&file, context.user.as_deref())?)
}

/// A context without a user is probed anonymously; one whose user is not there has a mistake.
fn user_of(file: &Kubeconfig, name: Option<&str>) -> anyhow::Result<AuthInfo> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(AuthInfo::default()) };
    let user = file.auth_infos.iter().find(|user| user.name == name);
    let user = user.with_context(|| format!("the kubeconfig has no user {name:?}"))?;
    Ok(user.auth_info.clone().unwrap_or_default())
}

fn of_entries(cluster: &Cluster, user: &AuthInfo) -> anyhow::Result<Inputs> {
    if user.exec.is_some() || user.auth_provider.is_some() {
        bail!(
            "the user of the kubeconfig has an exec plugin or auth provider, which probe does \
             not run; use --server with --token-file"
        );
    }
    if cluster.tls_server_name.is_some() {
        bail!(
            "probe does not support tls-server-name of the kubeconfig; use \
             --disabled-tls-validations=SubjectName"
        );
    }
    let server =
        cluster.server.as_deref().context("the cluster of the kubeconfig has no server")?;
    let ca = material(
        cluster.certificate_authority_data.as_deref(),
        cluster.certificate_authority.as_deref(),
    )?;
    let certificate =
        material(user.client_certificate_data.as_deref(), user.client_certificate.as_deref())?;
    let key = user.client_key_data.as_ref().map(ExposeSecret::expose_secret);
    let key = material(key, user.client_key.as_deref())?;
    let pair = certificate.zip(key);
    let token = match (&user.token, &user.token_file) {
        (Some(token), _) => Some(SecretString::from(token.expose_secret())),
        (None, Some(file)) => Some(read_token(Path::new(file))?),
        (None, None) => None,
    };
    let everything = cluster.insecure_skip_tls_verify.unwrap_or_default();
    Ok(Inputs {
        addresses: vec![Address::parse(server)?],
        ca: ca.unwrap_or_default(),
        token,
        pair: pair.map(|(certificate, key)| ClientPair { certificate, key: key.into() }),
        proxy: cluster.proxy_url.clone().map(SecretString::from),
        tls: WaivedChecks { everything, ..WaivedChecks::default() },
        renewed_in: "the kubeconfig",
        ..Inputs::default()
    })
}

/// Reads data of the kubeconfig itself, else the file that it names.
fn material(data: Option<&str>, file: Option<&str>) -> anyhow::Result<Option<Vec<u8>>> {
    match (data, file) {
        (Some(data), _) => {
            let decoded = STANDARD.decode(data.trim());
            // The cause may quote what is secret.
            Ok(Some(decoded.ok().context("a ...-data of the kubeconfig is not base64")?))
        }
        (None, Some(file)) => read(&PathBuf::from(file)).map(Some),
        (None, None) => Ok(None),
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn read_token(path: &Path) -> anyhow::Result<SecretString> {
    let token = fs::read_to_string(path);
    let token = token.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(SecretString::from(token))
}

/// For all reads of the management API together.
const LIMIT: Duration = Duration::from_secs(30);

/// The cluster that is meant, and what its client is made of.
struct Found {
    subject: Subject,
    inputs: Result<Inputs, Problem>,
}

/// Looks the object and its credential up.
///
/// # Errors
/// One of them could not be read, or none is meant.
async fn find(program: Program, arguments: &Arguments) -> anyhow::Result<Found> {
    let documents = arguments.filename.as_deref().map(objects_of_file).transpose()?;
    // A manifest may have all objects; the management API is asked only if it is named.
    let asked = arguments.kubeconfig.is_some() || arguments.context.is_some();
    let api = if documents.is_none() || asked {
        Some(management(program, arguments).await?)
    } else {
        None
    };
    let objects = StoredObjects::new(documents.unwrap_or_default(), api);
    let subject = match &arguments.object {
        Some(subject) => subject.clone(),
        None => only(Subject::all_of(&objects))?,
    };
    let inputs = timeout(LIMIT, subject.inputs(&objects, &arguments.lookup())).await;
    let inputs = match inputs.context("the management API did not answer within 30 s")? {
        Err(ReadError::Problem(problem)) => Err(problem),
        inputs => Ok(adjusted(program, inputs?, arguments)),
    };
    Ok(Found { subject, inputs })
}

fn only(mut subjects: Vec<Subject>) -> anyhow::Result<Subject> {
    match (subjects.pop(), subjects.len()) {
        (Some(subject), 0) => Ok(subject),
        (Some(last), _) => {
            subjects.push(last);
            let names: Vec<_> = subjects.iter().map(ToString::to_string).collect();
            bail!("the file has several clusters; name one of {}", names.join(", "))
        }
        (None, _) => bail!(
            "the file has no KubeFedCluster, Cluster or ClusterProfile; add one to the file, or name an \
             object in the management cluster"
        ),
    }
}

async fn management(program: Program, arguments: &Arguments) -> anyhow::Result<kube::Client> {
    let mut file = kubeconfig(arguments)?;
    file.current_context = arguments.context.clone().or(file.current_context);
    let client = client_of_kubeconfig(program, file).await;
    client.context("cannot create a client of the management API")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use manager::command::Parsed;

    const PROGRAM: Program = Program { product: "icm", version: "1", commit: "c" };

    #[test]
    fn a_context_whose_user_is_not_there_is_refused_and_one_without_a_user_is_not() {
        let file: Kubeconfig =
            Kubeconfig::from_yaml("users: [{name: one, user: {username: me}}]").unwrap();
        assert_eq!(user_of(&file, Some("one")).unwrap().username.as_deref(), Some("me"));
        for no_user in [None, Some("")] {
            assert!(user_of(&file, no_user).unwrap().username.is_none(), "{no_user:?}");
        }
        let error = user_of(&file, Some("nope")).unwrap_err();
        assert_eq!(error.to_string(), "the kubeconfig has no user \"nope\"");
    }

    #[test]
    fn a_mistake_in_the_kubeconfig_is_reported_without_the_lines_around_it() {
        let path = std::env::temp_dir().join(format!("icm-target-{}", std::process::id()));
        fs::write(&path, "users:\n- name: me\n  user:\n    token: [SECRETTOKEN\n").unwrap();
        let named = OsString::from(format!("--kubeconfig={}", path.display()));
        let Parsed::Run(arguments) = Arguments::try_parse_from([named]).into() else {
            panic!("it is refused")
        };
        let told = format!("{:#}", inputs(PROGRAM, &arguments).err().unwrap());
        fs::remove_file(&path).unwrap();
        assert!(told.contains("not the YAML of a kubeconfig, see line"), "{told}");
        assert!(told.contains(&*path.to_string_lossy()) && !told.contains("SECRET"), "{told}");
    }
}
