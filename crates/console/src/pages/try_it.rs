//! Try it: a form for each method, whose call the browser sends straight to the public address.
//!
//! The key that a developer pastes stays in the browser: its input has no name and belongs to no form.

use askama::Template;

use super::{FormErrors, Frame};

/// `GET /try?method=&params=`, or without JavaScript `GET /try?method=&p0=&p1=`; [`TryPage::new`] reads both.
#[derive(Template)]
#[template(path = "try.html")]
pub(crate) struct TryPage {
    pub(crate) frame: Frame,
    /// The names of all methods, in the order of the method table.
    pub(crate) method_names: Vec<String>,
    /// The chosen method.
    pub(crate) method: MethodForm,
    /// What the fields contain, one text per parameter; the empty string is an absent parameter.
    pub(crate) values: Vec<String>,
    /// The parameters as a JSON array.
    pub(crate) params: String,
    /// Such as `http://127.0.0.1:8545/v3/`.
    pub(crate) base_url: String,
    /// A key that may be shown, such as `demo` on the demo network.
    pub(crate) example_key: Option<String>,
    pub(crate) errors: FormErrors,
}

/// A method of the method table.
#[derive(Clone, Debug)]
pub struct MethodForm {
    /// Such as `eth_getBalance`.
    pub name: String,
    /// What it does, in one sentence.
    pub summary: String,
    pub credits: u64,
    pub params: Vec<ParamForm>,
}

/// A parameter of a method.
#[derive(Clone, Debug)]
pub struct ParamForm {
    pub name: String,
    /// The name of its type in the documents, such as `Address` or `BlockId`.
    pub type_name: String,
    /// What it means.
    pub about: String,
    pub is_required: bool,
    /// How its field is read.
    pub input: ParamInput,
    /// A working example of the demo chain as JSON, such as `"latest"` (with quotes) or `{"to": "0x…"}`; the empty string
    /// if it is absent in the example.
    pub example: String,
}

/// How the text of a field becomes JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamInput {
    /// A string: hashes, addresses, quantities, data.
    Text,
    /// A number of a block, a tag such as `latest`, or an object of EIP-1898.
    Block,
    /// `true` or `false`.
    Boolean,
    /// Any JSON: objects and arrays.
    Json,
}
