//! The methods as forms of the console, with the examples of the documents.

use console::{MethodForm, ParamForm, ParamInput};
use methods::{METHODS, Method, NetworkFamily, Param};
use serde_json::Value;

/// A form for each method of the network.
pub(super) fn method_forms(families: &[NetworkFamily]) -> Vec<MethodForm> {
    METHODS.iter().filter(|method| method.exists_on(families)).map(method_form).collect()
}

fn method_form(method: &Method) -> MethodForm {
    let example: Vec<Value> = serde_json::from_str(method.example).unwrap_or_default();
    let params = method.params().enumerate().map(|(position, param)| ParamForm {
        name: param.name().to_owned(),
        type_name: param.type_name().to_owned(),
        // Documents mark code with back quotes.
        about: param.about().replace('`', ""),
        is_required: position < method.required.len(),
        input: input(param),
        example: example.get(position).map(ToString::to_string).unwrap_or_default(),
    });
    MethodForm {
        name: method.name.to_owned(),
        summary: method.about.replace('`', ""),
        credits: method.credits,
        params: params.collect(),
    }
}

fn input(param: Param) -> ParamInput {
    match param {
        Param::Address
        | Param::Position
        | Param::BlockHash
        | Param::TransactionHash
        | Param::BlockCount
        | Param::Index => ParamInput::Text,
        Param::StateBlock | Param::BlockNumber | Param::AnyBlock | Param::NewestBlock => ParamInput::Block,
        Param::FullTransactions => ParamInput::Boolean,
        Param::BlockInteger
        | Param::RewardPercentiles
        | Param::Filter
        | Param::Call
        | Param::StateOverrides
        | Param::BlockOverrides => ParamInput::Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_required_parameter_has_an_example() {
        let forms = method_forms(&[NetworkFamily::Ethereum, NetworkFamily::Zksync]);
        assert_eq!(forms.len(), METHODS.len());
        for form in forms {
            for param in form.params.iter().filter(|param| param.is_required) {
                assert!(!param.example.is_empty(), "{} {}", form.name, param.name);
            }
        }
    }
}
