package sentinel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type loadIn struct {
	Path string `json:"path,omitempty" jsonschema:"a definition file, or a folder of them; the project's own folders if not given"`
}

// A loadOut tells of every file: what was loaded, and why the rest was not.
type loadOut struct {
	Loaded   []saved       `json:"loaded"`
	Problems []loadProblem `json:"problems,omitempty" jsonschema:"files that are no valid definition"`
}

type loadProblem struct {
	File    string `json:"file"`
	Problem string `json:"problem"`
}

// load reads a project's sentinels. A bad file does not keep out the others.
func (f family) load(ctx context.Context, call *command.Call, in loadIn) (loadOut, error) {
	files, err := f.definitionFiles(call, in.Path)
	if err != nil {
		return loadOut{}, err
	}
	out := loadOut{Loaded: []saved{}}
	from := map[sentinels.ID]string{}
	for _, file := range files {
		s, err := f.loadFile(ctx, call, file, from)
		if err != nil {
			out.Problems = append(out.Problems, loadProblem{file, err.Error()})
			continue
		}
		out.Loaded = append(out.Loaded, s)
	}
	return out, nil
}

// loadFile loads one file, unless another one was loaded for the same sentinel:
// the two would take turns at each load. from has those that were.
func (f family) loadFile(ctx context.Context, call *command.Call, file string, from map[sentinels.ID]string) (saved, error) {
	src, err := f.opt.Trust.Read(file, sentinels.MaxBytes)
	if err != nil {
		return saved{}, err
	}
	// Not save, which decodes too: the id is wanted before anything is stored.
	def, problems := f.rt.Decode(src, file)
	if len(problems) > 0 {
		return saved{}, refused(problems)
	}
	// Only what was loaded counts: a broken file keeps out no other.
	if other := from[def.ID]; other != "" {
		return saved{}, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("%s: sentinel %q is in %s already, which counts", file, def.ID, other)}
	}
	// Whatever revision is there: a file that is loaded is meant to count.
	s, err := f.save(ctx, call, def, runtime.AnyRevision)
	if err == nil {
		from[def.ID] = file
	}
	return s, err
}

// The folders of a project that hold definitions: ours, and that of the
// specification.
const (
	// The first is the host's DirName, which this package cannot see.
	ownFolder       = ".sentinel"
	continuumFolder = ".continuum"
	definitionsDir  = "sentinels"
)

// definitionFiles returns the files that path names, a file or a folder. No
// path means the folders of the project, of which none has to be there. Where both
// have a sentinel our own counts, for it comes first.
func (f family) definitionFiles(call *command.Call, path string) ([]string, error) {
	if path == "" {
		// A host that serves a folder elsewhere has its sentinels there.
		dir := f.opt.Dir
		if dir == "" {
			dir = filepath.Join(call.Workspace, ownFolder)
		}
		var files []string
		for _, folder := range []string{dir, filepath.Join(call.Workspace, continuumFolder)} {
			// A project need not have either folder.
			found, err := jsonFiles(filepath.Join(folder, definitionsDir))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("load sentinels: %w", err)
			}
			files = append(files, found...)
		}
		return files, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(call.Workspace, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, &abi.Error{Code: abi.NotFound, Field: "path", Message: fmt.Sprintf("load sentinels: %v", err)}
	case info.IsDir():
		return jsonFiles(path)
	}
	return []string{path}, nil
}

// jsonFiles lists a folder. It does so by itself rather than with a pattern,
// which the folder's name could break.
func jsonFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" && !e.IsDir() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}
