//! [`Credentials`]: those in a file, as Google's tools look for them.

use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Uri;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

/// Where tokens of users are given out; files of service accounts name their own place.
const TOKENS: &str = "https://oauth2.googleapis.com/token";

/// Why the file cannot be used. Nothing of it is shown.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the credentials in {path}: {why}")]
pub struct CredentialsError {
    path: String,
    why: String,
}

/// Credentials of the calls.
pub(crate) enum Credentials {
    ServiceAccount { email: String, signer: Box<Signer>, token_uri: Uri },
    User { client_id: String, secret: SecretString, refresh_token: SecretString, token_uri: Uri },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServiceAccount { email, .. } => write!(f, "ServiceAccount({email})"),
            Self::User { .. } => f.write_str("User"),
        }
    }
}

/// A file of either kind.
#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    r#type: String,
    client_email: String,
    private_key_id: String,
    private_key: SecretString,
    token_uri: String,
    client_id: String,
    client_secret: SecretString,
    refresh_token: SecretString,
}

impl Credentials {
    /// Reads the file that `GOOGLE_APPLICATION_CREDENTIALS` names, else gcloud's own file if there
    /// is one.
    ///
    /// # Errors
    /// The file that is meant cannot be used.
    pub(crate) fn find(
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, CredentialsError> {
        let named = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = named("GOOGLE_APPLICATION_CREDENTIALS") {
            return Self::read(&path).map(Some);
        }
        let folder =
            named("CLOUDSDK_CONFIG").or_else(|| Some(named("HOME")?.join(".config/gcloud")));
        let well_known = folder.map(|folder| folder.join("application_default_credentials.json"));
        well_known.filter(|path| path.exists()).map(|path| Self::read(&path)).transpose()
    }

    fn read(path: &Path) -> Result<Self, CredentialsError> {
        let bad = |why: String| CredentialsError { path: path.display().to_string(), why };
        let text = Zeroizing::new(std::fs::read(path).map_err(|error| bad(error.to_string()))?);
        Self::parse(&text).map_err(bad)
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        // serde's own words may quote the text.
        let file: File = serde_json::from_slice(text)
            .map_err(|error| format!("line {} is not JSON of credentials", error.line()))?;
        let token_uri = if file.token_uri.is_empty() { TOKENS } else { &file.token_uri };
        let token_uri = token_uri.parse::<Uri>().ok().filter(|uri| uri.host().is_some());
        let token_uri = token_uri.ok_or("its token_uri is not a URL")?;
        match file.r#type.as_str() {
            "service_account" if file.client_email.is_empty() => {
                Err("it has no client_email".into())
            }
            "service_account" => {
                let key = file.private_key.expose_secret();
                let signer = Signer::from_pem(key, file.private_key_id);
                let signer = Box::new(signer.map_err(|error| error.to_string())?);
                Ok(Self::ServiceAccount { email: file.client_email, signer, token_uri })
            }
            "authorized_user" => Ok(Self::User {
                client_id: file.client_id,
                secret: file.client_secret,
                refresh_token: file.refresh_token,
                token_uri,
            }),
            _ => Err("its type must be service_account or authorized_user".into()),
        }
    }
}

const SCOPE: &str = "https://www.googleapis.com/auth/compute";
/// The longest that Google takes.
const LIFETIME: i64 = 3600;

/// The private key of a service account.
pub(crate) struct Signer {
    key: RsaKeyPair,
    key_id: String,
}

/// The key cannot sign with RS256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use private_key: it must be an RSA key of 2048 bits or more in PEM")]
pub(crate) struct BadKey;

