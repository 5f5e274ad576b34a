package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/internal/jsondiff"
)

const (
	// maxResumes bounds from how many checkpoints of one case the step is
	// resumed: n checkpoints take about n*n/2 calls. Of more, that many are
	// taken at equal distances, with the first and the last, and the result
	// says so.
	maxResumes = 200
	// maxDivergences bounds how many divergent checkpoints are described; the
	// others are counted.
	maxDivergences = 3
)

// resumeRule tells an author what a step that diverges after a checkpoint gets
// wrong.
const resumeRule = "a step whose input has a state continues directly behind the sentinel_checkpoint call that saved it, " +
	"and repeats no call from before it: sdk/ABI.md, A6.17"

// A Replayed is what Replay found.
type Replayed struct {
	Problems    []string // one for each divergence, with the calls that differ
	Checkpoints int      // that the step made
	Resumed     int      // checkpoints from which it was resumed
}

// Replay executes a step again from its record, as a host does after a crash:
// once from its start, and once from each of its checkpoints in a fresh
// instance, with the state that the checkpoint saved and the recorded answers to
// the calls after it. Each time the step must make the same calls and end with
// the same output or error; one that does not cannot be made durable.
func Replay(ctx context.Context, target Target, in Input, first Outcome) (Replayed, error) {
	var r Replayed
	text, err := in.text(target)
	if err != nil {
		return r, nil // the step did not start the first time either
	}
	if d := again(ctx, target, text, first, 0); d != "" {
		r.Problems = append(r.Problems, "replay from the start: "+d+" (a step's requests may depend only on its input and on answers: sdk/ABI.md, A6.2)")
	}
	saved, err := checkpoints(first.Calls)
	if err != nil {
		return r, err
	}
	r.Checkpoints = len(saved)
	diverged := 0
	for _, i := range spread(len(saved), maxResumes) {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		in.State = saved[i].state
		if text, err = in.text(target); err != nil {
			return r, err
		}
		r.Resumed++
		d := again(ctx, target, text, first, saved[i].calls)
		if d == "" {
			continue
		}
		if diverged++; diverged > maxDivergences {
			continue
		}
		problem := fmt.Sprintf("resume from checkpoint %d, call %d: %s", i+1, saved[i].calls, d)
		if diverged == 1 {
			problem += " (" + resumeRule + ")"
		}
		r.Problems = append(r.Problems, problem)
	}
	if more := diverged - maxDivergences; more > 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("resume from checkpoints: %d more of %d diverge", more, r.Resumed))
	}
	return r, nil
}

// A saved is a checkpoint of a record: its state, and how many calls were made up
// to and with it.
type saved struct {
	state json.RawMessage
	calls int
}

// checkpoints returns the checkpoints of a record. One that was answered with an
// error has saved nothing.
func checkpoints(calls []Call) ([]saved, error) {
	var list []saved
	for i, c := range calls {
		if c.Function != abi.FuncCheckpoint {
			continue
		}
		var request struct {
			State json.RawMessage `json:"state"`
		}
		var answer struct {
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(c.Answer, &answer); err != nil {
			return nil, fmt.Errorf("read answer of call %d: %w", i+1, err)
		}
		if answer.Error != nil {
			continue
		}
		if err := json.Unmarshal(c.Request, &request); err != nil {
			return nil, fmt.Errorf("read request of call %d: %w", i+1, err)
		}
		list = append(list, saved{request.State, i + 1})
	}
	return list, nil
}

// spread returns at most m of the numbers below n at equal distances, with the
// first and the last.
func spread(n, m int) []int {
	var out []int
	for i := range min(n, m) {
		if n > m {
			i = i * (n - 1) / (m - 1)
		}
		out = append(out, i)
	}
	return out
}

// again executes the step with the recorded answers to the calls behind the first
// done ones. It returns the first difference in calls or end, "" for none. Calls
// have the numbers of the whole record.
func again(ctx context.Context, target Target, input []byte, first Outcome, done int) string {
	calls := first.Calls[done:]
	stop := abi.New(abi.Plugin, "plugin is not deterministic")
	var difference string
	out := execute(ctx, target, input, func(n int, function string, request json.RawMessage) (Call, error) {
		if function == abi.FuncLog { // not recorded, so no difference
			return Call{Answer: json.RawMessage(`{"ok":{}}`)}, nil
		}
		if n > len(calls) {
			difference = fmt.Sprintf("call %d is new: %s %s", done+n, function, clip(request))
			return Call{}, stop
		}
		c := calls[n-1]
		if c.Function != function || !same(c.Request, request) {
			difference = fmt.Sprintf("call %d was %s %s and is now %s %s", done+n, c.Function, clip(c.Request), function, clip(request))
			return Call{}, stop
		}
		return c, nil
	})
	switch {
	case difference != "":
		return difference
	case len(out.Calls) < len(calls):
		c := calls[len(out.Calls)]
		return fmt.Sprintf("call %d was %s %s and is now not made", done+len(out.Calls)+1, c.Function, clip(c.Request))
	case !same(ending(first), ending(out)):
		return fmt.Sprintf("it ended with %s and ends now with %s", clip(ending(first)), clip(ending(out)))
	}
	return ""
}

// clip shortens a JSON text for a message.
func clip(text json.RawMessage) string {
	const most = 200
	if r := []rune(string(text)); len(r) > most {
		return string(r[:most]) + "..."
	}
	return string(text)
}

// ending is output or error as one JSON value.
func ending(o Outcome) json.RawMessage {
	if o.Error == nil {
		return o.Output
	}
	text, err := json.Marshal(map[string]*abi.Error{"error": o.Error})
	if err != nil { // plain data
		panic(err)
	}
	return text
}

// same reports whether two texts are the same JSON value.
func same(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := jsondiff.Decode(a)
	y, errY := jsondiff.Decode(b)
	return errX == nil && errY == nil && len(jsondiff.Compare("", x, y, nil)) == 0
}
