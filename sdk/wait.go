package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// A Decision is the answer to a pending decision.
type Decision struct {
	Approved bool
	By       string
	At       string // RFC 3339
	Comment  string
}

// Sleep waits for a duration in milliseconds of calendar time.
func (c *Context) Sleep(ms int64) error {
	_, err := c.wait(Object(F("durationMs", Int(ms))), 0)
	return err
}

// WaitUntil waits until a time, RFC 3339. It returns at once if that has passed.
func (c *Context) WaitUntil(moment string) error {
	_, err := c.wait(Object(F("until", String(moment))), 0)
	return err
}

// WaitEvent waits for the next event whose name matches the pattern and returns its
// record. A timeoutMs of 0 means that only the timeout of the step applies; a timeout
// is an error with code timeout.
func (c *Context) WaitEvent(pattern string, timeoutMs int64) (event Value, err error) {
	return c.WaitEventOf(pattern, "", timeoutMs)
}

// WaitEventOf is [Context.WaitEvent] that takes only events of a source where names have the form
// sentinel:ID:WORD: "engine", "user", or "" for the engine where ID is a stored sentinel.
func (c *Context) WaitEventOf(pattern, source string, timeoutMs int64) (event Value, err error) {
	request := Object(F("event", String(pattern)))
	if source != "" {
		request = request.With("source", String(source))
	}
	answer, err := c.wait(request, timeoutMs)
	return answer.Get("event"), err
}

// WaitRun waits until a run has ended and returns its result, clause A6.11 of
// ABI.md. A run that failed is a result.
func (c *Context) WaitRun(run string) (result Value, err error) { return c.WaitRunFor(run, 0) }

// WaitRunFor is [Context.WaitRun] with a time limit, as in [Context.WaitEvent].
func (c *Context) WaitRunFor(run string, timeoutMs int64) (result Value, err error) {
	answer, err := c.wait(Object(F("run", String(run))), timeoutMs)
	return answer.Get("result"), err
}

// Decide waits for a decision. Without approvers, any user may decide who is allowed to.
// After timeoutMs of calendar time, which continue over a crash, it returns an error with code timeout, never an
// approval; At is then the deadline.
func (c *Context) Decide(prompt string, approvers []string, timeoutMs int64) (Decision, error) {
	ask := Object(F("prompt", String(prompt)))
	if len(approvers) > 0 {
		ask = ask.With("approvers", Strings(approvers))
	}
	return c.decide(ask, timeoutMs)
}

// DecideCall waits for the approval of a call by any user who is allowed to. kind is the kind of calls
// that the approval covers, "" for this one alone.
func (c *Context) DecideCall(prompt, kind string) (Decision, error) {
	return c.decide(Object(F("prompt", String(prompt)), F("callKind", Text(kind))), 0)
}

func (c *Context) decide(ask Value, timeoutMs int64) (Decision, error) {
	answer, err := c.wait(Object(F("decision", ask)), timeoutMs)
	if err != nil {
		if reason := answer.Get("reason").StringOr(""); reason != "" {
			err = abi.New(abi.Timeout, reason+" without a decision")
		}
		return Decision{At: answer.Get("deadline").StringOr("")}, err
	}
	d := answer.Get("decision")
	return Decision{
		Approved: d.Get("verdict").StringOr("") == "approve",
		By:       d.Get("by").StringOr(""),
		At:       d.Get("at").StringOr(""),
		Comment:  d.Get("comment").StringOr(""),
	}, nil
}

func (c *Context) wait(request Value, timeoutMs int64) (Value, error) {
	if timeoutMs > 0 {
		request = request.With("timeoutMs", Int(timeoutMs))
	}
	answer, err := c.call(abi.FuncWait, importWait, request)
	if err != nil {
		return Value{}, err
	}
	if answer.Get("timedOut").BoolOr(false) {
		return answer, abi.New(abi.Timeout, "wait: time limit reached")
	}
	return answer, nil
}
