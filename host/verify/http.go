package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

const (
	maxAnswer       = 4 << 20 // bytes of a response that are read
	shownAnswer     = 2 << 10 // bytes of it in the result
	requestTimeout  = 30 * time.Second
	maxRedirects    = 10
	serviceStopWait = 3 * time.Second
)

// errElsewhere is a redirect to another host.
var errElsewhere = errors.New("redirected to another host")

// request sends the request of a check to base and judges the answer. dial connects; nil is
// the network of this machine.
func (c *httpCheck) request(ctx context.Context, base string, env environment, dial dialer) (r CheckResult) {
	target, err := url.Parse(base)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" || target.User != nil {
		return skip(Refused, "service_url %q: want http://HOST:PORT without credentials", quote(base))
	}
	path, missing := env.expand(c.Path)
	body, more := env.expandJSON(c.Body)
	headers := http.Header{"Content-Type": {"application/json"}}
	missing = append(missing, more...)
	for name, value := range c.Headers {
		value, more := env.expand(value)
		missing = append(missing, more...)
		headers.Set(name, value)
	}
	expect, more := env.expandJSON(c.Expect)
	if missing = append(missing, more...); len(missing) > 0 {
		return skip(Refused, "{{%s}}: no such variable for checks; list it in the setting verify.env, and set it", missing[0])
	}
	// The path is appended as text: as a reference, //host would name a host.
	full, err := url.Parse(strings.TrimSuffix(target.String(), "/") + path)
	if err != nil || full.Host != target.Host {
		return CheckResult{Status: Failed, Message: fmt.Sprintf("path %s: is not a path of a request", quote(c.Path))}
	}
	var reader io.Reader
	if c.hasBody() {
		reader = strings.NewReader(strings.TrimSpace(string(body)))
	}
	request, err := http.NewRequestWithContext(ctx, c.Method, full.String(), reader)
	if err != nil {
		return CheckResult{Status: Failed, Message: fmt.Sprintf("%s %s: %v", c.Method, quote(c.Path), err)}
	}
	request.Header = headers
	client := &http.Client{
		// A proxy of the host would see requests to services of this machine, and
		// connections are not kept: the next verification has another service.
		Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true, DialContext: dial},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if next.URL.Host != target.Host || next.URL.Scheme != target.Scheme {
				return fmt.Errorf("%w: %s", errElsewhere, quote(next.URL.Host))
			}
			if len(via) >= maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return nil
		},
	}
	answer, err := client.Do(request)
	if err != nil {
		return c.unanswered(ctx, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return c.unanswered(ctx, err)
	}
	r.Output = textcut.Mark(string(text), shownAnswer)
	switch {
	case c.Status == 0 && answer.StatusCode/100 != 2:
		r.Status, r.Message = Failed, fmt.Sprintf("Expected 2xx, got %d", answer.StatusCode)
	case c.Status != 0 && answer.StatusCode != c.Status:
		r.Status, r.Message = Failed, fmt.Sprintf("Expected %d, got %d", c.Status, answer.StatusCode)
	case len(text) > maxAnswer:
		r.Status, r.Message = Failed, fmt.Sprintf("the response has more than %d bytes", maxAnswer)
	default:
		r.Status, r.Message = Passed, fmt.Sprintf("%s %s returned %d", c.Method, quote(c.Path), answer.StatusCode)
		if difference := compare(expect, text); difference != "" {
			r.Status, r.Message = Failed, fmt.Sprintf("%s %s returned %d, but %s", c.Method, quote(c.Path), answer.StatusCode, difference)
		}
	}
	return r
}

// unanswered judges a request without an answer. Where nothing listens the check could
// not be executed, unless its own service should have: then it fails.
func (c *httpCheck) unanswered(ctx context.Context, err error) CheckResult {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		err = urlError.Err
	}
	call := fmt.Sprintf("%s %s: ", c.Method, quote(c.Path))
	switch {
	case errors.Is(err, errElsewhere):
		return CheckResult{Status: Failed, Message: call + err.Error()}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return CheckResult{Status: Failed, Message: call + "no answer in time"}
	case c.Service == nil && errors.Is(err, syscall.ECONNREFUSED):
		return skip(Infrastructure, "%sconnection refused: start the service, or give the check a service", call)
	case c.Service == nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET):
		return skip(Infrastructure, "%s%v", call, err)
	}
	return CheckResult{Status: Failed, Message: call + err.Error()}
}

func skip(reason, format string, args ...any) CheckResult {
	return CheckResult{Status: Skipped, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// compare returns how an answer differs from what is expected, or nothing. Of objects
// the expected fields count, of lists each entry; a text is part of an answer that is
// not JSON.
func compare(expect json.RawMessage, answer []byte) string {
	text := strings.TrimSpace(string(expect))
	if text == "" || text == "null" {
		return ""
	}
	var want, have any
	if err := json.Unmarshal(expect, &want); err != nil {
		return "expect_body is not JSON"
	}
	if err := json.Unmarshal(answer, &have); err != nil {
		part, ok := want.(string)
		if ok && strings.Contains(string(answer), part) {
			return ""
		}
		if ok {
			return fmt.Sprintf("the body does not contain %s", quote(part))
		}
		return "the body is not JSON"
	}
	return differs("body", want, have)
}

func differs(place string, want, have any) string {
	switch want := want.(type) {
	case map[string]any:
		own, ok := have.(map[string]any)
		if !ok {
			return place + " is no object"
		}
		for name, value := range want {
			if _, ok := own[name]; !ok {
				return fmt.Sprintf("%s.%s is missing", place, quote(name))
			}
			if d := differs(place+"."+quote(name), value, own[name]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		own, ok := have.([]any)
		if !ok || len(own) != len(want) {
			return fmt.Sprintf("%s is not a list of %d", place, len(want))
		}
		for i := range want {
			if d := differs(fmt.Sprintf("%s[%d]", place, i), want[i], own[i]); d != "" {
				return d
			}
		}
		return ""
	}
	if want != have {
		a, _ := json.Marshal(have) // values of JSON have a text
		b, _ := json.Marshal(want)
		return fmt.Sprintf("%s is %s, not %s", place, quote(string(a)), quote(string(b)))
	}
	return ""
}
