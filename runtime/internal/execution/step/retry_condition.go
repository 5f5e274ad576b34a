package step

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// errorVariable is the variable of the conditions of a retry. It hides one of the definition.
const errorVariable = "error"

// retryWanted evaluates the conditions of a policy on the error of attempt n. A condition that
// cannot be evaluated allows no retry, and the log says why: the step fails with its own error,
// not with that of the condition.
func (x *stepExecution) retryWanted(ctx context.Context, n int, p sentinels.RetryPolicy, class retry.Classification, failed *abi.Error) (bool, error) {
	if p.When == "" && p.Unless == "" {
		return true, nil
	}
	value, err := json.Marshal(struct {
		Text     string         `json:"text"`
		Code     abi.Code       `json:"code"`
		Category retry.Category `json:"category"`
		ExitCode *int           `json:"exitCode,omitempty"`
	}{retry.WithoutLine(failed.Message), failed.Code, class.Category, retry.ExitCode(failed.Message)})
	if err != nil {
		return false, err
	}
	vars := ConditionVars(x.run.Lookup(x.sc, x.last.retry))
	withError := cond.Vars(func(name string) (json.RawMessage, bool) {
		if name == errorVariable {
			return value, true
		}
		return vars(name)
	})
	for _, c := range []struct {
		key, source string
		want        bool
	}{{"when", p.When, true}, {"unless", p.Unless, false}} {
		if c.source == "" {
			continue
		}
		v, err := x.svc.Conditions.Eval(ctx, x.run.EmitsFor(), c.source, withError)
		if cause := context.Cause(ctx); cause != nil {
			return false, cause
		}
		if err != nil {
			x.last.log("warn", fmt.Sprintf("onError.retry.%s of step %s cannot be evaluated, so attempt %d is the last one: %v", c.key, x.address, n, err))
			return false, nil
		}
		if v.Truthy != c.want {
			return false, nil
		}
	}
	return true, nil
}
