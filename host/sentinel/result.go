package sentinel

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// result shows how a run ended, in the form of the last line of "-o jsonl". It
// does not wait: who wants to be told follows the run. The answer is JSON of its
// own because its variables may be anything.
func (f family) result(ctx context.Context, _ *command.Call, in targetIn) (json.RawMessage, error) {
	info, err := f.target(in, true)
	if err != nil {
		return nil, err
	}
	if !info.Status.Final() {
		return nil, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("result of run %s: it is %s", info.ID, info.Status), Hint: "ask again when it is over"}
	}
	res, err := f.rt.Wait(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}
