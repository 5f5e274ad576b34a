package webhook

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Auth is how a caller proves that it knows the secret.
type Auth string

// The ways. Each trigger has exactly one: where two were accepted for one
// secret, what was signed for one could be presented as the other.
const (
	AuthHMAC     Auth = "hmac-sha256"       // a signature of the body in one header
	AuthStandard Auth = "standard-webhooks" // a signature of id, time and body
	AuthToken    Auth = "token"             // the secret itself
	AuthNone     Auth = "none"              // whoever reaches the port
)

// options are those of a webhook, clause T8.
type options struct {
	// SecretEnv names the variable that holds the secret. There is no option for
	// the secret itself: definitions are shown, diffed and exported.
	SecretEnv string `json:"secretEnv,omitempty"`
	Auth      Auth   `json:"auth,omitempty"`
	// Insecure has to be written for a webhook that checks nobody.
	Insecure bool `json:"insecure,omitempty"`
	// SignatureHeader and TokenHeader go with one way each. Default: the usual
	// ones.
	SignatureHeader string `json:"signatureHeader,omitempty"`
	TokenHeader     string `json:"tokenHeader,omitempty"`
	// Methods are in capitals, as requests have them. Default POST alone.
	Methods []string `json:"methods,omitempty"`
	// Event names what $event is; EventHeader adds what the service calls it.
	Event       string `json:"event,omitempty"`
	EventHeader string `json:"eventHeader,omitempty"`
	// IdempotencyHeader replaces [keyHeaders].
	IdempotencyHeader string `json:"idempotencyHeader,omitempty"`

	// eventIsDefault says that the author gave no name: a CloudEvent then keeps
	// its own.
	eventIsDefault bool
}

// defaultSignature is the header that GitHub made the usual one.
const defaultSignature = "X-Hub-Signature-256"

// methods are those that the host hands on. HEAD is not among them: a proxy that
// only looks must not start a run.
var methods = []string{"GET", "POST", "PUT"}

// readOptions reads the options of t with their defaults and returns every
// problem there is. A problem never repeats a value that may be a secret which
// its author put in the wrong place.
func readOptions(t sentinels.Trigger) (options, error) {
	var o options
	if err := triggers.ReadOptions(t, &o); err != nil {
		return o, err
	}
	var problems []error
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(`trigger "webhook": `+format, args...))
	}
	o.settleAuth(wrong)
	for name, header := range map[string]*string{
		"signatureHeader": &o.SignatureHeader, "tokenHeader": &o.TokenHeader,
		"eventHeader": &o.EventHeader, "idempotencyHeader": &o.IdempotencyHeader,
	} {
		if *header != "" && !isHeader(*header) {
			wrong("%s is no name of a header", name)
		}
	}
	if o.Auth == AuthHMAC && o.SignatureHeader == "" {
		o.SignatureHeader = defaultSignature
	}
	if len(o.Methods) == 0 {
		o.Methods = []string{"POST"}
	}
	// A signature is of a body, so a request without one would be good for ever.
	for i, m := range o.Methods {
		switch {
		case !slices.Contains(methods, m):
			wrong("methods[%d] is %q, it can be GET, POST or PUT", i, m)
		case m == "GET" && (o.Auth == AuthHMAC || o.Auth == AuthStandard):
			wrong(`methods[%d] is GET, which has no body to be signed; use auth "token"`, i)
		}
	}
	if o.Event != "" && (!sentinels.ValidPattern(o.Event) || strings.Contains(o.Event, "*")) {
		wrong("event %q is no event name; write names between colons", o.Event)
	}
	return o, errors.Join(problems...)
}

// settleAuth finds how callers are checked. Open to all is only what says so in
// so many words.
func (o *options) settleAuth(wrong func(string, ...any)) {
	if o.Auth == "" {
		switch {
		case o.SecretEnv != "":
			o.Auth = AuthHMAC
		case o.Insecure:
			o.Auth = AuthNone
		default:
			wrong("secretEnv is missing: the name of the environment variable that holds the secret")
			return
		}
	}
	// What contradicts itself is refused rather than settled either way: nobody
	// can say which half was meant.
	switch o.Auth {
	case AuthHMAC, AuthStandard, AuthToken:
		switch {
		case o.SecretEnv == "":
			wrong("auth %q needs secretEnv, the name of the environment variable that holds the secret", o.Auth)
		case !isVariable(o.SecretEnv):
			wrong("secretEnv is no name of an environment variable: letters, digits and _; the secret itself does not belong here")
		}
		if o.Insecure {
			wrong("insecure and auth %q contradict each other", o.Auth)
		}
	case AuthNone:
		if !o.Insecure {
			wrong(`auth "none" lets in everybody who reaches the port; write "insecure": true if that is meant`)
		}
		if o.SecretEnv != "" {
			wrong(`auth "none" has no use for secretEnv`)
		}
	default:
		wrong("auth is %q, it can be hmac-sha256, standard-webhooks, token or none", o.Auth)
	}
	if o.SignatureHeader != "" && o.Auth != AuthHMAC {
		wrong("signatureHeader goes with auth hmac-sha256")
	}
	if o.TokenHeader != "" && o.Auth != AuthToken {
		wrong("tokenHeader goes with auth token")
	}
}

// isVariable reports whether s can be the name of an environment variable. Most
// secrets cannot, so one that was written in its place is noticed.
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
