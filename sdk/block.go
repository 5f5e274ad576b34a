package sdk

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Block names nested steps to run: the path of a field that holds them,
// "then" or "branches.0", and variables to set in the scope before they start.
type Block struct {
	Field string
	Vars  Value // an object, or absent
}

// A BlockResult is the result of a block.
type BlockResult struct {
	Success bool
	Output  Value  // of the block's last step, null if it has none
	Error   *Error // set when Success is false
	Skipped bool   // it did not begin, because another block failed; see [BlockOptions.Drain]
}

// Block runs nested steps in the scope of the step. It returns the output of the
// last one, or the error that ended them, unchanged.
func (c *Context) Block(field string, vars Value) (Value, error) {
	results, err := c.Blocks([]Block{{Field: field, Vars: vars}}, false, 0)
	if err != nil {
		return Value{}, err
	}
	if !results[0].Success {
		return Value{}, results[0].Error
	}
	return results[0].Output, nil
}

// BlockOptions say how several blocks run side by side.
type BlockOptions struct {
	Concurrency int64 // how many run at once; 0 is all
	FailFast    bool  // the first failure cancels the other blocks
	Drain       bool  // after a failure no further block begins; those that run go on to their end
	Isolated    bool  // what a block sets is not kept behind it, also of a single block
	Total       int64 // how many blocks the calls of the step have together, for people; 0 is not known
}

// Blocks runs several blocks as parallel branches, each on a snapshot of the
// variables; a concurrency of 0 runs all at once. With failFast, the first failure
// cancels the other blocks. The results are in the order of the blocks.
func (c *Context) Blocks(blocks []Block, failFast bool, concurrency int64) ([]BlockResult, error) {
	return c.BlocksWith(blocks, BlockOptions{FailFast: failFast, Concurrency: concurrency})
}

// BlocksWith is [Context.Blocks] with all options.
func (c *Context) BlocksWith(blocks []Block, opt BlockOptions) ([]BlockResult, error) {
	items := make([]Value, len(blocks))
	for i, b := range blocks {
		items[i] = Object(F("field", String(b.Field)), F("vars", b.Vars))
	}
	request := Object(F("blocks", List(items...)))
	for _, option := range []struct {
		name string
		on   bool
	}{{"failFast", opt.FailFast}, {"drain", opt.Drain}, {"isolated", opt.Isolated}} {
		if option.on {
			request = request.With(option.name, Bool(true))
		}
	}
	for _, option := range []struct {
		name string
		n    int64
	}{{"concurrency", opt.Concurrency}, {"total", opt.Total}} {
		if option.n > 0 {
			request = request.With(option.name, Int(option.n))
		}
	}
	answer, err := c.call(abi.FuncBlock, importBlock, request)
	if err != nil {
		return nil, err
	}
	list := answer.Get("blocks")
	if list.Len() != len(blocks) {
		return nil, abi.New(abi.Internal, "sentinel_block: "+strconv.Itoa(list.Len())+" results for "+strconv.Itoa(len(blocks))+" blocks")
	}
	results := make([]BlockResult, len(blocks))
	for i, item := range list.Items() {
		results[i] = BlockResult{
			Success: item.Get("success").BoolOr(false),
			Output:  orNull(item.Get("output")),
			Error:   ErrorFrom(item.Get("error")),
			Skipped: item.Get("skipped").BoolOr(false),
		}
		if !results[i].Success && results[i].Error == nil {
			results[i].Error = abi.New(abi.Internal, "block "+Quote(blocks[i].Field)+": ended without a reason")
		}
	}
	return results, nil
}
