package webhook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Auth is an authentication method for senders.
type Auth string

// The authentication methods. Each trigger has exactly one: if one secret served
// two, a message signed for one could be sent as a message of the other.
const (
	AuthHMAC     Auth = "hmac-sha256"       // a signature of the body in one header
	AuthStandard Auth = "standard-webhooks" // a signature of id, time and body
	AuthToken    Auth = "token"             // the secret itself
	AuthNone     Auth = "none"              // no authentication
)

// options are the options of a webhook, clause T8.
type options struct {
	// SecretEnv is the name of the environment variable with the secret. There is
	// no option for the secret itself: definitions are shown, diffed and exported.
	SecretEnv string `json:"secretEnv,omitempty" doc:"name of the environment variable of the host with the secret; required without insecure"`
	Auth      Auth   `json:"auth,omitempty" doc:"how senders prove that they know the secret" default:"hmac-sha256 with secretEnv, none with insecure" enum:"hmac-sha256,standard-webhooks,token,none"`
	// Insecure is required for a webhook without authentication.
	Insecure bool `json:"insecure,omitempty" doc:"true: everyone who reaches the port may send requests" default:"false"`
	// SignatureHeader is for AuthHMAC, TokenHeader for AuthToken. Defaults:
	// [defaultSignature]; Authorization, then X-Gitlab-Token.
	SignatureHeader string `json:"signatureHeader,omitempty" doc:"header of hmac-sha256" default:"X-Hub-Signature-256"`
	TokenHeader     string `json:"tokenHeader,omitempty" doc:"header of token" default:"Authorization: Bearer, else X-Gitlab-Token"`
	// Methods are the accepted methods, in capitals. Default POST.
	Methods []string `json:"methods,omitempty" doc:"accepted methods; no GET with a signature" default:"POST" enum:"GET,POST,PUT"`
	// Event is the name of the event. The value of EventHeader is appended to it.
	Event       string `json:"event,omitempty" doc:"name of $event" default:"webhook: and the id of the sentinel"`
	EventHeader string `json:"eventHeader,omitempty" doc:"header whose value is appended to the name after a colon, such as X-GitHub-Event" default:"none"`
	// IdempotencyHeader replaces [keyHeaders].
	IdempotencyHeader string `json:"idempotencyHeader,omitempty" doc:"header with the id of a delivery" default:"Idempotency-Key, webhook-id or X-GitHub-Delivery"`
	// ReplayWindowMs is how long a repetition of a signed request is detected,
	// whatever its unsigned headers are. It is for AuthHMAC, whose signature has no
	// time. 0 accepts repetitions. Default [replayWindow].
	ReplayWindowMs *int64 `json:"replayWindowMs,omitempty" doc:"how long repetitions of a request signed by hmac-sha256 are detected, 0 to 86400000 ms; 0 accepts repetitions" default:"300000"`

	replayFor time.Duration // of ReplayWindowMs

	// eventIsDefault means that Event was not given: a CloudEvent then keeps its
	// own name.
	eventIsDefault bool
}

// defaultSignature is the signature header of GitHub, which other services use
// too.
const defaultSignature = "X-Hub-Signature-256"

// methods are those that the host accepts. HEAD is not one of them, because a
// proxy may send it without the sender's intent to start a run.
var methods = []string{"GET", "POST", "PUT"}

// readOptions reads the options of t, sets defaults and returns all problems in
// one error. Problems never quote a value that may be a misplaced secret.
func readOptions(t sentinels.Trigger) (options, error) {
	var o options
	if err := triggers.ReadOptions(t, &o); err != nil {
		return o, err
	}
	var problems []error
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(`trigger "webhook": `+format, args...))
	}
	o.setAuth(report)
	for name, header := range map[string]*string{
		"signatureHeader": &o.SignatureHeader, "tokenHeader": &o.TokenHeader,
		"eventHeader": &o.EventHeader, "idempotencyHeader": &o.IdempotencyHeader,
	} {
		if *header != "" && !isHeader(*header) {
			report("invalid %s: want the name of a header", name)
		}
	}
	if o.Auth == AuthHMAC && o.SignatureHeader == "" {
		o.SignatureHeader = defaultSignature
	}
	o.setReplay(report)
	if len(o.Methods) == 0 {
		o.Methods = []string{"POST"}
	}
	// A signature covers the body, so one of an empty body could be reused forever.
	for i, m := range o.Methods {
		switch {
		case !slices.Contains(methods, m):
			report("invalid methods[%d] %q: want GET, POST or PUT", i, m)
		case m == "GET" && (o.Auth == AuthHMAC || o.Auth == AuthStandard):
			report(`invalid methods[%d] GET: it has no body to sign; use auth "token"`, i)
		}
	}
	if o.Event != "" && (!sentinels.ValidPattern(o.Event) || strings.Contains(o.Event, "*")) {
		report("invalid event %q: want names separated by colons", o.Event)
	}
	return o, errors.Join(problems...)
}

// setAuth sets the default of Auth and checks it together with the other options.
// Only an explicit "insecure" turns authentication off.
func (o *options) setAuth(report func(string, ...any)) {
	if o.Auth == "" {
		switch {
		case o.SecretEnv != "":
			o.Auth = AuthHMAC
		case o.Insecure:
			o.Auth = AuthNone
		default:
			report("missing secretEnv: want the name of the environment variable with the secret")
			return
		}
	}
	// Contradicting options are refused, because either could be the intended one.
	switch o.Auth {
	case AuthHMAC, AuthStandard, AuthToken:
		switch {
		case o.SecretEnv == "":
			report("missing secretEnv: auth %q needs the name of the environment variable with the secret", o.Auth)
		case !isVariable(o.SecretEnv):
			report("invalid secretEnv: want the name of an environment variable (letters, digits and _), not the secret itself")
		}
		if o.Insecure {
			report("insecure and auth %q contradict each other", o.Auth)
		}
	case AuthNone:
		if !o.Insecure {
			report(`auth "none" accepts requests from anyone who reaches the port: set "insecure": true if that is intended`)
		}
		if o.SecretEnv != "" {
			report(`auth "none" does not use secretEnv`)
		}
	default:
		report("invalid auth %q: want hmac-sha256, standard-webhooks, token or none", o.Auth)
	}
	if o.SignatureHeader != "" && o.Auth != AuthHMAC {
		report("signatureHeader requires auth hmac-sha256")
	}
	if o.TokenHeader != "" && o.Auth != AuthToken {
		report("tokenHeader requires auth token")
	}
}

// maxReplayWindow limits replayWindowMs.
const maxReplayWindow = 24 * time.Hour

// setReplay sets how long repetitions of a signed request are detected.
func (o *options) setReplay(report func(string, ...any)) {
	switch {
	case o.ReplayWindowMs == nil:
		o.replayFor = replayWindow
	case o.Auth != AuthHMAC:
		report("replayWindowMs requires auth hmac-sha256: standard-webhooks signs a time, the others have no signature")
	case *o.ReplayWindowMs < 0 || *o.ReplayWindowMs > maxReplayWindow.Milliseconds():
		report("invalid replayWindowMs %d: want 0 to %d", *o.ReplayWindowMs, maxReplayWindow.Milliseconds())
	default:
		o.replayFor = time.Duration(*o.ReplayWindowMs) * time.Millisecond
	}
}

// isVariable reports whether s can be the name of an environment variable. Most
// secrets cannot, so a secret in its place is detected.
func isVariable(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// isHeader reports whether s can be the name of an HTTP header.
func isHeader(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != "" && len(s) <= 128
}
