package code

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/internal/linediff"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxDiff limits the texts that are compared line by line, in bytes.
const maxDiff = 1 << 20

// lineCounts is how many lines a write changed. Both are absent if the texts are too large
// to compare, or binary.
type lineCounts struct {
	Added   int `json:"added,omitempty" jsonschema:"lines that are new"`
	Removed int `json:"removed,omitempty" jsonschema:"lines that are gone"`
}

// count compares two texts.
func count(before, after []byte) lineCounts {
	if !comparable(before) || !comparable(after) {
		return lineCounts{}
	}
	a, b := textLines(before), textLines(after)
	same := len(linediff.Align(a, b))
	return lineCounts{Added: len(b) - same, Removed: len(a) - same}
}

// comparable reports whether a text can be compared line by line.
func comparable(data []byte) bool { return len(data) <= maxDiff && !isBinary(data) }

func textLines(data []byte) []string {
	var lines []string
	for _, line := range splitLines(data) {
		lines = append(lines, string(line))
	}
	return lines
}

// previewWrite shows the differences that a write makes.
func (f files) previewWrite(_ context.Context, call *command.Call, in writeIn) (command.Preview, error) {
	w, err := f.open(call)
	if err != nil {
		return command.Preview{}, err
	}
	defer w.Close()
	p, name, err := w.target(in.Path, in.CreateDirs == nil || *in.CreateDirs)
	if err != nil {
		return command.Preview{}, err
	}
	defer p.Close()
	if err := w.mayWrite(name); err != nil {
		return command.Preview{}, err
	}
	if p.Path != name || p.Info == nil {
		if in.IfHash != "" && in.IfHash != noFile {
			return command.Preview{}, w.Missing(name)
		}
		return changes(name, nil, []byte(in.Content), true), nil
	}
	before, err := w.loadAny(p)
	if err != nil {
		return command.Preview{}, err
	}
	if in.IfHash != "" {
		if _, err := w.before(p, in); err != nil {
			return command.Preview{}, err
		}
	}
	if w.model && w.rules.MatchContent(name, before) {
		// A question is kept in the journal and shown in lists.
		return command.Preview{
			Text: fmt.Sprintf("%s may hold secrets: the %d bytes that it has are not shown\n%s", nameOf(name), len(before), marked(in.Content)),
			Path: pathtext.Encode(name),
		}, nil
	}
	text, _ := in.text(before)
	return changes(name, w.visible(before), w.visible(text), false), nil
}

// loadAny reads a file for a person: those that models do not read too.
func (w *workspace) loadAny(p *rootfs.Entry) ([]byte, error) {
	own := *w
	own.model = false
	return own.load(p)
}

// target resolves the path of a file whose folders may be missing, and returns the entry
// of the first one that is, and the whole path with its links resolved.
func (w *workspace) target(name string, createDirs bool) (*rootfs.Entry, string, error) {
	rel, err := w.Relative(name)
	if err != nil {
		return nil, "", err
	}
	for at := rel; ; at = path.Dir(at) {
		p, err := w.Resolve(at, false)
		switch {
		case err == nil && at != rel && p.Info != nil && !p.Info.IsDir():
			p.Close()
			return nil, "", &abi.Error{Code: abi.NotFound, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: %q is not a folder", name, at)}
		case err == nil:
			return p, path.Join(p.Path, strings.TrimPrefix(rel, at)), nil
		case !createDirs || abi.CodeOf(err) != abi.NotFound || at == ".":
			return nil, "", err
		}
	}
}

// previewEdit shows the differences that an edit makes.
func (f files) previewEdit(_ context.Context, call *command.Call, in editIn) (command.Preview, error) {
	w, err := f.open(call)
	if err != nil {
		return command.Preview{}, err
	}
	defer w.Close()
	e, err := w.planEdit(in)
	if err != nil {
		return command.Preview{}, err
	}
	defer e.Close()
	return changes(e.Path, w.visible(e.before), w.visible(e.after), false), nil
}

// previewSkill is previewWrite for the skill of planners.
func (f files) previewSkill(ctx context.Context, call *command.Call, in fsWriteIn) (command.Preview, error) {
	in.Path, _ = fixPath(call, in.Path, in.Autofix)
	return f.previewWrite(ctx, call, writeIn{Path: in.Path, Content: in.Content, IfHash: in.IfHash})
}

// preview shows the programs that code/verify starts.
func (v verifier) preview(ctx context.Context, call *command.Call, in verifyIn) (command.Preview, error) {
	w, err := v.open(call)
	if err != nil {
		return command.Preview{}, err
	}
	defer w.Close()
	dir, _, err := w.folder(in.Path)
	if err != nil {
		return command.Preview{}, err
	}
	stages, err := w.wantedStages(ctx, dir, in.FullTest)
	if err != nil {
		return command.Preview{}, err
	}
	var lines []string
	for _, s := range stages {
		lines = append(lines, "$ "+strings.Join(s.argv, " "))
	}
	return command.Preview{Text: strings.Join(append(lines, "in "+path.Join(call.Workspace, dir)), "\n")}, nil
}

// changes describes the replacement of a file.
func changes(name string, before, after []byte, created bool) command.Preview {
	n := count(before, after)
	p := command.Preview{
		Path: pathtext.Encode(name), Created: created, Added: n.Added, Removed: n.Removed, Pin: map[string]string{"ifHash": hashOf(before)},
	}
	if created {
		p.Pin["ifHash"] = noFile
	}
	switch {
	case !comparable(before) || !comparable(after):
		kind := "large"
		if isBinary(before) || isBinary(after) {
			kind = "binary"
		}
		p.Text = fmt.Sprintf("%s is a %s file: %d bytes before, %d bytes after", nameOf(name), kind, len(before), len(after))
	case created && len(after) == 0:
		p.Text = nameOf(name) + " is created empty"
	default:
		old := nameOf("a/" + name)
		if created {
			old = "/dev/null"
		}
		p.Text = linediff.Unified(textLines(before), textLines(after), old, nameOf("b/"+name))
		if p.Text == "" {
			p.Text = nameOf(name) + " stays as it is"
		}
	}
	return p
}

// marked returns new text with the mark of a diff before each line.
func marked(text string) string {
	if !utf8.ValidString(text) || isBinary([]byte(text)) {
		return fmt.Sprintf("by %d bytes that are not text", len(text))
	}
	return "+" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n+")
}

// nameOf returns a name for the text of a preview: one with a character that is not
// printed, such as a line feed, is quoted, so that it looks like no other line.
func nameOf(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
