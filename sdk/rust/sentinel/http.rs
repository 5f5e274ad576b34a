//! Requests to hosts that are granted to the plugin, clause A6.13.

use super::{decode, kernel, Context, Result, Value};

/// An outgoing request. The host replaces `{{secret.NAME}}` in the URL's path or query
/// and in the value of a header by a secret that was granted to the plugin; the guest
/// never sees it. In the body it is replaced only with `body_secrets`.
#[derive(Default)]
pub struct Request {
    /// None is GET.
    pub method: Option<String>,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    /// Replaces secrets in the body too, escaped as JSON or as a form if that is the
    /// header content-type. The body must then not contain data from other sources: a
    /// `{{secret.NAME}}` in it would be replaced by the secret.
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

/// The answer, with any status.
pub struct Response {
    pub status: i64,
    /// An object of texts, names in lower case.
    pub headers: Value,
    /// Encoded as base64 if `base64` is true, because the bytes are not text.
    pub body: String,
    pub base64: bool,
    /// The body was cut because it exceeds the limit of an answer.
    pub truncated: bool,
}

impl Response {
    /// The body's bytes; None if the text is not valid base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        if self.base64 {
            return decode(&self.body);
        }
        Some(self.body.clone().into_bytes())
    }
}

impl Context<'_> {
    /// Sends a request. A status of 400 or more is a response, not an error.
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
