package llm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// longestRetryAfter caps what a server may ask for: beyond it the number says
// more about the server than about when to come back.
const longestRetryAfter = 24 * time.Hour

// brokenCallHint is the hint for a tool call that a server could not read. Another attempt often
// succeeds.
const brokenCallHint = "if it happens again, choose a model that calls tools better, or set tools to text for the provider"

// fault names an error of a provider in the one list of codes. It is the only
// place where statuses and network errors are mapped.
func (m *Models) fault(ctx context.Context, c chosen, err error) error {
	if e := abi.As(err); e != nil && c.provider.Kind == KindPlugin && ctx.Err() == nil {
		own := *e
		own.Field, own.Message = "", fmt.Sprintf("model %q: %s", c.Provider+"/"+c.Model, e.Message)
		if e.Code == abi.Limit && judge(c, &wire.Failure{Kind: wire.Event, Message: e.Message}, providers.TooLong).Class != "" {
			own.Field = conversationField
		}
		return &own
	} else if e != nil {
		return err
	}
	who := "model \"" + c.Provider + "/" + c.Model + "\""
	if c.Model == "" {
		who = fmt.Sprintf("provider %q", c.Provider)
	}
	// Our own limits come first: what the SDK makes of a cancelled request
	// differs from place to place.
	if errors.Is(err, errStall) {
		return &abi.Error{Code: abi.Timeout, Message: fmt.Sprintf("%s: the server sent nothing for %s", who, m.config.Stall)}
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &abi.Error{Code: abi.Timeout, Message: who + ": the time limit was reached before the answer was complete"}
	case ctx.Err() != nil:
		return &abi.Error{Code: abi.Cancelled, Message: who + ": cancelled"}
	}
	f, ok := errors.AsType[*wire.Failure](err)
	if !ok {
		return &abi.Error{Code: abi.Internal, Message: who + ": " + err.Error()}
	}
	switch f.Kind {
	case wire.Status:
		return m.statusFault(c, who, f)
	case wire.Event:
		return m.eventFault(c, who, f)
	case wire.TooLarge:
		return &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("%s: the answer is larger than %d bytes", who, wire.MaxAnswer)}
	case wire.TooMany:
		return &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("%s: the answer has more than %d tool calls or blocks", who, wire.MaxCalls)}
	case wire.NotReply:
		return &abi.Error{Code: abi.Unavailable, Permanent: true, Message: who + ": " + f.Error(),
			Hint: "check the base URL " + c.provider.BaseURL + " and the kind of the provider"}
	case wire.Broken:
		return &abi.Error{Code: abi.Unavailable, Message: who + ": broken stream: " + f.Error()}
	}
	if err := tlsFault(c, who, f.Err); err != nil {
		return err
	}
	if errno := outOfFiles(f.Err); errno != nil {
		return fmt.Errorf("%w: %w", &abi.Error{Code: abi.Unavailable, Message: who + ": no file descriptor is left for a connection"}, errno)
	}
	if timeout, ok := errors.AsType[net.Error](f.Err); ok && timeout.Timeout() {
		return &abi.Error{Code: abi.Timeout, Message: who + ": " + f.Error()}
	}
	out := &abi.Error{Code: abi.Unavailable, Message: who + ": " + f.Error()}
	if out.Hint = m.throughProxy(c.provider.BaseURL); out.Hint == "" && c.provider.server {
		out.Hint = "is the server at " + c.provider.BaseURL + " running?"
	}
	return out
}

// statusFault names an answer with a status. Hints name the variable to look
// at, since the provider cannot know it.
func (m *Models) statusFault(c chosen, who string, f *wire.Failure) error {
	out := &abi.Error{Message: fmt.Sprintf("%s: %d %s: %s", who, f.Status, http.StatusText(f.Status), f.Error())}
	fixed := func(code abi.Code, hint string) error {
		out.Code, out.Permanent, out.Hint = code, true, hint
		return out
	}
	v := judge(c, f, providers.TooLong, providers.RateLimit, providers.Overloaded, providers.NoCredit, providers.Refused, providers.BrokenCall)
	// Some providers report an empty account as a rate limit, and a conversation that is too
	// long as a 413, so the class comes before the status.
	switch {
	case v.Class == providers.NoCredit, f.Status == 402:
		return fixed(abi.Denied, "the account behind "+keyName(c.provider)+" has no credit left")
	case v.Class == providers.RateLimit, v.Class == providers.Overloaded, f.Status == 429:
		out.Code, out.RetryAfterMs = abi.Unavailable, m.wait(f)
	case v.Class == providers.BrokenCall:
		out.Code = abi.Unavailable
		out.Message = fmt.Sprintf("%s: the model wrote a tool call that its server cannot read: %s", who, f.Error())
		out.Hint = brokenCallHint
	case v.Class == providers.Refused && f.Status < 500:
		return fixed(abi.Denied, "the provider's content policy refuses the request; change its words")
	case f.Status == 401 || f.Status == 403:
		return fixed(abi.Denied, "check "+keyName(c.provider))
	case v.Class == providers.TooLong:
		return overflow(fmt.Sprintf("%s: context window exceeded: %s", who, f.Error()))
	case f.Status == 404:
		return fixed(abi.NotFound, "check the model's name and the base URL "+c.provider.BaseURL)
	case f.Status == 408 || f.Status == 504:
		out.Code = abi.Timeout
	case f.Status == 409 || f.Status == 425 || f.Status >= 500:
		out.Code, out.RetryAfterMs = abi.Unavailable, m.wait(f)
	case f.Status == 400 && wantsTLS.MatchString(f.Message):
		out.Message = fmt.Sprintf("%s: TLS: the server speaks TLS on this port and got plain HTTP", who)
		return fixed(abi.Unavailable, "write https:// in the base URL, now "+c.provider.BaseURL)
	case f.Status >= 400:
		return fixed(abi.BadFields, "")
	default: // a redirect
		return fixed(abi.Denied, "redirects are not followed, since the key would go along; set the base URL to where it leads")
	}
	return out
}

