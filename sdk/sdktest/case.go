package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/internal/jsondiff"
)

// CasesFile is the file with the cases of a project.
const CasesFile = "tests/cases.json"

// A Case is one test of a plugin: a step, the host calls it must make with their
// answers, and how it must end.
type Case struct {
	Name    string          `json:"name"`
	Step    Step            `json:"step"`
	Run     RunInfo         `json:"run"`
	Attempt int64           `json:"attempt,omitempty"`
	Retry   json.RawMessage `json:"retry,omitempty"`
	State   json.RawMessage `json:"state,omitempty"`
	// Calls are all host calls of the step, in order. Log lines, checkpoints and
	// the time need not be listed.
	Calls []Fake `json:"calls,omitempty"`

	// At most one of these is the expected end. Of an error only the given keys are
	// compared; message and hint must contain the given text.
	Output   json.RawMessage   `json:"output,omitempty"`
	Error    *abi.Error        `json:"error,omitempty"`
	Problems []json.RawMessage `json:"problems,omitempty"` // of the validate export; [] for none
	// Logs are texts that log lines must contain, in this order; other lines may be
	// between them.
	Logs []string `json:"logs,omitempty"`
}

// ReadCases reads a list of cases.
func ReadCases(text []byte) ([]Case, error) {
	var list []Case
	if err := decode(text, &list, caseKeys); err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Message: "read cases: " + err.Error(),
			Hint: `it is a list: [{"name": "...", "step": {"type": "...", "fields": {}}, "output": {}}]`}
	}
	seen := map[string]bool{}
	for i, c := range list {
		bad := func(format string, args ...any) error {
			return abi.New(abi.BadFields, fmt.Sprintf("read cases: case %d %q: ", i+1, c.Name)+fmt.Sprintf(format, args...))
		}
		ends := 0
		for _, given := range []bool{c.Output != nil, c.Error != nil, c.Problems != nil} {
			if given {
				ends++
			}
		}
		switch {
		case c.Name == "" || seen[c.Name]:
			return nil, bad("want a unique name")
		case c.Step.Type == "":
			return nil, bad("want step.type")
		case ends > 1 || ends == 0 && c.Logs == nil:
			return nil, bad("want one of output, error and problems, or logs")
		}
		seen[c.Name] = true
		if err := checkFakes(c.Calls); err != nil {
			return nil, bad("%v", err)
		}
	}
	return list, nil
}

// A Result is the result of one case.
type Result struct {
	Name       string   `json:"name"`
	OK         bool     `json:"ok"`
	Problems   []string `json:"problems,omitempty"`
	Skipped    string   `json:"skipped,omitempty"` // why it was not executed
	DurationMs float64  `json:"durationMs"`
	// Checkpoints counts the checkpoints of the step, Resumed those from which it was
	// executed again.
	Checkpoints int `json:"checkpoints,omitempty"`
	Resumed     int `json:"resumed,omitempty"`
}

// Try executes a case, and then again from its record: see [Replay].
func Try(ctx context.Context, target Target, c Case) Result {
	begin := time.Now()
	r, err := try(ctx, target, c)
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	return Result{
		Name: c.Name, OK: len(r.Problems) == 0, Problems: r.Problems, DurationMs: millis(time.Since(begin)),
		Checkpoints: r.Checkpoints, Resumed: r.Resumed,
	}
}

func try(ctx context.Context, target Target, c Case) (Replayed, error) {
	if c.Problems != nil {
		problems, err := validate(ctx, target, c)
		return Replayed{Problems: problems}, err
	}
	in := Input{Step: c.Step, Run: c.Run, Attempt: c.Attempt, Retry: c.Retry, State: c.State}
	script := InOrder(c.Calls)
	out, err := Execute(ctx, target, in, script)
	if err != nil {
		return Replayed{}, err
	}
	problems := append(script.problems, c.ended(out)...)
	problems = append(problems, roleProblems(target, in, out)...)
	problems = append(problems, c.logged(out.Logs)...)
	problems = append(problems, script.left()...)
	if len(problems) > 0 && out.Stderr != "" {
		problems = append(problems, "stderr: "+strings.TrimSpace(out.Stderr))
	}
	again, err := Replay(ctx, target, in, out)
	again.Problems = append(problems, again.Problems...)
	return again, err
}

// validate compares the problems of fields that are not resolved.
func validate(ctx context.Context, target Target, c Case) ([]string, error) {
	got, err := target.Validate(ctx, c.Step.Type, c.Step.Fields)
	if err != nil {
		return nil, err
	}
	want, err := json.Marshal(c.Problems)
	if err != nil {
		return nil, err
	}
	w, errW := jsondiff.Decode(want)
	g, errG := jsondiff.Decode(got)
	if errW != nil || errG != nil {
		return nil, fmt.Errorf("compare problems: %w, %w", errW, errG)
	}
	return jsondiff.Compare("problems", w, g, jsondiff.Any), nil
}

// ended compares output or error.
func (c Case) ended(out Outcome) []string {
	switch {
	case c.Error == nil && out.Error != nil && c.Output != nil:
		return []string{fmt.Sprintf("want an output, got the error %s: %s", out.Error.Code, out.Error.Message)}
	case c.Error != nil && out.Error == nil:
		return []string{fmt.Sprintf("want the error %s, got the output %s", c.Error.Code, out.Output)}
	case c.Error != nil:
		return c.failed(out.Error)
	case c.Output == nil:
		return nil
	}
	want, err := jsondiff.Decode(c.Output)
	if err != nil {
		return []string{err.Error()}
	}
	got, err := jsondiff.Decode(out.Output)
	if err != nil {
		return []string{fmt.Sprintf("output: %v: %s", err, out.Output)}
	}
	return jsondiff.Compare("output", want, got, nil)
}

func (c Case) failed(got *abi.Error) []string {
	var out []string
	differ := func(name string, want, got any) {
		out = append(out, fmt.Sprintf("error.%s: want %v, got %v", name, jsondiff.Show(want), jsondiff.Show(got)))
	}
	if c.Error.Code != "" && c.Error.Code != got.Code {
		differ("code", c.Error.Code, got.Code)
	}
	if !strings.Contains(got.Message, c.Error.Message) {
		differ("message", c.Error.Message, got.Message)
	}
	if c.Error.Field != "" && c.Error.Field != got.Field {
		differ("field", c.Error.Field, got.Field)
	}
	if c.Error.RetryAfterMs != 0 && c.Error.RetryAfterMs != got.RetryAfterMs {
		differ("retryAfterMs", c.Error.RetryAfterMs, got.RetryAfterMs)
	}
	if c.Error.Permanent && !got.Permanent {
		differ("permanent", true, false)
	}
	if !strings.Contains(got.Hint, c.Error.Hint) {
		differ("hint", c.Error.Hint, got.Hint)
	}
	if len(out) > 0 {
		out = append(out, fmt.Sprintf("the error is %s: %s", got.Code, got.Message))
	}
	return out
}

func (c Case) logged(lines []Line) []string {
	next := 0
	for _, want := range c.Logs {
		for next < len(lines) && !strings.Contains(lines[next].Message, want) {
			next++
		}
		if next == len(lines) {
			return []string{fmt.Sprintf("logs: no line contains %q (of %d lines)", want, len(lines))}
		}
		next++
	}
	return nil
}
