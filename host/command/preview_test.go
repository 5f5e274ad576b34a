package command_test

import (
	"encoding/json"
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

// TestExcerpt checks that a text of 64 KiB is shown whole, and of a longer one both ends with what is missing.
func TestExcerpt(t *testing.T) {
	whole := strings.TrimSuffix(strings.Repeat(strings.Repeat("x", 1023)+"\n", 64), "\n")
	if got := command.Excerpt(whole + "\n"); got != whole {
		t.Errorf("%d of %d bytes", len(got), len(whole))
	}
	if got := command.Excerpt("a" + strings.Repeat("\n", 100_000) + "rm"); got != "a\n[99999 blank lines]\nrm" {
		t.Errorf("%q", got[:min(len(got), 100)])
	}
	got := command.Excerpt("begin" + strings.Repeat("é\n", 40_000) + "rm -rf ~")
	if !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "\nrm -rf ~") || !strings.Contains(got, " line feeds are not shown; the SHA-256 of the whole text is ") || len(got) > 65<<10 {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-60:])
	}
}
