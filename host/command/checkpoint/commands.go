// Package checkpoint implements the commands on checkpoints of workspaces, see package
// host/checkpoint.
//
// Steps make checkpoints and compare them. To restore one is for people alone: a model
// could take back what a person has changed. No pattern of tools matches any of the
// commands.
package checkpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// timeout limits calls without a deadline: the first checkpoint of a large workspace reads
// all of its files.
const timeout = 15 * time.Minute

// Runs are the runs of the engine.
type Runs interface {
	Status(id sentinels.RunID) (runtime.RunInfo, error)
	Stop(ctx context.Context, id sentinels.RunID) error
}

// Options configure the family. Both are required.
type Options struct {
	Service *checkpoint.Service
	Runs    Runs
}

type family struct{ Options }

// Commands returns the family checkpoint/*.
func Commands(opt Options) []command.Command {
	f := family{opt}
	read := command.Options{Effect: command.Reads, Idempotent: true, ByName: true, Waits: command.Always, Timeout: timeout} // for their turns in the service
	return []command.Command{
		command.New("checkpoint/create", "Keep the state of the files of the workspace, so that changes can be listed and taken back. Of large files, and of many that git ignores, it keeps only that they exist.",
			command.Options{Effect: command.Changes, Idempotent: true, ByName: true, Waits: command.Always, Timeout: timeout}, f.create),
		command.New("checkpoint/list", "List the checkpoints of the workspace, the oldest first.", read, f.list),
		command.New("checkpoint/diff", "Show what changed between two checkpoints, or since one.", read, f.diff),
		command.New("checkpoint/restore", "Give the files that a run changed the state that they had before it. Only what did not exist then is removed. Files that were changed since are conflicts: then nothing is changed.",
			command.Options{Effect: command.Decides, Timeout: timeout}, f.restore),
	}
}

type createIn struct {
	Label string `json:"label,omitempty" jsonschema:"what for; begin and end are the pair that a restore takes back"`
	Run   string `json:"run,omitempty" jsonschema:"run that it is for; that of the step if not given"`
}

// create returns the checkpoint that the call made before, if it is repeated.
func (f family) create(ctx context.Context, call *command.Call, in createIn) (checkpoint.Checkpoint, error) {
	of, workspace, err := f.scope(call, in.Run)
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	return f.Service.Create(ctx, checkpoint.Request{Workspace: workspace, Key: call.Key, Of: of, Label: in.Label, By: call.Share()})
}

// scope returns the scope and the folder of a call: those of its run, or of the one that a
// person names.
func (f family) scope(call *command.Call, run string) (of, workspace string, err error) {
	switch {
	case run == "" || run == string(call.Run):
		workspace, err = call.RealWorkspace()
		return string(call.Run), workspace, err
	case call.By != command.ByUser:
		return "", "", &abi.Error{Code: abi.Denied, Permanent: true, Field: "run", Message: fmt.Sprintf("%s: the checkpoints of another run are for people", call.Command)}
	}
	info, err := f.Runs.Status(sentinels.RunID(run))
	if abi.CodeOf(err) == abi.NotFound { // a restore, or a run that retention has removed
		return run, call.Workspace, nil
	}
	return run, info.Workspace, err
}

type listIn struct {
	Run string `json:"run,omitempty" jsonschema:"only those of this run"`
}

type listOut struct {
	Checkpoints []checkpoint.Checkpoint `json:"checkpoints"`
}

func (f family) list(ctx context.Context, call *command.Call, in listIn) (listOut, error) {
	_, workspace, err := f.scope(call, in.Run)
	if err != nil {
		return listOut{}, err
	}
	list, err := f.Service.List(ctx, call.Share(), workspace, in.Run)
	if list == nil {
		list = []checkpoint.Checkpoint{}
	}
	return listOut{list}, err
}

type diffIn struct {
	Run   string `json:"run,omitempty" jsonschema:"from the begin to the end of this run, or until now; that of the step if neither it nor from is given"`
	From  string `json:"from,omitempty" jsonschema:"id of a checkpoint"`
	To    string `json:"to,omitempty" jsonschema:"with from: id of another one; the files as they are now if not given"`
	Patch bool   `json:"patch,omitempty" jsonschema:"the differences too; for people"`
}

func (f family) diff(ctx context.Context, call *command.Call, in diffIn) (checkpoint.Diff, error) {
	if in.Patch && call.Held() { // it may have files that models do not read
		return checkpoint.Diff{}, &abi.Error{Code: abi.Denied, Permanent: true, Field: "patch", Message: "checkpoint/diff: a model does not get the differences", Hint: "code/diff shows those of files that it may read"}
	}
	of, workspace, err := f.scope(call, in.Run)
	if err != nil {
		return checkpoint.Diff{}, err
	}
	if in.From != "" {
		return f.Service.Diff(ctx, call.Share(), workspace, in.From, in.To, in.Patch)
	}
	if of == "" {
		return checkpoint.Diff{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "from", Message: "checkpoint/diff: give run, or from"}
	}
	return f.Service.DiffOf(ctx, call.Share(), workspace, of, in.Patch)
}

type restoreIn struct {
	Run   string `json:"run" jsonschema:"run whose changes are taken back, or the undo of another restore"`
	Force bool   `json:"force,omitempty" jsonschema:"also files that were changed since, whose present content is kept; of a run without an end, all changes since its begin"`
}

// restore refuses a run that is active. One that was interrupted is stopped: to continue it
// on other files than it knows would do harm.
func (f family) restore(ctx context.Context, call *command.Call, in restoreIn) (checkpoint.Restored, error) {
	of, workspace, err := f.scope(call, in.Run)
	if err != nil {
		return checkpoint.Restored{}, err
	}
	info, err := f.Runs.Status(sentinels.RunID(of))
	unfinished := err == nil && !info.Status.Final()
	switch {
	case unfinished && info.Live:
		return checkpoint.Restored{}, &abi.Error{
			Code: abi.Conflict, Permanent: true, Field: "run", Message: fmt.Sprintf("restore: run %s is active", of), Hint: "sentinel stop " + of + " ends it",
		}
	case unfinished && in.Force:
		// A restore that is refused leaves the run as it was.
		if err := f.Service.CheckRestore(ctx, call.Share(), workspace, of); err != nil {
			return checkpoint.Restored{}, err
		}
		if err := f.Runs.Stop(ctx, info.ID); err != nil && abi.CodeOf(err) != abi.Conflict {
			return checkpoint.Restored{}, err
		}
	case err != nil && abi.CodeOf(err) != abi.NotFound:
		return checkpoint.Restored{}, err
	}
	out, err := f.Service.Restore(ctx, call.Share(), workspace, of, in.Force)
	if err == nil && out.Success && unfinished && !in.Force {
		// It was interrupted behind its last checkpoint. To continue it would report work that is undone.
		if stopped := f.Runs.Stop(ctx, info.ID); stopped != nil && abi.CodeOf(stopped) != abi.Conflict {
			return out, stopped
		}
	}
	return out, err
}
