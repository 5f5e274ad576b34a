package rag

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Bounds of a context, in bytes of text.
const (
	defaultBytes = 48 << 10 // the whole, unless the request says otherwise
	minBytes     = 1 << 10
	maxBytes     = 256 << 10
	sourceBytes  = 16 << 10 // one source; a third of a larger whole
)

// A Request says what context is wanted. Only Workspace is required.
type Request struct {
	Recipe    string   // default "coding" if there are no Sources either
	Sources   []string // beside those of the recipe
	Query     string   // what it is for; default: the variables that say so
	Paths     []string // patterns of files that matter most
	Room      string   // of the source "chat"; default "general"
	MaxBytes  int      // of text; default 48 KiB, at most 256 KiB
	Workspace string   // absolute
	Run       sentinels.RunID
	// Variables are those of the run. Files that are named in them, as in the
	// output of a compiler, count as relevant.
	Variables map[string]json.RawMessage
}

// A Result is a context. Text is all of it, as a model reads it.
type Result struct {
	Recipe    string     `json:"recipe,omitempty"`
	Sources   []Source   `json:"sources"`
	Omitted   []Omission `json:"omitted,omitempty" jsonschema:"sources that had nothing to say, and why"`
	Text      string     `json:"text" jsonschema:"all sources as one text"`
	Bytes     int        `json:"bytes" jsonschema:"length of text"`
	Truncated bool       `json:"truncated" jsonschema:"some source was cut to its share"`
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

// A Builder builds contexts. It keeps no state: it is safe for concurrent use,
// and each context shows the moment it was built.
type Builder struct{ opt Options }

// New returns a builder over the given places.
func New(opt Options) *Builder { return &Builder{opt} }

// Build gathers the sources in their order. A source that fails is left out
// and named in Omitted: context is help, and its lack must not stop a run. An
// error means that the request is wrong, the workspace cannot be opened, or
// ctx has ended.
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
	w, err := openWorkspace(req.Workspace, b.opt.SecretFiles)
	if err != nil {
		return Result{}, err
	}
	defer w.Close()
	g := &gathering{Builder: b, req: req, workspace: w}
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
		// What a source does not use goes to those behind it.
		share := min(most, left/(len(names)-i)) - len(heading(name)) - 1
		text, cutOff, err := g.source(ctx, name, max(share, 0))
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		if err == nil && text == "" {
			err = errNothing
		}
		if err != nil {
			result.Omitted = append(result.Omitted, Omission{name, reason(err)})
			continue
		}
		result.Sources = append(result.Sources, Source{name, text, cutOff})
		result.Truncated = result.Truncated || cutOff
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
	result.Text = all.String()
	result.Bytes = len(result.Text)
	return result, nil
}

func heading(name string) string { return "# " + name + "\n" }

// reason is an error as one short line.
func reason(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return clip(clean(line), 200)
}
