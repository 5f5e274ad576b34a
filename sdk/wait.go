package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// A Decision is what a person said.
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

// WaitUntil waits for a moment, RFC 3339. One in the past is over at once.
func (c *Context) WaitUntil(moment string) error {
	_, err := c.wait(Object(F("until", String(moment))), 0)
	return err
}

// WaitEvent waits for the next event whose name fits the pattern and returns
// its record. A timeoutMs of 0 is none but the step's own; reaching it is an
// error with code timeout.
func (c *Context) WaitEvent(pattern string, timeoutMs int64) (event Value, err error) {
	answer, err := c.wait(Object(F("event", String(pattern))), timeoutMs)
	return answer.Get("event"), err
}

// WaitRun waits until a run has ended and returns its result, clause A6.11 of
// ABI.md. A run that failed is a result.
func (c *Context) WaitRun(run string) (result Value, err error) {
	answer, err := c.wait(Object(F("run", String(run))), 0)
	return answer.Get("result"), err
}

// Decide waits for a person's decision. Approvers may be empty: anyone who may
// decide. Reaching timeoutMs is an error with code timeout, never a yes.
func (c *Context) Decide(prompt string, approvers []string, timeoutMs int64) (Decision, error) {
	ask := Object(F("prompt", String(prompt)))
	if len(approvers) > 0 {
		ask = ask.With("approvers", Strings(approvers))
	}
	answer, err := c.wait(Object(F("decision", ask)), timeoutMs)
	if err != nil {
		return Decision{}, err
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
		return Value{}, abi.New(abi.Timeout, "wait: time limit reached")
	}
	return answer, nil
}
