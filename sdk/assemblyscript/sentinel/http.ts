import { Value, absent, count, flag, object, optional, text } from "./value";

// A Request is an outgoing HTTP request to a host that is granted to the plugin. The host
// replaces {{secret.NAME}} in the url's path and query and in headers; in the body only
// with bodySecrets.
export class Request {
  /** Empty is GET. */
  method: string = "";
  /** An object of texts, or absent. */
  headers: Value = absent;
  body: string = "";
  /**
   * Replaces secrets in the body too, escaped as JSON or a form if that is the header content-type. The body must then not contain data from
   * other sources: a {{secret.NAME}} in it would be replaced by the secret.
   */
  bodySecrets: bool = false;
  /** 0 is the host's default. */
  timeoutMs: i64 = 0;

  constructor(public url: string) {}

  header(name: string, value: string): Request {
    if (!this.headers.exists) this.headers = object();
    this.headers.set(name, text(value));
    return this;
  }

  toValue(): Value {
    return object().set("method", optional(this.method)).set("url", text(this.url)).set("headers", this.headers)
      .set("body", optional(this.body)).set("bodySecrets", flag(this.bodySecrets)).set("timeoutMs", count(this.timeoutMs));
  }
}

/** The answer, with any status. */
export class Response {
  status: i32;
  /** An object of texts, names in lower case. */
  headers: Value;
  body: string;
  /** "base64" if the body is not text, else empty. */
  encoding: string;
  truncated: bool;

  constructor(v: Value) {
    this.status = <i32>v.get("status").asInt();
    this.headers = v.get("headers");
    this.body = v.get("body").asText();
    this.encoding = v.get("encoding").asText();
    this.truncated = v.get("truncated").asBool();
  }
}
