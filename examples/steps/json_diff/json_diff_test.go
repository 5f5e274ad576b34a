package json_diff_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestMain(m *testing.M) { lesson.Main(m) }

// module is the one that lies here, so that the lesson works without a compiler.
func module(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("json_diff.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCases(t *testing.T) { lesson.Cases(t, ".", module(t)) }

// TestDeep: values nested as deeply as the host takes them do not use the
// guest's stack up, however lists are compared.
func TestDeep(t *testing.T) {
	p := lesson.Plugin(t, module(t))
	deep := strings.Repeat(`[{"a":`, 28) + "1" + strings.Repeat("}]", 28)
	for _, arrays := range []string{"align", "index", "set"} {
		fields := `{"from":` + deep + `,"to":` + strings.Replace(deep, "1", "2", 1) + `,"ignore":["b"],"arrays":"` + arrays + `"}`
		out, err := sdktest.Execute(t.Context(), p, sdktest.Input{Step: sdktest.Step{Type: "json_diff", Fields: json.RawMessage(fields)}}, sdktest.Answers(nil))
		if err != nil {
			t.Fatal(err)
		}
		if out.Error != nil || !strings.Contains(string(out.Output), `"equal":false`) {
			t.Errorf("%s: %v %s", arrays, out.Error, out.Output)
		}
	}
}

// TestSentinel carries the sentinel of the folder out, on two files that differ
// in what counts and in what does not.
func TestSentinel(t *testing.T) {
	dir := t.TempDir()
	plugins := filepath.Join(dir, "plugins")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join("plugins", "json_diff.wasm"), string(module(t)))
	write("staging.json", `{"updatedAt":1,"services":[{"name":"web","replicas":1,"image":"web:2"},{"name":"db","image":"db:1"}]}`)
	write("production.json", `{"updatedAt":2,"services":[{"name":"db","image":"db:1"},{"name":"web","replicas":9,"image":"web:1"}]}`)
	_, res := lesson.Run(t, "json_diff.json", dir, host.Options{Plugins: plugins}, runtime.StartOptions{})
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s: %v", res.Status, res.Error)
	}
	var drift struct {
		Text   string
		Counts map[string]int
	}
	if err := json.Unmarshal(res.Variables["drift"], &drift); err != nil {
		t.Fatal(err)
	}
	if want := `~ /services/0/image: "web:2" -> "web:1"`; drift.Text != want || drift.Counts["changed"] != 1 {
		t.Errorf("got %+v, want %q", drift, want)
	}
}
