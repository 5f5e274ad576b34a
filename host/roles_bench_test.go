package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
)

// goRoles builds the guest roles of the testdata: the same step types in Go.
func goRoles(b *testing.B) []byte {
	b.Helper()
	out := filepath.Join(b.TempDir(), "roles.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./testdata/guests/roles")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, said)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	return module
}

// openBench opens a host on disk with the guest, whose instances are reused or not.
func openBench(b *testing.B, reuse bool) (*host.Host, string) {
	b.Helper()
	workspace := b.TempDir()
	h := open(b, host.Options{Workspace: workspace, Getenv: private(b), CacheDir: compiled()})
	module := goRoles(b)
	_, err := h.Runtime().LoadPlugin(b.Context(), plugin.Source{Name: "roles.wasm", Wasm: func() ([]byte, error) { return module, nil }})
	if abi.CodeOf(err) != abi.Denied {
		b.Fatal(err)
	}
	if _, err := h.Call(b.Context(), "plugin/allow", fmt.Appendf(nil, `{"name":"roles","reuse":%v}`, reuse)); err != nil {
		b.Fatal(err)
	}
	return h, workspace
}

// BenchmarkPluginCommand reports what a step that calls a command of a plugin costs beside
// one that calls a command of the program, in one run of many iterations each.
func BenchmarkPluginCommand(b *testing.B) {
	for _, reuse := range []bool{false, true} {
		h, workspace := openBench(b, reuse)
		if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("a\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		for name, step := range map[string]string{
			"built_in": `{"command":"code/read","params":{"path":"a.txt"}}`,
			"plugin":   `{"command":"roles/echo","params":{"text":"a"}}`,
			"step":     `{"type":"roles_echo","text":"a"}`,
		} {
			b.Run(fmt.Sprintf("reuse_%v/%s", reuse, name), func(b *testing.B) {
				def, problems := h.Runtime().Decode(fmt.Appendf(nil, `{"name":"b","steps":[%s],"loop":{"type":"count","max":%d}}`, step, b.N), "b.json")
				if len(problems) > 0 {
					b.Fatal(problems)
				}
				b.ResetTimer()
				id, err := h.Runtime().Start(b.Context(), def, runtime.StartOptions{Workspace: workspace})
				if err != nil {
					b.Fatal(err)
				}
				if res, err := h.Runtime().Wait(b.Context(), id); err != nil || res.Error != nil {
					b.Fatal(err, res.Error)
				}
			})
		}
	}
}

// BenchmarkClassify reports what an error classifier and an output classifier cost: a call,
// and a line of a batch.
func BenchmarkClassify(b *testing.B) {
	for _, reuse := range []bool{false, true} {
		h, _ := openBench(b, reuse)
		b.Run(fmt.Sprintf("reuse_%v/error", reuse), func(b *testing.B) {
			for b.Loop() {
				if _, ok := h.Runtime().ClassifyError(b.Context(), role.Failure{Message: "a widget", Source: role.SourceStep}); !ok {
					b.Fatal("no answer")
				}
			}
		})
		for _, n := range []int{1, role.MaxLines} {
			lines := make([]role.Line, n)
			for i := range lines {
				lines[i] = role.Line{Text: fmt.Sprintf("tests/test_%d.py::test_one PASSED [ %d%%]", i, i), Stream: "stdout"}
			}
			b.Run(fmt.Sprintf("reuse_%v/lines_%d", reuse, n), func(b *testing.B) {
				for b.Loop() {
					if classes := h.Runtime().ClassifyLines(b.Context(), "roles_lines", lines); classes[0] == nil {
						b.Fatal("no answer")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/line")
			})
		}
	}
}
