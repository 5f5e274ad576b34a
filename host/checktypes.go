package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/verify"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// checkTypes are the step types of plugins that acceptance criteria may use: those whose
// output has the boolean passed, by its schema. So a type of check has the manifest, the
// grants, the hot drop and the test kit of every other step type. It is executed as the
// only step of a run in the clone of the branch.
type checkTypes Host

// builtinPlugin is the plugin with the built-in step types, which execute commands.
const builtinPlugin = "builtin"

// checkField is what a field of such a check may be called. Its value becomes a variable.
var checkField = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]{0,50}$`)

// ofSteps are keys of every step, which a check cannot set.
var ofSteps = []string{"type", "id", "name", "condition", "outputTo", "parse", "onError", "onInterrupt"}

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
	_, _, err := h.definition(kind, fields, 0)
	return err, true
}

// definition returns a definition with the check as its only step. The fields are
// variables, so that nothing in them is a reference, a command or a nested step.
func (h *checkTypes) definition(kind string, fields json.RawMessage, timeout time.Duration) (*sentinels.Definition, map[string]json.RawMessage, error) {
	own := map[string]json.RawMessage{}
	if len(fields) > 0 && string(fields) != "null" {
		if err := json.Unmarshal(fields, &own); err != nil {
			return nil, nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: "want an object with the fields of the step type " + kind}
		}
	}
	step := map[string]any{"type": kind, "outputTo": "result"}
	values := map[string]json.RawMessage{}
	for name, value := range own {
		if name == "timeoutMs" {
			continue
		}
		if !checkField.MatchString(name) || slices.Contains(ofSteps, name) {
			return nil, nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: name, Message: fmt.Sprintf("field %.60q cannot be set by a check", name)}
		}
		variable := "check_" + name
		step[name], values[variable] = "$"+variable, value
	}
	if timeout > 0 {
		step["timeoutMs"] = timeout.Milliseconds()
	}
	variables := map[string]any{}
	for name := range values {
		variables[name] = nil
	}
	src, err := json.Marshal(map[string]any{"name": "check " + kind, "variables": variables, "steps": []any{step}})
	if err != nil {
		return nil, nil, err
	}
	def, problems := h.rt.Decode(src, "")
	if len(problems) > 0 {
		return nil, nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: problems[0].Message, Hint: problems[0].Hint}
	}
	return def, values, nil
}

// ExecuteCheck executes a check in a folder.
func (h *checkTypes) ExecuteCheck(ctx context.Context, kind string, fields json.RawMessage, timeout time.Duration, dir string) (out verify.PluginResult, err error) {
	def, values, err := h.definition(kind, fields, timeout)
	if err != nil {
		return out, err
	}
	run, err := h.rt.Start(ctx, def, runtime.StartOptions{Workspace: dir, Variables: values, OnInterrupt: sentinels.InterruptFail})
	if err != nil {
		return out, err
	}
	result, err := h.rt.Wait(ctx, run)
	if err != nil { // the folder is removed next
		_ = h.rt.Stop(context.WithoutCancel(ctx), run)
		return out, err
	}
	if result.Status != sentinels.StatusCompleted {
		if result.Error != nil {
			return out, result.Error
		}
		return out, abi.New(abi.Internal, fmt.Sprintf("the check ended as %s: %s", result.Status, result.Reason))
	}
	if err := json.Unmarshal(result.Variables["result"], &out); err != nil {
		return out, abi.New(abi.Output, fmt.Sprintf("output of the check: %v", err))
	}
	return out, nil
}

var _ verify.Plugins = (*checkTypes)(nil)
