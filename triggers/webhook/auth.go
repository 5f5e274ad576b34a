package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// replayWindow is how far the time of a signed request may differ from the host's,
// and the default time for which repetitions of a signed request without a time
// are detected.
const replayWindow = 5 * time.Minute

// standardPrefix is the prefix of Standard Webhooks secrets.
const standardPrefix = "whsec_"

// denied returns the error for a sender that is not authenticated. The text is for
// the host's log, and contains nothing of the secret or of the request.
func (a *armed) denied(reason string) error {
	return abi.New(abi.Denied, reason)
}

// secret looks up the secret. A missing or empty secret denies all requests.
func (a *armed) secret() (string, error) {
	if a.opt.Auth == AuthNone {
		return "", nil
	}
	value, ok := a.env.Secret(a.opt.SecretEnv)
	if !ok || value == "" {
		return "", a.denied(fmt.Sprintf("the secret %s is not set on this host: every request is refused", a.opt.SecretEnv))
	}
	return value, nil
}

// header returns the value of a header, "" if there is none. Several values are
// an error: a proxy and this host could use different ones, which bypasses checks
// of the proxy.
func header(r triggers.Request, name string) (string, error) {
	switch values := r.Header[textproto.CanonicalMIMEHeaderKey(name)]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", abi.New(abi.BadFields, fmt.Sprintf("header %s is given %d times", name, len(values)))
	}
}

// proof is what a signature proves besides the sender.
type proof struct {
	// id is the signed id of the delivery, "" without one.
	id string
	// replay is equal for every request with this signature. It is "" if the
	// signature covers an id and a time.
	replay string
}

// authenticate returns a nil error for a request whose sender knows the secret.
func (a *armed) authenticate(r triggers.Request) (proof, error) {
	secret, err := a.secret()
	if err != nil {
		return proof{}, err
	}
	switch a.opt.Auth {
	case AuthNone:
		return proof{}, nil
	case AuthToken:
		return proof{}, a.token(r, secret)
	case AuthHMAC:
		if !strings.HasPrefix(secret, standardPrefix) { // a whsec_ secret always means Standard Webhooks
			replay, err := a.signature(r, secret)
			return proof{replay: replay}, err
		}
	case AuthStandard:
	}
	id, err := a.standard(r, secret)
	return proof{id: id}, err
}

// token checks the token of a request, in a time that depends on neither token nor
// secret.
func (a *armed) token(r triggers.Request, secret string) error {
	var presented string
	var err error
	if name := a.opt.TokenHeader; name != "" {
		presented, err = header(r, name)
		if strings.EqualFold(name, "Authorization") {
			presented = bearer(presented)
		}
	} else if presented, err = header(r, "Authorization"); err == nil {
		if presented = bearer(presented); presented == "" {
			presented, err = header(r, "X-Gitlab-Token")
		}
	}
	if err != nil {
		return a.denied(err.Error())
	}
	// Comparing digests hides the length too.
	got, want := sha256.Sum256([]byte(presented)), sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return a.denied("missing or wrong token")
	}
	return nil
}

// bearer returns the token of an Authorization header.
func bearer(value string) string {
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// signature checks the HMAC of the body: hexadecimal with an optional prefix
// "sha256=", or base64. The two have different lengths, so they cannot be
// confused. It returns a digest of the HMAC, not of the header, because the header
// has several spellings of one HMAC.
func (a *armed) signature(r triggers.Request, secret string) (replay string, err error) {
	text, err := header(r, a.opt.SignatureHeader)
	if err != nil {
		return "", a.denied(err.Error())
	}
	if text == "" {
		return "", a.denied("missing header " + a.opt.SignatureHeader)
	}
	text = strings.TrimPrefix(text, "sha256=") // GitHub sends it, others do not
	var got []byte
	if len(text) == hex.EncodedLen(sha256.Size) {
		got, err = hex.DecodeString(text)
	} else {
		got, err = base64.StdEncoding.DecodeString(text)
	}
	want := sum(secret, r.Body)
	if err != nil || !hmac.Equal(got, want) {
		return "", a.denied("wrong signature")
	}
	digest := sha256.Sum256(want)
	return hex.EncodeToString(digest[:16]), nil
}

// sum returns the HMAC-SHA256 of the concatenated parts.
func sum(secret string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// standardKey reads a Standard Webhooks secret: base64, with an optional prefix.
func standardKey(secret string) (key []byte, err error) {
	key, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, standardPrefix))
	if err == nil && len(key) == 0 {
		err = errors.New("empty")
	}
	return key, err
}

// standardSum returns the HMAC that Standard Webhooks define. The time is signed as text:
// "+5" and "5" differ.
func standardSum(key []byte, id, at string, body []byte) []byte {
	return sum(string(key), []byte(id+"."+at+"."), body)
}

// Sign returns the headers of an outgoing request that Standard Webhooks define, for a
// body, the id of the delivery and a time. The secret is base64 with an optional prefix
// whsec_; with an empty one nothing is signed. The id must not contain a dot.
func Sign(secret, id string, at time.Time, body []byte) (headers map[string]string, err error) {
	if id == "" || strings.Contains(id, ".") {
		return nil, fmt.Errorf("sign webhook: invalid id %.100q: want a text without dots", id)
	}
	seconds := strconv.FormatInt(at.Unix(), 10)
	headers = map[string]string{"webhook-id": id, "webhook-timestamp": seconds}
	if secret == "" {
		return headers, nil
	}
	key, err := standardKey(secret)
	if err != nil { // which has a part of the secret in it
		return nil, abi.New(abi.Denied, "sign webhook: the secret is not base64, as Standard Webhooks want it")
	}
	headers["webhook-signature"] = "v1," + base64.StdEncoding.EncodeToString(standardSum(key, id, seconds, body))
	return headers, nil
}

// standard checks a request according to Standard Webhooks: id, time and body are
// signed together, and the time must be within replayWindow. It returns the id.
func (a *armed) standard(r triggers.Request, secret string) (id string, err error) {
	key, err := standardKey(secret)
	if err != nil {
		return "", a.denied(fmt.Sprintf("the environment variable %s has no Standard Webhooks secret, which is base64", a.opt.SecretEnv))
	}
	// All three headers are required.
	var at, signatures string
	for name, into := range map[string]*string{"webhook-id": &id, "webhook-timestamp": &at, "webhook-signature": &signatures} {
		if *into, err = header(r, name); err != nil {
			return "", a.denied(err.Error())
		}
		if *into == "" {
			return "", a.denied("missing header " + name)
		}
	}
	// The signed text is id, time and body, separated by dots. A dot in the id would
	// allow to shift text between the parts.
	if strings.Contains(id, ".") {
		return "", a.denied("webhook-id contains a dot")
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return "", a.denied("invalid webhook-timestamp: want seconds since 1970")
	}
	if off := a.env.Now().Sub(time.Unix(seconds, 0)).Abs(); off > replayWindow {
		return "", a.denied(fmt.Sprintf("webhook-timestamp differs from the time of this host by more than %s", replayWindow))
	}
	want := standardSum(key, id, at, r.Body)
	for one := range strings.FieldsSeq(signatures) { // several during secret rotation
		text, ok := strings.CutPrefix(one, "v1,")
		if !ok {
			continue
		}
		if got, err := base64.StdEncoding.DecodeString(text); err == nil && hmac.Equal(got, want) {
			return id, nil
		}
	}
	return "", a.denied("wrong signature in webhook-signature")
}
