use proptest::prelude::*;

use crate::syntax::SyntaxError;
use crate::{GateSetting, Kind, NamedCertKey, Value, VersionRequest};

fn read(kind: Kind, text: &str) -> Result<Value, SyntaxError> {
    Value::read(kind, text)
}

fn strings(texts: &[&str]) -> Value {
    Value::Strings(texts.iter().map(ToString::to_string).collect())
}

#[test]
fn a_boolean_is_one_of_twelve_words() {
    for word in ["1", "t", "T", "true", "True", "TRUE"] {
        assert_eq!(read(Kind::Bool, word), Ok(Value::Bool(true)), "{word}");
    }
    for word in ["0", "f", "F", "false", "False", "FALSE"] {
        assert_eq!(read(Kind::Bool, word), Ok(Value::Bool(false)), "{word}");
    }
    for word in ["", "yes", "no", "tRUE", "on", " true", "2"] {
        assert_eq!(read(Kind::Bool, word), Err(SyntaxError::Bool), "{word:?}");
    }
}

#[test]
fn a_list_is_csv_with_double_quotes() {
    let table: [(&str, &[&str]); 9] = [
        ("", &[]),
        ("a", &["a"]),
        ("a,b", &["a", "b"]),
        ("a,,b", &["a", "", "b"]),
        ("a,", &["a", ""]),
        (" a , b ", &[" a ", " b "]),
        ("\"a,b\",c", &["a,b", "c"]),
        ("\"say \"\"hi\"\"\"", &["say \"hi\""]),
        ("a,b\n", &["a", "b"]),
    ];
    for (text, fields) in table {
        assert_eq!(read(Kind::Strings, text), Ok(strings(fields)), "{text:?}");
    }
}

#[test]
fn a_misquoted_list_is_refused() {
    assert_eq!(read(Kind::Strings, "a\"b"), Err(SyntaxError::BareQuote));
    assert_eq!(read(Kind::Strings, "\"a"), Err(SyntaxError::UnclosedQuote));
    assert_eq!(read(Kind::Strings, "\"a\"b"), Err(SyntaxError::UnclosedQuote));
    assert_eq!(read(Kind::Strings, "a\nb"), Err(SyntaxError::LineBreak));
}

#[test]
fn a_cidr_list_is_one_text() {
    let text = "10.0.0.0/8, fd00::/64";
    assert_eq!(read(Kind::CidrList, text), Ok(Value::Text(text.into())));
}

#[test]
fn a_whole_number_may_have_sign_base_and_separators() {
    let table = [
        ("0", 0),
        ("-1", -1),
        ("+7", 7),
        ("0x10", 16),
        ("0X1f", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("1_000", 1000),
        ("0x_ff", 255),
        ("2147483647", 2_147_483_647),
        ("-2147483648", -2_147_483_648),
    ];
    for (text, number) in table {
        assert_eq!(read(Kind::Int32, text), Ok(Value::Int(number)), "{text}");
    }
    for text in ["", "-", "x", "1.5", "1e3", " 1", "1__0", "_1", "1_", "0x", "08", "+-1", "0b2"] {
        assert_eq!(read(Kind::Int32, text), Err(SyntaxError::Integer), "{text:?}");
    }
}

#[test]
fn a_number_must_fit_its_type() {
    assert_eq!(read(Kind::Int32, "2147483648"), Err(SyntaxError::OutOfRange("int32")));
    assert_eq!(read(Kind::Int, "2147483648"), Ok(Value::Int(2_147_483_648)));
    assert_eq!(read(Kind::Int, "9223372036854775808"), Err(SyntaxError::OutOfRange("int")));
    let endless = "9".repeat(100);
    assert_eq!(read(Kind::Int, &endless), Err(SyntaxError::OutOfRange("int")));
    assert_eq!(read(Kind::Float32, "1e39"), Err(SyntaxError::OutOfRange("float32")));
    assert_eq!(read(Kind::Float, "1e39"), Ok(Value::Float(1e39)));
    assert_eq!(read(Kind::Float, "1e999"), Err(SyntaxError::OutOfRange("float")));
}

#[test]
fn a_float_prints_as_it_was_written() {
    for (text, printed) in [("0.1", "0.1"), ("500", "500"), ("-1", "-1"), ("2e1", "20")] {
        assert_eq!(read(Kind::Float32, text).unwrap().to_string(), printed);
    }
    assert_eq!(read(Kind::Float32, "1,5"), Err(SyntaxError::Float));
}

#[test]
fn a_quantity_is_bytes_rounded_up() {
    let table = [
        ("0", 0),
        ("4096", 4096),
        ("64Ki", 65_536),
        ("1.5Ki", 1536),
        ("1k", 1000),
        ("2M", 2_000_000),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 1_000_000_000_000_000_000),
        ("1500m", 2),
        ("1n", 1),
        (".5", 1),
        ("-1Ki", -1024),
        ("1e-99", 1),
        ("0.1e-2147483648", 1),
        ("16Ei", i64::MAX),
        ("1e2147483647", i64::MAX),
    ];
    for (text, bytes) in table {
        assert_eq!(read(Kind::Quantity, text), Ok(Value::Int(bytes)), "{text}");
    }
    for text in ["", "-", ".", "Ki", "1ki", "1K", "1.2.3", "1 Ki", "1e", "0x1"] {
        assert_eq!(read(Kind::Quantity, text), Err(SyntaxError::Quantity), "{text:?}");
    }
    let largest = format!("{}m", i128::MAX);
    assert_eq!(read(Kind::Quantity, &largest), Ok(Value::Int(i64::MAX)));
}

