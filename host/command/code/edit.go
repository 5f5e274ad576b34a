package code

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// editIn has one replacement or a list, because users and models write both forms.
type editIn struct {
	Path       string        `json:"path" jsonschema:"file to edit, relative to the workspace"`
	Old        string        `json:"old,omitempty" jsonschema:"the exact text to replace, with enough text around it to be unique; LF is equal to CR LF"`
	New        string        `json:"new,omitempty" jsonschema:"the new text; empty removes the old text. Lines keep their line ends, new lines get those beside them"`
	ReplaceAll bool          `json:"replaceAll,omitempty" jsonschema:"replace every occurrence"`
	Edits      []replacement `json:"edits,omitempty" jsonschema:"several replacements in order, instead of old and new; either all are made or none"`
	IfHash     string        `json:"ifHash,omitempty" jsonschema:"edit only if the file still has this SHA-256, as code/read returns it"`
}

type replacement struct {
	Old        string `json:"old" jsonschema:"the exact text to replace"`
	New        string `json:"new,omitempty" jsonschema:"the text to put in its place"`
	ReplaceAll bool   `json:"replaceAll,omitempty" jsonschema:"replace every occurrence"`
}

type editOut struct {
	Path         string   `json:"path"`
	Replacements int      `json:"replacements"`
	Changes      []change `json:"changes" jsonschema:"the first 50 places where text was replaced"`
	lineCounts
	Hash string `json:"hash" jsonschema:"SHA-256 of the file as written"`
}

// A change is one replacement. Lines are counted in the text before it.
type change struct {
	Line    int `json:"line" jsonschema:"line where the replaced text began, from 1"`
	Removed int `json:"removed" jsonschema:"number of lines that contained the old text"`
	Added   int `json:"added" jsonschema:"number of lines of the new text"`
}

const (
	maxChanges = 50  // that are shown
	maxEdits   = 200 // each looks through the whole file
)

// edit reads the file and replaces it. What another process writes between the two
// is lost.
func (f files) edit(_ context.Context, call *command.Call, in editIn) (editOut, error) {
	w, err := f.open(call)
	if err != nil {
		return editOut{}, err
	}
	defer w.Close()
	e, err := w.planEdit(in)
	if err != nil {
		return editOut{}, err
	}
	defer e.Close()
	if _, err := w.WriteFile(e.Entry, e.after); err != nil {
		return editOut{}, err
	}
	return editOut{
		Path: pathtext.Encode(e.Path), Replacements: len(e.changes), Changes: e.changes[:min(len(e.changes), maxChanges)],
		lineCounts: count(w.visible(e.before), w.visible(e.after)), Hash: hashOf(w.visible(e.after)),
	}, nil
}

// A plannedEdit is what an edit would write. The caller closes it.
type plannedEdit struct {
	*rootfs.Entry
	before, after []byte
	changes       []change
}

// planEdit makes the edits in memory.
func (w *workspace) planEdit(in editIn) (*plannedEdit, error) {
	edits, err := in.replacements()
	if err != nil {
		return nil, err
	}
	p, err := w.Resolve(in.Path, false)
	if err != nil {
		return nil, err
	}
	e := &plannedEdit{Entry: p}
	if err := e.plan(w, edits, in.IfHash); err != nil {
		p.Close()
		return nil, err
	}
	return e, nil
}

func (e *plannedEdit) plan(w *workspace, edits []replacement, ifHash string) error {
	if err := w.mayWrite(e.Path); err != nil {
		return err
	}
	var err error
	if e.before, err = w.load(e.Entry); err != nil {
		return err
	}
	if ifHash != "" {
		if err := unchanged(e.Path, w.visible(e.before), ifHash); err != nil {
			return err
		}
	}
	seen := w.visible(e.before)
	text, changes, err := apply(string(seen), edits)
	if err == nil && !bytes.Equal(seen, e.before) {
		text, err = restore(string(e.before), string(seen), text)
	}
	if err != nil {
		failed := abi.As(err)
		failed.Message = fmt.Sprintf("edit %q: %s", e.Path, failed.Message)
		return failed
	}
	e.after, e.changes = []byte(text), changes
	return nil
}

