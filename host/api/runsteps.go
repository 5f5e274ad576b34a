package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// trace is the part of a run's trace that step states are made of.
type trace struct {
	Iterations []struct {
		Number   int          `json:"number"`
		Revision int          `json:"revision"`
		Hash     string       `json:"hash"`
		Steps    []*traceStep `json:"steps"`
	} `json:"iterations"`
	Next string `json:"next"`
}

// traceStep is a step execution of a trace. Its attempts stay as they are, so
// that a single step can be shown with all that the trace has.
type traceStep struct {
	Address  string            `json:"address"`
	Path     string            `json:"path"`
	Type     string            `json:"type"`
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Start    time.Time         `json:"start"`
	Millis   float64           `json:"durationMs"`
	Skipped  string            `json:"skipped"`
	Error    *abi.Error        `json:"error"`
	Output   json.RawMessage   `json:"output"`
	OutputTo string            `json:"outputTo"`
	Ended    bool              `json:"ended"`
	Attempts []json.RawMessage `json:"attempts"`
}

// iterationSteps is one iteration of a run, step by step.
type iterationSteps struct {
	Next      string      `json:"next,omitempty"` // after of the next page; a step that began on this one is there too
	Run       string      `json:"run"`
	Iteration int         `json:"iteration"`
	Revision  int         `json:"revision,omitempty"`
	Hash      string      `json:"hash"`
	Steps     []stepState `json:"steps"`
}

// stepState is a step execution as a debugger shows it: what went in, what came
// out, what it changed.
type stepState struct {
	Run       string                     `json:"run,omitempty"`
	Iteration int                        `json:"iteration,omitempty"`
	Revision  int                        `json:"revision,omitempty"`
	Path      string                     `json:"path"`
	Address   string                     `json:"address"`
	Type      string                     `json:"type,omitempty"`
	ID        string                     `json:"id,omitempty"`
	Name      string                     `json:"name,omitempty"`
	State     string                     `json:"state"` // ok, failed, skipped or running
	Skipped   string                     `json:"skipped,omitempty"`
	Start     time.Time                  `json:"start"`
	Millis    float64                    `json:"durationMs,omitempty"`
	In        json.RawMessage            `json:"in,omitempty"`        // fields of the last attempt, as resolved
	Out       json.RawMessage            `json:"out,omitempty"`       // output
	Variables map[string]json.RawMessage `json:"variables,omitempty"` // that it set
	Error     *abi.Error                 `json:"error,omitempty"`
	Tries     int                        `json:"tries"`
	Attempts  []json.RawMessage          `json:"attempts,omitempty"` // with their host calls; only of a single step
}

// runSteps lists an iteration.
func (a *API) runSteps(w http.ResponseWriter, r *http.Request) error {
	out, err := a.iteration(r, "", "")
	if err != nil {
		return err
	}
	// With every host call of every attempt a list would be the whole trace again.
	for i := range out.Steps {
		out.Steps[i].Attempts = nil
	}
	return writeJSON(w, http.StatusOK, out)
}

// runStep picks one execution out of an iteration: by its path, or the last one of the
// step with an address or id.
func (a *API) runStep(w http.ResponseWriter, r *http.Request) error {
	path := r.PathValue("path")
	s, out, err := a.lastStep(r, path, func(s *stepState) bool { return s.Path == path })
	if err == nil && s == nil {
		var address string
		if address, err = a.stepAddress(r, out.Run, path); err == nil {
			s, out, err = a.lastStep(r, address, func(s *stepState) bool { return s.Address == address })
		}
	}
	if err != nil {
		return err
	}
	if s != nil {
		s.Run, s.Iteration, s.Revision = out.Run, out.Iteration, out.Revision
		return writeJSON(w, http.StatusOK, s)
	}
	return &abi.Error{Code: abi.NotFound, Field: "path", Message: fmt.Sprintf("iteration %d of run %q has no step execution %q", out.Iteration, out.Run, path),
		Hint: fmt.Sprintf("GET /v1/runs/%s/steps?iteration=%d lists them", out.Run, out.Iteration)}
}

// lastStep returns the last execution of a step with a path or address in the iteration that a
// request asks for, nil if there is none. What several pages have of it is put together.
func (a *API) lastStep(r *http.Request, name string, is func(*stepState) bool) (found *stepState, page iterationSteps, err error) {
	after := ""
	for {
		if page, err = a.iteration(r, name, after); err != nil {
			return nil, page, err
		}
		for i := range page.Steps {
			s := &page.Steps[i]
			switch {
			case !is(s):
			case found != nil && found.Path == s.Path && found.State == "running":
				s.Attempts = append(found.Attempts, s.Attempts...)
				if s.In == nil {
					s.In = found.In
				}
				found = s
			default:
				found = s
			}
		}
		if after = page.Next; after == "" {
			return found, page, nil
		}
	}
}