#[test]
fn a_verbosity_is_plain_digits() {
    assert_eq!(read(Kind::Verbosity, "10"), Ok(Value::Int(10)));
    for text in ["", "-1", "+1", "0x2", "x", "1.5"] {
        assert_eq!(read(Kind::Verbosity, text), Err(SyntaxError::Integer), "{text:?}");
    }
}

#[test]
fn number_lists_are_split_at_commas_without_quoting() {
    assert_eq!(read(Kind::Int32Slice, "1,-2,0x3"), Ok(Value::Ints(vec![1, -2, 3])));
    assert_eq!(read(Kind::Int32Slice, ""), Ok(Value::Ints(vec![])));
    assert_eq!(read(Kind::Int32Slice, "1,,2"), Err(SyntaxError::Integer));
}

#[test]
fn a_map_is_pairs_and_a_single_pair_may_hold_commas() {
    let map = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string()));
        Ok(Value::Map(pairs.collect()))
    };
    assert_eq!(read(Kind::StringMap, "a=1,b=2"), map(&[("a", "1"), ("b", "2")]));
    assert_eq!(read(Kind::StringMap, "metric,label=v1,v2"), map(&[("metric,label", "v1,v2")]));
    assert_eq!(read(Kind::StringMap, "\"a=1,2\",b=3"), map(&[("a", "1,2"), ("b", "3")]));
    assert_eq!(read(Kind::StringMap, "a=b=c"), map(&[("a", "b=c")]));
    assert_eq!(read(Kind::StringMap, "a=1,a=2"), map(&[("a", "2")]));
    assert_eq!(read(Kind::StringMap, ""), map(&[]));
    assert_eq!(read(Kind::StringMap, "a"), Err(SyntaxError::KeyValue("a".into())));
    assert_eq!(read(Kind::StringMap, "a=1,b=2,c"), Err(SyntaxError::KeyValue("c".into())));
}

