package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/triggers/webhook"
)

// maxRefusal bounds what is kept of the answer of a webhook that refuses, in bytes.
const maxRefusal = 200

// checkURL refuses addresses that messages must not be sent to. The path may be a secret,
// so no error has it.
func checkURL(text string) error {
	if _, ok := endpoint.Parse(text); ok {
		return nil
	}
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "notify.webhook", Message: "notify.webhook: want https://HOST/PATH, without credentials; http only for this machine"}
}

// delivery is the body of a request in the format [Standard].
type delivery struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Message   `json:"data"`
}

// post sends a message to the webhook, and returns the status of the answer, 0 if there
// is none.
func (s *Service) post(ctx context.Context, m Message, id string) (status int, err error) {
	now := s.opt.Now().UTC()
	req, err := s.request(m, now)
	if err != nil {
		return 0, err
	}
	secret := ""
	if s.opt.Secret != nil {
		if secret, err = s.opt.Secret(); err != nil {
			return 0, err
		}
	}
	signed, err := webhook.Sign(secret, id, now, req.body)
	if e := abi.As(err); e != nil {
		return 0, &abi.Error{Code: e.Code, Permanent: true, Message: e.Message, Hint: "openssl rand -base64 32 makes a secret for the name in notify.secret"}
	}
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, req.url, bytes.NewReader(req.body))
	if err != nil {
		return 0, checkURL("")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "sentinel")
	for name, value := range signed {
		r.Header.Set(name, value)
	}
	answer, err := s.http.Do(r)
	if err != nil {
		if asked := (*url.Error)(nil); errors.As(err, &asked) {
			err = asked.Err // without the URL
		}
		return 0, fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 == 2 {
		return answer.StatusCode, nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxRefusal)) // an excerpt that helps, if there is one
	return answer.StatusCode, refused(r.URL.Host, answer, strings.TrimSpace(strings.ToValidUTF8(string(text), "")), now)
}

// refused is the error of an unsuccessful response.
func refused(host string, answer *http.Response, text string, now time.Time) error {
	e := &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("%s answered %d %s", host, answer.StatusCode, http.StatusText(answer.StatusCode))}
	if text != "" {
		e.Message += fmt.Sprintf(": %q", text)
	}
	switch status := answer.StatusCode; {
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		e.Code, e.Permanent, e.RetryAfterMs = abi.Unavailable, false, endpoint.RetryAfter(answer.Header, now).Milliseconds()
	case status/100 == 3:
		e.Code, e.Hint = abi.Denied, "redirects are not followed: set notify.webhook to the address that takes the message"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Code, e.Hint = abi.Denied, "check notify.webhook and notify.secret"
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Code, e.Hint = abi.NotFound, "check notify.webhook"
	}
	return e
}
