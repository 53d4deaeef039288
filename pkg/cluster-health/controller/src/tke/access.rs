//! Where the API server of a Cluster is asked. Pure.

use health::Code;
use objects::Object;
use probe::{Address, Problem};

use crate::api::tke::{AddressType, Cluster, ClusterAddress};

/// The ways that are for us, the best first.
const PREFERENCE: [AddressType; 3] =
    [AddressType::Internal, AddressType::Advertise, AddressType::Real];

/// All addresses of the best type that there is, in the order in which they are tried
/// (`rule:addresses-of-one-type`).
///
/// # Errors
/// No address exists, or one cannot be used.
pub(crate) fn addresses(cluster: &Object<Cluster>) -> Result<Vec<Address>, Problem> {
    let known = known(cluster);
    let of_type = |wanted: &AddressType| known.iter().any(|address| address.kind == *wanted);
    let Some(best) = PREFERENCE.into_iter().find(of_type) else {
        let text = "the cluster has no address of type Internal, Advertise or Real";
        return Err(Problem::new(Code::BadEndpoint, text));
    };
    known.iter().filter(|address| address.kind == best).map(parse).collect()
}

/// `rule:addresses-of-the-spec-win`
fn known(cluster: &Object<Cluster>) -> &[ClusterAddress] {
    match &cluster.body.spec.addresses[..] {
        [] => &cluster.status.addresses,
        wanted => wanted,
    }
}

fn parse(address: &ClusterAddress) -> Result<Address, Problem> {
    // Port 0 is refused with the others that are none.
    let port = u16::try_from(address.port).unwrap_or_default();
    Address::of_parts(&address.host, port, &address.path)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tke::testing::cluster;

    fn at(kind: &str, host: &str) -> Value {
        json!({"type": kind, "host": host, "port": 6443})
    }

    fn urls(cluster: &Object<Cluster>) -> Vec<String> {
        addresses(cluster).unwrap().iter().map(ToString::to_string).collect()
    }

    fn of_status(addresses: Value) -> Vec<String> {
        urls(&cluster(|object| object["status"]["addresses"] = addresses))
    }

    /// rule:addresses-of-one-type
    #[test]
    fn all_addresses_of_the_best_type_are_tried_in_their_order_and_no_others() {
        let all = [at("Public", "p"), at("Real", "r1"), at("Real", "r2"), at("Support", "s")];
        assert_eq!(of_status(json!(all)), ["https://r1:6443", "https://r2:6443"]);
        let more = [&all[..], &[at("Advertise", "a")]].concat();
        assert_eq!(of_status(json!(more)), ["https://a:6443"]);
        let most = [&more[..], &[at("Internal", "i2"), at("Internal", "i1")]].concat();
        assert_eq!(of_status(json!(most)), ["https://i2:6443", "https://i1:6443"]);
        for unfit in [json!([at("Public", "p"), at("Support", "s"), at("Tunnel", "t")]), json!([])]
        {
            let cluster = cluster(|object| object["status"]["addresses"] = unfit);
            assert_eq!(addresses(&cluster).unwrap_err().code(), Code::BadEndpoint);
        }
    }

    #[test]
    fn hosts_are_written_as_urls_want_them() {
        for (host, path, url) in [
            ("10.0.0.1", "", "https://10.0.0.1:6443"),
            ("fd00::1", "", "https://[fd00::1]:6443"),
            ("[fd00::1]", "", "https://[fd00::1]:6443"),
            ("api.example.org", "/clusters/one/", "https://api.example.org:6443/clusters/one"),
        ] {
            let mut address = at("Internal", host);
            address["path"] = json!(path);
            assert_eq!(of_status(json!([address])), [url]);
        }
    }

    /// rule:addresses-of-the-spec-win
    #[test]
    fn the_addresses_of_the_spec_count_whatever_the_status_says() {
        let of_both = |spec: Value, status: Value| {
            urls(&cluster(|object| {
                object["spec"]["addresses"] = spec;
                object["status"]["addresses"] = status;
            }))
        };
        let (spec, status) = (json!([at("Real", "spec")]), json!([at("Internal", "status")]));
        assert_eq!(of_both(spec.clone(), json!([])), ["https://spec:6443"]);
        assert_eq!(of_both(spec, status.clone()), ["https://spec:6443"]);
        assert_eq!(of_both(json!([]), status), ["https://status:6443"]);
    }
}
