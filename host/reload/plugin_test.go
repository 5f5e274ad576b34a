package reload_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/reload"
	"github.com/sentinel-runtime/sentinel/triggers/files"
)

// slow is a watcher that notices nothing by itself.
func slow() files.Options { return files.Options{Source: files.NoSource, Poll: time.Hour} }

// other is a guest whose step type is "count".
func other(t testing.TB) []byte {
	t.Helper()
	code, err := os.ReadFile("../../runtime/internal/wasm/testdata/sins/count.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func (s *scene) writePlugin(name string, code []byte) {
	s.t.Helper()
	s.must(os.MkdirAll(s.path("plugins"), 0o755))
	s.must(os.WriteFile(s.path("plugins/"+name), code, 0o644))
}

// TestPlugins: dropped, swapped, refused, renamed, deleted.
func TestPlugins(t *testing.T) {
	s := newScene(t).begin()
	s.write("sentinels/a.json", `{"id":"a","name":"a","steps":[{"type":"count"}]}`)
	s.invalid("sentinels/a.json", `"count"`)

	s.writePlugin("count.wasm", other(t))
	s.live("sentinels/a.json", "a", 1) // it was waiting for its plugin
	if i := s.info("plugins/count.wasm"); i.State != reload.Live || i.Plugin != "count" || i.Kind != reload.KindPlugin {
		t.Errorf("the plugin is %+v", i)
	}

	s.writePlugin("count.wasm", []byte("no module"))
	s.invalid("plugins/count.wasm", `load plugin "count.wasm"`)
	if _, problems := s.rt.Decode([]byte(s.text("sentinels/a.json")), ""); len(problems) > 0 {
		t.Errorf("the old version does not serve any more: %v", problems)
	}
	v2 := []byte(strings.Replace(string(other(t)), `"version":"1"`, `"version":"2"`, 1))
	s.writePlugin("count.wasm", v2)
	s.eventually("version 2 is live", func() bool {
		for _, p := range s.rt.Plugins() {
			if p.Source == "count.wasm" && p.Version == "2" && p.Refused == "" {
				return s.info("plugins/count.wasm").State == reload.Live
			}
		}
		return false
	})

	// The same step types from a second file are refused, and taken when the
	// first is gone.
	s.writePlugin("more.wasm", other(t))
	s.invalid("plugins/more.wasm", "already provided")
	s.must(os.Remove(s.path("plugins/count.wasm")))
	s.eventually("the second file serves", func() bool { return s.info("plugins/more.wasm").State == reload.Live })
	s.live("sentinels/a.json", "a", 1)

	s.must(os.Rename(s.path("plugins/more.wasm"), s.path("plugins/moved.wasm")))
	s.eventually("the renamed file serves", func() bool {
		return s.info("plugins/moved.wasm").State == reload.Live && s.info("plugins/more.wasm").File == ""
	})
	s.live("sentinels/a.json", "a", 1)

	s.must(os.Remove(s.path("plugins/moved.wasm")))
	s.invalid("sentinels/a.json", `"count"`) // said beside it; the definition itself stays
	if s.revision("a") != 1 {
		t.Error("the definition went with its plugin")
	}
}

// TestPluginsAtStart are loaded before the definitions that need them.
func TestPluginsAtStart(t *testing.T) {
	s := newScene(t)
	s.write("sentinels/a.json", `{"id":"a","name":"a","steps":[{"type":"count"}]}`)
	s.writePlugin("count.wasm", other(t))
	s.begin()
	s.live("sentinels/a.json", "a", 1)
	s.stop()
	s.must(s.rt.UnloadPlugin(t.Context(), "count.wasm")) // as in a new process
	s.must(os.Remove(s.path("plugins/count.wasm")))
	s.begin()
	s.invalid("sentinels/a.json", `"count"`) // though the file is as it was
}
