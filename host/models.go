package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/llm/cassette"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// models is who answers turns: servers, a cassette, or servers that are
// recorded to one.
type models struct {
	source interface {
		Quote(ctx context.Context, turn sentinels.Turn) (llm.Quote, error)
		Turn(ctx context.Context, turn sentinels.Turn, delta func(string)) (sentinels.Reply, error)
	}
	live     *llm.Models // nil with a cassette
	player   *cassette.Player
	recorder *cassette.Recorder
}

var _ runtime.Models = (*models)(nil)

func (h *Host) openModels() (*models, error) {
	if h.opt.Replay != "" {
		p, err := cassette.Open(h.opt.Replay, cassette.PlayOptions{Workspace: h.opt.Workspace, Redact: h.redactor})
		if err != nil {
			return nil, err
		}
		return &models{source: p, player: p}, nil
	}
	file := h.settings.Models
	choice := h.opt.Model
	if choice == "" {
		choice = file.Default
	}
	live, err := llm.Open(llm.Config{
		Default: choice, Auto: file.Auto, Fallback: file.Fallback, Capacity: file.Capacity, Providers: file.Providers, Models: file.Known, Servers: file.Servers,
		Env: h.opt.Getenv, Redact: h.redactor, Steps: (*pluginModels)(h),
		Validate: func(schema, value json.RawMessage) error { return command.ValidateJSON(schema, value) },
	})
	if err != nil {
		return nil, fmt.Errorf("open models: %w", err)
	}
	if h.opt.Record == "" {
		return &models{source: live, live: live}, nil
	}
	rec, err := cassette.Record(h.opt.Record, live, cassette.RecordOptions{Workspace: h.opt.Workspace, Redact: h.redactor, Append: h.opt.Append})
	if err != nil {
		return nil, err
	}
	return &models{source: rec, live: live, recorder: rec}, nil
}

func (m *models) close() error {
	if m.recorder != nil {
		return m.recorder.Close()
	}
	return nil
}

// Quote says what a turn may cost at worst.
func (m *models) Quote(ctx context.Context, turn sentinels.Turn) (runtime.ModelQuote, error) {
	q, err := m.source.Quote(ctx, turn)
	return runtime.ModelQuote{Provider: q.Provider, Model: q.Model, Worst: q.Worst, OutputUSD: q.OutputUSD, Priced: q.Priced, Excess: q.Excess}, err
}

// Turn makes a turn.
func (m *models) Turn(ctx context.Context, turn sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	return m.source.Turn(ctx, turn, delta)
}

// Replaying reports whether models are answered from a cassette.
func (h *Host) Replaying() bool { return h.models.player != nil }

// WriteDivergences reports how the run's requests differed from those that were
// recorded; it writes nothing when no cassette was played.
func (h *Host) WriteDivergences(w io.Writer) error {
	if h.models.player == nil {
		return nil
	}
	return h.models.player.WriteReport(w)
}

// Divergences returns how many requests differed from the recorded ones.
func (h *Host) Divergences() int {
	if h.models.player == nil {
		return 0
	}
	return len(h.models.player.Divergences())
}

// metered are the models as commands see them: on the budget of the run that
// called the command.
type metered Host

// Turn makes a turn on the calling run's budget.
func (m *metered) Turn(ctx context.Context, turn sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	return m.rt.Turn(ctx, runOf(ctx), turn, delta)
}

// Quote returns which model a turn would have.
func (m *metered) Quote(ctx context.Context, turn sentinels.Turn) (provider, model string, priced bool, err error) {
	q, err := m.models.Quote(ctx, turn)
	return q.Provider, q.Model, q.Priced, err
}