// stepAddress returns the address of the step of a run that has an id, or else the name
// itself. A run whose definition cannot be read any more has no ids.
func (a *API) stepAddress(r *http.Request, run, name string) (string, error) {
	text, err := a.call(r, "sentinel/step/list", map[string]string{"sentinelId": run})
	if abi.CodeOf(err) == abi.NotFound {
		return name, nil
	}
	if err != nil {
		return "", err
	}
	var list struct {
		Steps []struct{ Address, ID string } `json:"steps"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return "", fmt.Errorf("list steps of %q: %w", run, err)
	}
	for _, s := range list.Steps {
		if s.ID == name {
			return s.Address, nil
		}
	}
	return name, nil
}

// iteration reads a page of the iteration that a request asks for out of the trace: of all steps
// or of those with a path or address, behind the page before.
func (a *API) iteration(r *http.Request, step, after string) (iterationSteps, error) {
	run := r.PathValue("run")
	// The same reader as for forwarded routes, so that the same mistakes have the
	// same answers.
	asked := map[string]json.RawMessage{}
	route := &Route{Query: []Param{{Name: "iteration", Type: "integer"}, {Name: "after", Type: "string"}}}
	if err := queryParams(r.URL, route, asked); err != nil {
		return iterationSteps{}, err
	}
	params := map[string]any{"run": run}
	for name, value := range asked {
		params[name] = value
	}
	if asked["iteration"] == nil {
		params["newest"] = true
	}
	if step != "" {
		params["step"] = step
	}
	if delete(params, "after"); step == "" && asked["after"] != nil {
		params["after"] = asked["after"]
	} else if after != "" {
		params["after"] = after
	}
	text, err := a.call(r, "sentinel/trace", params)
	if err != nil {
		return iterationSteps{}, err
	}
	var t trace
	if err := json.Unmarshal(text, &t); err != nil {
		return iterationSteps{}, fmt.Errorf("read trace of %q: %w", run, err)
	}
	want, given := asked["iteration"]
	// Backwards, since the newest is what is asked for most.
	for i := len(t.Iterations) - 1; i >= 0; i-- {
		it := t.Iterations[i]
		if given && string(want) != strconv.Itoa(it.Number) {
			continue
		}
		out := iterationSteps{Next: t.Next, Run: run, Iteration: it.Number, Revision: it.Revision, Hash: it.Hash, Steps: []stepState{}}
		return out, addStates(&out.Steps, it.Steps)
	}
	e := &abi.Error{Code: abi.NotFound, Field: "iteration", Message: fmt.Sprintf("the trace of run %q has no iteration %s", run, want)}
	if n := len(t.Iterations); n > 0 {
		e.Hint = fmt.Sprintf("it has %d to %d", t.Iterations[0].Number, t.Iterations[n-1].Number)
	} else {
		e.Message = fmt.Sprintf("the trace of run %q has no iteration", run)
	}
	return iterationSteps{}, e
}

// addStates lists steps and, behind each, those nested in it.
func addStates(into *[]stepState, steps []*traceStep) error {
	for _, s := range steps {
		// By index: adding nested steps may move the list.
		*into = append(*into, s.state())
		at := len(*into) - 1
		for _, raw := range s.Attempts {
			var attempt struct {
				Fields json.RawMessage `json:"fields"`
				Steps  []*traceStep    `json:"steps"`
			}
			if err := json.Unmarshal(raw, &attempt); err != nil {
				return err
			}
			// Each attempt resolves the fields afresh; the last one is what the
			// output was made of.
			if attempt.Fields != nil {
				(*into)[at].In = attempt.Fields
			}
			if err := addStates(into, attempt.Steps); err != nil {
				return err
			}
		}
	}
	return nil
}

// state is everything but the fields, which the attempts have.
func (s *traceStep) state() stepState {
	out := stepState{
		Path: s.Path, Address: s.Address, Type: s.Type, ID: s.ID, Name: s.Name, State: "running", Skipped: s.Skipped, Start: s.Start,
		Millis: s.Millis, Out: s.Output, Error: s.Error, Tries: len(s.Attempts), Attempts: s.Attempts,
	}
	switch {
	case s.Skipped != "":
		out.State = "skipped"
	case s.Error != nil:
		out.State = "failed"
	case s.Ended:
		out.State = "ok"
	}
	if s.OutputTo != "" && s.Ended && s.Output != nil {
		out.Variables = map[string]json.RawMessage{s.OutputTo: s.Output}
	}
	return out
}
