//! The status and the kubectl output of each right and wrong way to set up a member.

use std::time::Duration;

use serde_json::{Value, json};
use tests::control_plane::{ADMIN_GROUP, ControlPlane};
use tests::kubectl::{FEDERATION, table};
use tests::member::{Account, member};
use tests::poll::poll;

use crate::certificates::{self, Shown};
use crate::kubefed::{secret, spec};
use crate::listeners::{self, Listener};
use crate::scene::Scene;

/// Name, spec, Ready, Offline, code.
type Row = (&'static str, Value, &'static str, &'static str, &'static str);

/// A member that is a listener.
fn at(listener: &Listener, secret: &str, waived: &[&str]) -> Value {
    json!({
        "apiEndpoint": listener.url, "secretRef": {"name": secret}, "disabledTLSValidations": waived,
    })
}

/// `spec` with other fields.
fn with(mut spec: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { unreachable!() };
    spec.as_object_mut().unwrap().extend(fields);
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_set_up_a_member_has_its_readiness_reachability_and_code() {
    let (scene, one, other) = futures::join!(Scene::set(), member(), member());
    let token = Account::of(&one).await.token;
    create_secrets(&scene, &one, &other, &token).await;
    scene.plant_text("planted-user");
    scene.plant_text("planted-password");
    let proxy = json!({"proxyURL": "http://planted-user:planted-password@127.0.0.1:9"});
    let plain = json!({"apiEndpoint": one.url().replace("https", "http")});
    let (silent, dropping) = futures::join!(listeners::silent(), listeners::dropping());
    let mut rows: Vec<Row> = vec![
        (
            "any-certificate",
            with(spec(&one, "wrong-ca"), json!({"disabledTLSValidations": ["*"]})),
            "True",
            "False",
            "",
        ),
        ("bad-ca", spec(&one, "bad-ca"), "False", "Unknown", "ca-parse"),
        ("bad-token", spec(&one, "bad-token"), "False", "False", "unauthorized"),
        ("dropping", at(&dropping, "good", &[]), "False", "True", "timeout"),
        ("no-token", spec(&one, "no-token"), "False", "Unknown", "secret-missing"),
        (
            "nowhere",
            with(spec(&one, "good"), json!({"apiEndpoint": "127.0.0.1:9"})),
            "False",
            "True",
            "connect-refused",
        ),
        ("pair", spec(&one, "pair"), "True", "False", ""),
        ("plain", with(spec(&one, "good"), plain), "False", "Unknown", "bad-endpoint"),
        ("proxied", with(spec(&one, "good"), proxy), "False", "True", "proxy"),
        ("silent", at(&silent, "good", &[]), "False", "True", "timeout"),
        ("token", spec(&one, "good"), "True", "False", ""),
        ("wrong-ca", spec(&one, "wrong-ca"), "False", "True", "tls-verify"),
    ];
    // (certificate, what is waived, Ready, Offline, code)
    let odd: [(&str, Shown, &[&str], _, _, _); 6] = [
        ("expired", certificates::expired(), &[], "False", "True", "tls-verify"),
        ("expired-taken", certificates::expired(), &["ValidityPeriod"], "True", "False", ""),
        ("own-authority", certificates::own_authority(), &[], "True", "False", ""),
        ("own-certificate", certificates::own_certificate(), &[], "True", "False", ""),
        ("version-1", certificates::of_version_1(), &[], "False", "True", "tls-verify"),
        ("version-1-taken", certificates::of_version_1(), &["SubjectName"], "True", "False", ""),
    ];
    let mut listening = Vec::new();
    for (name, shown, waived, ready, offline, code) in odd {
        let listener = listeners::well(&shown).await;
        scene.create_secret(name, &json!({"token": token, "ca.crt": shown.voucher})).await;
        rows.push((name, at(&listener, name, waived), ready, offline, code));
        listening.push(listener);
    }
    rows.sort_by_key(|row| row.0);
    for (name, spec, ..) in &rows {
        scene.create_cluster(name, spec).await;
    }
    for (name, _, ready, offline, code) in &rows {
        let wanted = format!("Ready={ready} Offline={offline} for {code:?}");
        let reported = scene.until(name, &wanted, |it| {
            let (is_ready, is_offline, _) = it.states();
            (&*is_ready, &*is_offline) == (ready, offline) && it.message().contains(code)
        });
        println!("{name:16} {}", reported.await.message());
    }
    assert_printed(&scene, &rows).await;
}

async fn create_secrets(scene: &Scene, one: &ControlPlane, other: &ControlPlane, token: &str) {
    let pair = one.client_certificate("admin", &[ADMIN_GROUP], Duration::from_secs(3600)).unwrap();
    let pair = json!({"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem});
    for (name, data) in [
        ("good", secret(one, token)),
        ("pair", with(secret(one, token), pair)),
        ("wrong-ca", secret(other, token)),
        ("no-token", json!({"ca.crt": one.ca_pem()})),
        ("bad-ca", json!({"token": token, "ca.crt": "planted-ca-that-is-none"})),
        ("bad-token", secret(one, "planted-token-of-no-user")),
    ] {
        scene.create_secret(name, &data).await;
    }
}

/// Asserts the output of kubectl.
async fn assert_printed(scene: &Scene, rows: &[Row]) {
    let words = |name: &str, ready: &str, offline: &str| {
        [name, "AGE", ready, offline].map(str::to_owned).to_vec()
    };
    let mut expected = vec![["NAME", "AGE", "READY", "OFFLINE"].map(str::to_owned).to_vec()];
    expected.extend(rows.iter().map(|(name, _, ready, offline, _)| words(name, ready, offline)));
    let get = format!("get kubefedclusters -n {FEDERATION} -o wide");
    // A busy machine makes a probe late now and then.
    poll("kubectl prints what is expected", async || {
        (table(&scene.kubectl(&get)) == expected).then_some(())
    })
    .await;
}
