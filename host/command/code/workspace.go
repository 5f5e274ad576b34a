package code

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// workspace is the folder that one call may access. The caller closes it.
type workspace struct {
	*rootfs.Tree
	model    bool // the caller is a model
	hides    bool // the caller is not a person: the values of secrets are removed before a text is cut, so that no part of one is left
	executes bool // the caller may execute code
	repeated bool // a crash interrupted the call
	rules    command.FileRules
	call     *command.Call
}

// open opens the workspace of a call.
func (f files) open(call *command.Call) (*workspace, error) {
	if !filepath.IsAbs(call.Workspace) {
		return nil, abi.New(abi.Internal, fmt.Sprintf("open workspace %q: not an absolute path", call.Workspace))
	}
	w := &workspace{model: call.Held(), repeated: call.Repeated, hides: call.By != command.ByUser, executes: call.By != command.ByModel || call.MayExecute, rules: f.rules.In(call.Workspace), call: call}
	tree, err := call.OpenWorkspace(rootfs.Rules{
		Outside: "outside the workspace", Hint: "paths are relative to the workspace", Missing: w.notFound, Folder: "code/tree lists folders", Write: w.mayWrite,
	})
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w.Tree = tree
	return w, nil
}

// ReadFile returns the content of a file as the caller may read it: below its workspace, and
// under the rules for models if it is held to them. max limits its size in bytes.
func ReadFile(call *command.Call, rules command.FileRules, name string, max int64) ([]byte, error) {
	w, err := files{rules}.open(call)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	p, err := w.Resolve(name, false)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if p.Info != nil && p.Info.Size() > max {
		return nil, tooLarge(p.Path, p.Info.Size())
	}
	return w.load(p)
}

// MayList returns an error if the caller may not list a folder, or read a file, of its
// workspace.
func MayList(call *command.Call, rules command.FileRules, name string) error {
	w, err := files{rules}.open(call)
	if err != nil {
		return err
	}
	defer w.Close()
	_, _, err = w.folder(name)
	return err
}

// visible returns the content of a file as the caller may know it. What callers who do not see
// secrets compare with it, or get counted or hashed, is that: else the answer would tell what the
// result does not show.
func (w *workspace) visible(data []byte) []byte {
	if w.model {
		return w.redacted(data)
	}
	return data
}

// visibleName is visible for the path of a file that a glob is compared with.
func (w *workspace) visibleName(name string) string { return string(w.visible([]byte(name))) }

// redacted returns data without the values of secrets.
func (w *workspace) redacted(data []byte) []byte {
	if w.rules.Redact == nil {
		return data
	}
	return w.rules.Redact(data)
}

// mayRead returns an error if a model must not read a file: one of the state folder
// of the host, or one that holds secrets. name is the path with its links resolved.
func (w *workspace) mayRead(name string) error {
	if !w.model {
		return nil
	}
	return w.rules.MayRead(name, nil)
}

// mayWrite returns an error if a model must not write a file, because it steers
// tools. name is the path with its links resolved.
func (w *workspace) mayWrite(name string) error {
	if !w.executes && command.SteersBuild(name) {
		return &abi.Error{
			Code: abi.Denied, Field: "path", Permanent: true,
			Message: fmt.Sprintf("write %q: the file determines what a build executes, and this model may not execute code", name),
			Hint:    "name code/verify or code/shell/execute in the step's tools, or write the file in a command step",
		}
	}
	if w.model {
		return w.rules.MayWrite(name)
	}
	return nil
}

// notFound is the error for a missing file, with similar names.
func (w *workspace) notFound(name string) error {
	e := &abi.Error{Code: abi.NotFound, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: no such file", name)}
	if near := w.similar(name); len(near) > 0 {
		e.Hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return e
}
