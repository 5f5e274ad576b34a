package host

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/verify"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// checkTypes are the step types of plugins that acceptance criteria may use: those whose
// output has the boolean passed, by its schema. So a type of check has the manifest, the
// grants, the hot drop and the test kit of every other step type. It is executed as the
// only step of a run in the clone of the branch.
type checkTypes Host

// builtinPlugin is the plugin with the built-in step types, which execute commands.
const builtinPlugin = "builtin"

// CheckType returns the first problem of a check of the step type kind.
func (h *checkTypes) CheckType(kind string, fields json.RawMessage) (problem error, ok bool) {
	spec, ok := h.rt.Types().Lookup(sentinels.StepType(kind))
	if !ok || spec.Plugin == builtinPlugin {
		return nil, false
	}
	var output struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(spec.Output, &output) != nil || output.Properties["passed"].Type != "boolean" || !slices.Contains(output.Required, "passed") {
		return nil, false
	}
	c, err := checkCall(kind, fields)
	if err == nil {
		err = h.rt.CheckCall(c)
	}
	return err, true
}

// checkCall returns the call of a check. The time limit among its fields is that of every
// check.
func checkCall(kind string, fields json.RawMessage) (runtime.StepCall, error) {
	own := map[string]json.RawMessage{}
	if len(fields) > 0 && string(fields) != "null" {
		if err := json.Unmarshal(fields, &own); err != nil {
			return runtime.StepCall{}, &abi.Error{Code: abi.BadFields, Permanent: true, Message: "want an object with the fields of the step type " + kind}
		}
	}
	delete(own, "timeoutMs")
	text, err := json.Marshal(own)
	return runtime.StepCall{Type: sentinels.StepType(kind), Fields: text, Name: "check " + kind, OnInterrupt: sentinels.InterruptFail}, err
}

// ExecuteCheck executes a check in a folder, as a run below the one that verifies if there is
// one. A check that a crash interrupts is made again in another clone.
func (h *checkTypes) ExecuteCheck(ctx context.Context, kind string, fields json.RawMessage, timeout time.Duration, dir string) (out verify.PluginResult, err error) {
	c, err := checkCall(kind, fields)
	if err != nil {
		return out, err
	}
	sum := sha256.Sum256(c.Fields)
	c.Timeout, c.Workspace, c.Part = timeout, dir, fmt.Sprintf("check %s %s %x", dir, kind, sum[:16])
	output, err := h.rt.CallStep(ctx, c)
	if err != nil {
		return out, err
	}
	if err := strictjson.DecodeForeign(output, &out); err != nil {
		return out, abi.New(abi.Output, fmt.Sprintf("output of the check: %v", err))
	}
	return out, nil
}

var _ verify.Plugins = (*checkTypes)(nil)
