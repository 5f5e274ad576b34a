package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A storing host has definitions that models and agents store, whose shell lines make the file
// marker in the workspace.
type storing struct {
	*testing.T
	h      *host.Host
	ws     string
	marker string
}

func newStoring(t *testing.T, opt host.Options) *storing {
	opt.Workspace = t.TempDir()
	s := &storing{t, open(t, opt), opt.Workspace, filepath.Join(opt.Workspace, "executed")}
	if err := s.h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// call calls a command by its caller; tools are those of a model.
func (s *storing) call(by command.By, name string, params any, tools ...string) (json.RawMessage, error) {
	s.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		s.Fatal(err)
	}
	return s.h.CallAs(s.Context(), &command.Call{Command: name, Params: text, By: by, As: "ci", Tools: tools})
}

func (s *storing) must(by command.By, name string, params any, tools ...string) (out struct {
	SentinelID sentinels.ID
	Revision   int
	Warning    string
	Imported   []struct{ Revision int }
	Loaded     []struct{ Warning string }
	Bundle     json.RawMessage
},
) {
	s.Helper()
	raw, err := s.call(by, name, params, tools...)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		s.Fatalf("%s by %s: %v", name, by, err)
	}
	return out
}

// model calls a command as a model that may call this one and code/read.
func (s *storing) model(name string, params any) string {
	s.Helper()
	return s.must(command.ByModel, name, params, name, "code/read").Warning
}

// lines are the steps of a definition whose shell line makes the marker.
func (s *storing) lines() []any {
	return []any{map[string]any{"id": "look", "type": "set", "values": map[string]any{"m": "x"}}, map[string]any{"id": "s", "type": "shell", "command": "touch '" + s.marker + "'"}}
}

func (s *storing) definition(id string) map[string]any {
	return map[string]any{"id": id, "name": id, "trigger": map[string]any{"type": "event", "event": "go." + id}, "steps": s.lines()}
}

// refused checks the error of a run that may not execute the shell line.
func (s *storing) refused(how string, r runtime.Result) {
	s.Helper()
	if r.Status != sentinels.StatusFailed || abi.CodeOf(r.Error) != abi.Denied || !strings.Contains(r.Error.Message, "comes from a model or an agent") {
		s.Errorf("%s: %s, %v", how, r.Status, r.Error)
	}
	if _, err := os.Stat(s.marker); err == nil {
		s.Errorf("%s: the shell line was executed", how)
		_ = os.Remove(s.marker)
	}
}

