use super::*;

/// Flags that kubeadm writes for a cluster with a pod subnet.
const ARGS: [&str; 17] = [
    "--allocate-node-cidrs=true",
    "--authentication-kubeconfig=/etc/kubernetes/controller-manager.conf",
    "--authorization-kubeconfig=/etc/kubernetes/controller-manager.conf",
    "--bind-address=127.0.0.1",
    "--client-ca-file=/etc/kubernetes/pki/ca.crt",
    "--cluster-cidr=10.244.0.0/16",
    "--cluster-name=kubernetes",
    "--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt",
    "--cluster-signing-key-file=/etc/kubernetes/pki/ca.key",
    "--controllers=*,bootstrapsigner,tokencleaner",
    "--kubeconfig=/etc/kubernetes/controller-manager.conf",
    "--leader-elect=true",
    "--requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt",
    "--root-ca-file=/etc/kubernetes/pki/ca.crt",
    "--service-account-private-key-file=/etc/kubernetes/pki/sa.key",
    "--service-cluster-ip-range=10.96.0.0/12",
    "--use-service-account-credentials=true",
];

#[test]
fn the_manifest_of_kubeadm_starts() {
    let values = values(&ARGS);
    assert_eq!(validate(&values), []);
    assert_eq!(shown(&values, "allocate-node-cidrs"), "true");
    assert!(values.get(&generic::USE_SERVICE_ACCOUNT_CREDENTIALS));
    assert_eq!(shown(&values, "cluster-cidr"), "10.244.0.0/16");
    assert_eq!(values.get(&table::serving::BIND_ADDRESS).to_string(), "127.0.0.1");
    let known = settings::known(ALL).unwrap();
    let selection = known.select(&values.get(&generic::CONTROLLERS)).unwrap();
    assert!(selection.is_enabled("node-ipam-controller"));
}

#[test]
fn the_manifest_of_kubeadm_makes_exactly_one_warning() {
    let expected = "flags accepted without effect: --cluster-name, --cluster-signing-cert-file, \
                    --cluster-signing-key-file, --root-ca-file, \
                    --service-account-private-key-file; controllers not hosted by this program: \
                    bootstrapsigner, tokencleaner";
    assert_eq!(warnings(&values(&ARGS)), [expected]);
}