// restore returns the text that an edit made of a text without secrets, with those of the
// text before it in the places of their marks.
func restore(before, seen, edited string) (string, error) {
	parts := strings.Split(seen, redact.Mark)
	after := strings.Split(edited, redact.Mark)
	if len(after) != len(parts) {
		return "", &abi.Error{
			Code: abi.Denied, Field: "old", Permanent: true, Message: fmt.Sprintf("the edit adds or removes %q, which stands for a secret", redact.Mark),
			Hint: "leave it as it is, or replace the text beside it; a command step or a person can change it",
		}
	}
	var b strings.Builder
	rest := strings.TrimPrefix(before, parts[0])
	b.WriteString(after[0])
	for i, part := range parts[1:] {
		end := strings.Index(rest, part)
		if i == len(parts)-2 {
			end = len(rest) - len(part)
		}
		if end < 0 {
			return "", abi.New(abi.Internal, "the secrets of the file cannot be separated from the text beside them")
		}
		b.WriteString(rest[:end] + after[i+1])
		rest = rest[end+len(part):]
	}
	return b.String(), nil
}

// replacements returns the edits of either form.
func (in editIn) replacements() ([]replacement, error) {
	edits := in.Edits
	switch {
	case len(edits) > 0 && (in.Old != "" || in.New != ""):
		return nil, badEdit("edits", "replaces old and new: give one of the two")
	case len(edits) == 0:
		edits = []replacement{{in.Old, in.New, in.ReplaceAll}}
	}
	for i, e := range edits {
		field := "old"
		if len(in.Edits) > 0 {
			field = fmt.Sprintf("edits[%d].old", i)
		}
		if e.Old == "" {
			return nil, badEdit(field, "is empty: give the exact text to replace, or write the file with code/write")
		}
		if e.Old == e.New {
			return nil, badEdit(field, "equals the new text")
		}
		if withLF(e.Old) == withLF(e.New) {
			return nil, badEdit(field, "equals the new text apart from line ends, which an edit keeps: code/write with lineEnds given changes them")
		}
	}
	return edits, nil
}

// badEdit is the error for a field that is invalid for every file.
func badEdit(field, problem string) *abi.Error {
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: fmt.Sprintf("edit: field %q: %s", field, problem)}
}

// apply makes the edits in order, either all of them or none. Line ends are equal when the
// old text is looked for, and are kept, see [lined]. Errors are of type [abi.Error], without
// the name of the file.
func apply(text string, edits []replacement) (string, []change, error) {
	if len(edits) > maxEdits {
		return "", nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "edits", Message: fmt.Sprintf("%d edits, at most %d are made in one call", len(edits), maxEdits), Hint: "make several calls, or write the file"}
	}
	var changes []change
	d := parseLines(text)
	for i, e := range edits {
		old := withLF(e.Old)
		at := occurrences(d.text, old)
		which := ""
		if len(edits) > 1 {
			which = fmt.Sprintf("edit %d of %d: ", i+1, len(edits))
		}
		switch {
		case len(at) == 0:
			return "", nil, &abi.Error{Code: abi.NotFound, Field: "old", Permanent: true, Message: which + "the old text is not in the file", Hint: nearText(d.text, old)}
		case len(at) > 1 && !e.ReplaceAll:
			return "", nil, &abi.Error{
				Code: abi.Conflict, Field: "old", Permanent: true,
				Message: fmt.Sprintf("%sthe old text occurs %d times, at lines %s", which, len(at), lineList(d.text, at)),
				Hint:    "add lines around it so that it is unique, or set replaceAll",
			}
		case len(d.text)+len(at)*(len(e.New)-len(old)) > maxFile:
			return "", nil, tooLong(which)
		}
		removed, added := strings.Count(old, "\n")+1, strings.Count(e.New, "\n")+1
		line, from := 1, 0
		for _, pos := range at {
			line += strings.Count(d.text[from:pos], "\n")
			from = pos
			changes = append(changes, change{Line: line, Removed: removed, Added: added})
		}
		if d = d.replace(at, len(old), e.New); d.size() > maxFile {
			return "", nil, tooLong(which)
		}
	}
	return d.String(), changes, nil
}

// tooLong is the error for an edit after which the file would be over the limit.
func tooLong(which string) *abi.Error {
	return &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("%sthe file would have more than %d bytes", which, maxFile)}
}

// occurrences returns the offsets of old, without overlaps.
func occurrences(text, old string) []int {
	var at []int
	for from := 0; ; {
		i := strings.Index(text[from:], old)
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(old)
	}
}

// lineList formats the line numbers of the first ten offsets.
func lineList(text string, at []int) string {
	var words []string
	for _, pos := range at[:min(len(at), 10)] {
		words = append(words, fmt.Sprint(strings.Count(text[:pos], "\n")+1))
	}
	words = slices.Compact(words)
	if len(at) > 10 {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}
