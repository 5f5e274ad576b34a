package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// A Request is an outgoing HTTP request to a host that the plugin's grant
// includes.
//
// The text {{secret.NAME}} in the path or query of URL or in the value of a header is
// replaced by the value of that secret, if the operator has granted it for the host of
// the request; the plugin never sees the value. The manifest requests the secret:
// {Use: UseSecret, Names: []string{"NAME"}}. Escape data from other sources before it
// is inserted in URL.
type Request struct {
	Method  string // empty is GET
	URL     string
	Headers Value // object of texts, or absent
	Body    string
	// BodySecrets replaces secrets in Body too, escaped as JSON or as a form if that is
	// the header content-type. Body must then not contain data from other sources: a
	// {{secret.NAME}} in it would be replaced by the secret.
	BodySecrets bool
	TimeoutMs   int64 // 0 is the host's default
}

// A Response is the answer, with any status.
type Response struct {
	Status    int
	Headers   Value // object of texts, names in lower case
	Body      string
	Encoding  string // "base64" if Body is encoded because it is not text; else empty
	Truncated bool   // the body was cut because it exceeds the limit of an answer
}

// HTTP sends a request. A status of 400 or more is a response, not an error.
func (c *Context) HTTP(r Request) (Response, error) {
	request := Object(F("method", Text(r.Method)), F("url", String(r.URL)), F("headers", r.Headers), F("body", Text(r.Body)))
	if r.BodySecrets {
		request = request.With("bodySecrets", Bool(true))
	}
	if r.TimeoutMs > 0 {
		request = request.With("timeoutMs", Int(r.TimeoutMs))
	}
	answer, err := c.call(abi.FuncHTTP, importHTTP, request)
	if err != nil {
		return Response{}, err
	}
	return Response{
		Status:    int(answer.Get("status").IntOr(0)),
		Headers:   answer.Get("headers"),
		Body:      answer.Get("body").StringOr(""),
		Encoding:  answer.Get("encoding").StringOr(""),
		Truncated: answer.Get("truncated").BoolOr(false),
	}, nil
}

// Bytes returns the body as it was received, text or not.
func (r Response) Bytes() ([]byte, error) { return bytesOf(abi.FuncHTTP, r.Body, r.Encoding) }
