package checkpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	service "github.com/sentinel-runtime/sentinel/host/checkpoint"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/checkpoint"
	"github.com/sentinel-runtime/sentinel/internal/needs"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// interrupted has one run that no process executes, and counts its stops.
type interrupted struct {
	workspace string
	stopped   int
}

func (r *interrupted) Status(id sentinels.RunID) (runtime.RunInfo, error) {
	return runtime.RunInfo{ID: id, Status: sentinels.StatusRunning, Workspace: r.workspace}, nil
}

func (r *interrupted) Stop(context.Context, sentinels.RunID) error {
	r.stopped++
	return nil
}

// TestRefusedRestoreStopsNothing: a restore by force ends an interrupted run only if it is executed. One that is refused leaves the
// run, which can then be continued.
func TestRefusedRestoreStopsNothing(t *testing.T) {
	needs.Program(t, "", nil, "git", "version")
	busy := &abi.Error{Code: abi.Conflict, Message: "a confined command is being executed"}
	var held error
	runs := &interrupted{workspace: t.TempDir()}
	s := service.New(service.Options{Dir: t.TempDir(), HoldTree: func(string) (func(), error) { return func() {}, held }})
	reg, err := command.NewRegistry(checkpoint.Commands(checkpoint.Options{Service: s, Runs: runs})...)
	if err != nil {
		t.Fatal(err)
	}
	restore := func() error {
		_, err := reg.Call(t.Context(), &command.Call{
			Command: "checkpoint/restore", By: command.ByUser, Workspace: runs.workspace, Params: json.RawMessage(`{"run": "r", "force": true}`),
		})
		return err
	}
	if err := restore(); abi.CodeOf(err) != abi.NotFound || runs.stopped != 0 {
		t.Errorf("without a checkpoint: %v, stopped %d times", err, runs.stopped)
	}
	if _, err := s.Create(t.Context(), service.Request{Workspace: runs.workspace, Of: "r", Label: service.Begin}); err != nil {
		t.Fatal(err)
	}
	held = busy
	if err := restore(); !errors.Is(err, busy) || runs.stopped != 0 {
		t.Errorf("beside a command: %v, stopped %d times", err, runs.stopped)
	}
	held = nil
	if err := restore(); err != nil || runs.stopped != 1 {
		t.Errorf("afterwards: %v, stopped %d times", err, runs.stopped)
	}
}
