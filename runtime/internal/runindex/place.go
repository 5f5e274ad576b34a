package runindex

import (
	"encoding/json"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/runtime/run"
)

// A Project is the folder that the workspaces of runs are stored relative to, so that a state
// folder may be moved or copied together with it. Empty: they are stored as absolute paths.
type Project string

// Relative returns a workspace for a record: one in the project begins with ".".
func (p Project) Relative(workspace string) string {
	if p == "" || workspace == "" {
		return workspace
	}
	rel, err := filepath.Rel(string(p), workspace)
	if err != nil || !filepath.IsLocal(rel) {
		return workspace
	}
	if rel == "." {
		return rel
	}
	return "./" + filepath.ToSlash(rel)
}

// Absolute returns the workspace of a record.
func (p Project) Absolute(stored string) string {
	if stored == "" || p == "" || filepath.IsAbs(stored) {
		return stored
	}
	return filepath.Join(string(p), filepath.FromSlash(stored))
}

// Encode returns a summary as it is stored.
func (p Project) Encode(info run.Info) ([]byte, error) {
	info.Workspace = p.Relative(info.Workspace)
	return json.Marshal(info)
}

// Decode reads a stored summary.
func (p Project) Decode(text []byte, info *run.Info) error {
	err := json.Unmarshal(text, info)
	info.Workspace = p.Absolute(info.Workspace)
	return err
}

// Project returns the folder that workspaces are stored relative to.
func (x *Index) Project() Project { return x.opt.Project }
