package rag

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Limits of a context, in bytes of text.
const (
	defaultBytes = 48 << 10 // all sources, unless the request has a limit
	minBytes     = 1 << 10
	maxBytes     = 256 << 10
	sourceBytes  = 16 << 10 // one source; a third of a larger context
)

// A Request describes a context. Only Workspace is required.
type Request struct {
	Recipe       string   // default "coding" if there are no Sources either
	Sources      []string // besides those of the recipe
	Query        string   // what the context is for; default: the variables that name it
	Paths        []string // globs of the most relevant files
	Room         string   // of the source "chat"; default "general"
	MaxMessages  int      // of the source "chat"; default 50. Without Recipe and Sources, the recipe is then "chat"
	Participants bool     // the source "participants" too
	Strategy     bool     // the source "strategy" too
	MaxBytes     int      // of text; default 48 KiB, at most 256 KiB
	Workspace    string   // absolute
	Base         string   // folder from which Workspace is reached without links, empty if that does not matter
	Run          sentinels.RunID
	// Variables are those of the run. Files that they name, such as in the output of
	// a compiler, are relevant.
	Variables map[string]json.RawMessage
	// Visible returns a text as the caller sees it: without the values of secrets. Texts of files are
	// compared with the query in that form too. Default nil: as they are.
	Visible func(text string) string
}

// A Result is a context. Text contains all sources, in the form for a model.
type Result struct {
	Recipe       string        `json:"recipe,omitempty"`
	Sources      []Source      `json:"sources"`
	Omitted      []Omission    `json:"omitted,omitempty" jsonschema:"sources without a text, and why"`
	Participants []Participant `json:"participants,omitempty" jsonschema:"of the source participants"`
	Text         string        `json:"text" jsonschema:"all sources as one text"`
	Bytes        int           `json:"bytes" jsonschema:"length of text"`
	Truncated    bool          `json:"truncated" jsonschema:"a source was cut to its share"`
}

// A Source is one part of a context.
type Source struct {
	Name      string `json:"name"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"`
}

// An Omission is a source that is not part of a context.
type Omission struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// A Builder builds contexts. It keeps no state, so each context shows the state at
// the time when it is built.
//
// # Concurrency
//
// Safe for concurrent use.
type Builder struct{ opt Options }

// New returns a builder of contexts from the sources of opt.
func New(opt Options) *Builder { return &Builder{opt} }

// Build builds the sources in order. A source that fails is left out and reported in
// Omitted, because a missing source must not stop a run. Build returns an error if
// the request is invalid, the workspace cannot be opened, or ctx has ended.
func (b *Builder) Build(ctx context.Context, req Request) (Result, error) {
	if req.MaxBytes == 0 {
		req.MaxBytes = defaultBytes
	}
	if req.MaxBytes < minBytes || req.MaxBytes > maxBytes {
		return Result{}, &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: "maxBytes",
			Message: fmt.Sprintf("build context: field \"maxBytes\": must be within %d and %d", minBytes, maxBytes),
		}
	}
	names, err := b.sources(ctx, req)
	if err != nil {
		return Result{}, err
	}
	w, err := openWorkspace(req.Base, req.Workspace, b.opt)
	if err != nil {
		return Result{}, err
	}
	defer w.Close()
	w.visible = req.Visible
	g := &contextBuild{Builder: b, req: req, workspace: w}
	if g.paths, err = parseGlobs(req.Paths); err != nil {
		return Result{}, err
	}
	result := Result{Recipe: req.Recipe, Sources: []Source{}}
	if req.Recipe == "" && len(req.Sources) == 0 {
		result.Recipe = defaultRecipe
	}
	left := req.MaxBytes
	most := max(sourceBytes, req.MaxBytes/3)
	for i, name := range names {
		// The part of its share that a source does not use is added to later ones.
		share := min(most, left/(len(names)-i)) - len(heading(name)) - 1
		text, truncated, err := g.source(ctx, name, max(share, 0))
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		if err == nil && text == "" {
			err = errEmpty
		}
		if err != nil {
			result.Omitted = append(result.Omitted, Omission{name, reason(err)})
			continue
		}
		result.Sources = append(result.Sources, Source{name, text, truncated})
		result.Truncated = result.Truncated || truncated
		left -= len(heading(name)) + len(text) + 1
	}
	var all strings.Builder
	for i, s := range result.Sources {
		if i > 0 {
			all.WriteByte('\n')
		}
		all.WriteString(heading(s.Name))
		all.WriteString(s.Text)
	}
	result.Text, result.Participants = all.String(), g.participants
	result.Bytes = len(result.Text)
	return result, nil
}

func heading(name string) string { return "# " + name + "\n" }

// reason returns an error as one short line.
func reason(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return textcut.Mark(clean(line), 200)
}
