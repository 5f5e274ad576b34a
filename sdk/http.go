package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// A Request is an outgoing HTTP request, to a host that the plugin's grant
// names.
//
// A text {{secret.NAME}} in the path or query of URL or in the value of a header
// is replaced by the host with the value of that secret, if the operator granted
// it for the host that is asked; the plugin never sees it. The manifest asks for
// it: {Use: UseSecret, Names: []string{"NAME"}}. What goes into a URL from
// elsewhere is to be escaped there, as anyway.
type Request struct {
	Method  string // empty is GET
	URL     string
	Headers Value // object of texts, or absent
	Body    string
	// BodySecrets has secrets in Body replaced too, as JSON or a form if the header
	// content-type says so. Body must then hold no text of others: one with
	// {{secret.NAME}} in it would be sent the secret.
	BodySecrets bool
	TimeoutMs   int64 // 0 is the host's default
}

// A Response is the answer, whatever its status.
type Response struct {
	Status    int
	Headers   Value // object of texts, names in lower case
	Body      string
	Encoding  string // "base64" if Body is that, because it is no text; else empty
	Truncated bool   // the body was longer than an answer may be
}

// HTTP makes a request. A status of 400 or more is a response, not an error.
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

// Bytes returns the body as it was sent, whether it is text or not.
func (r Response) Bytes() ([]byte, error) { return bytesOf(abi.FuncHTTP, r.Body, r.Encoding) }
