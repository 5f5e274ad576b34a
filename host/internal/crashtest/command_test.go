//go:build linux

package crashtest_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/javascript"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const marks = 12

// markPlugin provides a command that takes a moment.
const markPlugin = `sentinel.plugin({name: "kit", version: "1.0.0", permissions: [{use: "provide", names: ["command"], reason: "the test calls it"}],
	steps: {kit_mark: {summary: "Marks.", fields: {type: "object", properties: {n: {type: "integer"}}, required: ["n"]}, output: {type: "object"},
		provides: {as: "command", name: "kit/mark"}, run: (step, ctx) => { ctx.wait({durationMs: 30}); return {n: step.fields.n}; }}}});`

// TestKillDuringPluginCommand kills hosts whose run calls commands of a plugin. No call is
// repeated: each has one run, whose result the calling run gets, and nothing is in doubt.
func TestKillDuringPluginCommand(t *testing.T) {
	d := newDoubt(t, `{"name":"marks","steps":[{"command":"kit/mark","params":{"n":"$iteration"},"outputTo":"mark"},
		{"check":"$mark.n !== $iteration","then":[{"type":"shell","command":"exit 1"}]}],"loop":{"type":"count","max":12}}`)
	d.order.Crashes = 1000 // a step that many kills interrupt is not suspected here
	module, err := javascript.Module("plugin.js", []byte(markPlugin))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(d.order.Dir, "plugins")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kit.wasm"), module, 0o644); err != nil {
		t.Fatal(err)
	}
	allow(t, d, "kit")
	kills, lives := 0, 15
	if testing.Short() {
		lives = 4
	}
	for ; ; d.order.Life++ {
		p := plan{after: afterEvent, count: 3 + rand.IntN(30)}
		if d.order.Life > lives {
			p = plan{}
		}
		l := start(t, d.order, d.server)
		l.live(t, p, nil)
		s := look(t, filepath.Join(d.order.Dir, "state"))
		d.order.Run = s.root
		if l.killed {
			kills++
		}
		if len(s.pending) > 0 {
			t.Fatalf("life %d left decisions: %+v", d.order.Life, s.pending)
		}
		if !s.status.Final() && l.killed {
			continue
		}
		if s.status != sentinels.StatusCompleted {
			t.Fatalf("the run is %s: %s", s.status, l.tail())
		}
		if len(s.children) != marks {
			t.Errorf("%d calls have %d runs after %d kills", marks, len(s.children), kills)
		}
		t.Logf("%d kills", kills)
		if kills == 0 {
			t.Error("nothing was killed")
		}
		return
	}
}

// allow decides about a plugin as the user of the hosts does.
func allow(t *testing.T, d *doubt, name string) {
	t.Helper()
	h, err := host.Open(t.Context(), host.Options{Dir: d.order.Dir, State: d.order.State, Workspace: d.order.Workspace, Getenv: func(name string) string {
		return map[string]string{"XDG_CONFIG_HOME": filepath.Join(d.order.Workspace, ".config"), "PATH": os.Getenv("PATH")}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	params, _ := json.Marshal(map[string]any{"name": name})
	if _, err := h.Call(t.Context(), "plugin/allow", params); err != nil {
		t.Fatal(err)
	}
	if p := h.Runtime().Provided("command"); len(p) != 1 {
		t.Fatalf("commands %+v of %+v", p, h.Runtime().Plugins())
	}
}
