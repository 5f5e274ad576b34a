package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/hostcall"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A request is one that was read and checked; only the grant was not asked yet.
type request struct {
	redirected bool // it was sent, and a server sent it on
	method     string
	url        *url.URL // without user and fragment, its host as in to
	to         authority
	header     http.Header
	body       string
	// bodySecrets says that places for secrets in the body are meant as such.
	bodySecrets bool
	marks       []mark        // in url
	places      []string      // names of all places: none is in a request without secrets
	timeout     time.Duration // 0 for the client's
	secret      bool          // the values in header have secrets, of a request of the host's own
	redirects   int           // how many are followed
	maxBody     int           // bytes of the body that are read
	hint        string        // of the error for a host whose addresses are private
}

// methods are those a guest may use, as written: CONNECT and TRACE are about
// connections. The engine takes only GET and HEAD, so spelled, for calls that
// may be repeated after a crash, and another spelling must not get by it.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
	http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// decode reads the request of clause A6.13.
func decode(raw []byte) (*request, error) {
	if len(raw) > maxRequest {
		return nil, refuse(abi.Limit, fmt.Sprintf("%s: the request has more than %d KiB", abi.FuncHTTP, maxRequest>>10), "")
	}
	list, err := strictjson.Members(raw, hostcall.Limits)
	if err != nil {
		return nil, bad("", err.Error())
	}
	r := &request{method: http.MethodGet, header: http.Header{}}
	address := ""
	for _, m := range list {
		var err error
		switch m.Key {
		case "method":
			err = r.setMethod(m.Value)
		case "url":
			address, err = hostcall.Text(m.Value)
		case "headers":
			r.header, err = decodeHeaders(m.Value)
		case "body":
			r.body, err = hostcall.Text(m.Value)
		case "bodySecrets":
			r.bodySecrets, err = hostcall.Flag(m.Value)
		case "timeoutMs":
			err = r.setTimeout(m.Value)
		default:
			err = errors.New("unknown field; want method, url, headers, body, bodySecrets or timeoutMs")
		}
		if err != nil {
			if e := abi.As(err); e != nil {
				return nil, e
			}
			return nil, bad(m.Key, err.Error())
		}
	}
	// Servers and proxies disagree about such a body, and may take it for the
	// next request.
	if r.body != "" && bodiless(r.method) {
		return nil, bad("body", "a "+r.method+" has none")
	}
	if err := r.setURL(address); err != nil {
		return nil, err
	}
	return r, r.noteSecrets()
}

func knownMethod(name string) bool { return slices.Contains(methods, name) }

// bodiless reports whether requests of a method have no body.
func bodiless(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func (r *request) setMethod(raw json.RawMessage) error {
	s, err := hostcall.Text(raw)
	if err != nil {
		return err
	}
	if s == "" {
		s = http.MethodGet
	}
	if !knownMethod(s) {
		return fmt.Errorf("%.20q is none of %s", s, strings.Join(methods, ", "))
	}
	r.method = s
	return nil
}

// setTimeout refuses more than there is rather than cut it: a plugin that counts
// on ten minutes should learn that it has five.
func (r *request) setTimeout(raw json.RawMessage) error {
	ms, err := hostcall.Number(raw)
	if err != nil {
		return err
	}
	if ms > maxTimeout.Milliseconds() {
		return fmt.Errorf("%d is more than %d, the most there is", ms, maxTimeout.Milliseconds())
	}
	r.timeout = time.Duration(ms) * time.Millisecond
	return nil
}

// maxField is how much of a guest's own words for a field an error repeats.
const maxField = 100

// bad is an error of the request's shape.
func bad(field, cause string) *abi.Error {
	at := abi.FuncHTTP
	if field = textcut.Mark(field, maxField); field != "" {
		at += " " + field
	}
	return refuse(abi.BadFields, at+": "+cause, field)
}
