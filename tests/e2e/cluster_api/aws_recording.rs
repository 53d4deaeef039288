//! What upstream's AWS provider has made: its writes to AWS with the ids in their answers, and its objects. They are
//! recorded once, and made again on another AWS, which chooses other ids.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use roxmltree::Document;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tests::aws_proxy::{Call, Upstream};
use tests::programs::workspace;

use crate::aws_stage::REGION;

/// A cluster of upstream's provider. `<vpc 1>` stands for the first id of a VPC.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Recording {
    pub(crate) objects: Vec<Value>,
    calls: Vec<Recorded>,
}

/// One write.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Recorded {
    service: String,
    version: String,
    parameters: BTreeMap<String, String>,
    /// The new ids in the answer.
    makes: Vec<String>,
}

/// Texts, and what stands for them.
#[derive(Default)]
pub(crate) struct Ids(Vec<(String, String)>);

impl Ids {
    /// The ids in an answer that it does not have yet.
    fn new_in(&self, answer: &str) -> Vec<(String, String)> {
        let document = Document::parse(answer).unwrap();
        let mut new = Vec::<(String, String)>::new();
        for node in document.descendants() {
            let name = node.tag_name().name();
            let Some((kind, id)) = node.text().and_then(|text| id(name, text)) else { continue };
            let is_known = self.0.iter().any(|known| known.0 == id);
            if !is_known && !new.iter().any(|(_, other)| other == id) {
                new.push((kind.to_owned(), id.to_owned()));
            }
        }
        new
    }

    fn note(&mut self, answer: &str) -> Vec<String> {
        let new = self.new_in(answer);
        let mut makes = Vec::new();
        for (kind, id) in new {
            let start = format!("<{kind} ");
            let number = self.0.iter().filter(|known| known.1.starts_with(&start)).count() + 1;
            let placeholder = format!("{start}{number}>");
            makes.push(placeholder.clone());
            self.0.push((id, placeholder));
        }
        makes
    }

    /// Pairs new ids with placeholders in the order of an answer.
    fn pair(&mut self, answer: &str, makes: &[String]) {
        let new = self.new_in(answer);
        assert_eq!(
            new.len(),
            makes.len(),
            "moto answers as it did when this was recorded: {answer}"
        );
        self.0.extend(new.into_iter().map(|(_, id)| id).zip(makes.iter().cloned()));
    }

    pub(crate) fn hide(&self, text: &str) -> String {
        let mut known: Vec<_> = self.0.iter().collect();
        known.sort_by_key(|(id, _)| std::cmp::Reverse(id.len()));
        known.iter().fold(text.to_owned(), |text, (id, placeholder)| text.replace(id, placeholder))
    }

    pub(crate) fn show(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (id, placeholder)| text.replace(placeholder, id))
    }

    /// The id that this stands for.
    pub(crate) fn of(&self, placeholder: &str) -> &str {
        let found = self.0.iter().find(|known| known.1 == placeholder);
        &found.unwrap_or_else(|| panic!("{placeholder} is not in the recording")).0
    }
}

/// The kind of an id, if an element is one.
fn id<'a>(element: &'a str, text: &'a str) -> Option<(&'a str, &'a str)> {
    match element {
        "publicIp" => return Some(("address", text)),
        // Subnets have numbers in the last digits of this.
        "ipv6CidrBlock" => return text.strip_suffix("00::/56").map(|start| ("ipv6", start)),
        _ => {}
    }
    if text.starts_with("arn:aws:elasticloadbalancing:") {
        return Some(("arn", text));
    }
    let (kind, number) = text.rsplit_once('-')?;
    let is_id = number.len() == 17 && number.chars().all(|digit| digit.is_ascii_hexdigit());
    is_id.then_some((kind, text))
}

fn path(name: &str) -> PathBuf {
    workspace().join("tests/cluster-api-provider-aws").join(format!("{name}.json"))
}

impl Recording {
    pub(crate) fn of(objects: Vec<Value>, done: &[(Call, String)]) -> Self {
        let mut ids = Ids::default();
        let mut calls = Vec::new();
        for (call, answer) in done {
            let mut parameters = call.parameters.clone();
            parameters.remove("ClientToken");
            let version = parameters.remove("Version").unwrap();
            let makes = ids.note(answer);
            let recorded = Recorded { service: call.service.clone(), version, parameters, makes };
            // Upstream configures the health check of a classic load balancer in each pass.
            if !calls.contains(&recorded) {
                calls.push(recorded);
            }
        }
        let recording = Self { objects, calls };
        serde_json::from_str(&ids.hide(&serde_json::to_string(&recording).unwrap())).unwrap()
    }

    /// The recording of this name.
    pub(crate) fn read(name: &str) -> Self {
        serde_json::from_str(&fs::read_to_string(path(name)).unwrap()).unwrap()
    }

    pub(crate) fn write(&self, name: &str) {
        fs::write(path(name), self.text()).unwrap();
    }

    /// The names of the writes.
    pub(crate) fn actions(&self) -> BTreeMap<&str, usize> {
        let mut actions = BTreeMap::new();
        for call in &self.calls {
            *actions.entry(&*call.parameters["Action"]).or_default() += 1;
        }
        actions
    }

    /// JSON with a line for each object and each call.
    fn text(&self) -> String {
        let mut text = String::from("{\"objects\": [\n");
        let lines = |lines: Vec<String>| lines.join(",\n");
        text += &lines(self.objects.iter().map(Value::to_string).collect());
        text += "\n], \"calls\": [\n";
        let line = |call: &Recorded| serde_json::to_string(call).unwrap();
        text += &lines(self.calls.iter().map(line).collect());
        writeln!(text, "\n]}}").unwrap();
        text
    }

    /// Makes the resources on another AWS.
    pub(crate) async fn replay(&self, upstream: &Upstream) -> Ids {
        let mut ids = Ids::default();
        for call in &self.calls {
            let parameters: Vec<_> = call
                .parameters
                .iter()
                .map(|(name, value)| (name.clone(), ids.show(value)))
                .collect();
            let borrowed: Vec<_> =
                parameters.iter().map(|(name, value)| (&**name, &**value)).collect();
            let answer = upstream.try_ask(&call.service, &call.version, REGION, &borrowed).await;
            assert!(answer.0.is_success(), "{borrowed:?}: {}", answer.1);
            ids.pair(&answer.1, &call.makes);
        }
        ids
    }
}
