//! Try it: a form for each method, whose call the browser sends straight to the public address.
//!
//! The key that a developer pastes stays in the browser: its input has no name and belongs to no form.

use askama::Template;
use serde_json::Value;

use super::snippets::{self, KEY_PLACEHOLDER, Snippet};
use super::{FieldError, FormErrors, PageFrame, format};

/// `GET /try?method=&params=`, or without JavaScript `GET /try?method=&p0=&p1=`; [`TryPage::new`] reads both.
#[derive(Template)]
#[template(path = "try.html")]
pub(crate) struct TryPage {
    pub(crate) frame: PageFrame,
    /// The names of all methods, in the order of the method table.
    pub(crate) method_names: Vec<String>,
    pub(crate) method: MethodForm,
    /// The contents of the fields, one per parameter; the empty string is an absent parameter.
    pub(crate) values: Vec<String>,
    /// The parameters as a JSON array.
    pub(crate) params: String,
    /// Such as `http://127.0.0.1:8545/v3/`.
    pub(crate) base_url: String,
    /// A key that may be shown, such as `demo` on the demo network.
    pub(crate) example_key: Option<String>,
    pub(crate) errors: FormErrors,
}

/// The method that is shown if none is chosen: it needs no parameters and always has a result.
const FIRST_METHOD: &str = "eth_blockNumber";

impl TryPage {
    /// The page for the parameters of an address, which are decoded names and values. `None` if there are no methods.
    pub(crate) fn new(
        frame: PageFrame,
        methods: &[MethodForm],
        query: &[(String, String)],
        base_url: String,
        example_key: Option<String>,
    ) -> Option<Self> {
        let given = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let mut errors = FormErrors::default();
        let named = |name: &str| methods.iter().find(|method| method.name == name);
        if given("method").is_some_and(|name| named(name).is_none()) {
            errors.general = Some("This network has no such method. Choose one from the list.".to_owned());
        }
        let method =
            given("method").and_then(named).or_else(|| named(FIRST_METHOD)).or(methods.first())?.clone();
        let values = match given("params") {
            Some(params) => method.values_of(params).unwrap_or_else(|message| {
                errors.fields.push(FieldError { field: "params".to_owned(), message });
                method.examples()
            }),
            None if given("p0").is_some() => {
                let texts =
                    (0..method.params.len()).map(|index| given(&format!("p{index}")).unwrap_or_default());
                texts.map(str::to_owned).collect()
            }
            None => method.examples(),
        };
        let params = method.params_of(&values, &mut errors);
        let method_names = methods.iter().map(|method| method.name.clone()).collect();
        Some(Self { frame, method_names, method, values, params, base_url, example_key, errors })
    }

    /// Each parameter with the name of its input and its text.
    fn fields(&self) -> impl Iterator<Item = (String, &ParamForm, &String)> {
        let named = |(index, (param, value))| (format!("p{index}"), param, value);
        self.method.params.iter().zip(&self.values).enumerate().map(named)
    }

    fn snippets(&self) -> Vec<Snippet> {
        let key = self.example_key.as_deref().unwrap_or(KEY_PLACEHOLDER);
        let code = |make: fn(&str, &str, &str, &str) -> String| {
            make(&self.base_url, key, &self.method.name, &self.params)
        };
        vec![
            Snippet { tool: "curl", id: "try-curl", code: code(snippets::curl) },
            Snippet { tool: "ethers", id: "try-ethers", code: code(snippets::ethers) },
            Snippet { tool: "viem", id: "try-viem", code: code(snippets::viem) },
        ]
    }
}

/// A method of the method table.
#[derive(Clone, Debug)]
pub struct MethodForm {
    /// Such as `eth_getBalance`.
    pub name: String,
    /// Its purpose, in one sentence.
    pub summary: String,
    pub credits: u64,
    pub params: Vec<ParamForm>,
}

impl MethodForm {
    fn examples(&self) -> Vec<String> {
        let text = |param: &ParamForm| match serde_json::from_str(&param.example) {
            Ok(value) => param.input.text_of(&value),
            Err(_) => param.example.clone(),
        };
        self.params.iter().map(text).collect()
    }

    /// The texts of the fields for a JSON array of parameters.
    fn values_of(&self, params: &str) -> Result<Vec<String>, String> {
        let Ok(Value::Array(params)) = serde_json::from_str(params) else {
            return Err("The parameters in the address are not a JSON array; this is the example.".to_owned());
        };
        let text = |(index, param): (usize, &ParamForm)| match params.get(index) {
            None | Some(Value::Null) => String::new(),
            Some(value) => param.input.text_of(value),
        };
        Ok(self.params.iter().enumerate().map(text).collect())
    }

    /// The JSON array of parameters for the texts of the fields. Absent parameters at the end are left out.
    fn params_of(&self, values: &[String], errors: &mut FormErrors) -> String {
        let mut params: Vec<Value> = Vec::new();
        for (index, (param, text)) in self.params.iter().zip(values).enumerate() {
            params.push(param.input.json_of(text).unwrap_or_else(|message| {
                errors.fields.push(FieldError { field: format!("p{index}"), message });
                Value::Null
            }));
        }
        while params.last().is_some_and(Value::is_null) {
            params.pop();
        }
        Value::Array(params).to_string()
    }
}

/// A parameter of a method.
#[derive(Clone, Debug)]
pub struct ParamForm {
    pub name: String,
    /// The name of its type in the documents, such as `Address` or `BlockId`.
    pub type_name: String,
    /// Its meaning.
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

impl ParamInput {
    /// The name by which the script tells the inputs apart.
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Block => "block",
            Self::Boolean => "boolean",
            Self::Json => "json",
        }
    }

    fn text_of(self, value: &Value) -> String {
        match (self, value) {
            (Self::Text | Self::Block, Value::String(text)) => text.clone(),
            (Self::Json, Value::Object(_)) => serde_json::to_string_pretty(value).unwrap_or_default(),
            _ => value.to_string(),
        }
    }

    /// The value for a text; `null` for an empty one.
    fn json_of(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Value::Null);
        }
        let is_text = match self {
            Self::Text => true,
            Self::Block => !text.starts_with('{'),
            Self::Boolean | Self::Json => false,
        };
        if is_text {
            return Ok(Value::String(text.to_owned()));
        }
        serde_json::from_str(text).map_err(|_| "must be JSON".to_owned())
    }
}

#[cfg(test)]
mod tests;
