package code

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// editIn takes one replacement or a list. Both forms exist because the specification's
// authors and models write either.
type editIn struct {
	Path       string        `json:"path" jsonschema:"file to edit, relative to the workspace"`
	Old        string        `json:"old,omitempty" jsonschema:"the exact text to replace, with enough around it to be unique"`
	New        string        `json:"new,omitempty" jsonschema:"the text to put in its place; empty removes it"`
	ReplaceAll bool          `json:"replaceAll,omitempty" jsonschema:"replace every occurrence"`
	Edits      []replacement `json:"edits,omitempty" jsonschema:"several replacements, one after the other, instead of old and new; all are made or none"`
	IfHash     string        `json:"ifHash,omitempty" jsonschema:"edit only if the file still has this SHA-256, as code/read gave it"`
}

type replacement struct {
	Old        string `json:"old" jsonschema:"the exact text to replace"`
	New        string `json:"new,omitempty" jsonschema:"the text to put in its place"`
	ReplaceAll bool   `json:"replaceAll,omitempty" jsonschema:"replace every occurrence"`
}

type editOut struct {
	Path         string   `json:"path"`
	Replacements int      `json:"replacements"`
	Changes      []change `json:"changes" jsonschema:"where text was replaced, the first 50"`
	Hash         string   `json:"hash" jsonschema:"SHA-256 of the file as written"`
}

// change is one replaced place. Lines are counted in the text as it was when
// that replacement was made.
type change struct {
	Line    int `json:"line" jsonschema:"line where the replaced text began, from 1"`
	Removed int `json:"removed" jsonschema:"lines the old text touched"`
	Added   int `json:"added" jsonschema:"lines the new text has"`
}

const maxChanges = 50

// edit holds to the file it read: the new text is put in place by name, so a
// writer in between loses unless ifHash was given.
func (f files) edit(_ context.Context, call *command.Call, in editIn) (editOut, error) {
	edits, err := in.replacements()
	if err != nil {
		return editOut{}, err
	}
	w, err := f.open(call)
	if err != nil {
		return editOut{}, err
	}
	defer w.Close()
	p, err := w.Resolve(in.Path, false)
	if err != nil {
		return editOut{}, err
	}
	defer p.Close()
	if err := w.mayWrite(p.Path); err != nil {
		return editOut{}, err
	}
	data, err := w.load(p)
	if err != nil {
		return editOut{}, err
	}
	if in.IfHash != "" {
		if err := unchanged(p.Path, data, in.IfHash); err != nil {
			return editOut{}, err
		}
	}
	text, changes, err := apply(string(data), edits)
	if err != nil {
		e := abi.As(err)
		e.Message = fmt.Sprintf("edit %q: %s", p.Path, e.Message)
		return editOut{}, e
	}
	if _, err := w.WriteFile(p, []byte(text)); err != nil {
		return editOut{}, err
	}
	return editOut{Path: p.Path, Replacements: len(changes), Changes: changes[:min(len(changes), maxChanges)], Hash: hashOf([]byte(text))}, nil
}

// replacements returns the edits of either form.
func (in editIn) replacements() ([]replacement, error) {
	edits := in.Edits
	switch {
	case len(edits) > 0 && (in.Old != "" || in.New != ""):
		return nil, badEdit("edits", "takes the place of old and new: give one of the two")
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
	}
	return edits, nil
}

// badEdit is the error for a field that no file could make right.
func badEdit(field, problem string) *abi.Error {
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: fmt.Sprintf("edit: field %q: %s", field, problem)}
}

// apply makes the edits one after the other. It changes nothing unless each of
// them fits. Errors are *abi.Error without the file's name.
func apply(text string, edits []replacement) (string, []change, error) {
	var changes []change
	for i, e := range edits {
		if strings.Contains(text, "\r\n") && !strings.Contains(e.Old, "\r") {
			// The author of the edit saw plain line ends; the file keeps its own.
			e.Old, e.New = toCRLF(e.Old), toCRLF(e.New)
		}
		at := occurrences(text, e.Old)
		which := ""
		if len(edits) > 1 {
			which = fmt.Sprintf("edit %d of %d: ", i+1, len(edits))
		}
		switch {
		case len(at) == 0:
			return "", nil, &abi.Error{Code: abi.NotFound, Field: "old", Permanent: true, Message: which + "the old text is not in the file", Hint: nearText(text, e.Old)}
		case len(at) > 1 && !e.ReplaceAll:
			return "", nil, &abi.Error{
				Code: abi.Conflict, Field: "old", Permanent: true,
				Message: fmt.Sprintf("%sthe old text occurs %d times, at lines %s", which, len(at), lineList(text, at)),
				Hint:    "add lines around it so that it is unique, or set replaceAll",
			}
		}
		removed, added := strings.Count(e.Old, "\n")+1, strings.Count(e.New, "\n")+1
		line, from := 1, 0
		for _, pos := range at {
			line += strings.Count(text[from:pos], "\n")
			from = pos
			changes = append(changes, change{Line: line, Removed: removed, Added: added})
		}
		text = strings.ReplaceAll(text, e.Old, e.New)
		if len(text) > maxFile {
			return "", nil, &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("%sthe file would grow over %d bytes", which, maxFile)}
		}
	}
	return text, changes, nil
}

// toCRLF gives text the line ends of a file from Windows.
func toCRLF(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

// occurrences returns where old begins, without overlaps.
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

// lineList writes the line numbers of the first ten places.
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
