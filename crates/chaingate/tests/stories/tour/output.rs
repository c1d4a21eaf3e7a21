//! How the tour shows JSON: in the order in which it came, indented where it is long, and shortened by two rules.

/// Longer strings are shortened. A selector with four words is not, so that reasons of reverts are shown whole.
const STRING_MAX: usize = 2 + 2 * (4 + 4 * 32);
/// The characters that a shortened string keeps at its start and at its end.
const STRING_ENDS: (usize, usize) = (18, 8);
/// Of a longer list only the first and the last element are shown.
const LIST_MAX: usize = 3;
/// Longer values are spread over several lines.
const LINE_MAX: usize = 100;

/// The page's form of a body, with an end of line.
pub(crate) fn show(body: &str) -> String {
    let mut reader = Reader { rest: body };
    let tree = reader.value();
    assert!(reader.rest.trim().is_empty(), "more than one value: {body}");
    format!("{}\n", tree.text(0))
}

/// A value of which only the structure is known; names keep their order.
enum Tree {
    Leaf(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    fn text(&self, indent: usize) -> String {
        let (open, close, parts): (_, _, Vec<String>) = match self {
            Self::Leaf(text) => return text.clone(),
            Self::List(elements) => ("[", "]", list(elements, indent)),
            Self::Object(members) => {
                let member = |(name, value): &(String, Self)| format!("{name}:{}", value.text(indent + 2));
                ("{", "}", members.iter().map(member).collect())
            }
        };
        let line = format!("{open}{}{close}", parts.join(","));
        if indent + line.chars().count() <= LINE_MAX && !line.contains('\n') {
            return line;
        }
        let pad = " ".repeat(indent);
        format!("{open}\n{pad}  {}\n{pad}{close}", parts.join(&format!(",\n{pad}  ")))
    }
}

fn list(elements: &[Tree], indent: usize) -> Vec<String> {
    let text = |element: &Tree| element.text(indent + 2);
    match elements {
        [first, between @ .., last] if elements.len() > LIST_MAX => {
            vec![text(first), format!("… {} more …", between.len()), text(last)]
        }
        _ => elements.iter().map(text).collect(),
    }
}

/// Reads what `testkit` has already found to be JSON.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn value(&mut self) -> Tree {
        match self.rest.chars().next().expect("a value comes") {
            '{' => Tree::Object(self.items('}', |reader| {
                let name = reader.string();
                reader.take(":");
                (name, reader.value())
            })),
            '[' => Tree::List(self.items(']', Self::value)),
            '"' => Tree::Leaf(shorten(self.string())),
            _ => {
                let end = self.rest.find([',', '}', ']']).unwrap_or(self.rest.len());
                Tree::Leaf(self.cut(end))
            }
        }
    }

    fn items<T>(&mut self, close: char, read: impl Fn(&mut Self) -> T) -> Vec<T> {
        let mut items = Vec::new();
        self.cut(1);
        while !self.rest.starts_with(close) {
            if !items.is_empty() {
                self.take(",");
            }
            items.push(read(self));
        }
        self.cut(1);
        items
    }

    /// A string as it came, with its quotes and escapes.
    fn string(&mut self) -> String {
        let mut escaped = false;
        let end = self.rest[1..].find(|letter: char| {
            let ends = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        });
        self.cut(end.expect("a string ends") + 2)
    }

    fn take(&mut self, expected: &str) {
        assert_eq!(self.cut(expected.len()), expected);
    }

    fn cut(&mut self, len: usize) -> String {
        let (cut, rest) = self.rest.split_at(len);
        self.rest = rest;
        cut.to_owned()
    }
}

fn shorten(quoted: String) -> String {
    let text = quoted.trim_matches('"');
    if text.len() <= STRING_MAX || !text.starts_with("0x") {
        return quoted;
    }
    let (head, tail) = STRING_ENDS;
    format!("\"{}…{}\"", &text[..head], &text[text.len() - tail..])
}
