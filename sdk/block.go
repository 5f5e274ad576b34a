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
	Output  Value  // of the block's last step
	Error   *Error // set when Success is false
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
	return orNull(results[0].Output), nil
}

// Blocks runs several blocks as parallel branches, each on a snapshot of the
// variables; a concurrency of 0 runs all at once. With failFast, the first failure
// cancels the other blocks. The results are in the order of the blocks.
func (c *Context) Blocks(blocks []Block, failFast bool, concurrency int64) ([]BlockResult, error) {
	items := make([]Value, len(blocks))
	for i, b := range blocks {
		items[i] = Object(F("field", String(b.Field)), F("vars", b.Vars))
	}
	request := Object(F("blocks", List(items...)))
	if failFast {
		request = request.With("failFast", Bool(true))
	}
	if concurrency > 0 {
		request = request.With("concurrency", Int(concurrency))
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
			Output:  item.Get("output"),
			Error:   ErrorFrom(item.Get("error")),
		}
		if !results[i].Success && results[i].Error == nil {
			results[i].Error = abi.New(abi.Internal, "block "+Quote(blocks[i].Field)+": ended without a reason")
		}
	}
	return results, nil
}
