//! Numbers in error texts.

/// Texts before the widest range.
const BEFORE_LIMIT: [&str; 21] = [
    "exceeds limit of",
    "exceeds the limit of",
    "is bigger than range limit",
    "maximum is set to",
    "max block range =",
    "maximum block range",
    "max block range",
    "max range",
    "blocks distance",
    "limited to a",
    "limited to 0 -",
    "limited to",
    "up to a",
    "maximum allowed is",
    "max is",
    "range limit",
    "maximum of",
    "greater than",
    "narrow your filter",
    "maximum",
    "limit",
];

/// Characters that may be between that text and the number.
const FILLING: [char; 6] = [' ', ':', '=', '(', '[', '"'];

/// No service allows more. A greater number is not a count of blocks.
const LIMIT_MAX: u64 = 100_000_000;

/// How many blocks a query may span. The text is in lower case.
pub(super) fn limit(text: &str) -> Option<u64> {
    let after = |words: &&str| {
        let at = text.find(*words)? + words.len();
        number(text[at..].trim_start_matches(FILLING))
    };
    BEFORE_LIMIT.iter().find_map(after).filter(|most| (1..=LIMIT_MAX).contains(most))
}

/// The number that a text begins with: `10000`, `10,000`, `10k`.
fn number(text: &str) -> Option<u64> {
    let digit_or_comma = |symbol: char| symbol.is_ascii_digit() || symbol == ',';
    let end = text.find(|symbol| !digit_or_comma(symbol)).unwrap_or(text.len());
    let digits: String = text[..end].chars().filter(char::is_ascii_digit).collect();
    let number: u64 = digits.parse().ok()?;
    let thousands = text[end..].starts_with('k');
    number.checked_mul(if thousands { 1_000 } else { 1 })
}

/// Texts before the most gas that a node grants.
const BEFORE_GAS_CAP: [&str; 3] = ["the cap (", "(cap: ", "exceeded cap of "];

/// The most gas that a node grants to a call: `greater than the cap (16777216)`. The text is in lower case.
pub(super) fn gas_cap(text: &str) -> Option<u64> {
    BEFORE_GAS_CAP.iter().find_map(|words| number(text.split_once(words)?.1)).filter(|most| *most > 0)
}

/// The number in the last pair of parentheses: `gas required exceeds allowance (30000000)`.
pub(super) fn in_parentheses(text: &str) -> Option<u64> {
    let (_, behind) = text.rsplit_once('(')?;
    behind.split_once(')')?.0.trim().parse().ok()
}