#[test]
fn an_address_is_v4_or_v6_and_blank_means_all() {
    for (text, shown) in [
        ("127.0.0.1", "127.0.0.1"),
        (" ::1 ", "::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("", "0.0.0.0"),
        ("  ", "0.0.0.0"),
    ] {
        assert_eq!(read(Kind::Ip, text).unwrap().to_string(), shown, "{text:?}");
    }
    for text in ["1.2", "localhost", "1.2.3.4:80", "[::1]", "fe80::1%eth0", "01.2.3.4", "1.2.3.4/8"]
    {
        assert_eq!(read(Kind::Ip, text), Err(SyntaxError::Ip), "{text:?}");
    }
}

#[test]
fn a_feature_gate_belongs_to_kube_unless_it_names_a_component() {
    let gate = |component: &str, name: &str, enabled| GateSetting {
        component: component.into(),
        name: name.into(),
        enabled,
    };
    assert_eq!(
        read(Kind::FeatureGates, "A=true, other:B=F,,kube:A=false"),
        Ok(Value::Gates(vec![gate("kube", "A", false), gate("other", "B", false)]))
    );
    for text in ["A", "A=", "A=yes", "=true", ":A=true", "kube:=true", "a:b:C=true"] {
        assert_eq!(read(Kind::FeatureGates, text), Err(SyntaxError::Gate(text.into())), "{text}");
    }
}

#[test]
fn a_certificate_pair_may_name_its_domains() {
    let pair = |names: &[&str]| {
        Ok(Value::CertKeys(vec![NamedCertKey {
            cert: "a.crt".into(),
            key: "a.key".into(),
            names: names.iter().map(ToString::to_string).collect(),
        }]))
    };
    assert_eq!(read(Kind::NamedCertKeys, "a.crt,a.key"), pair(&[]));
    assert_eq!(read(Kind::NamedCertKeys, "a.crt, a.key: *.x.io, y"), pair(&["*.x.io", "y"]));
    assert_eq!(read(Kind::NamedCertKeys, "a.crt,a.key:"), Err(SyntaxError::NoNames));
    for text in ["a", "a,b,c", ",b", "a,"] {
        assert_eq!(read(Kind::NamedCertKeys, text), Err(SyntaxError::CertKey), "{text}");
    }
}

#[test]
fn component_versions_are_major_and_minor() {
    let text = "kube=1.36,1.31";
    assert_eq!(read(Kind::ComponentVersions, text), Ok(strings(&["kube=1.36", "1.31"])));
    for text in ["1", "1.2.3", "kube=", "v1.2", "other=1.2", "1.+2", "1."] {
        let error = SyntaxError::ComponentVersion(text.into());
        assert_eq!(read(Kind::ComponentVersions, text), Err(error), "{text}");
    }
}

#[test]
fn vmodule_is_patterns_with_levels() {
    assert!(read(Kind::VModule, "").is_ok());
    assert!(read(Kind::VModule, "range*=4,pool=2").is_ok());
    for text in ["a", "a=", "a=x", "=2", "a=-1"] {
        assert_eq!(read(Kind::VModule, text), Err(SyntaxError::VModule(text.into())), "{text}");
    }
}

#[test]
fn version_prints_is_raw_overrides_or_is_off() {
    let request = |text| match read(Kind::Version, text) {
        Ok(Value::Version(request)) => Some(request),
        _ => None,
    };
    assert_eq!(request("true"), Some(VersionRequest::Print));
    assert_eq!(request("false"), Some(VersionRequest::No));
    assert_eq!(request("raw"), Some(VersionRequest::Raw));
    assert_eq!(request("v1.2.3-x"), Some(VersionRequest::Override("v1.2.3-x".into())));
    for text in ["maybe", "v", "vx", "1.2.3", "Raw"] {
        assert_eq!(request(text), None, "{text}");
    }
}

const KINDS: [Kind; 19] = [
    Kind::Bool,
    Kind::Int,
    Kind::Int32,
    Kind::Float,
    Kind::Float32,
    Kind::String,
    Kind::CidrList,
    Kind::Duration,
    Kind::Ip,
    Kind::Strings,
    Kind::Int32Slice,
    Kind::StringMap,
    Kind::FeatureGates,
    Kind::NamedCertKeys,
    Kind::ComponentVersions,
    Kind::Quantity,
    Kind::Verbosity,
    Kind::VModule,
    Kind::Version,
];

proptest! {
    #[test]
    fn no_text_makes_any_reader_panic(text in "\\PC*") {
        for kind in KINDS {
            let _read = read(kind, &text).map(|value| value.to_string());
        }
    }

    #[test]
    fn no_text_that_looks_like_a_value_makes_any_reader_panic(
        text in "[-+]?[0-9_.xobeEinmuskKhµ,:=\"-]{0,40}"
    ) {
        for kind in KINDS {
            let _read = read(kind, &text).map(|value| value.to_string());
        }
    }

    #[test]
    fn a_printed_list_reads_back(fields in proptest::collection::vec("[ab,\"\n ]{0,6}", 0..5)) {
        prop_assert_eq!(crate::syntax::composite::csv(&crate::syntax::composite::write_csv(&fields)).unwrap(), fields);
    }

    #[test]
    fn a_printed_number_reads_back(number in any::<i64>()) {
        prop_assert_eq!(read(Kind::Int, &number.to_string()), Ok(Value::Int(number)));
        prop_assert_eq!(read(Kind::Int, &format!("{number:#x}")).is_ok(), number >= 0);
    }
}
