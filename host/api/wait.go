package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// typeDuration is the type of a query parameter such as 30s.
const typeDuration = "duration"

// waitParam is how long a request waits for the end of a run. No command gets
// it: the API waits by [awaitCommand].
var waitParam = Param{Name: "wait", Type: typeDuration, As: "-", Summary: "how long to wait for the end of the run, such as 30s, at most 5m; not at all if not given"}

// awaitCommand is the command that waits for the end of a run. A request of it
// has a limit of time, so that none is there for ever: a connection may be dead
// without the server knowing. Clients repeat it.
const (
	awaitCommand = "sentinel/await"
	awaitTime    = 5 * time.Minute
)

// limitWait returns the context of a command: that of the wait for a run ends,
// with the error of the limit as its cause.
func (a *API) limitWait(ctx context.Context, name string) (context.Context, context.CancelFunc) {
	if name != awaitCommand {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, a.opt.AwaitTime, &abi.Error{
		Code: abi.Timeout, Message: fmt.Sprintf("%s: the run is still active after %s, the longest that one request waits", awaitCommand, a.opt.AwaitTime),
		RetryAfterMs: 1, Hint: "the run continues; send the request again to wait further",
	})
}

// stillActive returns the error of the limit if that is why a command has ended,
// err otherwise.
func stillActive(ctx context.Context, err error) error {
	if code := abi.CodeOf(err); code == abi.Timeout || code == abi.Cancelled { // any other one is of something else, at the same moment
		if limit := abi.As(context.Cause(ctx)); limit != nil {
			return limit
		}
	}
	return err
}

// milliseconds reads a duration of at least a millisecond.
func milliseconds(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d < time.Millisecond {
		err = fmt.Errorf("%q is below a millisecond", text)
	}
	return d.Milliseconds(), err
}

// await waits for the end of a run as long as the request asks for, and returns
// its result; nil if the run has not ended by then or the request does not wait.
func (a *API) await(r *http.Request, run json.RawMessage) (json.RawMessage, error) {
	text := r.URL.Query().Get(waitParam.Name)
	if text == "" {
		return nil, nil
	}
	ms, err := milliseconds(text)
	if err != nil {
		return nil, err // the parameters were checked, so this is a fault of the host
	}
	result, err := a.call(r, awaitCommand, map[string]json.RawMessage{"run": run, "timeoutMs": strconv.AppendInt(nil, ms, 10)})
	if abi.CodeOf(err) == abi.Timeout && r.Context().Err() == nil {
		return nil, nil
	}
	return result, err
}

// startedRun answers 201 for a run that has started. If the request waits and
// the run ends in time, the answer has its result and its last status.
func startedRun(a *API, w http.ResponseWriter, r *http.Request, route *Route, started json.RawMessage) error {
	answer, err := members(started)
	if err != nil {
		return err
	}
	// The run has started whatever becomes of the wait: an error would have the
	// client start another one.
	result, err := a.await(r, answer["run"])
	if err != nil || result == nil {
		return created("/v1/runs/", "run")(a, w, r, route, started)
	}
	end, err := members(result)
	if err != nil {
		return err
	}
	answer["status"], answer["result"] = end["status"], result
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return created("/v1/runs/", "run")(a, w, r, route, text)
}

// result answers with how a run ended, after waiting for that if the request
// asks for it.
func (a *API) result(w http.ResponseWriter, r *http.Request) error {
	route := a.byPattern["GET /v1/runs/{run}/result"]
	params, err := a.params(r, route, nil)
	if err != nil {
		return err
	}
	if result, err := a.await(r, params["run"]); err != nil || result != nil {
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, result)
	}
	result, err := a.call(r, route.Command, params)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, result)
}
