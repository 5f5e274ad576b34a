package http

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// result is the result, as [output] describes it.
type result struct {
	Status       int               `json:"status"`
	Success      bool              `json:"success"`
	Headers      map[string]string `json:"headers"`
	Text         *string           `json:"text,omitempty"`
	JSON         json.RawMessage   `json:"json,omitempty"`
	Base64       string            `json:"base64,omitempty"`
	Method       string            `json:"method"`
	URL          string            `json:"url"`
	DurationMs   int64             `json:"durationMs"`
	Problem      string            `json:"problem,omitempty"`
	RetryAfterMs int64             `json:"retryAfterMs,omitempty"`
	Truncated    bool              `json:"truncated,omitempty"`
}

const (
	maxJSON      = 2 << 20  // bytes of a body that is a value too, as that of a shell line
	maxMixedText = 1 << 20  // bytes of a body that is not UTF-8 and has a text too
	maxResult    = 16 << 20 // bytes of a value; FORMAT.md F6.7
	shownText    = 500      // bytes of the body in a problem
)

// read returns the answer as the result. A model pays for each copy, so it gets the text alone.
func read(a *egress.Fetched, model bool) *result {
	res := &result{Status: a.Status, Headers: a.Header, URL: withoutQuery(a.URL)}
	text := string(a.Body)
	if whole := utf8.Valid(a.Body); !whole && !model {
		res.Base64 = base64.StdEncoding.EncodeToString(a.Body)
		text = ""
		if len(a.Body) <= maxMixedText {
			text = strings.ToValidUTF8(string(a.Body), "\uFFFD")
		}
	} else if !whole {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if model {
		cut := textcut.Mark(text, maxModelText)
		text, res.Truncated = cut, cut != text
	} else if len(a.Body) > 0 && len(a.Body) <= maxJSON && strictjson.Check(a.Body, strictjson.Unlimited()) == nil {
		res.JSON = json.RawMessage(a.Body)
	}
	if res.Base64 == "" || text != "" {
		res.Text = &text
	}
	return res
}

// encode returns the result as the value that steps get.
func (r *result) encode() (json.RawMessage, error) {
	value, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if len(value) > maxResult {
		return nil, &abi.Error{
			Code: abi.Limit, Permanent: true,
			Message: fmt.Sprintf("the answer of %s would be a value of %d bytes, the limit is %d", r.URL, len(value), maxResult),
			Hint:    "ask for a part of it, or store it in a file with a program: curl -o FILE in a step of type shell",
		}
	}
	return value, nil
}

// withoutQuery returns a URL without what often has keys in it.
func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.RawQuery, u.Fragment, u.ForceQuery = "", "", false
	return u.String()
}

// problem says why the status is not one of expect, as it is written, with the beginning of the
// body. Without expect, any 2xx is a success.
func problem(r *result, expect json.RawMessage) string {
	text := strings.TrimSpace(fmt.Sprintf("%s %s: status %d %s", r.Method, r.URL, r.Status, nethttp.StatusText(r.Status)))
	if len(expect) > 0 && string(expect) != "null" {
		text += ", want " + textcut.Mark(string(expect), shownText)
	}
	if r.Text != nil {
		if body := strings.TrimSpace(*r.Text); body != "" {
			text += ": " + textcut.Mark(body, shownText)
		}
	}
	return text
}

// A statusSet is the statuses that are a success, as ranges.
type statusSet [][2]int

func (s statusSet) has(status int) bool {
	for _, r := range s {
		if status >= r[0] && status <= r[1] {
			return true
		}
	}
	return false
}

// statuses reads the parameter expect: a status, "2xx", "200-204", or a list of these.
func statuses(raw json.RawMessage) (statusSet, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return statusSet{{200, 299}}, nil
	}
	list := []json.RawMessage{raw}
	if raw[0] == '[' {
		list = nil
		strictjson.EachItem(raw, func(item []byte) bool { list = append(list, item); return true })
	}
	var set statusSet
	for _, item := range list {
		text := strings.Trim(string(item), `"`)
		first, last, isRange := strings.Cut(text, "-")
		if family, ok := strings.CutSuffix(text, "xx"); ok {
			first, last, isRange = family+"00", family+"99", true
		}
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || from > to {
			return nil, badParameter("expect", fmt.Sprintf(`%s: want a status such as 201, "2xx" or "200-204"`, item))
		}
		set = append(set, [2]int{from, to})
	}
	return set, nil
}
