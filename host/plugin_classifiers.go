package host

import (
	"context"

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
	_, err := (*Host)(h).provided(abi.RoleOutputClassifier, name)
	return err
}

// Lines classifies lines.
func (h *outputClassifiers) Lines(ctx context.Context, name string, lines []role.Line) []*role.LineClass {
	return h.rt.ClassifyLines(ctx, sentinels.StepType(name), lines)
}
