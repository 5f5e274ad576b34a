package http

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	nethttp "net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// fetch returns what is sent for a request.
func (f family) fetch(call *command.Call, r *request) (egress.Fetch, error) {
	out := egress.Fetch{
		Method: r.Method, URL: r.URL, Header: map[string]string{}, Private: f.Private,
		Redirects: defaultRedirects, Timeout: defaultTimeout, MaxBody: maxBody,
	}
	if out.Method == "" {
		out.Method = nethttp.MethodGet
	}
	if r.TimeoutMs > 0 {
		out.Timeout = time.Duration(r.TimeoutMs) * time.Millisecond
	}
	if r.Redirects != nil {
		out.Redirects = *r.Redirects
	}
	var err error
	if out.URL, err = withQuery(r.URL, r.Query); err != nil {
		return out, err
	}
	secrets := &secretValues{family: f, call: call, request: r}
	for name, value := range r.Headers {
		if out.Header[name], err = secrets.value("headers."+name, value); err != nil {
			return out, err
		}
	}
	if err := setAuth(&out, r.Auth, secrets); err != nil {
		return out, err
	}
	out.Secret = secrets.used
	if name := r.keyHeader(); name != "" {
		if call.Key == "" {
			return out, &abi.Error{
				Code: abi.BadFields, Permanent: true, Field: "idempotencyKey",
				Message: "idempotencyKey: this call has no key of its own", Hint: "give the call a key, or write the header in headers",
			}
		}
		if err := setHeader(&out, name, call.Key, "idempotencyKey"); err != nil {
			return out, err
		}
	}
	return out, setBody(&out, r)
}

// setHeader sets a header that another parameter makes.
func setHeader(out *egress.Fetch, name, value, parameter string) error {
	if given := headerIn(out, name); given != "" {
		return badParameter("headers."+given, fmt.Sprintf("%s sets this header", parameter))
	}
	out.Header[name] = value
	return nil
}

// headerIn returns the name under which a header is given, "" if it is not.
func headerIn(out *egress.Fetch, name string) string {
	for given := range out.Header {
		if strings.EqualFold(given, name) {
			return given
		}
	}
	return ""
}

// setAuth sets the header Authorization.
func setAuth(out *egress.Fetch, a *auth, secrets *secretValues) error {
	switch {
	case a == nil:
		return nil
	case a.Bearer != nil:
		token, err := secrets.value("auth.bearer", *a.Bearer)
		if err != nil {
			return err
		}
		return setHeader(out, "Authorization", "Bearer "+token, "auth")
	}
	name, err := secrets.value("auth.basic.username", a.Basic.Username)
	if err != nil {
		return err
	}
	password, err := secrets.value("auth.basic.password", a.Basic.Password)
	if err != nil {
		return err
	}
	if strings.Contains(name, ":") {
		return badParameter("auth.basic.username", "a colon ends the name, so it cannot have one")
	}
	both := base64.StdEncoding.EncodeToString([]byte(name + ":" + password))
	if a.Basic.Password.Secret != "" || a.Basic.Username.Secret != "" {
		// Servers that repeat requests would return it in this form, which is not that of the secret.
		if err := secrets.Hide(both); err != nil {
			return err
		}
	}
	return setHeader(out, "Authorization", "Basic "+both, "auth")
}

// setBody sets the body and its type, unless the type is given.
func setBody(out *egress.Fetch, r *request) error {
	given, contentType := []string{}, ""
	if len(r.JSON) > 0 {
		given, contentType, out.Body = append(given, "json"), "application/json", string(r.JSON)
	}
	if r.Form != nil {
		form, err := values("form", r.Form)
		if err != nil {
			return err
		}
		given, contentType, out.Body = append(given, "form"), "application/x-www-form-urlencoded", form
	}
	if r.Body != nil {
		given, contentType, out.Body = append(given, "body"), "text/plain; charset=utf-8", *r.Body
	}
	switch {
	case len(given) > 1:
		return badParameter(given[1], fmt.Sprintf("want one of json, form and body, and %s is there too", given[0]))
	case len(given) == 1 && (out.Method == nethttp.MethodGet || out.Method == nethttp.MethodHead):
		return badParameter(given[0], fmt.Sprintf("a %s has no body: write \"method\": \"POST\", or give the values in query", out.Method))
	case len(given) == 1 && headerIn(out, "Content-Type") == "":
		out.Header["Content-Type"] = contentType
	}
	return nil
}

// withQuery adds values to the query of a URL.
func withQuery(address string, query map[string]json.RawMessage) (string, error) {
	added, err := values("query", query)
	if err != nil || added == "" {
		return address, err
	}
	address, _, _ = strings.Cut(address, "#") // it is not sent
	switch {
	case !strings.Contains(address, "?"):
		return address + "?" + added, nil
	case strings.HasSuffix(address, "?"), strings.HasSuffix(address, "&"):
		return address + added, nil
	}
	return address + "&" + added, nil
}

// values returns an object of texts, numbers, booleans and lists of these in the form of a query.
func values(parameter string, object map[string]json.RawMessage) (string, error) {
	out := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		list := []json.RawMessage{object[name]}
		if object[name][0] == '[' {
			list = nil
			strictjson.EachItem(object[name], func(item []byte) bool { list = append(list, item); return true })
		}
		for _, item := range list {
			switch item[0] {
			case '{', '[':
				return "", badParameter(parameter+"."+name, "want a text, a number, a boolean or a list of these")
			case 'n':
			default:
				out.Add(name, reference.Text(item))
			}
		}
	}
	return out.Encode(), nil
}

// secretValues returns the values of secrets for one request.
type secretValues struct {
	family
	call    *command.Call
	request *request
	used    bool
}

// value returns a text, or the value of a secret, which goes nowhere but to the place that the
// calling step writes out.
func (s *secretValues) value(parameter string, v command.EnvValue) (string, error) {
	if v.Secret == "" {
		return v.Text, nil
	}
	deny := func(hint, format string, args ...any) error {
		return &abi.Error{
			Code: abi.Denied, Permanent: true, Field: parameter, Hint: hint,
			Message: fmt.Sprintf("%s: secret %q: ", parameter, v.Secret) + fmt.Sprintf(format, args...),
		}
	}
	origin := sentinels.Origin(s.request.URL)
	if written := s.call.Environment.Origin; written == "" || written != origin {
		return "", deny(`write the scheme and the host of the URL out, as in "https://api.example.com/users/$id"`,
			"the step does not write out where it is sent, and a value of a variable must not decide that")
	}
	if !strings.HasPrefix(origin, "https://") && !egress.Listed(s.Private, s.request.URL) {
		return "", deny("use https; a host of this network, which may do without it, is listed in the setting http.private",
			"it would be sent without TLS")
	}
	value, err := s.Secret(s.call, v.Secret)
	if err != nil {
		return "", err
	}
	s.used = true
	return value, nil
}
