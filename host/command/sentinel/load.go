package sentinel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type loadIn struct {
	Path string `json:"path,omitempty" jsonschema:"a definition file, or a folder of them; default the project's own folders"`
}

type loadOut struct {
	Loaded   []saved       `json:"loaded"`
	Problems []loadProblem `json:"problems,omitempty" jsonschema:"files that are not valid definitions"`
}

type loadProblem struct {
	File    string `json:"file"`
	Problem string `json:"problem"`
}

// load stores the definitions of a file, a folder or the project. A bad file does not
// affect the others.
func (f family) load(ctx context.Context, call *command.Call, in loadIn) (loadOut, error) {
	files, err := f.definitionFiles(call, in.Path)
	if err != nil {
		return loadOut{}, err
	}
	out := loadOut{Loaded: []saved{}}
	loaded := map[sentinels.ID]string{}
	var texts []givenText
	for _, file := range files {
		s, from, err := f.loadFile(ctx, call, file, loaded, len(files) == 1)
		if err != nil {
			out.Problems = append(out.Problems, loadProblem{file, err.Error()})
			continue
		}
		out.Loaded, texts = append(out.Loaded, s), append(texts, from)
		loaded[s.SentinelID] = file
	}
	for i, from := range texts { // now, because a file may refer to one that is loaded after it
		out.Loaded[i].Problems = f.remaining(ctx, from)
	}
	return out, nil
}

// loadFile loads one file, unless another file of the same sentinel is loaded: each load
// would store both, one after the other. With alone, the files beside it that it refers to are stored too:
// those of a folder are loaded anyway.
func (f family) loadFile(ctx context.Context, call *command.Call, file string, loaded map[sentinels.ID]string, alone bool) (out saved, from givenText, err error) {
	read := f.reader(call)
	if within(file, f.projectDir(call)) { // its definitions are those of the host, also for an agent that has them loaded
		read = f.opt.Trust.Read
	}
	src, err := read(file, sentinels.MaxBytes)
	if err != nil {
		return saved{}, from, err
	}
	def, problems, _ := f.rt.DecodeEdit(src, file)
	if len(problems) > 0 {
		return saved{}, from, refused(problems)
	}
	if other := loaded[def.ID]; other != "" {
		return saved{}, from, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("%s: sentinel %q is already loaded from %s", file, def.ID, other)}
	}
	if alone {
		all, err := f.beside(ctx, call, besideIn{}, src, file, read)
		if err == nil {
			_, _, err = f.saveBeside(ctx, call, all, true)
		}
		if err != nil {
			return saved{}, from, err
		}
	}
	if err := f.sync(ctx, def.ID); err != nil {
		return saved{}, from, err
	}
	out, err = f.save(ctx, call, def, runtime.AnyRevision, given(call))
	return out, givenText{src, file}, err
}

// within reports whether a file is below a folder, by their names.
func within(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// The folders of a project that hold definitions: ours, and that of other programs of
// this kind.
const (
	ownFolder       = ".sentinel" // host.DirName, which this package cannot import
	continuumFolder = ".continuum"
	definitionsDir  = "sentinels"
)

// projectDir is the folder with the sentinels, recipes and plugins of the project.
func (f family) projectDir(call *command.Call) string {
	if f.opt.Dir != "" {
		return f.opt.Dir
	}
	return filepath.Join(call.Workspace, ownFolder)
}

// definitionFiles returns the files of a path, "" for the folders of the project, either
// of which may be missing. Ours is first, so that its file of a sentinel is loaded.
func (f family) definitionFiles(call *command.Call, path string) ([]string, error) {
	if path == "" {
		var files []string
		for _, folder := range []string{f.projectDir(call), filepath.Join(call.Workspace, continuumFolder)} {
			found, err := jsonFiles(filepath.Join(folder, definitionsDir))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("load sentinels: %w", err)
			}
			files = append(files, found...)
		}
		return files, nil
	}
	if call.Held() {
		if err := code.MayList(call, f.opt.Rules, path); err != nil {
			return nil, err
		}
	}
	path = inWorkspace(call, path)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, &abi.Error{Code: abi.NotFound, Field: "path", Message: fmt.Sprintf("load sentinels: %v", err)}
	case info.IsDir():
		return jsonFiles(path)
	}
	return []string{path}, nil
}

// jsonFiles lists the definitions in a folder, sorted by name. Its name may have
// characters that have a meaning in patterns.
func jsonFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" && !e.IsDir() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}
