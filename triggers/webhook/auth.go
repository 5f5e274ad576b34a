package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// replayWindow is how far the time in a signed request may be from the host's.
const replayWindow = 5 * time.Minute

// standardPrefix begins a secret of Standard Webhooks.
const standardPrefix = "whsec_"

// denied is what a caller gets that did not prove itself. The text is for the
// host's log; no part of a secret or of what was presented is in it.
func (a *armed) denied(why string) error {
	return abi.New(abi.Denied, fmt.Sprintf("receive webhook of %q: %s", a.env.Sentinel, why))
}

// secret looks the secret up. One that is missing or empty lets nobody in.
func (a *armed) secret() (string, error) {
	if a.opt.Auth == AuthNone {
		return "", nil
	}
	value, ok := a.env.Secret(a.opt.SecretEnv)
	if !ok || value == "" {
		return "", a.denied(fmt.Sprintf("the variable %s, which holds the secret, is not set on this host", a.opt.SecretEnv))
	}
	return value, nil
}

// header returns the one value of a header, "" if there is none. Two are an
// error: where a proxy takes the first and we the last, checks are got around.
func header(r triggers.Request, name string) (string, error) {
	switch values := r.Header[textproto.CanonicalMIMEHeaderKey(name)]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", abi.New(abi.BadFields, fmt.Sprintf("header %s stands there %d times", name, len(values)))
	}
}

// authenticate returns nil for a request from who knows the secret. signed is
// the id that such a one has signed for the request, "" if the way has none.
func (a *armed) authenticate(r triggers.Request) (signed string, err error) {
	secret, err := a.secret()
	if err != nil {
		return "", err
	}
	switch a.opt.Auth {
	case AuthNone:
		return "", nil
	case AuthToken:
		return "", a.token(r, secret)
	case AuthStandard:
		return a.standard(r, secret)
	}
	if strings.HasPrefix(secret, standardPrefix) { // the secret says what it is for
		return a.standard(r, secret)
	}
	return "", a.signature(r, secret)
}

// token compares what was presented with the secret, in a time that tells
// nothing of either.
func (a *armed) token(r triggers.Request, secret string) error {
	// Their digests are compared, so that not even the length shows in the time.
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
	got, want := sha256.Sum256([]byte(presented)), sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return a.denied("the token is missing or wrong")
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

// signature checks the HMAC of the body: hexadecimal, behind "sha256=" or not,
// or base64. The two have different lengths, so neither is taken for the other.
func (a *armed) signature(r triggers.Request, secret string) error {
	text, err := header(r, a.opt.SignatureHeader)
	if err != nil {
		return a.denied(err.Error())
	}
	if text == "" {
		return a.denied("no header " + a.opt.SignatureHeader)
	}
	text = strings.TrimPrefix(text, "sha256=") // as GitHub writes it; others leave it out
	var got []byte
	if len(text) == hex.EncodedLen(sha256.Size) {
		got, err = hex.DecodeString(text)
	} else {
		got, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil || !hmac.Equal(got, sum(secret, r.Body)) {
		return a.denied("the signature is wrong")
	}
	return nil
}

// sum is the HMAC-SHA256 of the parts, one behind the other.
func sum(secret string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// standard checks a request as Standard Webhooks has it: id, time and body are
// signed together, and the time has to be near. It returns the id.
func (a *armed) standard(r triggers.Request, secret string) (id string, err error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, standardPrefix))
	if err != nil || len(key) == 0 {
		return "", a.denied(fmt.Sprintf("the variable %s holds no secret of Standard Webhooks, which is base64", a.opt.SecretEnv))
	}
	// Without one of the three nothing was signed, and no default takes its place.
	var at, signatures string
	for name, into := range map[string]*string{"webhook-id": &id, "webhook-timestamp": &at, "webhook-signature": &signatures} {
		if *into, err = header(r, name); err != nil {
			return "", a.denied(err.Error())
		}
		if *into == "" {
			return "", a.denied("no header " + name)
		}
	}
	// Id, time and body are signed with full stops between them; one in the id
	// would let the border be moved.
	if strings.Contains(id, ".") {
		return "", a.denied("webhook-id has a full stop in it")
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return "", a.denied("webhook-timestamp is no number of seconds")
	}
	if far := a.env.Now().Sub(time.Unix(seconds, 0)).Abs(); far > replayWindow {
		return "", a.denied(fmt.Sprintf("webhook-timestamp is more than %s from the time of this host", replayWindow))
	}
	// The text of the time is signed, not its number: "+5" and "5" differ.
	want := sum(string(key), []byte(id+"."+at+"."), r.Body)
	for one := range strings.FieldsSeq(signatures) { // several while secrets are changed
		text, ok := strings.CutPrefix(one, "v1,")
		if !ok {
			continue
		}
		if got, err := base64.StdEncoding.DecodeString(text); err == nil && hmac.Equal(got, want) {
			return id, nil
		}
	}
	return "", a.denied("no signature in webhook-signature is right")
}
