package http

import (
	"context"
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/plugins/http/fields"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Options are what the command needs of the host.
type Options struct {
	Client *egress.Client
	// Private are the hosts that may have private addresses, as in [egress.Fetch].
	Private []string
	// Secret returns the value of a secret for a call, or why it does not get it.
	Secret func(call *command.Call, name string) (string, error)
	// Hide keeps further values out of everything that is written.
	Hide func(values ...string) error
}

const (
	defaultTimeout   = 30 * time.Second
	defaultRedirects = 5
	maxBody          = 8 << 20
	maxModelText     = 64 << 10 // of the text that a model gets
	keyHeader        = "Idempotency-Key"
)

// request is the parameters, as [input] describes them.
type request struct {
	Method         string                      `json:"method"`
	URL            string                      `json:"url"`
	Query          map[string]json.RawMessage  `json:"query"`
	Headers        map[string]command.EnvValue `json:"headers"`
	JSON           json.RawMessage             `json:"json"`
	Form           map[string]json.RawMessage  `json:"form"`
	Body           *string                     `json:"body"`
	Auth           *auth                       `json:"auth"`
	TimeoutMs      int64                       `json:"timeoutMs"`
	Redirects      *int                        `json:"redirects"`
	Expect         json.RawMessage             `json:"expect"`
	IdempotencyKey json.RawMessage             `json:"idempotencyKey"`
}

type auth struct {
	Bearer *command.EnvValue `json:"bearer"`
	Basic  *struct {
		Username command.EnvValue `json:"username"`
		Password command.EnvValue `json:"password"`
	} `json:"basic"`
}

// input is the schema of the parameters.
const input = `{
  "type": "object",
  "properties": {` + fields.Request + `
  },
  "required": ["url"],
  "additionalProperties": false
}`

// output is the schema of the result.
const output = `{
  "type": "object",
  "properties": {
    "status": {"type": "integer", "description": "of the answer"},
    "success": {"type": "boolean", "description": "the status is an expected one"},
    "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "of the answer, names in lower case; values of one name are joined"},
    "text": {"type": "string", "description": "the body; bytes that are not UTF-8 are U+FFFD, and the body is in base64 too"},
    "json": {"description": "the body as a value, if it is JSON of at most 2 MiB"},
    "base64": {"type": "string", "description": "the body, if it is not UTF-8"},
    "method": {"type": "string", "description": "of the request"},
    "url": {"type": "string", "description": "that answered, behind the redirects, without its query"},
    "durationMs": {"type": "integer", "description": "from the request to the end of the body"},
    "problem": {"type": "string", "description": "why the status is not a success"},
    "retryAfterMs": {"type": "integer", "description": "delay that the server asks for"},
    "truncated": {"type": "boolean", "description": "true where a model got the beginning of the text"}
  },
  "required": ["status", "success", "headers", "method", "url", "durationMs"],
  "additionalProperties": false
}`

// Commands returns the family http/*.
func Commands(o Options) []command.Command {
	f := family{o}
	in, out := json.RawMessage(input), json.RawMessage(output)
	return []command.Command{command.NewDynamic(sentinels.RequestCommand, "Make an HTTP request and return the answer.", in, out, command.Options{
		// It sends data to others, whatever its method is: models have it only by its name.
		Effect: command.Changes, ByName: true,
		Reads:      map[string][]string{"method": {command.Absent, nethttp.MethodGet, nethttp.MethodHead, nethttp.MethodOptions}},
		Repeatable: repeatable,
		Waits:      command.Always,
	}, f.request)}
}

type family struct{ Options }

// repeatable reports whether a request may be made twice.
func repeatable(params json.RawMessage) bool {
	var r request
	if json.Unmarshal(params, &r) != nil {
		return false
	}
	return r.Method == nethttp.MethodPut || r.Method == nethttp.MethodDelete || r.keyHeader() != ""
}

// keyHeader returns the name of the header with the idempotency key, "" for none.
func (r *request) keyHeader() (name string) {
	switch string(r.IdempotencyKey) {
	case "", "null", "false":
		return ""
	case "true":
		return keyHeader
	}
	_ = json.Unmarshal(r.IdempotencyKey, &name) // the schema lets nothing else through
	return name
}

// request makes a request.
func (f family) request(ctx context.Context, call *command.Call) (json.RawMessage, error) {
	var r request
	if err := strictjson.DecodeOpen(call.Params, &r, strictjson.Unlimited()); err != nil {
		return nil, badParameter("", err.Error())
	}
	expected, err := statuses(r.Expect)
	if err != nil {
		return nil, err
	}
	fetch, err := f.fetch(call, &r)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	answer, err := f.Client.Fetch(ctx, fetch)
	if err != nil {
		return nil, err
	}
	res := read(answer, call.By == command.ByModel && !call.Step)
	res.Method, res.DurationMs, res.Success = fetch.Method, time.Since(began).Milliseconds(), expected.has(answer.Status)
	if !res.Success {
		res.Problem = problem(res, r.Expect)
		res.RetryAfterMs = endpoint.AskedDelay(answer.Header["retry-after"], time.Now()).Milliseconds()
	}
	return res.encode()
}

// badParameter is the error for a parameter that the schema accepts.
func badParameter(field, message string) error {
	e := &abi.Error{Code: abi.BadFields, Permanent: true, Field: field, Message: message}
	if field != "" {
		e.Message = fmt.Sprintf("%s: %s", field, message)
	}
	return e
}
