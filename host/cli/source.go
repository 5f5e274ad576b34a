package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
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

	stored   string // id of the stored sentinel; then text is its newest revision
	revision int    // of a stored one
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

// isFile reports whether target means a file and not a name: standard input, a path,
// or a file that exists.
func (a *app) isFile(target string) bool {
	if target == "-" || looksLikeFile(target) || strings.ContainsRune(target, '/') {
		return true
	}
	info, err := os.Stat(a.path(target))
	return err == nil && !info.IsDir()
}

// namedSource returns the definition that a name means: that of a file in the
// project's folders, or of the stored sentinel. A server keeps both the same, and a run
// of the stored one follows later edits, so there the stored one has priority.
func (a *app) namedSource(ctx context.Context, s *session, name string) (*source, error) {
	file := func() (*source, error) { return a.readSource(name) }
	stored := func() (*source, error) { return a.storedSource(ctx, s, name) }
	order := []func() (*source, error){file, stored}
	if s.serves() {
		order = []func() (*source, error){stored, file}
	}
	for _, read := range order {
		if src, err := read(); src != nil || err != nil {
			return src, err
		}
	}
	return nil, a.noSentinel(name, &abi.Error{Code: abi.NotFound})
}

// storedSource returns the newest revision of a stored sentinel, nil if there is none.
func (a *app) storedSource(ctx context.Context, s *session, name string) (*source, error) {
	var out struct {
		Revision   int             `json:"revision"`
		Definition json.RawMessage `json:"definition"`
	}
	err := s.Call(ctx, "sentinel/export", map[string]any{"sentinelId": name}, &out)
	if abi.CodeOf(err) == abi.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &source{text: out.Definition, base: a.workspace(), stored: name, revision: out.Revision}, nil
}

// decodeAnyStep decodes the definition of src with any step type: only the engine knows
// those that exist.
func decodeAnyStep(src *source) (*sentinels.Definition, sentinels.Problems) {
	return sentinels.Decode(src.text, sentinels.DecodeOptions{Triggers: standard.Set().Formats(), File: src.file})
}

// validated is the result of sentinel/validate.
type validated struct {
	Valid    bool               `json:"valid"`
	Sentinel sentinels.ID       `json:"sentinelId,omitempty"`
	Problems sentinels.Problems `json:"problems"` // warnings too
}

// validation has the engine of a session validate the definition of src. variables are
// names that a start sets.
func (a *app) validation(ctx context.Context, s *session, src *source, variables ...string) (out validated, err error) {
	if !utf8.Valid(src.text) { // it would not arrive as it is
		_, problems := decodeAnyStep(src)
		return validated{Problems: problems}, nil
	}
	params := map[string]any{"definition": string(src.text)}
	if len(variables) > 0 {
		params["variables"] = variables
	}
	if err := s.Call(ctx, "sentinel/validate", params, &out); err != nil {
		return out, err
	}
	for i := range out.Problems {
		out.Problems[i].File = src.file
	}
	return out, nil
}

// validateWith returns the problems of the definition of src as an error, and shows
// warnings.
func (a *app) validateWith(ctx context.Context, s *session, src *source, variables ...string) error {
	out, err := a.validation(ctx, s, src, variables...)
	if err != nil {
		return err
	}
	if !out.Valid {
		return out.Problems
	}
	a.problems(out.Problems)
	return nil
}

// definedIn starts a problem of a definition that was sent as text.
var definedIn = regexp.MustCompile(`(?m)^definition:`)

// ofFile names the file of src in the problems of a definition that was sent as text.
func ofFile(err error, src *source) error {
	e := abi.As(err)
	if e == nil || e.Code != abi.BadFields || !definedIn.MatchString(e.Message) {
		return err
	}
	named := *e
	named.Message = definedIn.ReplaceAllLiteralString(e.Message, src.file+":")
	return invalidError{&named}
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
