package code

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// workspace is the folder tree that one call may touch. Close it.
type workspace struct {
	*rootfs.Tree
	model    bool // the caller is a model
	executes bool // the caller may execute code
	secrets  command.SecretFiles
}

// open opens the folder once for the whole call.
func (f files) open(call *command.Call) (*workspace, error) {
	if !filepath.IsAbs(call.Workspace) {
		return nil, abi.New(abi.Internal, fmt.Sprintf("open workspace %q: not an absolute path", call.Workspace))
	}
	w := &workspace{model: call.By == command.ByModel, executes: call.By != command.ByModel || call.MayExecute, secrets: f.secrets}
	tree, err := rootfs.Open(call.Workspace, rootfs.Rules{
		Outside: "outside the workspace", Hint: "paths are relative to the workspace", Missing: w.notFound, Folder: "code/tree lists folders", Write: w.mayWrite,
	})
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w.Tree = tree
	return w, nil
}

// mayRead refuses a model the state folder of this program, and files that hold
// secrets. name is where the file really is, links followed.
func (w *workspace) mayRead(name string) error {
	switch {
	case w.model && command.Secluded(name):
		return &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("read %q: not for models", name)}
	case w.model && w.secrets.Match(name):
		return w.secrets.Refuse(name)
	}
	return nil
}

// mayWrite refuses a model's write to files that steer tools. name is the path of
// the file with its links resolved.
func (w *workspace) mayWrite(name string) error {
	if !w.executes && command.SteersBuild(name) {
		return &abi.Error{
			Code: abi.Denied, Field: "path", Permanent: true,
			Message: fmt.Sprintf("write %q: the file says what a build runs, and this model may not execute code", name),
			Hint:    "name code/verify or code/shell/execute in the step's tools, or write the file in a command step",
		}
	}
	if w.model && (command.Steering(name) || command.Secluded(name)) {
		return &abi.Error{
			Code: abi.Denied, Field: "path", Permanent: true,
			Message: fmt.Sprintf("write %q: models may not write files that steer tools", name),
			Hint:    "a command step or a person can",
		}
	}
	return nil
}

// notFound is the error for a missing file, with names that are near.
func (w *workspace) notFound(name string) error {
	e := &abi.Error{Code: abi.NotFound, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: no such file", name)}
	if near := w.similar(name); len(near) > 0 {
		e.Hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return e
}
