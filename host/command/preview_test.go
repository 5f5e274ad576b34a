package command_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestPreviewTool checks that a preview holds to the rules of the call: of its own caller,
// or of the model whose tools are given.
func TestPreviewTool(t *testing.T) {
	r := sample(t)
	if err := r.Add(command.PreviewTool(r)); err != nil {
		t.Fatal(err)
	}
	call := func(by command.By, tools []string, params string) (command.Preview, error) {
		out, err := r.Call(t.Context(), &command.Call{Command: "code/preview", Params: json.RawMessage(params), By: by, Tools: tools})
		var p command.Preview
		if err == nil {
			err = json.Unmarshal(out, &p)
		}
		return p, err
	}
	p, err := call(command.ByStep, nil, `{"command":"code/sample","params":"{\"file\":\"a\"}","tools":["code/*"]}`)
	if err != nil || p.Text != `code/sample {"path":"a"}` {
		t.Errorf("without a preview of its own: %+v, %v", p, err)
	}
	if _, err := call(command.ByStep, nil, `{"command":"sentinel/start","params":{"path":"a"},"tools":["code/*"]}`); abi.CodeOf(err) != abi.Denied {
		t.Errorf("not a tool of the model: %v", err)
	}
	if _, err := call(command.ByModel, []string{"*", "code/*"}, `{"command":"code/sample","params":{"path":"a"}}`); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a pattern gave a model the command: %v", err)
	}
}

// TestExcerpt checks the bounds of the text of a preview, and that it says what is missing.
func TestExcerpt(t *testing.T) {
	var lines []string
	for i := range 500 {
		lines = append(lines, fmt.Sprint(i))
	}
	if got := command.Excerpt(strings.Join(lines, "\n") + "\n"); !strings.HasSuffix(got, "\n199\n[300 more lines are not shown]") {
		t.Errorf("%q", got[len(got)-60:])
	}
	if got := command.Excerpt(strings.Repeat("é", 300)); got != strings.Repeat("é", 200)+" [200 more bytes]" {
		t.Errorf("%q", got)
	}
	got := command.Excerpt(strings.Repeat(strings.Repeat("x", 390)+"\n", 100))
	if len(got) > 17<<10 || !strings.HasSuffix(got, "[59 more lines are not shown]") {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-60:])
	}
}
