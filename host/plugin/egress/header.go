package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/plugin/hostcall"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// What a request may have of headers.
const (
	maxHeaders     = 64
	maxHeaderBytes = 32 << 10 // names and values together
)

// notTheGuests are the headers, beside proxy-*, that say how a message is
// framed or what becomes of its connection, and accept-encoding, since the
// client decompresses and bounds what it asked for.
var notTheGuests = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Http2-Settings",
	"Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// toOthers are the headers that go along to another origin. It is a list of
// those that are known to be harmless, since credentials have many names.
var toOthers = []string{
	"Accept", "Accept-Language", "Cache-Control", "Content-Language", "Content-Type",
	"If-Modified-Since", "If-None-Match", "Range", "User-Agent",
}

// ofBody are the headers that go with a body when a redirect drops it.
var ofBody = []string{"Content-Type", "Content-Language", "Content-Encoding", "Content-Location"}

// decodeHeaders reads an object of texts. Names that differ in case alone are
// one header, and twice is refused: which of the values counts is unclear.
func decodeHeaders(raw json.RawMessage) (http.Header, error) {
	h := http.Header{}
	if string(raw) == "null" {
		return h, nil
	}
	list, err := strictjson.Members(raw, hostcall.Limits)
	if err != nil {
		return nil, err
	}
	if len(list) > maxHeaders {
		return nil, fmt.Errorf("more than %d headers", maxHeaders)
	}
	size := 0
	for _, m := range list {
		value, err := hostcall.Text(m.Value)
		if err == nil {
			err = checkHeader(m.Key, value)
		}
		name := http.CanonicalHeaderKey(m.Key)
		if err == nil && h[name] != nil {
			err = errors.New("duplicate header")
		}
		if err != nil {
			return nil, bad("headers."+m.Key, err.Error())
		}
		if size += len(name) + len(value); size > maxHeaderBytes {
			return nil, fmt.Errorf("more than %d KiB of headers", maxHeaderBytes>>10)
		}
		h[name] = []string{strings.Trim(value, " \t")}
	}
	return h, nil
}

// checkHeader refuses what could change how the request is read.
func checkHeader(name, value string) error {
	if name == "" || strings.ContainsFunc(name, notToken) {
		return fmt.Errorf("not the name of a header")
	}
	canonical := http.CanonicalHeaderKey(name)
	if slices.Contains(notTheGuests, canonical) || strings.HasPrefix(canonical, "Proxy-") {
		return fmt.Errorf("only the host sets this header")
	}
	// A line break would begin another header; the rest confuses logs.
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Errorf("a value with a control character")
		}
	}
	return nil
}

// notToken reports whether r cannot be in a token of RFC 9110.
func notToken(r rune) bool {
	switch {
	case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// forOthers returns the headers that may go to another origin.
func forOthers(h http.Header) http.Header {
	out := http.Header{}
	for _, name := range toOthers {
		if v, ok := h[name]; ok {
			out[name] = v
		}
	}
	return out
}
