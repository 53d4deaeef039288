use std::time::Duration;

use super::*;
use crate::certificates::new_authority;

const SERVER: &str = "https://h.example.org:6443";
const YEAR: Duration = Duration::from_secs(365 * 86400);

struct Scene {
    now: SystemTime,
    public: String,
    authority: Authority,
}

fn scene() -> Scene {
    let now = SystemTime::now();
    let made = new_authority(now).unwrap();
    let authority = Authority::read(&made.public, &made.private, now).unwrap();
    Scene { now, public: made.public, authority }
}

fn rendered(scene: &Scene, dialect: Dialect, server: &str) -> Zeroizing<String> {
    let administrator = scene.authority.administrator(scene.now).unwrap();
    let contents = Contents {
        cluster: "one.two",
        dialect,
        server,
        authority: &scene.public,
        administrator: &administrator,
    };
    contents.render()
}

#[test]
fn the_user_is_named_as_the_dialect_names_it() {
    let scene = scene();
    for (dialect, context) in [
        (Dialect::V1Alpha2, "kubernetes-admin@one.two"),
        (Dialect::V1Beta2, "one.two-admin@one.two"),
    ] {
        let text = rendered(&scene, dialect, SERVER);
        let config = Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(config.current_context.as_deref(), Some(context));
        assert_eq!(File::read(&text).unwrap().server, SERVER);
    }
}

/// rule:only-our-kubeconfig-is-renewed
#[test]
fn a_kubeconfig_is_renewed_at_half_of_its_life_and_for_another_endpoint_and_left_when_it_is_foreign()
 {
    let scene = scene();
    let text = rendered(&scene, Dialect::V1Beta2, SERVER);
    let judged = |text: &str, server: &str, after: Duration| {
        judge(text, server, &scene.authority, scene.now + after)
    };
    let before = Duration::from_secs(365 * 43200 - 60);
    assert!(matches!(judged(&text, SERVER, before), Verdict::Keep(_)));
    assert_eq!(judged(&text, SERVER, YEAR / 2), Verdict::Rewrite("its certificate expires soon"));
    let moved = judged(&text, "https://other:6443", Duration::ZERO);
    assert_eq!(moved, Verdict::Rewrite("the endpoint of the cluster has changed"));
    let other = self::scene();
    let foreign = rendered(&other, Dialect::V1Beta2, SERVER);
    assert!(matches!(judged(&foreign, SERVER, YEAR), Verdict::Leave(_)));
    assert_eq!(judged("users: 7", SERVER, YEAR), Verdict::Leave("it cannot be parsed"));
    let token = text.replace("client-certificate-data", "token");
    assert!(matches!(judged(&token, SERVER, YEAR), Verdict::Leave(_)));
}
