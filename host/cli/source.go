package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxSource is how much of a file or of standard input is read, in bytes: one
// more than a definition may have, so that the decoder says so.
const maxSource = 1<<20 + 1

// A source is the text of a definition and where it came from.
type source struct {
	text []byte
	file string // as it was named, for the places of problems; empty for a stored one
	path string // absolute, empty for standard input and a stored one
	base string // folder that a relative workspace in it starts from
}

// A found is a definition that is ready to run.
type found struct {
	def      *sentinels.Definition
	source   source
	revision int // 0 when it is not the stored one
}

// readSource reads FILE or NAME without the store, for a definition that is going to
// be obeyed. It returns nil when only the store can know the name.
func (a *app) readSource(target string) (*source, error) {
	src, err := a.findSource(target)
	if err != nil || src == nil || src.path == "" {
		return src, err
	}
	return src, a.checkTrust(src.path)
}

// findSource is readSource for a definition that is only looked at.
func (a *app) findSource(target string) (*source, error) {
	if target == "-" {
		text, err := io.ReadAll(io.LimitReader(a.env.Stdin, maxSource))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return &source{text: text, file: "-", base: a.workspace()}, nil
	}
	path := a.path(target)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return readFile(target, path)
	}
	if looksLikeFile(target) {
		return nil, notFound("", "no file %q", target)
	}
	for _, dir := range a.folders() {
		for _, ext := range []string{".json", ".jsonc"} {
			path := filepath.Join(dir, target+ext)
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				return readFile(a.relative(path), path)
			}
		}
	}
	return nil, nil
}

// readFile reads a definition; one that is too large is cut just above the limit, so
// that the decoder refuses it.
func readFile(name, path string) (*source, error) {
	f, err := openArgument(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSource))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	return &source{text: text, file: name, path: path, base: filepath.Dir(path)}, nil
}

// looksLikeFile tells a file that is missing from a name that is not known: what to
// do about them differs.
func looksLikeFile(target string) bool {
	return strings.ContainsRune(target, filepath.Separator) || strings.HasSuffix(target, ".json") || strings.HasSuffix(target, ".jsonc")
}

// folders are where the definitions of a project lie, the nearest first.
func (a *app) folders() []string {
	dir := a.dir()
	return []string{filepath.Join(dir, "sentinels"), filepath.Join(filepath.Dir(dir), ".continuum", "sentinels")}
}

// relative is path as a person would type it here.
func (a *app) relative(path string) string {
	if rel, err := filepath.Rel(a.env.Dir, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

// find makes a definition of a source, or of the stored one that target names.
func (a *app) find(rt *runtime.Runtime, target string, src *source) (found, error) {
	if src != nil {
		def, problems := rt.Decode(src.text, src.file)
		if err := problems.Err(); err != nil {
			return found{}, err
		}
		return found{def: def, source: *src}, nil
	}
	stored, err := rt.Definition(sentinels.ID(target))
	if err != nil {
		if e := abi.As(err); e != nil && e.Code == abi.NotFound {
			return found{}, a.noSentinel(target, e)
		}
		return found{}, err
	}
	def, err := rt.Decoded(stored)
	if err != nil {
		return found{}, fmt.Errorf("sentinel %q, revision %d: %w", target, stored.Revision, err)
	}
	return found{def: def, source: source{text: stored.Definition, base: a.workspace()}, revision: stored.Revision}, nil
}

// noSentinel says where was looked for a name.
func (a *app) noSentinel(target string, e *abi.Error) error {
	hint := e.Hint
	if hint == "" {
		names := a.fileNames()
		if near := sentinels.Suggest(target, names); len(near) > 0 {
			hint = fmt.Sprintf("did you mean %q?", near[0])
		} else {
			hint = fmt.Sprintf("name a file, a stored sentinel, or one in %s; `sentinel list%s` shows them", a.relative(a.folders()[0]), a.sameStore())
		}
	}
	return notFound(hint, "no sentinel is called %q", target)
}

// fileNames returns the names that files in the project's folders give.
func (a *app) fileNames() []string {
	var names []string
	for _, dir := range a.folders() {
		for _, file := range a.definitionFiles(dir) {
			base := filepath.Base(file)
			names = append(names, strings.TrimSuffix(base, filepath.Ext(base)))
		}
	}
	return names
}

// warnings are what is probably not as meant in a definition that is valid.
func (a *app) warnings(rt *runtime.Runtime, f found, known ...string) sentinels.Problems {
	list := sentinels.Check(f.def, rt.Types(), known...)
	if f.source.file == "" {
		return list
	}
	return list.Locate(f.source.file, f.source.text, rt.Types())
}
