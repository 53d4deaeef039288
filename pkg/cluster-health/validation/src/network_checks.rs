//! [`NetworkChecks`]: what somebody who asked the network found. Nothing here asks it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::question::Question;

/// A code is a word, so that no message of a server gets into an answer.
const LONGEST_CODE: usize = 40;

/// Results by what was asked. What is missing was not asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct NetworkChecks {
    /// Whether SSH answers, by `IP:port`, IPv6 in brackets.
    pub ssh: BTreeMap<String, CheckResult>,
    /// Whether a connection is made, by `host:port`, IPv6 in brackets.
    pub tcp: BTreeMap<String, CheckResult>,
    /// Whether the API server takes a credential, by the name of the ClusterCredential.
    pub credentials: BTreeMap<String, CheckResult>,
    /// Whether a cluster is free to be imported, by the name of the Cluster.
    pub imports: BTreeMap<String, CheckResult>,
    /// UID of the namespace kube-system of KubeFed's members, by `namespace/name`.
    #[serde(rename = "kubeSystemUIDs")]
    pub kube_system_uids: BTreeMap<String, String>,
}

impl NetworkChecks {
    /// The answer to a question, where it was asked.
    pub fn answer(&self, question: &Question) -> Option<&CheckResult> {
        let answers = match question {
            Question::Ssh(_) => &self.ssh,
            Question::Tcp(_) => &self.tcp,
            Question::Credential(_) => &self.credentials,
            Question::Import(_) => &self.imports,
        };
        answers.get(question.about())
    }

    /// Takes in an answer.
    pub fn take(&mut self, question: &Question, answer: CheckResult) {
        let answers = match question {
            Question::Ssh(_) => &mut self.ssh,
            Question::Tcp(_) => &mut self.tcp,
            Question::Credential(_) => &mut self.credentials,
            Question::Import(_) => &mut self.imports,
        };
        answers.insert(question.about().to_owned(), answer);
    }
}

/// What a check came to: `ok`, or a code such as `connect-refused`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum CheckResult {
    /// Nothing is wrong.
    Passed,
    /// This is wrong.
    Failed(String),
}

impl TryFrom<String> for CheckResult {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_code = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        match text.as_str() {
            "ok" => Ok(Self::Passed),
            "" => Err("the result of a check is empty; write ok or a code".to_owned()),
            _ if text.len() <= LONGEST_CODE && text.bytes().all(is_code) => Ok(Self::Failed(text)),
            _ => Err("the result of a check is ok, or a code such as connect-refused".to_owned()),
        }
    }
}
