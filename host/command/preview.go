package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Bounds of the text of a [Preview]: of all of it in lines and bytes, and of one line in
// bytes.
const (
	previewLines = 200
	previewBytes = 16 << 10
	previewLine  = 400
)

// A Preview shows a person what a call would do, before it is made.
type Preview struct {
	Text    string            `json:"text" jsonschema:"what the call would do: a unified diff, or the line and its folder; cut if it is long"`
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
	p.Text = Excerpt(p.Text)
	return p, nil
}

// Excerpt cuts a text for people to 200 lines and 16 KiB, and its lines to 400 bytes. It
// says what it left out.
func Excerpt(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var out strings.Builder
	for i, line := range lines {
		if len(line) > previewLine {
			head := strings.ToValidUTF8(line[:previewLine], "")
			line = fmt.Sprintf("%s [%d more bytes]", head, len(line)-len(head))
		}
		if i == previewLines || out.Len()+len(line) > previewBytes {
			fmt.Fprintf(&out, "[%d more lines are not shown]", len(lines)-i)
			return out.String()
		}
		if out.WriteString(line); i < len(lines)-1 {
			out.WriteByte('\n')
		}
	}
	return out.String()
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
