package egress

import (
	"crypto/rand"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/plugin/hostcall"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const (
	opening    = "{{secret." // begins a placeholder, closing ends it
	closing    = "}}"
	maxSecrets = 32        // places of one request
	maxFilled  = 512 << 10 // bytes of a body with its secrets in place
)

var errTemplate = errors.New("wanted {{secret.NAME}} with a name of capitals, digits and _")

// A mark replaces a placeholder in a URL while the URL is parsed and resolved: random
// letters and digits, which no parser changes and no server can guess.
type mark struct{ token, name string }

// places replaces every placeholder in a text with the result of put. A malformed
// placeholder is an error: if it were sent, it would look like a wrong password.
func places(text string, put func(name string) (string, error)) (string, error) {
	// What put returns is not looked at again: a value may hold any text.
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, opening)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, closing)
		if !closed || !secretName(name) {
			return "", errTemplate
		}
		value, err := put(name)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		if b.Len() > maxFilled {
			return "", refuse(abi.Limit, fmt.Sprintf("%s: more than %d KiB with its secrets", abi.FuncHTTP, maxFilled>>10), "")
		}
		text = after
	}
}

// secretName reports whether a text is the name of a secret: clause A2.4.
func secretName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '_'):
		default:
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// note counts a place, and is a put that leaves it as it is.
func (r *request) note(name string) (string, error) {
	r.places = append(r.places, name)
	if len(r.places) > maxSecrets {
		return "", fmt.Errorf("more than %d secrets in one request", maxSecrets)
	}
	return opening + name + closing, nil
}

// setURL reads the URL; its secrets are marks until it is sent.
func (r *request) setURL(address string) error {
	marked, err := places(address, func(name string) (string, error) {
		m := mark{rand.Text(), name}
		r.marks = append(r.marks, m)
		_, err := r.note(name)
		return m.token, err
	})
	if err != nil {
		return bad("url", err.Error())
	}
	if r.url, r.to, err = target(nil, marked); err != nil {
		return err
	}
	// The host would say where to connect before anyone could be asked, and the
	// fragment is not sent.
	for _, m := range r.marks {
		if !strings.Contains(r.url.EscapedPath()+"?"+r.url.RawQuery, m.token) {
			return bad("url", "a secret can be in the path and in the query alone")
		}
	}
	return nil
}

// noteSecrets finds the places in headers and body.
func (r *request) noteSecrets() error {
	for name, values := range r.header {
		if _, err := places(values[0], r.note); err != nil {
			return bad("headers."+name, err.Error())
		}
	}
	if r.bodySecrets {
		if _, err := places(r.body, r.note); err != nil {
			return bad("body", err.Error())
		}
	}
	return nil
}

// A wire is what is sent in one hop.
type wire struct {
	url    *url.URL
	header http.Header
	body   string
}

// filled returns the request with the values of its secrets. Values never get
// into r itself: errors and redirects are made from that.
func (r *request) filled(value func(name string) (string, error)) (*wire, error) {
	w := &wire{url: r.url, header: r.header.Clone(), body: r.body}
	if len(r.places) == 0 {
		return w, nil
	}
	var err error
	if w.url, err = r.filledURL(value); err != nil {
		return nil, err
	}
	// Header values were checked when they were read; a value of a secret was not.
	for _, list := range w.header {
		list[0], err = places(list[0], func(name string) (string, error) {
			v, err := value(name)
			if err == nil && strings.ContainsFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
				err = unfit(name, "has line ends or control characters, so it cannot be in a header")
			}
			return v, err
		})
		if err != nil {
			return nil, err
		}
	}
	if r.bodySecrets {
		escape := bodyEscape(r.header.Get("Content-Type"))
		w.body, err = places(r.body, func(name string) (string, error) {
			v, err := value(name)
			return escape(v), err
		})
	}
	return w, err
}

// filledURL puts values in the place of marks, each escaped for where it is.
func (r *request) filledURL(value func(name string) (string, error)) (*url.URL, error) {
	u := *r.url
	// In the escaped form, in which a value's own % and / cannot be mistaken for
	// the guest's.
	path, query := u.EscapedPath(), u.RawQuery
	for _, m := range r.marks {
		v, err := value(m.name)
		if err != nil {
			return nil, err
		}
		inPath, err := pathEscape(m.name, v)
		if strings.Contains(path, m.token) && err != nil {
			return nil, err
		}
		path = strings.ReplaceAll(path, m.token, inPath)
		query = strings.ReplaceAll(query, m.token, queryEscape(v))
	}
	if len(path)+len(query) > maxURL {
		return nil, refuse(abi.Limit, fmt.Sprintf("%s url: more than %d bytes with its secrets", abi.FuncHTTP, maxURL), "url")
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return nil, bad("url", "not a URL with its secrets") // err has the path in it
	}
	u.Path, u.RawPath, u.RawQuery = plain, path, query
	return &u, nil
}

// pathEscape keeps the slashes of a value: what services call a webhook's key is
// often two or three parts of a path. None of the parts may be a way up.
func pathEscape(name, value string) (string, error) {
	parts := strings.Split(value, "/")
	for i, p := range parts {
		if p != "" && strings.Trim(p, ".") == "" {
			return "", unfit(name, "has a part . or .., so it cannot be in a path")
		}
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/"), nil
}

// queryEscape writes a blank as %20, which is read as one in every place.
func queryEscape(value string) string {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

// bodyEscape returns how a value is written into a body of a content type, so
// that it stays inside the text that the guest put it into.
func bodyEscape(contentType string) func(string) string {
	media, _, err := mime.ParseMediaType(contentType)
	// Without a type that is known the body is the guest's own format.
	switch {
	case err != nil:
	case media == "application/json", strings.HasSuffix(media, "+json"):
		return func(v string) string {
			quoted, err := hostcall.Answer(v)
			if err != nil {
				panic(err) // a text can always be written
			}
			return string(quoted[1 : len(quoted)-1])
		}
	case media == "application/x-www-form-urlencoded":
		return queryEscape
	}
	return func(v string) string { return v }
}

// withoutSecrets makes a request to another host of r: no secret goes along
// with a redirect, whatever the grant. What is in the body cannot be left out
// without changing what is said, so such a redirect is not followed.
func (r *request) withoutSecrets() error {
	if r.bodySecrets && strings.Contains(r.body, opening) {
		return errBody
	}
	for name, values := range r.header {
		if strings.Contains(values[0], opening) {
			delete(r.header, name)
		}
	}
	r.marks, r.places, r.bodySecrets = nil, nil, false
	return nil
}

var errBody = errors.New("with a secret in the body")

// unfit is the error for a value that cannot be where the guest wants it.
func unfit(name, why string) *abi.Error {
	return refuse(abi.Denied, fmt.Sprintf("%s: secret %q %s", abi.FuncHTTP, name, why), "")
}

// names returns which secrets a request has, sorted, each once.
func (r *request) names() []string {
	list := slices.Sorted(slices.Values(r.places))
	return slices.Compact(list)
}
