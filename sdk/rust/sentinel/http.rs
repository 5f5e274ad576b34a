//! Requests to hosts that the plugin's grant names, clause A6.13.

use super::{decode, kernel, Context, Result, Value};

/// An outgoing request. `{{secret.NAME}}` in the URL's path or query or in the
/// value of a header is replaced by the host with a secret that the plugin asked
/// for; the guest never sees it. In the body it stays, but for `body_secrets`.
#[derive(Default)]
pub struct Request {
    /// None is GET.
    pub method: Option<String>,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    /// Has secrets in the body replaced too, as JSON or a form if the header
    /// content-type says so. The body must then hold no text of others: one with
    /// `{{secret.NAME}}` in it would be sent the secret.
    pub body_secrets: bool,
    /// None is the host's default.
    pub timeout_ms: Option<i64>,
}

impl Request {
    pub fn get(url: &str) -> Request {
        Request { url: url.to_string(), ..Request::default() }
    }

    /// A POST of JSON.
    pub fn post(url: &str, body: &Value) -> Request {
        Request { method: Some("POST".to_string()), body: Some(body.to_json()), ..Request::get(url) }.header("content-type", "application/json")
    }

    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_string(), value.to_string()));
        self
    }
}

/// The answer, whatever its status.
pub struct Response {
    pub status: i64,
    /// An object of texts, names in lower case.
    pub headers: Value,
    /// As base64, if `base64` says so: bytes that are no text.
    pub body: String,
    pub base64: bool,
    /// The body was longer than an answer may be.
    pub truncated: bool,
}

impl Response {
    /// The body's bytes; None if the host sent something else than it said.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        if self.base64 {
            return decode(&self.body);
        }
        Some(self.body.clone().into_bytes())
    }
}

impl Context<'_> {
    /// Makes a request. A status of 400 or more is a response, not an error.
    pub fn http(&mut self, request: &Request) -> Result<Response> {
        let headers = request.headers.iter().fold(Value::object(), |all, (name, value)| all.with(name, value));
        let wanted = Value::object()
            .with_some("method", request.method.as_ref())
            .with("url", &request.url)
            .with_some("headers", Some(headers).filter(|h| !h.fields().is_empty()))
            .with_some("body", request.body.as_ref())
            .with_some("bodySecrets", Some(true).filter(|_| request.body_secrets))
            .with_some("timeoutMs", request.timeout_ms);
        let answer = self.call("sentinel_http", kernel::sentinel_http, wanted)?;
        Ok(Response {
            status: answer.get("status").as_i64().unwrap_or(0),
            headers: answer.get("headers").clone(),
            body: answer.get("body").text_or_empty(),
            base64: answer.get("encoding").as_str() == Some("base64"),
            truncated: answer.get("truncated").as_bool().unwrap_or(false),
        })
    }
}
