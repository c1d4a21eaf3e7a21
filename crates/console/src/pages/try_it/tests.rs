use super::*;

fn param(input: ParamInput, example: &str) -> ParamForm {
    ParamForm {
        name: "p".to_owned(),
        type_name: "T".to_owned(),
        about: String::new(),
        is_required: true,
        input,
        example: example.to_owned(),
    }
}

fn method() -> MethodForm {
    MethodForm {
        name: "eth_call".to_owned(),
        summary: String::new(),
        credits: 80,
        params: vec![
            param(ParamInput::Json, r#"{"to":"0x01"}"#),
            param(ParamInput::Block, r#""latest""#),
            param(ParamInput::Boolean, ""),
        ],
    }
}

#[test]
fn fields_and_parameters_convert_into_each_other() {
    for params in
        [r#"[{"to":"0x01"},"latest",true]"#, r#"["0x1",{"blockHash":"0x02"}]"#, "[]", "[null,null,false]"]
    {
        let mut errors = FormErrors::default();
        let values = method().values_of(params).unwrap();
        assert_eq!(method().params_of(&values, &mut errors), params);
        assert!(errors.fields.is_empty());
    }
}

#[test]
fn the_example_fills_the_fields() {
    assert_eq!(method().examples(), ["{\n  \"to\": \"0x01\"\n}", "latest", ""]);
}

#[test]
fn a_text_that_is_not_json_is_named() {
    let mut errors = FormErrors::default();
    let values = ["{to".to_owned(), "{latest".to_owned(), "yes".to_owned()];
    assert_eq!(method().params_of(&values, &mut errors), "[]");
    assert_eq!(["p0", "p1", "p2"].map(|field| errors.of(field)), [Some("must be JSON"); 3]);
    assert!(method().values_of("{}").is_err());
}
