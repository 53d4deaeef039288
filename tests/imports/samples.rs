//! Small crates with and without a circle of imports.

use std::fs;

use tests::temp_dir::TempDir;

use crate::krate::Krate;

/// The circles in a crate of these files.
fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let dir = TempDir::new("imports").unwrap();
    for (path, text) in files {
        fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
        fs::write(dir.join(path), text).unwrap();
    }
    Krate::read(&dir.join("lib.rs")).circles()
}

fn passes(files: &[(&str, &str)]) {
    assert_eq!(circles(files), [""; 0]);
}

fn one_circle(files: &[(&str, &str)], edges: &[&str]) {
    let found = circles(files);
    let [circle] = &*found else { panic!("{} circles: {found:#?}", found.len()) };
    assert_eq!(circle.lines().skip(1).map(str::trim).collect::<Vec<_>>(), edges);
}

#[test]
fn two_files_that_use_each_others_items_are_a_circle() {
    one_circle(
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::{C as D, self}; pub struct E;"),
            ("b.rs", "pub struct C(super::a::E);"),
        ],
        &["a.rs takes crate::b::C from b.rs", "b.rs takes super::a::E from a.rs"],
    );
}

#[test]
fn a_circle_over_three_files_is_found_in_macros_and_inline_modules_too() {
    one_circle(
        &[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "fn f() { print!(\"{}\", crate::b::X) }"),
            (
                "b.rs",
                "pub mod x { pub fn g() { super::super::c::Y::new(); } } pub const X: u8 = 1;",
            ),
            ("c.rs", "use super::a; pub struct Y; fn h() { a::f() }"),
        ],
        &[
            "a.rs takes crate::b::X from b.rs",
            "b.rs takes super::super::c::Y::new from c.rs",
            "c.rs takes a::f from a.rs",
        ],
    );
}

#[test]
fn a_parent_and_its_child_that_use_each_others_items_are_a_circle() {
    one_circle(
        &[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod b; pub struct P; fn f() { b::g(); }"),
            ("a/b.rs", "use super::P; pub fn g() {}"),
        ],
        &["a.rs takes b::g from a/b.rs", "a/b.rs takes super::P from a.rs"],
    );
}

#[test]
fn an_impl_in_a_child_for_its_parents_type_is_no_circle() {
    passes(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod b; pub struct P; fn f(p: P) { p.g(); }"),
        ("a/b.rs", "use super::P; impl P { pub fn g(self) {} }"),
    ]);
}

#[test]
fn a_re_export_is_transparent() {
    passes(&[
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "use crate::A; pub struct B(A);"),
    ]);
    one_circle(
        &[
            ("lib.rs", "mod a; mod b; pub use a::A; pub(crate) use b::*;"),
            ("a.rs", "pub struct A; fn f() { crate::b::g() }"),
            ("b.rs", "use crate::A; pub fn g() {}"),
        ],
        &["a.rs takes crate::b::g from b.rs", "b.rs takes crate::A from a.rs"],
    );
}

#[test]
fn tests_and_comments_do_not_count() {
    passes(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "//! crate::b::B\n#[cfg(test)] mod tests { use crate::b::B; } pub struct A;"),
        ("b.rs", "#[cfg(test)] mod fake; #[cfg(test)] use crate::b::x; pub struct B(super::a::A);"),
    ]);
}
