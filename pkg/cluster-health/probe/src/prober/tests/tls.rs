//! Trust in certificates of servers, and the codes of refused ones.

use super::certificates::{Authority, NOW, PAST};
use super::*;

const OK: Reply = Reply::Status(200, "ok");

fn https(server: &Server, ca: &Authority) -> Inputs {
    let url = format!("https://{}", server.address);
    Inputs { ca: ca.pem(), tls: WaivedChecks::default(), ..inputs(&[url]) }
}

#[tokio::test]
async fn a_server_is_believed_by_its_certificate_and_by_nothing_less() {
    let (ours, other) = (Authority::new(), Authority::new());
    // (signed by, name, years, options, what is said of it)
    let rows: [(_, _, _, &[&str], _); 11] = [
        (&ours, "127.0.0.1", NOW, &[], None),
        (&other, "127.0.0.1", NOW, &[], Some("another authority")),
        (&ours, "api.example", NOW, &[], Some("api.example")),
        (&ours, "127.0.0.1", PAST, &[], Some("expired")),
        (&ours, "api.example", NOW, &["SubjectName"], None),
        (&ours, "api.example", PAST, &["SubjectName"], Some("expired")),
        (&ours, "127.0.0.1", PAST, &["ValidityPeriod"], None),
        (&ours, "api.example", PAST, &["ValidityPeriod"], Some("api.example")),
        (&other, "127.0.0.1", PAST, &["ValidityPeriod", "SubjectName"], Some("another authority")),
        (&ours, "api.example", PAST, &["ValidityPeriod", "SubjectName"], None),
        (&other, "api.example", PAST, &["*"], None),
    ];
    for (signer, name, years, options, refused) in rows {
        let server = Server::start(Some(signer.server(name, years, None)), |_| OK).await;
        let inputs = https(&server, &ours);
        let tls = WaivedChecks::from_names(options.iter().copied());
        let probed = Bench::new(&Inputs { tls, ..inputs }).probe().await;
        let row = format!("{name} {years:?} {options:?}: {:?}", probed.attempts);
        match refused {
            None => {
                assert_eq!(conclusion(&probed), (Verdict::Ok, None), "{row}");
                assert!(probed.attempts[0].timings.tls.is_some(), "{row}");
                let year = probed.certificate.unwrap().to.to_string();
                assert!(year.starts_with(&years.1.to_string()), "{year}");
            }
            Some(words) => {
                let failed = (Verdict::Unreachable, Some(Code::TlsVerify));
                assert_eq!(conclusion(&probed), failed, "{row}");
                assert!(probed.report.detail.unwrap().contains(words), "{row}");
                assert_eq!((probed.attempts.len(), server.heads().len()), (1, 0), "{row}");
            }
        }
    }
}

#[tokio::test]
async fn a_certificate_may_have_the_name_that_the_inputs_give_in_place_of_the_host() {
    let ours = Authority::new();
    let server = Server::start(Some(ours.server("api.example", NOW, None)), |_| OK).await;
    for (name, verdict) in [
        (None, Verdict::Unreachable),
        (Some("api.example"), Verdict::Ok),
        (Some("other.example"), Verdict::Unreachable),
    ] {
        let server_name = name.map(str::to_owned);
        let inputs = Inputs { server_name, ..https(&server, &ours) };
        assert_eq!(conclusion(&Bench::new(&inputs).probe().await).0, verdict, "{name:?}");
    }
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_ours_and_refuses_any_other() {
    let (ours, other) = (Authority::new(), Authority::new());
    let acceptor = ours.server("127.0.0.1", NOW, Some(&ours));
    let server = Server::start(Some(acceptor), |_| OK).await;
    let rows = [
        (Some(ours.client(NOW)), (Verdict::Ok, None)),
        (Some(ours.client(PAST)), (Verdict::Unreachable, Some(Code::TlsHandshake))),
        (Some(other.client(NOW)), (Verdict::Unreachable, Some(Code::TlsHandshake))),
        (None, (Verdict::Unreachable, Some(Code::TlsHandshake))),
    ];
    for (pair, expected) in rows {
        let expires = pair.is_some();
        let probed = Bench::new(&Inputs { pair, ..https(&server, &ours) }).probe().await;
        assert_eq!(conclusion(&probed), expected, "{:?}", probed.attempts);
        assert_eq!(probed.credential.is_some(), expires);
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told_as_such() {
    let server = Server::plain(|_| Reply::Last("HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    let bench = Bench::new(&https(&server, &Authority::new())).within(Duration::from_secs(2));
    let probed = bench.probe().await;
    let code = probed.report.finding.code().unwrap();
    assert!(matches!(code, Code::TlsHandshake | Code::Timeout), "{code}");
}
