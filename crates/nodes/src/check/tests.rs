//! Answers that are true, and what becomes of them when a digit is changed.

pub(crate) mod corpora; // recorded chains and exchanges
mod logs; // log queries
mod mutate; // one digit changed
mod quirks; // what nodes do differently, and what no check must fall for
pub(crate) mod sample; // a block of our own
#[path = "../../../testkit/src/skip.rs"]
#[allow(unreachable_pub, reason = "the file belongs to another crate, where others use it")]
mod skip; // tests that leave themselves out
mod walk; // one walk over bytes that nobody has looked at

use super::*;

/// The facts of an answer that must be sound.
fn sound(expect: &Expect, result: &str) -> Facts {
    match check(expect, result.as_bytes(), Family::Ethereum) {
        Verdict::Sound(facts) => facts,
        other => panic!("{other:?} for {expect:?}: {result}"),
    }
}

fn lie(expect: &Expect, result: &str) -> Option<Lie> {
    match check(expect, result.as_bytes(), Family::Ethereum) {
        Verdict::Wrong(lie) => Some(lie),
        // It is refused as well, without blame.
        Verdict::Contradicted => Some(Lie::OtherTransaction),
        _ => None,
    }
}

#[test]
fn every_lie_has_a_name_and_a_text_of_its_own() {
    let names: std::collections::HashSet<_> = Lie::ALL.iter().map(|lie| lie.name()).collect();
    let texts: std::collections::HashSet<_> = Lie::ALL.iter().map(Lie::to_string).collect();
    assert_eq!((names.len(), texts.len()), (Lie::ALL.len(), Lie::ALL.len()));
}
