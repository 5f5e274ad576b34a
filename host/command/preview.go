package command

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxPreview bounds the text of a [Preview], in bytes. All of it is shown, because a person decides about all of it.
const maxPreview = 64 << 10

// A Preview shows a person what a call would do, before it is made.
type Preview struct {
	Text    string            `json:"text" jsonschema:"what the call would do: a unified diff, or the line and its folder, with long stretches of blanks as counts; beyond 64 KiB the beginning and the end, with what is left out and the digest of all"`
	Path    string            `json:"path,omitempty" jsonschema:"file that would be written"`
	Created bool              `json:"created,omitempty" jsonschema:"the file does not exist"`
	Added   int               `json:"added,omitempty" jsonschema:"lines that would be added"`
	Removed int               `json:"removed,omitempty" jsonschema:"lines that would be removed"`
	Pin     map[string]string `json:"pin,omitempty" jsonschema:"parameters that make the call fail if what was shown is no longer what it would do"`
}

// WithPreview returns c with a function that describes a call of it. In is that of [New].
// fn changes nothing, and returns the error that the call would return, as far as that is
// known before it.
func WithPreview[In any](c Command, fn func(ctx context.Context, call *Call, in In) (Preview, error)) Command {
	c.preview = func(ctx context.Context, call *Call) (Preview, error) {
		var in In
		if err := strictjson.DecodeOpen(call.Params, &in, strictjson.Unlimited()); err != nil {
			return Preview{}, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("preview %q: %v", c.Name, err)}
		}
		return fn(ctx, call, in)
	}
	return c
}

// Preview describes a call without making it. A call that would be refused for its
// caller, its parameters or its files has the same error here. A command without a preview
// of its own is described by its parameters.
func (r *Registry) Preview(ctx context.Context, call *Call) (Preview, error) {
	e, own, _, err := r.admit(call)
	if err != nil {
		return Preview{}, err
	}
	if e.preview == nil {
		return Preview{Text: Excerpt(e.Name + " " + string(own.Params))}, nil
	}
	p, err := e.preview(ctx, own)
	if err != nil {
		return Preview{}, e.failed(err)
	}
	p.Text = termtext.Blanks(p.Text)
	if len(p.Text) > maxPreview && e.Effect == Executes {
		return Preview{}, &abi.Error{
			Code: abi.Limit, Permanent: true,
			Message: fmt.Sprintf("preview %q: what is executed has %d KiB, and a person is asked about at most %d KiB", e.Name, len(p.Text)>>10, maxPreview>>10),
			Hint:    "write it to a file, and execute that file",
		}
	}
	p.Text = Excerpt(p.Text)
	return p, nil
}

// Excerpt returns a text for people of at most 64 KiB whole, with long stretches of blanks as counts. Of a longer one
// it returns the beginning and the end, and between them says what it left out, with the digest of the text.
func Excerpt(text string) string {
	text = termtext.Blanks(strings.TrimSuffix(text, "\n"))
	if len(text) <= maxPreview {
		return text
	}
	head, tail := textcut.Cut(text, maxPreview/2), textcut.CutStart(text, maxPreview/2)
	left := text[len(head) : len(text)-len(tail)]
	return fmt.Sprintf("%s\n[%d bytes with %d line feeds are not shown; the SHA-256 of the whole text is %x]\n%s",
		head, len(left), strings.Count(left, "\n"), sha256.Sum256([]byte(text)), tail)
}

type previewIn struct {
	Command string          `json:"command" jsonschema:"the command"`
	Params  json.RawMessage `json:"params,omitempty" jsonschema:"its parameters"`
	Tools   []string        `json:"tools,omitempty" jsonschema:"the tools of a step whose model makes the call; without them the call is the caller's own"`
}

// PreviewTool returns the command code/preview over r. No pattern of tools matches it: it
// is for those who ask a person, and shows models nothing that they could not read.
func PreviewTool(r *Registry) Command {
	return New("code/preview", "Show what a call of a command would do, without making it.",
		Options{Effect: Reads, Idempotent: true, ByName: true, Raw: []string{"params"}},
		func(ctx context.Context, call *Call, in previewIn) (Preview, error) {
			inner := *call
			inner.Command, inner.Params = in.Command, in.Params
			if in.Tools != nil {
				inner.By, inner.Tools = ByModel, in.Tools
			}
			return r.Preview(ctx, &inner)
		})
}
