package sentinels_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

var update = flag.Bool("update", false, "rewrite the expected problems in testdata/bad")

// types returns specs like those of the built-in types.
func types(t testing.TB) *sentinels.TypeSet {
	t.Helper()
	raw, err := os.ReadFile("testdata/types.json")
	if err != nil {
		t.Fatal(err)
	}
	var specs []sentinels.TypeSpec
	if err := json.Unmarshal(raw, &specs); err != nil {
		t.Fatal(err)
	}
	for i := range specs {
		specs[i].Plugin = "builtin"
	}
	set, err := sentinels.NewTypeSet(specs)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// kinds are the usual kinds of triggers, as the host describes them.
func kinds() []sentinels.TriggerKind {
	common := []sentinels.TriggerOption{{Name: "filter", Type: "string", Doc: "which"}, {Name: "debounceMs", Type: "integer", Doc: "how long"}}
	with := func(own ...sentinels.TriggerOption) []sentinels.TriggerOption { return append(own, common...) }
	return []sentinels.TriggerKind{
		{Name: "immediate", Fires: "at once", Options: common},
		{Name: "manual", Fires: "never", Options: common},
		{Name: "schedule", Aliases: []string{"cron"}, Field: sentinels.TriggerCron, Fires: "at planned times", Options: with(sentinels.TriggerOption{Name: "timeZone", Type: "string", Doc: "where"})},
		{Name: "event", Field: sentinels.TriggerEvent, Fires: "on events", Options: common},
		{Name: "file", Fires: "when files change", Options: with(sentinels.TriggerOption{Name: "paths", Type: "array", Doc: "globs", Required: true})},
		{Name: "webhook", Fires: "on requests", Options: with(sentinels.TriggerOption{Name: "event", Type: "string", Doc: "its name", Enum: []string{"x"}})},
	}
}

// options returns options with fakes of the checks of other languages.
func options(t testing.TB) sentinels.DecodeOptions {
	return sentinels.DecodeOptions{
		Types: types(t), Triggers: kinds(),
		CheckTrigger: func(t sentinels.Trigger) error {
			if s := t.CronExpression; s != "" && len(strings.Fields(s)) != 5 {
				return errors.New("a cron expression has 5 fields")
			}
			return nil
		},
		CheckExpression: func(s string) error {
			if strings.Count(s, "(") != strings.Count(s, ")") {
				return errors.New("unbalanced parentheses")
			}
			return nil
		},
	}
}

func decode(t testing.TB, src string) *sentinels.Definition {
	t.Helper()
	d, problems := sentinels.Decode([]byte(src), options(t))
	if len(problems) > 0 {
		t.Fatalf("decode:\n%v", problems)
	}
	return d
}

// TestGood decodes valid files and checks that Encode is the inverse.
func TestGood(t *testing.T) {
	files, _ := filepath.Glob("testdata/spec/*.json")
	if len(files) != 4 {
		t.Fatalf("%d files of the specification, want 4", len(files))
	}
	more, _ := filepath.Glob("testdata/good/*.json")
	for _, file := range append(files, more...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d := decode(t, string(src))
			again := decode(t, string(sentinels.Encode(d)))
			if diff := cmp.Diff(d, again, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("encoded and decoded (-before +after):\n%s", diff)
			}
			if d.Hash() != again.Hash() {
				t.Error("the hash changed")
			}
			if problems := sentinels.Check(t.Context(), d, types(t), "query"); len(problems) > 0 {
				t.Errorf("warnings:\n%v", problems)
			}
		})
	}
}

// TestBad compares the problems of each invalid file with the .want file beside it.
func TestBad(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.json")
	if len(files) < 40 {
		t.Fatalf("%d broken files, want at least 40", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			opt := options(t)
			opt.File = filepath.Base(file)
			d, problems := sentinels.Decode(src, opt)
			if d != nil || len(problems) == 0 {
				t.Fatal("no problem")
			}
			for _, p := range problems {
				if p.Line < 1 || p.Column < 1 || p.Kind == "" || p.Message == "" {
					t.Errorf("incomplete problem %+v", p)
				}
			}
			got := problems.Error() + "\n"
			want := strings.TrimSuffix(file, ".json") + ".want"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(expected), got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTriggerKinds: the kinds decide which names a type has and which key the
// format reads. Without kinds every type is accepted and all its keys are options.
func TestTriggerKinds(t *testing.T) {
	order := []sentinels.TriggerKind{{Name: "order", Aliases: []string{"sale"}, Field: sentinels.TriggerEvent, Fires: "for every order"}}
	for _, tt := range []struct {
		name, trigger string
		kinds         []sentinels.TriggerKind
		want          sentinels.Trigger
		problem       string
	}{
		{"name", `{"type":"order","event":"a:*"}`, order, sentinels.Trigger{Type: "order", Event: "a:*"}, ""},
		{"alias", `{"type":"sale","event":"a:*"}`, order, sentinels.Trigger{Type: "order", Event: "a:*"}, ""},
		{"key of another kind", `{"type":"order","event":"a","cronExpression":7}`, order, sentinels.Trigger{Type: "order", Event: "a", Options: json.RawMessage(`{"cronExpression":7}`)}, ""},
		{"missing key", `{"type":"sale"}`, order, sentinels.Trigger{}, `a trigger of type "order" needs "event"`},
		{"unknown type", `{"type":"event","event":"a"}`, order, sentinels.Trigger{}, `unknown value "event"`},
		{"missing type", `{"event":"a"}`, order, sentinels.Trigger{}, "type is missing"},
		{"any type", `{"type":"event","event":"a","n":1}`, nil, sentinels.Trigger{Type: "event", Options: json.RawMessage(`{"event":"a","n":1}`)}, ""},
		{"no type", `{"event":"a"}`, nil, sentinels.Trigger{}, "type is missing"},
		{"empty type", `{"type":""}`, nil, sentinels.Trigger{}, "trigger.type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := `{"name":"a","steps":[],"trigger":` + tt.trigger + `}`
			def, problems := sentinels.Decode([]byte(src), sentinels.DecodeOptions{Triggers: tt.kinds})
			if tt.problem != "" {
				if len(problems) == 0 || !strings.Contains(problems.Error(), tt.problem) {
					t.Fatalf("problems %v, want %q", problems, tt.problem)
				}
				return
			}
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(tt.want, def.Triggers[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
