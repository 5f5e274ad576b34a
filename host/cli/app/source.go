package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/internal/reffile"
	"github.com/sentinel-runtime/sentinel/host/internal/trust/content"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// maxSource is how much of a file or of standard input is read, in bytes: one
// more than a definition may have, so that the decoder refuses it.
const maxSource = 1<<20 + 1

// A Source is the text of a definition and where it came from.
type Source struct {
	Text []byte
	File string // as it was named, for the places of problems; empty for a stored one
	Path string // absolute, empty for standard input and a stored one
	Base string // folder that a relative workspace in it starts from

	// Beside are the definitions that {"$ref": id} in it means: files beside it, or of its project.
	Beside map[sentinels.ID]sentinels.Neighbour

	Stored   string // id of the stored sentinel; then text is its newest revision
	Revision int    // of a stored one

	// Unaccepted says that a model or an agent made the revision and that no person has
	// accepted it: a definition with this text must not be executed as that of the user.
	Unaccepted bool
}

// ReadTrusted reads FILE or NAME without the store, for a definition that is going to
// be executed. It returns nil when only the store can know the name.
func (a *App) ReadTrusted(target string) (*Source, error) { return a.trusted(a.ReadSource(target)) }

// ProjectSource reads the definition with a name in the project's folders, as ReadTrusted
// does; nil if there is none. With --untrusted one that is not trusted counts as none.
func (a *App) ProjectSource(name string) (*Source, error) {
	src, err := a.trusted(a.inFolders(name))
	if a.Flags.Untrusted && errors.Is(err, content.ErrUntrusted) {
		return nil, nil
	}
	return src, err
}

// trusted checks the files of src.
func (a *App) trusted(src *Source, err error) (*Source, error) {
	if err != nil || src == nil || src.Path == "" {
		return src, err
	}
	policy, err := a.Policy()
	if err != nil {
		return nil, err
	}
	check := func(path string, text []byte) error {
		if err := policy.Check(path); err != nil {
			return err
		}
		return policy.CheckContent(path, text)
	}
	for _, n := range src.Beside {
		if err := check(filepath.Join(src.Base, n.File), n.Text); err != nil {
			return nil, err
		}
	}
	return src, check(src.Path, src.Text)
}

// withBeside adds the definitions in files that src refers to: beside the one that says so or, unless they are named as
// files, in the project's folders, where a file of another name may define the id. The problems of paths that lead to files
// which [reffile.Finder] does not let it have are returned with src.
func (a *App) withBeside(src *Source, err error) (*Source, error) {
	if err != nil {
		return nil, err
	}
	finder := reffile.Finder{Base: src.Base}
	if IsDir(a.Dir()) {
		finder.Host = a.Dir()
	}
	src.Beside, err = sentinels.Beside(src.Text, func(from string, id sentinels.ID, files []string, named bool) (n sentinels.Neighbour, err error) {
		path, err := finder.Find(from, files, named)
		if err == nil {
			if n, err = readAt(src.Base, path); err != nil && named {
				err = reffile.Refused(files[0], "cannot be read: "+err.Error())
			}
		}
		if named || !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
		return a.inProject(src.Base, id)
	})
	if bad := (*sentinels.RefError)(nil); errors.As(err, &bad) {
		for i := range bad.Problems {
			bad.Problems[i].File = src.File
		}
		return src, bad.Problems
	}
	return src, err
}

// inProject reads the definition with an id in the project's folders, where a file of another name may define it. The error is
// [fs.ErrNotExist] if there is none.
func (a *App) inProject(base string, id sentinels.ID) (n sentinels.Neighbour, err error) {
	for _, dir := range a.Folders() {
		if n, err = readNamed(base, dir, id); !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
	}
	for _, dir := range a.Folders() {
		for _, path := range a.DefinitionFiles(dir) {
			text, err := regularfile.Read(path, sentinels.MaxBytes)
			if err != nil {
				continue // another sentinel's
			}
			if def := sentinels.Lenient(text, sentinels.DecodeOptions{}); def != nil && def.ID == id {
				return readBeside(base, dir, filepath.Base(path))
			}
		}
	}
	return n, fs.ErrNotExist
}

