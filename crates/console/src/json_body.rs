//! Reads the JSON of a request.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::StatusCode;
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;

/// The body of a request, which must be one JSON object. An absent body is an empty object.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|_| invalid("the body could not be read".to_owned()))?;
        let json = if bytes.is_empty() { b"{}" } else { bytes.as_ref() };
        serde_json::from_slice(json).map(Self).map_err(|error| invalid(message(&error)))
    }
}

fn invalid(message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_body", message)
}

/// The reason without values of the body, which can contain a secret.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let names_fields_only = ["unknown field", "missing field", "duplicate field", "wrong type of field"];
    if names_fields_only.iter().any(|start| text.starts_with(start)) {
        return text;
    }
    let problem = if error.is_data() { "a value of the wrong type" } else { "not a JSON object" };
    format!("{problem} at line {} column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[serde(rename = "secret")]
        _secret: u8,
    }

    #[test]
    fn messages_name_fields_and_never_values() {
        let message = |json: &str| message(&serde_json::from_str::<Body>(json).unwrap_err());
        assert!(message("{}").starts_with("missing field `secret`"));
        assert!(message(r#"{"secrte":1}"#).starts_with("unknown field `secrte`, expected `secret`"));
        assert_eq!(message(r#"{"secret":"hunter2"}"#), "a value of the wrong type at line 1 column 19");
        assert_eq!(message(r#"{"secret":hunter2}"#), "not a JSON object at line 1 column 11");
        assert_eq!(message("hunter2"), "not a JSON object at line 1 column 1");
    }
}
