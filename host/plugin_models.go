package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/llm/steptype"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// pluginModels answers turns by step types of plugins, clause A9.6 of sdk/ABI.md.
type pluginModels Host

var _ steptype.Steps = (*pluginModels)(nil)

// Known returns why a step type cannot answer turns. While the host is being opened any
// name is accepted.
func (h *pluginModels) Known(stepType string) error {
	if h.rt == nil {
		return nil
	}
	_, err := (*Host)(h).provided(abi.RoleModel, stepType)
	return err
}

// Answer executes a turn as a run, below the run that asks. A turn that a crash interrupted
// finds that run again, so it is not paid for twice.
func (h *pluginModels) Answer(ctx context.Context, stepType string, turn role.Turn) (role.Reply, error) {
	fields, err := json.Marshal(turn)
	if err != nil {
		return role.Reply{}, err
	}
	sum := sha256.Sum256(fields)
	out, err := (*Host)(h).callRole(ctx, abi.RoleModel, stepType, fields, "turn "+hex.EncodeToString(sum[:16]))
	if err != nil {
		return role.Reply{}, err
	}
	reply, err := role.ReadReply(out)
	if err != nil {
		return role.Reply{}, abi.New(abi.Output, fmt.Sprintf("step type %q: output of a role model (%s): %v", stepType, role.Clause(abi.RoleModel), err))
	}
	return reply, nil
}

// callRole executes a step type in a role as a run, below the run that calls if there is one.
// It is held to the commands that its plugin is granted, and a host call that a crash
// interrupted is made again. part distinguishes the calls of one host call.
func (h *Host) callRole(ctx context.Context, as abi.Role, stepType string, fields json.RawMessage, part string) (json.RawMessage, error) {
	p, err := h.provided(as, stepType)
	if err != nil {
		return nil, err
	}
	return h.rt.CallStep(ctx, runtime.StepCall{
		Type: p.Type, Fields: fields, Part: part, Within: append([]string{}, p.Commands...), OnInterrupt: sentinels.InterruptRetry,
	})
}

// provided returns a step type that is active in a role, or why there is none.
func (h *Host) provided(as abi.Role, stepType string) (plugin.Provided, error) {
	var names []string
	for _, p := range h.rt.Provided(as) {
		if string(p.Type) == stepType {
			return p, nil
		}
		names = append(names, string(p.Type))
	}
	if e := h.rt.Unprovided(as, stepType); e != nil {
		return plugin.Provided{}, e
	}
	e := &abi.Error{Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("no plugin provides the %s %.64q", as, stepType), Hint: "sentinel plugin list shows the roles of plugins"}
	if near := sentinels.Suggest(stepType, names); len(near) > 0 {
		e.Hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return plugin.Provided{}, e
}