// addStarted adds the definitions that a command step of src starts by their ids, as those in files beside it and in the
// project's folders are stored with it. It is for a check alone: the command of a run starts what is stored.
func (a *App) addStarted(src *Source) {
	def := sentinels.Lenient(src.Text, sentinels.DecodeOptions{})
	if def == nil || src.Path == "" {
		return
	}
	def.EachStep(func(_ string, s *sentinels.Step) {
		var params struct {
			ID sentinels.ID `json:"sentinelId"`
		}
		if json.Unmarshal(s.Fields["params"], &params) != nil || !params.ID.Valid() || src.Beside[params.ID].Text != nil || params.ID == def.ID {
			return
		}
		n, err := readNamed(src.Base, src.Base, params.ID)
		if errors.Is(err, fs.ErrNotExist) {
			n, err = a.inProject(src.Base, params.ID)
		}
		if err != nil {
			return
		}
		if child := sentinels.Lenient(n.Text, sentinels.DecodeOptions{}); child != nil && child.ID == params.ID {
			if src.Beside == nil {
				src.Beside = map[sentinels.ID]sentinels.Neighbour{}
			}
			src.Beside[params.ID] = n
		}
	})
}

// readNamed reads the file of a folder that has an id as its name. The error is [fs.ErrNotExist] if there is none.
func readNamed(base, dir string, id sentinels.ID) (n sentinels.Neighbour, err error) {
	err = fs.ErrNotExist
	for _, ext := range sentinels.FileExtensions() {
		if n, err = readBeside(base, dir, string(id)+ext); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return n, err
}

// readBeside reads a file of a folder, with its path relative to base. A link must not lead out.
func readBeside(base, dir, name string) (sentinels.Neighbour, error) {
	if err := regularfile.Within(dir, name); err != nil {
		return sentinels.Neighbour{}, err
	}
	return readAt(base, filepath.Join(dir, name))
}

// readAt reads a file, with its path relative to base.
func readAt(base, path string) (sentinels.Neighbour, error) {
	n, err := ReadDefinition(filepath.Base(path), path)
	if err != nil {
		return sentinels.Neighbour{}, err
	}
	rel, err := filepath.Rel(base, path)
	return sentinels.Neighbour{File: rel, Text: n.Text}, err
}

// PlaceBeside adds the definitions beside src to parameters of a command that takes it.
func (src *Source) PlaceBeside(params map[string]any) {
	if len(src.Beside) == 0 {
		return
	}
	texts := map[sentinels.ID]string{}
	for id, n := range src.Beside {
		texts[id] = string(n.Text)
	}
	params["definitions"] = texts
}

// ReadSource reads FILE or NAME for a definition that is only checked. A definition whose "$ref" leads to no file that
// it may use is returned with an error that is its [sentinels.Problems].
func (a *App) ReadSource(target string) (*Source, error) {
	if target == "-" {
		text, err := io.ReadAll(io.LimitReader(a.Env.Stdin, maxSource))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return &Source{Text: text, File: "-", Base: a.Workspace()}, nil
	}
	if isName(target) {
		if src, err := a.inFolders(target); src != nil || err != nil || !looksLikeFile(target) {
			return src, err
		}
	}
	path := a.Path(target)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return a.withBeside(ReadDefinition(target, path))
	}
	return nil, NotFound("", "no file %q", target)
}

// inFolders reads the definition with a name in the project's folders, nil if there is none.
func (a *App) inFolders(name string) (*Source, error) {
	for _, dir := range a.Folders() {
		for _, ext := range sentinels.FileExtensions() {
			path := filepath.Join(dir, name+ext)
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				return a.withBeside(ReadDefinition(a.Relative(path), path))
			}
		}
	}
	return nil, nil
}

// ReadDefinition reads a definition; one that is too large is cut just above the limit, so
// that the decoder refuses it.
func ReadDefinition(name, path string) (*Source, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSource))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	return &Source{Text: text, File: name, Path: path, Base: filepath.Dir(path)}, nil
}

// isName reports whether target may be the name of a sentinel: it has no separator and not the ending
// of a definition. A file of that name does not count before the sentinel: it may have come with a
// project, and what is named by its path needs no trust.
func isName(target string) bool {
	return !strings.ContainsRune(target, filepath.Separator) && !strings.ContainsRune(target, '/') &&
		!slices.Contains(sentinels.FileExtensions(), filepath.Ext(target))
}