impl Signer {
    /// Reads the key from PEM.
    pub(crate) fn from_pem(pem: &str, key_id: String) -> Result<Self, BadKey> {
        let key = match PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| BadKey)? {
            PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
            _ => return Err(BadKey),
        };
        Ok(Self { key: key.map_err(|_| BadKey)?, key_id })
    }

    /// The signed claims of an account for this audience; `now` is in seconds since 1970.
    pub(crate) fn sign(&self, account: &str, audience: &str, now: i64) -> Result<String, BadKey> {
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.key_id});
        let body = json!({
            "iss": account, "sub": account, "aud": audience, "scope": SCOPE, "iat": now,
            "exp": now.saturating_add(LIFETIME),
        });
        let encode = |json: serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let mut token = format!("{}.{}", encode(header), encode(body));
        let mut signature = vec![0; self.key.public().modulus_len()];
        let random = SystemRandom::new();
        let signed = self.key.sign(&RSA_PKCS1_SHA256, &random, token.as_bytes(), &mut signature);
        signed.map_err(|_| BadKey)?;
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_kinds_of_files_are_read() {
        let account = json!({
            "type": "service_account", "client_email": "a@p", "private_key_id": "1",
            "private_key": gce_stub::SERVICE_ACCOUNT_KEY, "token_uri": "http://t/x", "project_id": "p",
        });
        let read = Credentials::parse(account.to_string().as_bytes()).unwrap();
        assert_eq!(format!("{read:?}"), "ServiceAccount(a@p)");
        let user = json!({
            "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        });
        let read = Credentials::parse(user.to_string().as_bytes()).unwrap();
        let Credentials::User { token_uri, .. } = &read else { panic!("{read:?}") };
        assert_eq!(token_uri, TOKENS);
    }

    #[test]
    fn nothing_of_a_file_that_cannot_be_used_is_shown() {
        for (text, why) in [
            (r#"{"type": "service_account", "client_email": "a", "private_key": "hidden"}"#, "RSA"),
            (r#"{"type": "service_account", "private_key": "hidden"}"#, "client_email"),
            (r#"{"type": "external_account", "private_key": "hidden"}"#, "type must be"),
            (r#"{"private_key": hidden}"#, "not JSON"),
            (r#"{"type": "authorized_user", "token_uri": "/hidden"}"#, "token_uri"),
        ] {
            let error = Credentials::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(why) && !error.contains("hidden"), "{error}");
        }
    }

    #[test]
    fn the_file_that_the_environment_names_must_be_there_and_gclouds_own_need_not() {
        let named = |name: &str| {
            (name == "GOOGLE_APPLICATION_CREDENTIALS").then(|| "/nowhere/key.json".to_owned())
        };
        let error = Credentials::find(&named).unwrap_err().to_string();
        assert!(error.contains("/nowhere/key.json"), "{error}");
        let elsewhere = |name: &str| (name == "HOME").then(|| "/nowhere".to_owned());
        assert!(Credentials::find(&elsewhere).unwrap().is_none());
        assert!(Credentials::find(&|_| None).unwrap().is_none());
    }
}

#[cfg(test)]
mod jwt_tests {
    use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    #[test]
    fn claims_are_signed_so_that_the_public_key_proves_them() {
        let signer = Signer::from_pem(gce_stub::SERVICE_ACCOUNT_KEY, "key-1".into()).unwrap();
        let token = signer.sign("a@p", "https://t/x", 1_000).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, signer.key.public());
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        public.verify(signed.as_bytes(), &signature).unwrap();
        let parts: Vec<Value> = signed
            .split('.')
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        let [header, body] = &parts[..] else { panic!("{token}") };
        assert_eq!(*header, json!({"alg": "RS256", "typ": "JWT", "kid": "key-1"}));
        let expected = json!({
            "iss": "a@p", "sub": "a@p", "aud": "https://t/x", "scope": SCOPE, "iat": 1000, "exp": 4600,
        });
        assert_eq!(*body, expected);
    }

    #[test]
    fn what_is_no_rsa_key_is_refused() {
        for pem in ["", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            assert!(Signer::from_pem(pem, String::new()).is_err(), "{pem:?}");
        }
    }
}
