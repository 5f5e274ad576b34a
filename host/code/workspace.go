package code

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// workspace is the folder tree that one call may touch. Close it.
type workspace struct {
	root  *os.Root
	base  string // absolute, as the call gave it
	model bool   // a model asked
}

// openWorkspace opens the folder once for the whole call, so that renaming it
// meanwhile changes nothing.
func openWorkspace(call *command.Call) (*workspace, error) {
	if !filepath.IsAbs(call.Workspace) {
		return nil, abi.New(abi.Internal, fmt.Sprintf("open workspace %q: not an absolute path", call.Workspace))
	}
	root, err := os.OpenRoot(call.Workspace)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	return &workspace{root: root, base: call.Workspace, model: call.By == command.ByModel}, nil
}

// Close ends the access. Files opened through it stay open.
func (w *workspace) Close() error { return w.root.Close() }

// relative turns what a caller wrote into a slash path below the workspace. An
// absolute path is fine if it points inside.
func (w *workspace) relative(name string) (string, error) {
	if name == "" {
		name = "."
	}
	if strings.ContainsRune(name, 0) {
		return "", &abi.Error{Code: abi.BadFields, Field: "path", Permanent: true, Message: "open: path contains a zero byte"}
	}
	if filepath.IsAbs(name) {
		inside, ok := w.inside(name)
		if !ok {
			return "", outside(name)
		}
		name = inside
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", outside(name)
	}
	return path.Clean(filepath.ToSlash(name)), nil
}

// inside returns the part of an absolute path below the workspace.
func (w *workspace) inside(name string) (string, bool) {
	for _, base := range []string{w.base, resolved(w.base)} {
		rel, err := filepath.Rel(base, name)
		if err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// resolved follows the links of the workspace's own path. That is safe: the
// operator chose it, not the caller.
func resolved(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

// outside is the one error for every way of leaving the workspace, so that it
// does not tell what is there.
func outside(name string) error {
	return &abi.Error{
		Code: abi.Denied, Field: "path", Permanent: true,
		Message: fmt.Sprintf("open %q: outside the workspace", name), Hint: "paths are relative to the workspace",
	}
}

// mayRead refuses a model's look at what is ours alone.
func (w *workspace) mayRead(name string) error {
	if w.model && command.Secluded(name) {
		return &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("read %q: not for models", name)}
	}
	return nil
}

// mayWrite refuses a model's write to what steers tools. name is where the
// file really is, links followed.
func (w *workspace) mayWrite(name string) error {
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

// explain gives an error of the file system the words and code of this family.
func (w *workspace) explain(name string, err error) error {
	switch {
	case abi.As(err) != nil:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return w.notFound(name)
	case strings.Contains(err.Error(), "escapes"):
		return outside(name)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err // the path in it is a single name, ours is the whole
	}
	return fmt.Errorf("open %q: %w", name, err)
}
