//! Rules of a Cluster that depend on the network or on credentials.

use serde_json::{Value, json};

use crate::objects::{baremetal, credential, imported, machine, master};
use crate::row::{Row, all_hold, row};

pub(crate) fn rows() -> Vec<Row> {
    [ssh(), addresses(), credentials(), imports()].into_iter().flatten().collect()
}

#[test]
fn what_the_network_says_is_told_by_codes() {
    all_hold(rows());
}

fn ssh() -> Vec<Row> {
    let at = |edits: Value| row("machines-answer-ssh", baremetal, edits);
    let refused = json!({"networkChecks": {"ssh": {"10.0.0.2:22": "connect-refused"}}});
    let says = "spec.machines[1]: Forbidden: Forbidden: SSH does not answer at 10.0.0.2:22: connect-refused";
    let behind = |kind: &str| {
        let proxy = json!({"type": kind, "ip": "10.0.9.9", "port": 2222});
        at(json!({"spec.machines.1.proxy": proxy}))
    };
    let v6 = json!({"networkChecks": {"ssh": {"[fd00::2]:22": "timeout"}}});
    vec![
        at(json!({})).given(json!({"networkChecks": {"ssh": {"10.0.0.1:22": "ok", "10.0.0.2:22": "ok"}}})),
        at(json!({})).given(refused.clone()).says(&[says]),
        at(json!({"spec.machines.1": master("fd00::2")})).given(v6).says(&[
            "spec.machines[1]: Forbidden: Forbidden: SSH does not answer at [fd00::2]:22: timeout",
        ]),
        // Behind a jump server the machines cannot be checked; behind another proxy, neither can the proxy.
        behind("SSHJumpServer").given(json!({"networkChecks": {"ssh": {"10.0.0.1:22": "ok", "10.0.9.9:2222": "ok", "10.0.0.2:22": "connect-timeout"}}})),
        behind("SSHJumpServer").given(json!({"networkChecks": {"ssh": {"10.0.9.9:2222": "connect-refused"}}})).says(&["spec.machines[1]: Forbidden: Forbidden: the jump server does not answer at 10.0.9.9:2222: connect-refused"]),
        behind("SOCKS5").given(json!({"networkChecks": {"ssh": {"10.0.9.9:2222": "connect-refused", "10.0.0.2:22": "connect-timeout"}}})),
        // Only what changed is asked about.
        at(json!({"spec.displayName": "b"})).was(json!({})).given(refused.clone()),
        at(json!({"spec.machines.1.labels": {"a": "b"}})).was(json!({})).given(refused.clone()),
        at(json!({"spec.machines.1.password": "bmV3"})).was(json!({})).given(refused.clone()).says(&[says]),
        // And only when nothing is wrong without it.
        at(json!({"spec.clusterCIDR": null})).given(refused).says(&[
            "spec.clusterCIDR: Required: Required value: the range of Pods, such as 10.244.0.0/16",
        ]),
        row("machines-answer-ssh", machine, json!({}))
            .given(json!({"clusters": [imported()], "networkChecks": {"ssh": {"10.0.1.1:22": "ok"}}})),
        row("machines-answer-ssh", machine, json!({}))
            .given(json!({"clusters": [imported()], "networkChecks": {"ssh": {"10.0.1.1:22": "no-banner"}}}))
            .says(&["spec: Forbidden: Forbidden: SSH does not answer at 10.0.1.1:22: no-banner"]),
        row("machines-answer-ssh", machine, json!({"spec.labels": {"a": "b"}}))
            .was(json!({}))
            .given(json!({"networkChecks": {"ssh": {"10.0.1.1:22": "no-banner"}}})),
    ]
}

fn addresses() -> Vec<Row> {
    let at = |edits: Value| row("addresses-answer", imported, edits);
    let refused = json!({"networkChecks": {"tcp": {"10.0.0.1:6443": "connect-timeout"}}});
    let says = "spec.addresses[0]: Invalid: Invalid value: \"object\": no connection to 10.0.0.1:6443: connect-timeout";
    vec![
        at(json!({})).given(json!({"networkChecks": {"tcp": {"10.0.0.1:6443": "ok"}}})),
        at(json!({})).given(refused.clone()).says(&[says]),
        at(json!({"spec.displayName": "b"})).was(json!({})).given(refused.clone()),
        at(json!({}))
            .was(json!({"spec.addresses.0.host": "10.0.0.7"}))
            .given(refused.clone())
            .says(&[says]),
        row(
            "addresses-answer",
            baremetal,
            json!({"spec.addresses": [{"type": "Real", "host": "10.0.0.1", "port": 6443}]}),
        )
        .given(refused),
    ]
}

fn credentials() -> Vec<Row> {
    let reference = json!({"spec.clusterCredentialRef": {"name": "cc-1"}});
    let whole = |credential: &Value| {
        row("client-pairs-are-whole", imported, reference.clone())
            .given(json!({"clusterCredentials": [credential]}))
    };
    let accepted = |result: &str| {
        row("credentials-are-accepted", imported, reference.clone())
            .given(json!({"clusterCredentials": [credential()], "networkChecks": {"credentials": {"cc-1": result}}}))
    };
    let mut half = credential();
    half["clientKey"] = Value::Null;
    let at = |edits: Value| row("client-pairs-are-whole", credential, edits);
    vec![
        whole(&credential()),
        whole(&half).says(&["spec.clusterCredentialRef: Required: Required value: the ClusterCredential cc-1 has no clientKey"]),
        whole(&imported()).says(&["warning: spec.clusterCredentialRef: there is no ClusterCredential cc-1 yet"]),
        whole(&half).was(reference.clone()),
        at(json!({})),
        at(json!({"clientCert": null, "clientKey": null, "token": "planted"})),
        at(json!({"clientKey": null})).says(&["clientKey: Required: Required value: clientCert and clientKey go together"]),
        at(json!({"clientCert": null})).says(&["clientCert: Required: Required value: clientCert and clientKey go together"]),
        at(json!({"clusterName": null})).says(&["clusterName: Required: Required value: the Cluster that it leads into"]),
        row("references-are-whole", credential, json!({"secretRef": {"namespace": "n", "name": "s"}})),
        row("references-are-whole", credential, json!({"secretRef": {"namespace": "n"}})).says(&["secretRef.name: Required: Required value: a Secret is named by its namespace and its name"]),
        accepted("ok"),
        accepted("unauthorized").says(&["spec.clusterCredentialRef: Invalid: Invalid value: \"object\": the API server does not take the ClusterCredential cc-1: unauthorized"]),
        accepted("unauthorized").was(reference.clone()),
        // A cluster that is being set up has no API server yet, and its credential may be half made.
        row("credentials-are-accepted", baremetal, reference.clone()).given(json!({"networkChecks": {"credentials": {"cc-1": "connect-refused"}}})),
        row("client-pairs-are-whole", baremetal, reference).given(json!({"clusterCredentials": [half]})),
    ]
}

fn imports() -> Vec<Row> {
    let at = |result: &str| {
        row("clusters-are-imported-once", imported, json!({}))
            .given(json!({"networkChecks": {"imports": {"cls-1": result}}}))
    };
    vec![
        at("ok"),
        at("already-imported").was(json!({"spec.displayName": "b"})),
        at("already-imported").says(&["metadata.name: Invalid: Invalid value: \"cls-1\": the cluster cannot be imported: already-imported"]),
    ]
}