func (s *storing) run(params map[string]any) (r runtime.Result) {
	s.Helper()
	raw, err := s.call(command.ByUser, "sentinel/run", params)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// fired emits the event of a sentinel's trigger and returns the result of the run.
func (s *storing) fired(id string) runtime.Result {
	s.Helper()
	before, err := s.h.Runtime().Runs(runtime.RunFilter{Sentinel: sentinels.ID(id)})
	if err != nil {
		s.Fatal(err)
	}
	s.must(command.ByUser, "events/emit", map[string]any{"event": "go." + id})
	for {
		now, err := s.h.Runtime().Runs(runtime.RunFilter{Sentinel: sentinels.ID(id)})
		if err != nil || s.Context().Err() != nil {
			s.Fatal(err)
		}
		if len(now) > len(before) {
			r, err := s.h.Runtime().Wait(s.Context(), now[0].ID)
			if err != nil {
				s.Fatal(err)
			}
			return r
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// accept accepts the newest revision as a person.
func (s *storing) accept(id string) {
	s.Helper()
	head, err := s.h.Runtime().Definition(sentinels.ID(id))
	if err != nil {
		s.Fatal(err)
	}
	s.must(command.ByUser, "sentinel/accept", map[string]any{"sentinelId": id, "revision": head.Revision})
}

// TestStoredDefinitionsOfModelsAreBounded: however a model stores a definition, no run of it
// calls what the model may not call, also where a person starts it, until a person accepts it.
func TestStoredDefinitionsOfModelsAreBounded(t *testing.T) {
	const shell = "may not call code/shell/execute: "
	for name, store := range map[string]func(s *storing) string{
		"create": func(s *storing) string {
			return s.model("sentinel/create", map[string]any{"definition": s.definition("x")})
		},
		"save": func(s *storing) string {
			return s.model("sentinel/save", map[string]any{"definition": s.definition("x")})
		},
		"beside": func(s *storing) string {
			s.model("sentinel/create", map[string]any{"definition": map[string]any{"name": "y", "steps": []any{map[string]any{"type": "sentinel", "definition": map[string]any{"$ref": "x"}}}}, "definitions": map[string]any{"x": s.definition("x")}})
			return shell
		},
		"load": func(s *storing) string {
			text, _ := json.Marshal(s.definition("x"))
			if err := os.WriteFile(filepath.Join(s.ws, "x.json"), text, 0o600); err != nil {
				s.Fatal(err)
			}
			return s.must(command.ByModel, "sentinel/load", map[string]any{"path": "x.json"}, "sentinel/load", "code/read").Loaded[0].Warning
		},
		"import": func(s *storing) string {
			s.model("sentinel/import", map[string]any{"definition": s.definition("x")})
			return shell
		},
		"import with history": func(s *storing) string {
			other := newStoring(s.T, host.Options{})
			other.must(command.ByUser, "sentinel/create", map[string]any{"definition": other.definition("x")})
			bundle := other.must(command.ByUser, "sentinel/export", map[string]any{"sentinelId": "x", "history": true}).Bundle
			s.marker = other.marker
			s.model("sentinel/import", map[string]any{"bundle": bundle})
			return shell
		},
		"update": func(s *storing) string {
			s.must(command.ByUser, "sentinel/create", map[string]any{"definition": map[string]any{"id": "x", "name": "x", "steps": []any{map[string]any{"type": "set", "values": map[string]any{"m": "x"}}}}})
			return s.model("sentinel/update", map[string]any{"sentinelId": "x", "definition": s.definition("x")})
		},
		"add": func(s *storing) string {
			def := s.definition("x")
			def["steps"] = s.lines()[:1]
			s.must(command.ByUser, "sentinel/create", map[string]any{"definition": def})
			return s.model("sentinel/step/add", map[string]any{"sentinelId": "x", "step": s.lines()[1]})
		},
		"edit of a person's": func(s *storing) string {
			s.must(command.ByUser, "sentinel/create", map[string]any{"definition": s.definition("x")})
			return s.model("sentinel/step/update", map[string]any{"sentinelId": "x", "address": "look", "params": map[string]any{"values": map[string]any{"m": "y"}}})
		},
		"removal": func(s *storing) string {
			def := s.definition("x")
			def["steps"] = append([]any{map[string]any{"id": "gate", "type": "approve", "prompt": "?"}}, s.lines()...)
			s.must(command.ByUser, "sentinel/create", map[string]any{"definition": def})
			return s.model("sentinel/step/remove", map[string]any{"sentinelId": "x", "address": "gate"})
		},
		"inline": func(s *storing) string {
			def := s.definition("x")
			def["steps"] = []any{map[string]any{"type": "sentinel", "definition": map[string]any{"name": "inner", "steps": s.lines()}}}
			return s.model("sentinel/create", map[string]any{"definition": def})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStoring(t, host.Options{})
			if warning := store(s); !strings.Contains(warning, shell) {
				t.Errorf("the warning is %q", warning)
			}
			if name == "inline" || name == "import with history" { // the error of the child, or no trigger
				r := s.run(map[string]any{"sentinelId": "x"})
				if _, err := os.Stat(s.marker); err == nil || r.Status != sentinels.StatusFailed {
					t.Errorf("it was executed: %v", r.Status)
				}
			} else {
				r := s.run(map[string]any{"sentinelId": "x"})
				s.refused("a person's start", r)
				s.refused("a trigger", s.fired("x"))
				again, err := s.h.Runtime().Fork(t.Context(), r.Run, runtime.ForkOptions{Latest: true})
				if err != nil {
					t.Fatal(err)
				}
				if r, err = s.h.Runtime().Wait(t.Context(), again); err != nil {
					t.Fatal(err)
				}
				s.refused("a repetition", r)
			}
			s.must(command.ByUser, "sentinel/create", map[string]any{"definition": map[string]any{"id": "parent", "name": "parent", "steps": []any{map[string]any{"type": "sentinel", "definition": map[string]any{"$ref": "x"}}}}})
			s.run(map[string]any{"sentinelId": "parent"})
			if _, err := os.Stat(s.marker); err == nil {
				t.Error("a child executed it")
			}
			s.accept("x")
			if r := s.run(map[string]any{"sentinelId": "x"}); r.Status != sentinels.StatusCompleted {
				t.Errorf("accepted: %s, %v", r.Status, r.Error)
			}
			if _, err := os.Stat(s.marker); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFilesOfPersonsStay: a model or an agent deletes no sentinel that is in a file. The stored
// revision has no comments, so a rollback would not bring all of it back.
func TestFilesOfPersonsStay(t *testing.T) {
	s := newStoring(t, host.Options{})
	for id, origin := range map[string]string{"file": filepath.Join(t.TempDir(), "file.jsonc"), "stored": ""} {
		s.must(command.ByUser, "sentinel/create", map[string]any{"definition": s.definition(id)})
		head, err := s.h.Runtime().Definition(sentinels.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		def, err := s.h.Runtime().Decoded(head)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.h.Runtime().SaveWith(t.Context(), def, runtime.SaveOptions{Expect: runtime.AnyRevision, Origin: origin}); err != nil {
			t.Fatal(err)
		}
		want := abi.Code("")
		if origin != "" {
			want = abi.Denied
		}
		if _, err := s.call(command.ByAgent, "sentinel/delete", map[string]any{"sentinelId": id}); abi.CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", id, err, want)
		}
	}
	if _, err := s.call(command.ByModel, "sentinel/delete", map[string]any{"sentinelId": "file"}, "sentinel/delete"); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a model: %v", err)
	}
	s.must(command.ByUser, "sentinel/delete", map[string]any{"sentinelId": "file"})
}

// TestDeletedByPersonsStaysDeleted: a model or an agent restores no sentinel that a person deleted or whose file a
// person removed, whatever it gives; one that an agent deleted it does.
func TestDeletedByPersonsStaysDeleted(t *testing.T) {
	s := newStoring(t, host.Options{})
	create := func(id string) {
		s.must(command.ByUser, "sentinel/create", map[string]any{"definition": s.definition(id)})
	}
	bundle := func(id string) any {
		create(id)
		return s.must(command.ByUser, "sentinel/export", map[string]any{"sentinelId": id, "history": true}).Bundle
	}
	given := bundle("gone")
	s.must(command.ByUser, "sentinel/delete", map[string]any{"sentinelId": "gone"})
	create("file")
	if _, err := s.h.Runtime().DeleteWith(t.Context(), "file", runtime.SaveOptions{Expect: 1, By: "file"}); err != nil {
		t.Fatal(err)
	}
	refers := map[string]any{"id": "refers", "name": "refers", "steps": []any{map[string]any{"type": "sentinel", "definition": map[string]any{"$ref": "gone"}}}}
	for _, c := range []struct {
		name   string
		params map[string]any
	}{
		{"sentinel/rollback", map[string]any{"sentinelId": "gone", "to": 1}},
		{"sentinel/rollback", map[string]any{"sentinelId": "gone", "to": 1, "revision": 0}},
		{"sentinel/rollback", map[string]any{"sentinelId": "file", "to": 1}},
		{"sentinel/create", map[string]any{"definition": s.definition("gone")}},
		{"sentinel/create", map[string]any{"definition": s.definition("gone"), "replace": true}},
		{"sentinel/create", map[string]any{"definition": refers, "definitions": map[string]any{"gone": s.definition("gone")}}},
		{"sentinel/import", map[string]any{"bundle": given}},
		{"sentinel/import", map[string]any{"definition": s.definition("file")}},
	} {
		for _, by := range []command.By{command.ByAgent, command.ByModel} {
			_, err := s.call(by, c.name, c.params, "*", c.name)
			if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "only a person restores it") || !strings.Contains(abi.As(err).Hint, "by a person; or choose another id") {
				t.Errorf("%s %v by %s: %v", c.name, c.params, by, err)
			}
		}
	}
	s.must(command.ByUser, "sentinel/rollback", map[string]any{"sentinelId": "gone", "to": 1})
	for _, by := range []command.By{command.ByAgent, command.ByModel} {
		if _, err := s.call(by, "sentinel/delete", map[string]any{"sentinelId": "gone"}, "sentinel/delete"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.call(command.ByAgent, "sentinel/rollback", map[string]any{"sentinelId": "gone", "to": 1}); err != nil {
			t.Errorf("deleted by %s: %v", by, err)
		}
	}
}

// TestBoundsStay: neither a restore, an export, a copy nor an edit of a part lifts a bound.
func TestBoundsStay(t *testing.T) {
	s := newStoring(t, host.Options{})
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": s.definition("x")})
	s.model("sentinel/step/update", map[string]any{"sentinelId": "x", "address": "look", "params": map[string]any{"values": map[string]any{"m": "y"}}})
	bounded := s.run(map[string]any{"sentinelId": "x"})
	s.refused("revision 2", bounded)

	s.must(command.ByUser, "sentinel/step/update", map[string]any{"sentinelId": "x", "address": "look", "params": map[string]any{"values": map[string]any{"m": "z"}}})
	s.refused("an edit of a person on it", s.run(map[string]any{"sentinelId": "x"}))
	s.must(command.ByUser, "sentinel/rollback", map[string]any{"sentinelId": "x", "to": 1})
	if r := s.run(map[string]any{"sentinelId": "x"}); r.Status != sentinels.StatusCompleted {
		t.Errorf("the person's own revision again: %v", r.Error)
	}
	if err := os.Remove(s.marker); err != nil {
		t.Fatal(err)
	}
	s.must(command.ByUser, "sentinel/rollback", map[string]any{"sentinelId": "x", "to": 2})
	s.refused("the model's revision again", s.run(map[string]any{"sentinelId": "x"}))
	s.must(command.ByUser, "sentinel/delete", map[string]any{"sentinelId": "x"})
	s.must(command.ByUser, "sentinel/rollback", map[string]any{"sentinelId": "x", "to": 2})
	s.refused("the model's revision after a deletion", s.run(map[string]any{"sentinelId": "x"}))

	s.must(command.ByUser, "sentinel/save", map[string]any{"run": bounded.Run, "name": "copy"})
	s.refused("a person's copy of a run", s.run(map[string]any{"sentinelId": "copy"}))
	for _, history := range []bool{true, false} {
		bundle := s.must(command.ByUser, "sentinel/export", map[string]any{"all": true, "history": history}).Bundle
		other := newStoring(t, host.Options{})
		other.marker = s.marker
		other.must(command.ByUser, "sentinel/import", map[string]any{"bundle": bundle, "rename": map[string]any{"x": "renamed"}})
		other.refused("an imported one", other.run(map[string]any{"sentinelId": "renamed"}))
		if history {
			other.must(command.ByUser, "sentinel/rollback", map[string]any{"sentinelId": "renamed", "to": 3})
			other.refused("an older one of an imported history", other.run(map[string]any{"sentinelId": "renamed"}))
		}
	}
	if _, err := s.call(command.ByUser, "sentinel/deploy", map[string]any{"sentinelId": "x", "to": t.TempDir()}); abi.CodeOf(err) != abi.Denied || !strings.Contains(abi.As(err).Hint, "sentinel accept x") {
		t.Errorf("deploy: %v", err)
	}
	s.must(command.ByUser, "sentinel/update", map[string]any{"sentinelId": "x", "definition": s.definition("x")})
	if r := s.run(map[string]any{"sentinelId": "x"}); r.Status != sentinels.StatusCompleted {
		t.Errorf("a person gave the whole definition: %v", r.Error)
	}
}

// TestRunsFollowBounds: an active run that follows a model's edit, of the sentinel or of the
// run alone, is bounded from its next iteration on, also in a process that takes it over.
func TestRunsFollowBounds(t *testing.T) {
	for _, alone := range []bool{false, true} {
		opt := host.Options{Workspace: t.TempDir(), State: t.TempDir()}
		h := open(t, opt)
		s := &storing{t, h, opt.Workspace, filepath.Join(opt.Workspace, "executed")}
		def := s.definition("x")
		def["safety"] = map[string]any{"maxIterations": 5}
		def["loop"] = map[string]any{"type": "event", "event": "again"}
		def["steps"] = []any{map[string]any{"id": "look", "type": "set", "values": map[string]any{"m": "x"}}}
		s.must(command.ByUser, "sentinel/create", map[string]any{"definition": def})
		raw, err := s.call(command.ByUser, "sentinel/start", map[string]any{"sentinelId": "x"})
		var started struct{ Run sentinels.RunID }
		if err == nil {
			err = json.Unmarshal(raw, &started)
		}
		if err != nil {
			t.Fatal(err)
		}
		of := "x"
		if alone {
			of = string(started.Run)
		}
		s.model("sentinel/step/add", map[string]any{"sentinelId": of, "step": s.lines()[1]})
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		s.h = open(t, opt)
		if _, err := s.h.Runtime().ResumeAll(t.Context(), runtime.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		v, err := s.h.Runtime().RunDefinition(started.Run)
		if err != nil || !slices.Equal(v.Within, []string{"code/read", "sentinel/step/add"}) {
			t.Errorf("alone %t: the bound is %q, %v", alone, v.Within, err)
		}
		s.must(command.ByUser, "events/emit", map[string]any{"event": "again"})
		r, err := s.h.Runtime().Wait(t.Context(), started.Run)
		if err != nil {
			t.Fatal(err)
		}
		s.refused("the next iteration", r)
		s.must(command.ByUser, "sentinel/save", map[string]any{"run": started.Run, "name": "copy"})
		if stored, err := s.h.Runtime().Definition("copy"); err != nil || !slices.Equal(stored.Within, v.Within) {
			t.Errorf("alone %t: the bound of a copy is %q, %v", alone, stored.Within, err)
		}
	}
}

// TestDefinitionsOfAgentsAreBounded: what an agent stores does nothing that the agent may not
// do, also when a trigger starts it.
func TestDefinitionsOfAgentsAreBounded(t *testing.T) {
	s := newStoring(t, host.Options{})
	own := filepath.Join(s.ws, host.DirName, "sentinels", "own.json")
	for id, step := range map[string]map[string]any{
		"decides": {"type": "command", "command": "$accept", "allow": []string{"sentinel/accept"}, "params": map[string]any{"sentinelId": "decides", "revision": 1}},
		"obeyed":  {"type": "command", "command": "code/write", "params": map[string]any{"path": own, "content": "{}"}},
	} {
		def := s.definition(id)
		def["steps"] = []any{step}
		def["variables"] = map[string]any{"accept": "sentinel/accept"} // validate refuses the name itself
		s.must(command.ByAgent, "sentinel/create", map[string]any{"definition": def})
		if r := s.fired(id); r.Status != sentinels.StatusFailed || abi.CodeOf(r.Error) != abi.Denied {
			t.Errorf("%s: %s, %v", id, r.Status, r.Error)
		}
		r := s.runAs(command.ByAgent, map[string]any{"definition": def})
		if r.Status != sentinels.StatusFailed || abi.CodeOf(r.Error) != abi.Denied {
			t.Errorf("%s, not stored: %s, %v", id, r.Status, r.Error)
		}
	}
	if _, err := os.Stat(own); err == nil {
		t.Error("a definition of this host was written")
	}
	for _, by := range []command.By{command.ByAgent, command.ByModel} {
		if _, err := s.call(by, "sentinel/accept", map[string]any{"sentinelId": "decides", "revision": 1}, "sentinel/accept"); abi.CodeOf(err) != abi.Denied {
			t.Errorf("accepted by %s: %v", by, err)
		}
	}
}

// TestQuestionsShowTheirOrigin: a person's sentinel is open to the events that it waits for, and
// what it asks shows who is behind them; an agent cannot say otherwise.
func TestQuestionsShowTheirOrigin(t *testing.T) {
	for name, c := range map[string]struct {
		from func(s *storing)
		want string
	}{
		"an agent": {func(s *storing) {
			s.must(command.ByAgent, "events/emit", map[string]any{"event": "go.gate"})
		}, `event "go.gate" from agent:ci`},
		"a definition of an agent": {func(s *storing) {
			s.call(command.ByAgent, "sentinel/run", map[string]any{"definition": map[string]any{"name": "harmless", "steps": []any{map[string]any{"type": "emit", "event": "go.gate"}}}})
		}, `event "go.gate" from sentinel/harmless, emitted for agent:ci; after runs of harmless`},
		"a definition of a model": {func(s *storing) {
			s.model("sentinel/create", map[string]any{"definition": map[string]any{"name": "made", "trigger": map[string]any{"type": "event", "event": "go.made"}, "steps": []any{map[string]any{"type": "emit", "event": "go.gate"}}}})
			s.must(command.ByUser, "events/emit", map[string]any{"event": "go.made"})
		}, `event "go.gate" from sentinel/made, emitted for model; after runs of made`},
		"a start by an agent": {func(s *storing) {
			s.must(command.ByAgent, "sentinel/start", map[string]any{"sentinelId": "gate", "event": map[string]any{"type": "ok", "source": "user", "by": ""}})
		}, `started for agent:ci; event "ok" from agent:ci`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStoring(t, host.Options{})
			def := s.definition("gate")
			def["steps"] = []any{map[string]any{"type": "approve", "prompt": "deploy?"}}
			s.must(command.ByUser, "sentinel/create", map[string]any{"definition": def})
			c.from(s)
			for {
				var out struct {
					Entries []struct{ Kind, Origin string }
				}
				must(t, s.h, "inbox/list", map[string]any{"kind": []any{"approval"}}, &out)
				if len(out.Entries) == 1 {
					if out.Entries[0].Origin != c.want {
						t.Errorf("origin %q, want %q", out.Entries[0].Origin, c.want)
					}
					return
				}
				if s.Context().Err() != nil {
					t.Fatal("nothing is asked")
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
}

// TestQuestionsShowEdits: an agent that changes what an approval of a person's loop is about is named by the
// next question.
func TestQuestionsShowEdits(t *testing.T) {
	s := newStoring(t, host.Options{})
	def := s.definition("gate")
	delete(def, "trigger")
	def["loop"] = map[string]any{"type": "count", "max": 2}
	def["steps"] = []any{map[string]any{"type": "approve", "prompt": "deploy?"}, map[string]any{"type": "set", "values": map[string]any{"a": 1}}}
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": def})
	s.must(command.ByUser, "sentinel/start", map[string]any{"sentinelId": "gate"})
	before := ""
	for i, want := range []string{"", "with steps of agent:ci"} {
		var out struct {
			Entries []struct {
				ID, Origin string
				Pin        struct{ Question string }
			}
		}
		for len(out.Entries) == 0 || out.Entries[0].Pin.Question == before { // that of the iteration before
			must(t, s.h, "inbox/list", map[string]any{"kind": []any{"approval"}}, &out)
			if s.Context().Err() != nil {
				t.Fatal("nothing is asked")
			}
			time.Sleep(5 * time.Millisecond)
		}
		e := out.Entries[0]
		before = e.Pin.Question
		if e.Origin != want {
			t.Errorf("question %d: origin %q, want %q", i, e.Origin, want)
		}
		if i == 0 {
			s.must(command.ByAgent, "sentinel/step/update", map[string]any{"sentinelId": e.ID, "address": "1", "params": map[string]any{"values": map[string]any{"a": 2}}})
			must(t, s.h, "sentinel/decide", map[string]any{"run": e.ID, "question": e.Pin.Question, "verdict": "approve"}, nil)
		}
	}
}

// TestLimitsAndPausesOfOthers: an agent or model raises no limit of a run, no pattern gives a model a
// pause, and what it changes in the limits of a definition is bounded and in the history by its name.
func TestLimitsAndPausesOfOthers(t *testing.T) {
	s := newStoring(t, host.Options{})
	def := s.definition("x")
	def["safety"] = map[string]any{"maxIterations": 1}
	def["loop"] = map[string]any{"type": "event", "event": "again"}
	def["steps"] = s.lines()[:1]
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": def})
	raw, err := s.call(command.ByUser, "sentinel/start", map[string]any{"sentinelId": "x"})
	var r struct{ Run sentinels.RunID }
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []command.By{command.ByAgent, command.ByModel, command.ByStep} {
		for _, more := range []map[string]any{{"maxIterations": 5}, {"timeoutMs": 5}, {"budgetUsd": 5}, {"budgetTokens": 5}, {"budgetCalls": 5}} {
			more["run"] = string(r.Run)
			if _, err := s.call(by, "sentinel/resume", more, "sentinel/resume"); abi.CodeOf(err) != abi.Denied || !strings.Contains(abi.As(err).Message, "only a person raises its limits") {
				t.Errorf("%v by %s: %v", more, by, err)
			}
		}
	}
	raised := s.definition("x")
	raised["loop"], raised["steps"], raised["safety"] = def["loop"], s.lines(), map[string]any{"maxIterations": 1000}
	s.must(command.ByModel, "sentinel/update", map[string]any{"sentinelId": "x", "definition": raised}, "sentinel/update", "code/read")
	head, err := s.h.Runtime().Definition("x")
	if err != nil || head.Within == nil || head.By == "user" || !strings.Contains(head.By, "model of") {
		t.Errorf("a model's limits are a revision by %q within %q, %v", head.By, head.Within, err)
	}
	for _, pattern := range []string{"*", "sentinel/*"} {
		if _, err := s.call(command.ByModel, "sentinel/pause", map[string]any{"sentinelId": "x"}, pattern); abi.CodeOf(err) != abi.Denied {
			t.Errorf("a model with the tools %q pauses: %v", pattern, err)
		}
	}
	for _, verb := range []string{"sentinel/decide", "sentinel/accept"} {
		for _, by := range []command.By{command.ByAgent, command.ByModel} {
			if _, err := s.call(by, verb, map[string]any{"run": string(r.Run), "verdict": "retry"}, verb); abi.CodeOf(err) != abi.Denied {
				t.Errorf("%s by %s: %v", verb, by, err)
			}
		}
	}
}

// TestEditsOfOthersRaiseNoLimits: a person's loop that an agent edits, in its sentinel or alone, has the limits of the
// person's revision also after a restart, until a person accepts the edit; a lower limit counts at once.
func TestEditsOfOthersRaiseNoLimits(t *testing.T) {
	for _, alone := range []bool{false, true} {
		opt := host.Options{Workspace: t.TempDir(), State: t.TempDir()}
		s := &storing{T: t, h: open(t, opt), ws: opt.Workspace}
		define := func(safety, budget map[string]any) map[string]any {
			return map[string]any{
				"id": "x", "name": "x", "loop": map[string]any{"type": "event", "event": "again"}, "safety": safety, "budget": budget,
				"steps": []any{map[string]any{"id": "look", "type": "set", "values": map[string]any{"m": "x"}}},
			}
		}
		s.must(command.ByUser, "sentinel/create", map[string]any{"definition": define(map[string]any{"maxIterations": 2}, map[string]any{"tokens": 6000, "calls": 50})})
		raw, err := s.call(command.ByUser, "sentinel/start", map[string]any{"sentinelId": "x"})
		var r struct{ Run sentinels.RunID }
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		of := "x"
		if alone {
			of = string(r.Run)
		}
		edit := define(map[string]any{"maxIterations": 9, "maxSteps": 1_000_000, "onInterrupt": "retry"}, map[string]any{"tokens": 1_000_000_000, "calls": 10})
		edit["steps"] = s.lines()[:1]
		edit["steps"].([]any)[0].(map[string]any)["values"] = map[string]any{"m": "y"}
		warning := s.must(command.ByAgent, "sentinel/update", map[string]any{"sentinelId": of, "definition": edit}).Warning
		for _, field := range []string{"budget.tokens", "safety.maxIterations", "safety.maxSteps", "safety.onInterrupt", "only a person raises limits"} {
			if !strings.Contains(warning, field) || strings.Contains(warning, "budget.calls") {
				t.Errorf("alone %t: the warning is %q, want %s", alone, warning, field)
			}
		}
		limits := func() *sentinels.Definition {
			t.Helper()
			v, err := s.h.Runtime().RunDefinition(r.Run)
			if err != nil || len(v.Definition.Steps) != 1 || string(v.Definition.Steps[0].Fields["values"]) != `{"m":"y"}` {
				t.Fatalf("alone %t: the steps of the edit do not count: %+v, %v", alone, v.Definition, err)
			}
			return v.Definition
		}
		check := func(when string) {
			t.Helper()
			def := limits()
			if want := (sentinels.Budget{Tokens: 6000, Calls: 10}); def.Budget != want || def.Safety.MaxIterations != 2 || def.Safety.MaxSteps != 0 || def.Safety.OnInterrupt != "" {
				t.Fatalf("alone %t, %s: %+v %+v", alone, when, def.Budget, def.Safety)
			}
		}
		check("after the edit")
		if err := s.h.Close(); err != nil {
			t.Fatal(err)
		}
		s.h = open(t, opt)
		if _, err := s.h.Runtime().ResumeAll(t.Context(), runtime.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		check("after a restart")
		again := func(n int) {
			t.Helper()
			s.must(command.ByUser, "events/emit", map[string]any{"event": "again"})
			for {
				info, err := s.h.Runtime().Status(r.Run)
				if err != nil || s.Context().Err() != nil {
					t.Fatal(err, info.Iteration)
				}
				if info.Iteration == n {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
		again(1)
		check("in an iteration that uses it")
		if !alone {
			var waits struct {
				Entries []struct {
					ID  string
					Pin map[string]any
				}
			}
			raw, err := s.call(command.ByUser, "inbox/list", map[string]any{"kind": []string{"definition"}})
			if err == nil {
				err = json.Unmarshal(raw, &waits)
			}
			if err != nil || len(waits.Entries) != 1 || waits.Entries[0].ID != "x" || waits.Entries[0].Pin["revision"] != 2.0 {
				t.Errorf("the revision waits for a person: %+v, %v", waits, err)
			}
			raw, err = s.call(command.ByUser, "sentinel/start", map[string]any{"sentinelId": "x"})
			var later struct{ Run sentinels.RunID }
			if err == nil {
				err = json.Unmarshal(raw, &later)
			}
			if err != nil {
				t.Fatal(err)
			}
			if v, err := s.h.Runtime().RunDefinition(later.Run); err != nil || v.Definition.Safety.MaxIterations != 2 || v.Definition.Budget.Tokens != 6000 {
				t.Errorf("a later start of a person: %+v, %v", v.Definition, err)
			}
		}
		if !alone {
			s.accept("x")
			if def := limits(); def.Budget.Tokens != 1_000_000_000 || def.Safety.MaxIterations != 9 || def.Safety.OnInterrupt != sentinels.InterruptRetry {
				t.Errorf("accepted: %+v %+v", def.Budget, def.Safety)
			}
			continue
		}
		s.must(command.ByUser, "events/emit", map[string]any{"event": "again"})
		if end, err := s.h.Runtime().Wait(t.Context(), r.Run); err != nil || end.Status != sentinels.StatusCompleted || end.Iterations != 2 {
			t.Errorf("the run ends with %s after %d iterations, %v", end.Status, end.Iterations, err)
		}
	}
}

// TestIDsOfStoredSentinelsAreTheirs: no run of a definition that an agent, a model or a step brings
// along counts as one of a stored sentinel, nor does that of a definition beside it.
func TestIDsOfStoredSentinelsAreTheirs(t *testing.T) {
	s := newStoring(t, host.Options{})
	stored := s.definition("backup")
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": stored})
	other := s.definition("backup")
	other["steps"] = s.lines()[:1]
	parent := map[string]any{"name": "parent", "steps": []any{map[string]any{"type": "sentinel", "definition": map[string]any{"$ref": "backup"}}}}
	for _, by := range []command.By{command.ByAgent, command.ByModel, command.ByStep} {
		for name, params := range map[string]map[string]any{
			"its id": {"definition": other},
			"beside": {"definition": parent, "definitions": map[string]any{"backup": other}},
		} {
			for _, verb := range []string{"sentinel/run", "sentinel/start"} {
				_, err := s.call(by, verb, params, verb)
				if abi.CodeOf(err) != abi.Denied || !strings.Contains(abi.As(err).Message, `the stored sentinel "backup"`) {
					t.Errorf("%s by %s, %s: %v", verb, by, name, err)
				}
			}
		}
	}
	runs, err := s.h.Runtime().Runs(runtime.RunFilter{Sentinel: "backup"})
	if err != nil || len(runs) != 0 {
		t.Errorf("%d runs of the stored sentinel, %v", len(runs), err)
	}
	if r := s.runAs(command.ByStep, map[string]any{"definition": stored}); r.Status != sentinels.StatusCompleted {
		t.Errorf("an equal definition of a step: %s, %v", r.Status, r.Error)
	}
	if r := s.run(map[string]any{"definition": other}); r.Status != sentinels.StatusCompleted || r.Sentinel != "backup" {
		t.Errorf("a person's draft: %s of %q, %v", r.Status, r.Sentinel, r.Error)
	}
	_ = os.Remove(s.marker)
	s.model("sentinel/step/update", map[string]any{"sentinelId": "backup", "address": "look", "params": map[string]any{"values": map[string]any{"m": "y"}}})
	head, err := s.h.Runtime().Definition("backup")
	if err != nil {
		t.Fatal(err)
	}
	s.refused("an equal definition of a model by a step", s.runAs(command.ByStep, map[string]any{"definition": head.Definition}))
}

func (s *storing) runAs(by command.By, params map[string]any) (r runtime.Result) {
	s.Helper()
	raw, err := s.call(by, "sentinel/run", params)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// TestInboxOfDefinitions: what exceeds the bound of its author is a question to a person, with
// the difference, and about that revision only.
func TestInboxOfDefinitions(t *testing.T) {
	s := newStoring(t, host.Options{})
	def := s.definition("x")
	def["steps"] = s.lines()[:1]
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": def})
	s.must(command.ByModel, "sentinel/create", map[string]any{"definition": map[string]any{"name": "reads", "steps": []any{map[string]any{"type": "command", "command": "code/read", "params": map[string]any{"path": "a"}}}}}, "sentinel/create", "code/read")
	s.model("sentinel/step/add", map[string]any{"sentinelId": "x", "step": s.lines()[1]})
	type entry struct {
		ID, Kind, Prompt, Command string
		Lines                     []string
		Pin                       map[string]any
	}
	var out struct{ Entries []entry }
	must(t, s.h, "inbox/list", map[string]any{}, &out)
	if len(out.Entries) != 1 {
		t.Fatalf("%+v", out.Entries)
	}
	e := out.Entries[0]
	added := slices.ContainsFunc(e.Lines, func(line string) bool { return strings.HasPrefix(line, "+") && strings.Contains(line, s.marker) })
	if !added || e.Prompt == "" || !strings.HasSuffix(e.Prompt, ": code/shell/execute") {
		t.Errorf("%+v", e)
	}
	if diff := cmp.Diff(entry{ID: "x", Kind: "definition", Prompt: e.Prompt, Command: "sentinel/accept", Lines: e.Lines, Pin: map[string]any{"revision": 2.0}}, e); diff != "" {
		t.Error(diff)
	}
	s.must(command.ByUser, "sentinel/step/update", map[string]any{"sentinelId": "x", "address": "look", "params": map[string]any{"values": map[string]any{"m": "other"}}})
	if _, err := s.call(command.ByUser, "sentinel/accept", map[string]any{"sentinelId": "x", "revision": 2}); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("an older revision was accepted: %v", err)
	}
	s.accept("x")
	must(t, s.h, "inbox/list", map[string]any{}, &out)
	if len(out.Entries) != 0 {
		t.Errorf("after it was accepted: %+v", out.Entries)
	}
}

// TestHeldCallersPlaceRuns: an agent or a model starts a person's sentinel in a folder below its
// workspace, and in no other one. Neither does a folder around it lift the bound of a definition.
func TestHeldCallersPlaceRuns(t *testing.T) {
	state := t.TempDir()
	s := newStoring(t, host.Options{State: state})
	outside := t.TempDir()
	for _, dir := range []string{"below/deep", ".github", ".sentinel/state"} {
		if err := os.MkdirAll(filepath.Join(s.ws, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(s.ws, "link")); err != nil {
		t.Fatal(err)
	}
	define := func(by command.By, id, workspace string) {
		def := map[string]any{"id": id, "name": id, "steps": []any{map[string]any{"type": "set", "values": map[string]any{"m": 1}}}}
		if workspace != "" {
			def["workspace"] = workspace
		}
		s.must(by, "sentinel/create", map[string]any{"definition": def})
	}
	define(command.ByUser, "plain", "")
	define(command.ByUser, "above", "../..")
	define(command.ByAgent, "far", outside)
	for _, c := range []struct {
		id, dir string
		allowed bool
	}{
		{"plain", s.ws, true},
		{"plain", filepath.Join(s.ws, "below"), true},
		{"above", filepath.Join(s.ws, "below/deep"), true},
		{"plain", outside, false},
		{"plain", "/", false},
		{"plain", state, false},
		{"plain", filepath.Join(s.ws, "..", filepath.Base(outside)), false},
		{"plain", filepath.Join(s.ws, "link"), false},
		{"plain", filepath.Join(s.ws, "missing"), false},
		{"plain", filepath.Join(s.ws, ".sentinel/state"), false},
		{"plain", filepath.Join(s.ws, ".github"), false},
		{"above", filepath.Join(s.ws, "below"), false},
		{"far", "/", false},
	} {
		for _, by := range []command.By{command.ByAgent, command.ByModel} {
			_, err := s.call(by, "sentinel/start", map[string]any{"sentinelId": c.id, "workspace": c.dir}, "sentinel/start")
			if c.allowed != (err == nil) || err != nil && abi.CodeOf(err) != abi.Denied {
				t.Errorf("%s in %s by %s: %v", c.id, c.dir, by, err)
			}
		}
	}
	s.must(command.ByUser, "sentinel/start", map[string]any{"sentinelId": "plain", "workspace": outside})
}

// TestAuthorsOfImports: the author that a bundle names stands behind the agent or model that imports it.
func TestAuthorsOfImports(t *testing.T) {
	from := newStoring(t, host.Options{})
	from.must(command.ByUser, "sentinel/create", map[string]any{"definition": from.definition("x")})
	from.must(command.ByUser, "sentinel/step/remove", map[string]any{"sentinelId": "x", "address": "look"})
	bundle := from.must(command.ByUser, "sentinel/export", map[string]any{"sentinelId": "x", "history": true}).Bundle
	made, err := from.h.Runtime().Revisions("x")
	if err != nil || len(made) != 2 || made[1].By == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	author := made[1].By
	for by, want := range map[command.By]string{
		command.ByUser: author, command.ByAgent: "agent:ci/" + author, command.ByModel: "model of sentinel /" + author,
	} {
		to := newStoring(t, host.Options{})
		to.must(by, "sentinel/import", map[string]any{"bundle": bundle}, "sentinel/import")
		got, err := to.h.Runtime().Revisions("x")
		if err != nil || len(got) != 2 || got[0].By != want || got[1].By != want {
			t.Errorf("imported by %s: %+v, %v", by, got, err)
		}
	}
}
