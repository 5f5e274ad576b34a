package loop

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// Limits of the items of one host call, which is recorded as a whole, and of what is sent before a checkpoint.
const (
	maxBatch      = 256
	maxBatchBytes = 4 << 20
	maxSent       = 16 << 20
)

// items executes a loop that collects results, and returns {iterations, output, results, failed, reason}. With
// maxConcurrent a call executes many items; each keeps what it sets to itself, so that no item depends on how fast
// others are.
func (p plan) items(c *sdk.Context) (sdk.Value, error) {
	results, failed := collect(c.State.Get("results")), collect(c.State.Get("failed"))
	stopped := c.State.Get("stopped").BoolOr(false)
	all, since, sent := int64(0), int64(0), 0
	for !stopped && int64(len(results)) < p.iterations {
		at := int64(len(results))
		if p.limit > 0 && at >= p.limit {
			return sdk.Value{}, p.limitError()
		}
		blocks, bytes := p.batch(at)
		answers, err := p.execute(c, blocks)
		if err != nil {
			return sdk.Value{}, err
		}
		sent += bytes
		for i, r := range answers {
			if r.Success {
				results = append(results, r.Output)
				continue
			}
			if r.Skipped { // as those behind it
				break
			}
			if p.onItem != "continue" && p.onItem != "stop" {
				return sdk.Value{}, sdk.Wrap("item "+strconv.FormatInt(at+int64(i), 10), r.Error)
			}
			stopped = stopped || p.onItem == "stop"
			failed = append(failed, sdk.Object(
				sdk.F("index", sdk.Int(at+int64(i))), sdk.F("item", p.item(at+int64(i))), sdk.F("error", sdk.ErrorValue(r.Error)),
			))
			results = append(results, sdk.Null())
		}
		// A checkpoint has all results so far. The number of calls between two grows with them, so that all
		// checkpoints together are not much larger than the last one.
		all, since = all+1, since+1
		if since <= all/8 && sent < maxSent {
			continue
		}
		since, sent = 0, 0
		state := sdk.Object(sdk.F("results", sdk.List(results...)), sdk.F("failed", sdk.List(failed...)), sdk.F("stopped", sdk.Bool(stopped)))
		if p.made {
			state = state.With("list", p.each)
		}
		if err := c.Checkpoint(state); err != nil {
			return sdk.Value{}, err
		}
	}
	last := sdk.Null()
	if n := len(results); n > 0 {
		last = results[n-1]
	}
	return sdk.Object(
		sdk.F("iterations", sdk.Int(int64(len(results)))),
		sdk.F("output", last),
		sdk.F("results", sdk.List(results...)),
		sdk.F("failed", sdk.List(failed...)),
		sdk.F("reason", sdk.String(p.kind)),
	), nil
}

// batch returns the items of the next call, from number at on, and the size of their values.
func (p plan) batch(at int64) (blocks []sdk.Block, bytes int) {
	most := min(p.iterations-at, max(maxBatch, 8*p.concurrent))
	if p.concurrent == 0 {
		most = 1
	}
	if p.limit > 0 {
		most = min(most, p.limit-at)
	}
	for i := at; i < at+most && (i == at || bytes < maxBatchBytes); i++ {
		if p.each.Exists() {
			bytes += len(p.item(i).String())
		}
		blocks = append(blocks, sdk.Block{Field: "steps", Vars: p.vars(i, sdk.Value{})})
	}
	return blocks, bytes
}

// execute executes the items of one call.
func (p plan) execute(c *sdk.Context, blocks []sdk.Block) ([]sdk.BlockResult, error) {
	if c.Steps("steps") == 0 {
		results := make([]sdk.BlockResult, len(blocks))
		for i := range results {
			results[i] = sdk.BlockResult{Success: true, Output: sdk.Null()}
		}
		return results, nil
	}
	return c.BlocksWith(blocks, sdk.BlockOptions{Concurrency: p.concurrent, Isolated: p.concurrent > 0, Drain: p.onItem != "continue", Total: p.iterations})
}

func collect(list sdk.Value) []sdk.Value {
	values := make([]sdk.Value, 0, list.Len())
	for _, v := range list.Items() {
		values = append(values, v)
	}
	return values
}