// eventFault names an error that came inside a stream.
func (m *Models) eventFault(c chosen, who string, f *wire.Failure) error {
	out := &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("%s: the stream ended with an error: %s", who, f.Error())}
	v := judge(c, f, providers.TooLong, providers.RateLimit, providers.Overloaded, providers.NoCredit, providers.Refused, providers.BrokenCall)
	// An error here may have come after half the answer; overload and faults of
	// the server, the usual ones, are worth another attempt.
	switch {
	case v.Class == providers.NoCredit, v.Class == providers.Refused:
		out.Code, out.Permanent = abi.Denied, true
	case v.Class == providers.RateLimit, v.Class == providers.Overloaded:
		out.RetryAfterMs = m.wait(f)
	case v.Class == providers.TooLong:
		return overflow(fmt.Sprintf("%s: context window exceeded: %s", who, f.Error()))
	case v.Class == providers.BrokenCall: // another attempt
	case strings.Contains(f.Type, "authentication"), strings.Contains(f.Type, "permission"), strings.Contains(f.Type, "billing"):
		out.Code, out.Permanent = abi.Denied, true
	case strings.Contains(f.Type, "invalid_request"):
		out.Code, out.Permanent = abi.BadFields, true
	case strings.Contains(f.Type, "timeout"):
		out.Code = abi.Timeout
	}
	return out
}

// judge returns what the table of providers says of an error, if that is one of the classes.
func judge(c chosen, f *wire.Failure, classes ...providers.Class) providers.Verdict {
	if f.Kind != wire.Status && f.Kind != wire.Event {
		return providers.Verdict{}
	}
	about := f.Type + " " + f.Code + " " + f.Message
	return c.row().Judge(f.Status, about, func(class providers.Class) bool { return slices.Contains(classes, class) })
}

// row returns what is known of the provider and the model.
func (c chosen) row() providers.Row {
	return providers.Of(c.provider.BaseURL, c.Model, c.provider.rows...)
}

// cut returns the error of a reply that its finish reason says has failed, nil if it has not.
func (m *Models) cut(c chosen, a wire.Answer) error {
	who := fmt.Sprintf("model %q", c.Provider+"/"+c.Model)
	switch c.row().Finished(a.Finish) {
	case providers.Failed:
		return &abi.Error{Code: abi.Unavailable,
			Message: fmt.Sprintf("%s: the reply is not complete: the server ended it with %q", who, a.Finish)}
	case providers.BrokenCall:
		return &abi.Error{Code: abi.Unavailable, Hint: brokenCallHint,
			Message: fmt.Sprintf("%s: the model wrote a tool call that its server cannot read: it ended the reply with %q", who, a.Finish)}
	case providers.TooLong:
		return overflow(fmt.Sprintf("%s: context window exceeded: the server ended the reply with %q", who, a.Finish))
	}
	return nil
}

// keyName says where the key of a provider comes from, never what it is.
func keyName(p *provider) string {
	if p.KeyEnv != "" {
		return p.KeyEnv
	}
	return fmt.Sprintf("the key of provider %q", p.Name)
}

// wait returns how long a server asks to wait, in milliseconds, 0 if it does not.
func (m *Models) wait(f *wire.Failure) int64 {
	return min(providers.Wait(f.Header, f.Message, m.config.Clock()), longestRetryAfter).Milliseconds()
}

// clean takes secrets out of an error. It returns a new one: errors of the SDK
// hold requests with keys and must not be reachable from it.
func (m *Models) clean(err error) error {
	if err == nil {
		return nil
	}
	out := abi.Error{Code: abi.Internal, Message: err.Error()}
	if e := abi.As(err); e != nil {
		out = *e
	}
	out.Message, out.Hint = m.redact.String(out.Message), m.redact.String(out.Hint)
	if errno := outOfFiles(err); errno != nil {
		return fmt.Errorf("%w: %w", &out, errno)
	}
	return &out
}

// outOfFiles returns the errno of a connection that could not be opened because
// no file descriptor was left, nil for every other error. The engine makes such a
// turn again.
func outOfFiles(err error) error {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) {
			return errno
		}
	}
	return nil
}
