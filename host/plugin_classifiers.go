package host

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// outputClassifiers are the output classifiers of plugins, as rules name them.
type outputClassifiers Host

var _ shell.Classifiers = (*outputClassifiers)(nil)

// Known returns why there is no classifier with a name. While the host is being opened any
// name is accepted.
func (h *outputClassifiers) Known(name string) error {
	if h.rt == nil {
		return nil // the store is being opened
	}
	var names []string
	for _, p := range h.rt.Provided(abi.RoleOutputClassifier) {
		if string(p.Type) == name {
			return nil
		}
		names = append(names, string(p.Type))
	}
	if e := h.rt.Unprovided(abi.RoleOutputClassifier, name); e != nil {
		return e
	}
	e := &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("no plugin provides the output classifier %.64q", name), Hint: "sentinel plugin list shows the roles of plugins"}
	if near := sentinels.Suggest(name, names); len(near) > 0 {
		e.Hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return e
}

// Lines classifies lines.
func (h *outputClassifiers) Lines(ctx context.Context, name string, lines []role.Line) []*role.LineClass {
	return h.rt.ClassifyLines(ctx, sentinels.StepType(name), lines)
}
