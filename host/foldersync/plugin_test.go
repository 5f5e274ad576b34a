package foldersync_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/triggers/files"
)

// slow is a watcher that notices nothing by itself.
func slow() files.Options { return files.Options{Source: noSource, Poll: time.Hour} }

// other is a guest whose step type is "count".
func other(t testing.TB) []byte {
	t.Helper()
	code, err := os.ReadFile("../../runtime/internal/wasm/testdata/wat/count.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func (s *fixture) writePlugin(name string, code []byte) {
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
	if i := s.info("plugins/count.wasm"); i.State != foldersync.Live || i.Plugin != "count" || i.Kind != foldersync.KindPlugin {
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
				return s.info("plugins/count.wasm").State == foldersync.Live
			}
		}
		return false
	})

	// The same step types from a second file are refused, and taken when the
	// first is gone.
	s.writePlugin("more.wasm", other(t))
	s.invalid("plugins/more.wasm", "already provided")
	s.must(os.Remove(s.path("plugins/count.wasm")))
	s.eventually("the second file serves", func() bool { return s.info("plugins/more.wasm").State == foldersync.Live })
	s.live("sentinels/a.json", "a", 1)

	s.must(os.Rename(s.path("plugins/more.wasm"), s.path("plugins/moved.wasm")))
	s.eventually("the renamed file serves", func() bool {
		return s.info("plugins/moved.wasm").State == foldersync.Live && s.info("plugins/more.wasm").File == ""
	})
	s.live("sentinels/a.json", "a", 1)

	s.must(os.Remove(s.path("plugins/moved.wasm")))
	s.liveWith("sentinels/a.json", `"count"`) // said beside it; the definition itself stays
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
	s.liveWith("sentinels/a.json", `"count"`) // though the file is as it was
}

// bounded is an engine that takes few plugins.
type bounded struct {
	*runtime.Runtime
	most     int
	prepared atomic.Int32
}

func (b *bounded) CheckPluginTotals(count int, _ int64) error {
	if count > b.most {
		return abi.New(abi.Limit, fmt.Sprintf("there are %d plugins, the limit is %d", count, b.most))
	}
	return nil
}

func (b *bounded) PreparePlugin(ctx context.Context, code []byte) (plugin.Prepared, error) {
	b.prepared.Add(1)
	return b.Runtime.PreparePlugin(ctx, code)
}

// TestPluginsAboveTheLimit are listed with the reason, not compiled, and loaded when
// another one is gone.
func TestPluginsAboveTheLimit(t *testing.T) {
	s := newScene(t)
	engine := &bounded{Runtime: s.rt, most: 1}
	s.writePlugin("a.wasm", other(t))
	s.writePlugin("b.wasm", []byte(strings.ReplaceAll(string(other(t)), "count", "coun7")))
	s.beginWith(foldersync.Options{Plugins: engine})
	s.invalid("plugins/b.wasm", "there are 2 plugins, the limit is 1")
	if p := s.plugin("b.wasm"); p.State != plugin.Refused || !strings.Contains(p.Problem, "the limit is 1") {
		t.Errorf("the engine lists %+v", p)
	}
	if n := engine.prepared.Load(); n != 1 {
		t.Errorf("%d plugins were compiled, want 1", n)
	}
	s.must(os.Remove(s.path("plugins/a.wasm")))
	s.eventually("the other one is live", func() bool { return s.info("plugins/b.wasm").State == foldersync.Live })
}

// plugin returns what the engine lists of a file.
func (s *fixture) plugin(source string) plugin.Info {
	for _, p := range s.rt.Plugins() {
		if p.Source == source {
			return p
		}
	}
	return plugin.Info{}
}

// TestNoPluginFiles: what is called like a plugin's file and is none is listed with the
// reason, and goes with it.
func TestNoPluginFiles(t *testing.T) {
	s := newScene(t)
	s.writePlugin(".hidden.wasm", other(t))
	s.must(os.Mkdir(s.path("plugins/folder.wasm"), 0o755))
	s.must(os.Symlink("nowhere", s.path("plugins/link.wasm")))
	s.must(os.WriteFile(s.path("plugins/sparse.wasm"), nil, 0o644))
	s.must(os.Truncate(s.path("plugins/sparse.wasm"), 1<<40))
	if err := mkfifo(s.path("plugins/pipe.wasm")); err != nil {
		t.Logf("without a named pipe: %v", err)
	} else {
		defer s.eventuallyListed("pipe.wasm", "a named pipe")
	}
	s.begin()
	s.eventuallyListed(".hidden.wasm", "begins with a dot")
	s.eventuallyListed("folder.wasm", "a folder")
	s.eventuallyListed("link.wasm", "no such file")
	s.eventuallyListed("sparse.wasm", "larger than")
	s.must(os.Remove(s.path("plugins/folder.wasm")))
	s.writePlugin("folder.wasm", other(t)) // a file takes its place
	s.eventually("the file is live", func() bool { return s.plugin("folder.wasm").State == plugin.Live })
}

// eventuallyListed waits until the engine lists a source as refused for a reason.
func (s *fixture) eventuallyListed(source, words string) {
	s.t.Helper()
	s.eventually(source+" is listed: "+words, func() bool {
		p := s.plugin(source)
		return p.State == plugin.Refused && strings.Contains(p.Problem, words)
	})
}