// looksLikeFile reports whether target means a file if no sentinel has that name. No id has a dot.
func looksLikeFile(target string) bool { return !isName(target) || strings.ContainsRune(target, '.') }

// FileHint returns the hint for a name that no sentinel has, if a file has it; else "".
func (a *App) FileHint(name string) string {
	if info, err := os.Stat(a.Path(name)); looksLikeFile(name) || err != nil || info.IsDir() {
		return ""
	}
	return fmt.Sprintf("for the file of that name write .%c%s", filepath.Separator, name)
}

// Folders are where the definitions of a project lie, the nearest first.
func (a *App) Folders() []string {
	dir := a.Dir()
	return []string{filepath.Join(dir, "sentinels"), filepath.Join(filepath.Dir(dir), ".continuum", "sentinels")}
}

// Relative is path as a person would type it here.
func (a *App) Relative(path string) string {
	if rel, err := filepath.Rel(a.Env.Dir, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

// IsFile reports whether target means a file and not a name: standard input, or a path.
func (a *App) IsFile(target string) bool { return target == "-" || looksLikeFile(target) }

// NamedSource returns the definition that a name means: that of a file in the
// project's folders, or of the stored sentinel. A server keeps both the same, and a run
// of the stored one follows later edits, so there the stored one has priority.
func (a *App) NamedSource(ctx context.Context, s *Session, name string) (*Source, error) {
	file := func() (*Source, error) { return a.ReadTrusted(name) }
	stored := func() (*Source, error) { return a.StoredSource(ctx, s, name) }
	order := []func() (*Source, error){file, stored}
	if s.Serves() {
		order = []func() (*Source, error){stored, file}
	}
	for _, read := range order {
		if src, err := read(); src != nil || err != nil {
			return src, err
		}
	}
	return nil, a.NoSentinel(name, &abi.Error{Code: abi.NotFound})
}

// StoredSource returns the newest revision of a stored sentinel, nil if there is none.
func (a *App) StoredSource(ctx context.Context, s *Session, name string) (*Source, error) {
	var out struct {
		SentinelID string          `json:"sentinelId"`
		Revision   int             `json:"revision"`
		Definition json.RawMessage `json:"definition"`
		Unaccepted bool            `json:"unaccepted"`
	}
	err := s.Call(ctx, "sentinel/export", map[string]any{"sentinelId": name}, &out)
	if abi.CodeOf(err) == abi.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	src := &Source{Text: out.Definition, Base: a.Workspace(), Stored: name, Revision: out.Revision, Unaccepted: out.Unaccepted}
	var def struct {
		ID        string `json:"id"`
		Workspace string `json:"workspace"`
	}
	if json.Unmarshal(out.Definition, &def) != nil || def.Workspace == "" || filepath.IsAbs(def.Workspace) {
		return src, nil // what is not a definition, its decoder refuses
	}
	var line struct {
		Origin string `json:"origin"`
	}
	err = s.Call(ctx, "sentinel/revision", map[string]any{"sentinelId": cmp.Or(out.SentinelID, def.ID), "revision": out.Revision}, &line)
	if line.Origin != "" {
		src.Base = filepath.Dir(line.Origin)
	}
	return src, err
}

// WorkspaceBase is the folder that a relative workspace of src is relative to: that of its
// file, unless --workspace names another.
func (a *App) WorkspaceBase(src *Source) string {
	if a.Flags.Workspace == "" {
		return src.Base
	}
	return a.Workspace()
}

// DecodeAnyStep decodes the definition of src with any step type: only the engine knows
// those that exist.
func DecodeAnyStep(src *Source) (*sentinels.Definition, sentinels.Problems) {
	return sentinels.Decode(src.Text, sentinels.DecodeOptions{Triggers: standard.Set().Formats(), File: src.File})
}

// validated is the result of sentinel/validate.
type validated struct {
	Valid    bool               `json:"valid"`
	Sentinel sentinels.ID       `json:"sentinelId,omitempty"`
	Problems sentinels.Problems `json:"problems"` // warnings too
}

// ValidationBeside is Validation for a definition that [App.ReadSource] returned with problems of its "$ref".
func (a *App) ValidationBeside(ctx context.Context, s *Session, src *Source, refs sentinels.Problems) (validated, error) {
	a.addStarted(src)
	out, err := a.Validation(ctx, s, src)
	if len(refs) > 0 && err == nil {
		out.Valid = false
		out.Problems = slices.DeleteFunc(out.Problems, func(p sentinels.Problem) bool { // that such a sentinel is not stored
			return slices.ContainsFunc(refs, func(r sentinels.Problem) bool { return r.Path == p.Path })
		}).Merge(refs)
	}
	return out, err
}

// Validation has the engine of a session validate the definition of src. variables are
// names that a start sets.
func (a *App) Validation(ctx context.Context, s *Session, src *Source, variables ...string) (validated, error) {
	params := map[string]any{}
	if len(variables) > 0 {
		params["variables"] = variables
	}
	return a.validation(ctx, s, src, params)
}

// validation calls sentinel/validate for src with further parameters.
func (a *App) validation(ctx context.Context, s *Session, src *Source, params map[string]any) (out validated, err error) {
	if !utf8.Valid(src.Text) { // it would not arrive as it is
		_, problems := DecodeAnyStep(src)
		return validated{Problems: problems}, nil
	}
	params["definition"] = string(src.Text)
	src.PlaceBeside(params)
	// A server that a URL names has none of our folders.
	if !s.ByURL && bytes.Contains(src.Text, []byte(`"workspace"`)) {
		params["base"] = a.WorkspaceBase(src)
	}
	if err := s.Call(ctx, "sentinel/validate", params, &out); err != nil {
		return out, err
	}
	for i := range out.Problems {
		out.Problems[i].File, out.Problems[i].Message = src.File, src.NameBeside(out.Problems[i].Message)
	}
	return out, nil
}

// ValidateWith returns the problems of the definition of src as an error, and shows
// warnings.
func (a *App) ValidateWith(ctx context.Context, s *Session, src *Source, variables ...string) error {
	out, err := a.Validation(ctx, s, src, variables...)
	return a.show(out, err)
}

// ValidateEdit is ValidateWith for a definition that is going to be stored: errors that the
// stored one has too do not prevent that.
func (a *App) ValidateEdit(ctx context.Context, s *Session, src *Source) error {
	out, err := a.validation(ctx, s, src, map[string]any{"edit": true})
	return a.show(out, err)
}

func (a *App) show(out validated, err error) error {
	if err != nil {
		return err
	}
	if !out.Valid {
		return out.Problems
	}
	a.ShowProblems(out.Problems)
	return nil
}

// definedIn starts a problem of a definition that was sent as text.
var definedIn = regexp.MustCompile(`(?m)^definition:`)

// NameFile names the file of src in the problems of a definition that was sent as text.
func NameFile(err error, src *Source) error {
	e := abi.As(err)
	if e == nil || e.Code != abi.BadFields {
		return err
	}
	named := *e
	named.Message = src.NameBeside(definedIn.ReplaceAllLiteralString(e.Message, src.File+":"))
	if named.Message == e.Message {
		return err
	}
	return invalidError{&named}
}

// NameBeside names the files of the definitions beside src in a text about them.
func (src *Source) NameBeside(text string) string {
	for id, n := range src.Beside {
		text = strings.ReplaceAll(text, "definitions."+string(id)+":", filepath.Join(filepath.Dir(src.File), n.File)+":")
	}
	return text
}

// NoSentinel returns the error of a name that is neither a file nor a stored sentinel.
func (a *App) NoSentinel(target string, e *abi.Error) error {
	hint := cmp.Or(a.FileHint(target), e.Hint)
	if hint == "" {
		names := a.fileNames()
		if near := sentinels.Suggest(target, names); len(near) > 0 {
			hint = fmt.Sprintf("did you mean %q?", near[0])
		} else {
			hint = fmt.Sprintf("name a file, a stored sentinel, or one in %s; `sentinel list%s` shows them", a.Relative(a.Folders()[0]), a.SameStore())
		}
	}
	return NotFound(hint, "no sentinel %q", target)
}

// fileNames returns the names that files in the project's folders give.
func (a *App) fileNames() []string {
	var names []string
	for _, dir := range a.Folders() {
		for _, file := range a.DefinitionFiles(dir) {
			base := filepath.Base(file)
			names = append(names, strings.TrimSuffix(base, filepath.Ext(base)))
		}
	}
	return names
}
