package sentinels_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestDecodeValue decodes a file with every field.
func TestDecodeValue(t *testing.T) {
	src, err := os.ReadFile("testdata/good/everything.json")
	if err != nil {
		t.Fatal(err)
	}
	d := decode(t, string(src))
	steps := d.Steps
	d.Steps = nil
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	want := &sentinels.Definition{
		ID: "everything", Name: "Everything ✓", Description: "d", Version: 3, Recipe: "coding", RAGSources: []string{"git", "tree"},
		Loop: sentinels.Loop{Type: "count", Max: raw(`"$limit"`)},
		Triggers: []sentinels.Trigger{
			{Type: "event", Event: "git:*", Options: raw(`{"debounceMs":50,"filter":"$event.data.branch === 'main'"}`)},
			{Type: "schedule", CronExpression: "*/5 * * * *", Options: raw(`{"timeZone":"Europe/Berlin"}`)},
			{Type: "file", Options: raw(`{"paths":["src/**"]}`)},
			{Type: "manual"},
			{Type: "webhook", Options: raw(`{"event":"push"}`)},
		},
		Tools:  []string{"code/read"},
		Safety: sentinels.Safety{MaxIterations: 7, TimeoutMs: 4000, MaxStepTimeoutMs: 100, MaxMemoryMB: 64, MaxSteps: 50, OnTimeout: "pause", OnInterrupt: "fail"},
		Tags:   []string{"a"}, IsPublic: true, CreatedBy: "me", Workspace: "../src", Concurrency: "queue",
		Budget: sentinels.Budget{Tokens: 1000, CostUSD: 0.25, Calls: 9},
		Inputs: map[string]sentinels.Input{
			"query": {Type: "string"},
			"limit": {Type: "integer", Description: "how many", Default: raw("3"), Enum: []json.RawMessage{raw("1"), raw("3"), raw("9")}},
			"must":  {Required: true},
		},
		Extra: map[string]json.RawMessage{"$schema": raw(`"./schema.json"`)},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
	first := sentinels.Step{Type: "command", ID: "one", Name: "First", Condition: "$iteration < 3", OutputTo: "list",
		OnError: sentinels.OnError{Action: "skip"}, TimeoutMs: 1000, OnInterrupt: "ask",
		Fields: map[string]json.RawMessage{"command": raw(`"data/list"`), "params": raw(`{"b":[1,{"a":1.50,"z":null}],"limit":"$limit"}`)}}
	if diff := cmp.Diff(first, steps[0]); diff != "" {
		t.Errorf("step 0 (-want +got):\n%s", diff)
	}
	retry := sentinels.OnError{Action: "retry", Retry: sentinels.RetryPolicy{MaxRetries: 2, BackoffType: "linear", BaseDelayMs: 5, MaxDelayMs: 9, MaxRetryAfterMs: 60000}}
	if diff := cmp.Diff(retry, steps[1].OnError); diff != "" {
		t.Errorf("onError (-want +got):\n%s", diff)
	}
	if got := string(steps[2].Fields["rules"]); got != `[{"action":"Emit","classification":"error","pattern":"x"}]` {
		t.Errorf("the rules do not have the case of their schema: %s", got)
	}
	blocks := map[string][]sentinels.Step{
		"then": {},
		"else": {{Type: "emit", Fields: map[string]json.RawMessage{"event": raw(`"a:b"`), "data": raw(`{"x":"$lines"}`)}}},
	}
	if diff := cmp.Diff(blocks, steps[3].Blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if len(steps[4].Blocks) != 3 || len(steps[4].Blocks["branches.1"]) != 2 || steps[4].Fields["branches"] != nil {
		t.Errorf("branches: %+v", steps[4])
	}
	if wait := steps[6].Blocks["steps"][0]; wait.TimeoutMs != 0 || string(wait.Fields["timeoutMs"]) != "9" {
		t.Errorf("a type's own timeoutMs is not its field: %+v", wait)
	}
	if got, want := string(steps[7].Fields["definition"]), `{"id":"inner","name":"inner","steps":[{"type":"command","command":"x","outputTo":"q"}],"loop":{"type":"once"}}`; got != want {
		t.Errorf("nested definition\n%s, want\n%s", got, want)
	}
}

func TestDecodeRecipe(t *testing.T) {
	src, err := os.ReadFile("testdata/good/recipe.json")
	if err != nil {
		t.Fatal(err)
	}
	d := decode(t, string(src))
	if d.ID != "pair-review" || d.Recipe != "" || !slices.Equal(d.RAGSources, []string{"chat"}) || d.Loop.Type != sentinels.LoopOnce {
		t.Errorf("id %q, recipe %q, sources %q, loop %q", d.ID, d.Recipe, d.RAGSources, d.Loop.Type)
	}
	if got := d.Steps[2].Condition; got != "$decision.shouldRespond === true" {
		t.Errorf("condition %q", got)
	}
	if diff := cmp.Diff([]string{"code/read", "code/edit"}, d.Tools); diff != "" {
		t.Error(diff)
	}
	if len(d.Extra) != 5 {
		t.Errorf("extra keys: %d, want 5", len(d.Extra))
	}
}

// TestIdentity derives ids and names from each other.
func TestIdentity(t *testing.T) {
	for _, tt := range []struct{ fields, id, name string }{
		{`"name": "Build & Fix!"`, "build-fix", "Build & Fix!"},
		{`"id": "x_1"`, "x_1", "x_1"},
		{`"id": "5f0c", "uniqueId": "human", "name": "N"`, "human", "N"},
		{`"name": "日本"`, "s-d1d1b4b2fbf3", "日本"},
		{`"name": "` + strings.Repeat("ab ", 40) + `"`, strings.TrimRight(strings.Repeat("ab-", 40)[:64], "-"), strings.Repeat("ab ", 40)},
	} {
		d := decode(t, "{"+tt.fields+`, "steps": []}`)
		if strings.HasPrefix(tt.id, "s-") {
			if !strings.HasPrefix(string(d.ID), "s-") || !d.ID.Valid() {
				t.Errorf("%s: id %q", tt.fields, d.ID)
			}
		} else if string(d.ID) != tt.id {
			t.Errorf("%s: id %q, want %q", tt.fields, d.ID, tt.id)
		}
		if d.Name != tt.name || !d.ID.Valid() {
			t.Errorf("%s: name %q, id %q", tt.fields, d.Name, d.ID)
		}
	}
}

// TestBoundsAccepted decodes loops that are bounded, by their type or by a limit.
func TestBoundsAccepted(t *testing.T) {
	for _, fields := range []string{
		`"loop": {"type": "once"}`,
		`"loop": {"type": "count", "max": 3}`,
		`"loop": {"type": "until", "check": "$a"}, "timeoutMs": 1`,
		`"loop": {"type": "while", "check": "$a"}, "safety": {"maxIterations": 1}`,
		`"loop": {"type": "continuous"}, "safety": {"timeoutMs": 1}`,
		`"loop": {"type": "event", "event": "a:**"}, "maxIterations": 1`,
	} {
		decode(t, `{"name": "a", "steps": [], `+fields+`}`)
	}
}

// TestWithoutTypes decodes without types, so that fields are not checked.
func TestWithoutTypes(t *testing.T) {
	d, problems := sentinels.Decode([]byte(`{"name": "a", "steps": [{"type": "quantum", "qubits": [{"b": 1, "a": 2}], "timeoutMs": 5}]}`), sentinels.DecodeOptions{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := []sentinels.Step{{Type: "quantum", TimeoutMs: 5, Fields: map[string]json.RawMessage{"qubits": json.RawMessage(`[{"a":2,"b":1}]`)}}}
	if diff := cmp.Diff(want, d.Steps); diff != "" {
		t.Error(diff)
	}
	// Decoding with types infers the missing type.
	d, problems = sentinels.Decode([]byte(`{"name": "a", "steps": [{"command": "x"}]}`), sentinels.DecodeOptions{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	again, problems := sentinels.Decode(sentinels.Encode(d), options(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if d.Steps[0].Type != "" || again.Steps[0].Type != "command" {
		t.Errorf("types %q without types, %q with them", d.Steps[0].Type, again.Steps[0].Type)
	}
}

func TestDecodeStep(t *testing.T) {
	s, problems := sentinels.DecodeStep([]byte(`{"command":"code/verify","outputTo":"result"}`), options(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := &sentinels.Step{Type: "command", OutputTo: "result", Fields: map[string]json.RawMessage{"command": json.RawMessage(`"code/verify"`)}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	raw, err := json.Marshal(s)
	if err != nil || string(raw) != `{"type":"command","command":"code/verify","outputTo":"result"}` {
		t.Errorf("%s, %v", raw, err)
	}
	_, problems = sentinels.DecodeStep([]byte(`{"comand":"code/verify"}`), options(t))
	if len(problems) != 1 || problems[0].Hint != `did you mean "command" instead of "comand"?` || problems[0].Kind != sentinels.KindMissing {
		t.Errorf("%+v", problems)
	}
}

// TestInferenceOrder infers the first type of several that match.
func TestInferenceOrder(t *testing.T) {
	for src, want := range map[string]sentinels.StepType{
		`{"command": "x", "prompt": "y"}`:            "command",
		`{"if": "$a"}`:                               "condition",
		`{"pipeline": {"steps": []}, "name": "n"}`:   "sentinel",
		`{"type": "shell", "command": "make $what"}`: "shell",
		`{"type": "EMIT", "event": "a"}`:             "emit",
	} {
		s, problems := sentinels.DecodeStep([]byte(src), options(t))
		if src == `{"command": "x", "prompt": "y"}` {
			if len(problems) != 1 || problems[0].Path != "prompt" {
				t.Errorf("%s: %v", src, problems)
			}
			continue
		}
		if len(problems) > 0 || s.Type != want {
			t.Errorf("%s: type %v, want %s; %v", src, s, want, problems)
		}
	}
}

// TestCheckFields validates resolved fields, of which none is deferred.
func TestCheckFields(t *testing.T) {
	set := types(t)
	for _, tt := range []struct{ name, fields, want string }{
		{"llm", `{"prompt":"x","temperature":1}`, ""},
		{"llm", `{"prompt":"x","temperature":"$t"}`, `temperature: is a string ("$t"), want a number`},
		{"loop", `{"steps":{"count":2},"count":1}`, ""},
		{"parallel", `{"branches":{"counts":[1,2]}}`, ""},
		{"sentinel", `{"definition":{"steps":[]}}`, ""},
		{"command", `{}`, `"command" is missing`},
		{"command", `[]`, `check fields of "command": they are not an object`},
	} {
		spec, _ := set.Lookup(sentinels.StepType(tt.name))
		got := ""
		if err := spec.CheckFields(json.RawMessage(tt.fields)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.name, tt.fields, got, tt.want)
		}
	}
}

// TestCheckLargeFields: a large value is checked like a small one, also where it is not decoded for that.
func TestCheckLargeFields(t *testing.T) {
	schema := func(property string) string {
		return `{"type":"object","properties":{"a":` + property + `},"required":["a"],"additionalProperties":false}`
	}
	text, list := `"`+strings.Repeat("x", 20_000)+`"`, `[`+strings.Repeat(`{"b":1},`, 4_000)+`{"b":2}]`
	object := `{` + strings.Repeat(" ", 20_000) + `"c":` + list + `}`
	for _, c := range []struct{ schema, value, want string }{
		{schema(`{}`), text, ""},
		{schema(`{"type":"string"}`), text, ""},
		{schema(`{"type":"string"}`), list, "a: is an array"},
		{schema(`{"type":["string","array"],"description":"x"}`), list, ""},
		{schema(`{"type":"integer"}`), text, "a: is a string"},
		{schema(`{"type":"array"}`), text, "a: is a string"},
		{schema(`{"type":"object","minProperties":1}`), object, ""},
		{schema(`{"type":"object","minProperties":2}`), object, "a: "},
		{schema(`{"type":"object"}`), `{"v":{"value":` + list + `}}`, ""},
		{schema(`{"type":"string","maxLength":9}`), text, "a: "},
		{schema(`{"type":"string","pattern":"^y"}`), text, "a: "},
		{schema(`{"type":"string","enum":["x"]}`), text, "a: "},
		{schema(`{"type":"array","items":{"type":"object","properties":{"b":{"maximum":1}}}}`), list, "a[4000].b: "},
		{schema(`{"type":"object","properties":{"c":{"type":"string"}}}`), `{"c":` + list + `}`, "a.c: "},
		{schema(`{"type":"object","additionalProperties":{"type":"string"}}`), `{"c":` + list + `}`, "a.c: "},
		{`{"type":"object","properties":{"a":{}},"allOf":[{"properties":{"a":{"maxLength":9}}}]}`, text, "a: "},
		{`{"type":"object","properties":{"a":{}},"propertyNames":{"maxLength":0}}`, text, `a`},
	} {
		set, err := sentinels.NewTypeSet([]sentinels.TypeSpec{{Type: "t", Fields: json.RawMessage(c.schema)}})
		if err != nil {
			t.Fatalf("%s: %v", c.schema, err)
		}
		spec, _ := set.Lookup("t")
		err = spec.CheckFields(json.RawMessage(`{"a":` + c.value + `}`))
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s with %.20s: %.300s, want %q", c.schema, c.value, got, c.want)
		}
	}
}

// TestHash compares the hashes of two texts of one definition, and of another.
func TestHash(t *testing.T) {
	a := decode(t, `{"name": "a", "steps": [{"command": "x", "params": {"b": 1, "a": "\u00e4"}}]}`)
	b := decode(t, `{"pipeline": [{"params": {"a": "ä", /* c */ "b": 1,}, "type": "command", "command": "x"}], "name": "a", "loop": {"type": "once"}}`)
	c := decode(t, `{"name": "a", "steps": [{"command": "x", "params": {"b": 2, "a": "ä"}}]}`)
	if a.Hash() != b.Hash() {
		t.Errorf("two texts of one definition differ:\n%s\n%s", sentinels.Encode(a), sentinels.Encode(b))
	}
	if a.Hash() == c.Hash() || len(a.Hash()) != 64 {
		t.Error("two definitions have one hash")
	}
}

// TestUnmarshal checks that json.Unmarshal of a definition is an error.
func TestUnmarshal(t *testing.T) {
	var d sentinels.Definition
	if err := json.Unmarshal([]byte(`{"name": "a"}`), &d); err == nil {
		t.Error("no error")
	}
}

func TestAddresses(t *testing.T) {
	d := decode(t, `{"name": "a", "steps": [
		{"id": "s0", "command": "a"},
		{"branches": [[{"id": "b00", "command": "a"}], [{"id": "b10", "command": "a"}, {"check": "$x", "then": [{"id": "deep", "command": "a"}]}]]},
		{"check": "$x", "then": [{"id": "t0", "command": "a"}], "else": []}]}`)
	before := sentinels.Encode(d)
	for address, id := range map[string]string{"0": "s0", "1.branches.0.0": "b00", "1.branches.1.0": "b10", "1.branches.1.1.then.0": "deep", "2.then.0": "t0"} {
		if s, err := d.StepAt(address); err != nil || s.ID != id {
			t.Errorf("%s: %v, %v; want %s", address, s, err, id)
		}
	}
	for address, want := range map[string]string{
		"3":              `step "3": index 3: the list has 0 to 2`,
		"":               `step "": invalid index ""`,
		"-1":             `step "-1": invalid index "-1"`,
		"00":             `step "00": invalid index "00"`,
		"0.then.0":       `step "0.then.0": the step has no list "then"; its lists: none`,
		"2.than.0":       `step "2.than.0": the step has no list "than"; its lists: "else" and "then"`,
		"2.else.0":       `step "2.else.0": index 0: the list is empty`,
		"9.then.0":       `step "9.then.0": index 9: the list has 0 to 2`,
		"1.branches.5.0": `step "1.branches.5.0": the step has no list "branches"; its lists: "branches.0" and "branches.1"`,
		"2.then":         `step "2.then": invalid index ""`,
	} {
		if _, err := d.StepAt(address); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", address, err, want)
		}
	}

	add := sentinels.Step{Type: "command", ID: "new", Fields: map[string]json.RawMessage{"command": json.RawMessage(`"n"`)}}
	edits := map[string]func() (*sentinels.Definition, error){
		"2.else.0":              func() (*sentinels.Definition, error) { return d.InsertStep("2.else.0", add) },
		"3":                     func() (*sentinels.Definition, error) { return d.InsertStep("3", add) },
		"0":                     func() (*sentinels.Definition, error) { return d.InsertStep("0", add) },
		"1.branches.1.1.then.0": func() (*sentinels.Definition, error) { return d.ReplaceStep("1.branches.1.1.then.0", add) },
	}
	for address, edit := range edits {
		out, err := edit()
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if s, err := out.StepAt(address); err != nil || s.ID != "new" {
			t.Errorf("%s: %v, %v", address, s, err)
		}
		decode(t, string(sentinels.Encode(out)))
	}
	out, err := d.RemoveStep("1.branches.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := out.StepAt("1.branches.1.0"); err != nil || s.Type != "condition" {
		t.Errorf("after removal: %v, %v", s, err)
	}
	if _, err := d.InsertStep("4", add); err == nil {
		t.Error("inserted beyond the end")
	}
	if _, err := d.RemoveStep("3"); err == nil {
		t.Error("removed what is not there")
	}
	if diff := cmp.Diff(string(before), string(sentinels.Encode(d))); diff != "" {
		t.Errorf("an edit changed the original:\n%s", diff)
	}
}

// TestTypeSet checks that every invalid spec is reported.
func TestTypeSet(t *testing.T) {
	spec := func(name, fields string) sentinels.TypeSpec {
		return sentinels.TypeSpec{Type: sentinels.StepType(name), Fields: json.RawMessage(fields)}
	}
	for want, specs := range map[string][]sentinels.TypeSpec{
		"not lower_snake":                   {spec("Bad", `{}`)},
		"duplicate name":                    {spec("a", `{}`), spec("a", `{}`)},
		"fields: ":                          {spec("a", `{`)},
		"is not an object":                  {spec("a", `[]`)},
		`unknown mark magic`:                {spec("a", `{"properties": {"x": {"x-sentinel": "magic"}}}`)},
		`"outputTo" is common to all steps`: {spec("a", `{"properties": {"outputTo": {}}}`)},
		"only references within":            {spec("a", `{"properties": {"x": {"$ref": "file:///etc/passwd"}}}`)},
		`unknown field "y"`:                 {{Type: "a", Infer: []string{"y"}}},
		`"x" cannot stand for "y"`:          {{Type: "a", Aliases: map[string]string{"x": "y"}}},
		"violates the metaschema":           {spec("a", `{"properties": {"x": {"type": 5}}}`)},
	} {
		if _, err := sentinels.NewTypeSet(specs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	set := types(t)
	loop, ok := set.Lookup("loop")
	if !ok {
		t.Fatal("no loop")
	}
	want := []sentinels.FieldMark{{Path: "as", Mark: "variable"}, {Path: "finally", Mark: "steps"}, {Path: "steps", Mark: "steps"}, {Path: "until", Mark: "expression"}, {Path: "while", Mark: "expression"}}
	if diff := cmp.Diff(want, loop.Marks()); diff != "" {
		t.Error(diff)
	}
	if loop.Mark("each") != "" || set.Types()[0] != "command" || len(set.Types()) != 11 {
		t.Errorf("mark %q, types %v", loop.Mark("each"), set.Types())
	}
	var none *sentinels.TypeSet
	if _, ok := none.Lookup("command"); ok || len(none.Types()) != 0 {
		t.Error("a nil set has types")
	}
}

// Specs of another type set are not compiled again.
func TestTypesAreCompiledOnce(t *testing.T) {
	first := types(t)
	var specs []sentinels.TypeSpec
	for _, name := range first.Types() {
		spec, _ := first.Lookup(name)
		again := *spec
		again.Fields = json.RawMessage(`not JSON`) // is not read again
		specs = append(specs, again)
	}
	second, err := sentinels.NewTypeSet(specs)
	if err != nil {
		t.Fatal(err)
	}
	const src = `{"name": "a", "steps": [{"type": "command", "command": "x", "parms": {}}]}`
	_, problems := sentinels.Decode([]byte(src), sentinels.DecodeOptions{Types: second})
	if !strings.Contains(fmt.Sprint(problems), "parms") {
		t.Errorf("the second type set finds %v", problems)
	}
	if _, err := sentinels.NewTypeSet(append(specs, specs[0])); err == nil {
		t.Error("a type is taken twice")
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"timeoutMs", "steps", "code/read", "code/edit", "outputTo"}
	for name, want := range map[string][]string{
		"timeout_ms": {"timeoutMs"}, "setps": {"steps"}, "code-raed": {"code/read"}, "OUTPUTTO": {"outputTo"}, "qqqq": nil, "timeout": {"timeoutMs"},
		strings.Repeat("steps", 99): nil,
	} {
		if diff := cmp.Diff(want, sentinels.Suggest(name, known), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTakesEvent: without a source, the engine's events alone are taken where a sentinel is stored.
func TestTakesEvent(t *testing.T) {
	stored := func(id sentinels.ID) bool { return id == "a" }
	for _, tt := range []struct {
		pattern, name     string
		source            sentinels.EventSource
		ofEngine, ofUsers bool
	}{
		{"git:*", "git:push", "", true, true},
		{"git:*", "git:push", sentinels.SourceEngine, true, true}, // says nothing of other names
		{"sentinel:a:failed", "sentinel:a:failed", "", true, false},
		{"sentinel:a:*", "sentinel:a:ready", "", true, false},
		{"sentinel:a:ready", "sentinel:a:ready", "", true, true}, // no word of the engine
		{"sentinel:a:ended", "sentinel:a:failed", "", true, false},
		{"sentinel:a:ended", "sentinel:a:ended", "", true, false},
		{"sentinel:b:ended", "sentinel:b:failed", "", true, false}, // an end is of a run
		{"sentinel:b:ended", "sentinel:b:ended", "", true, true},
		{"sentinel:b:failed", "sentinel:b:failed", "", true, true},
		{"sentinel:a@0:failed", "sentinel:a@0:failed", "", true, false},
		{"sentinel:*:failed", "sentinel:b:failed", "", true, false},
		{"sentinel:*:failed", "sentinel:a:failed", "", true, false},
		{"sentinel:*:*", "sentinel:a:completed", "", true, false},
		{"sentinel:a:failed sentinel:*:completed", "sentinel:a:failed", "", true, false},
		{"sentinel:*:waiting", "sentinel:a:waiting", sentinels.SourceEngine, true, false},
		{"sentinel:*:ready", "sentinel:b:ready", "", true, true},
		{"sentinel:a:failed sentinel:b:failed", "sentinel:a:failed", "", true, false},
		{"sentinel:a:failed sentinel:b:failed", "sentinel:b:failed", "", true, true},
		{"sentinel:a:failed", "sentinel:a:failed", sentinels.SourceUser, false, true},
		{"sentinel:*:*", "sentinel:a:failed", sentinels.SourceUser, false, true},
		{"sentinel:b:failed", "sentinel:b:failed", sentinels.SourceEngine, true, false},
	} {
		// Of a run with this id that is none of the stored sentinel: what needs attention, for who listens to all sentinels.
		attention := strings.HasPrefix(tt.pattern, "sentinel:*:") && !strings.HasSuffix(tt.name, ":completed")
		ofUnstored := tt.ofEngine && (!strings.HasPrefix(tt.name, "sentinel:a:") || attention)
		for source, want := range map[string]bool{
			sentinels.EngineSource("a"): tt.ofEngine, sentinels.UnstoredSource("r"): ofUnstored, "agent:ci": tt.ofUsers, "sentinel/a": tt.ofUsers,
		} {
			if got := sentinels.TakesEvent(tt.pattern, tt.source, &sentinels.Event{Name: tt.name, Source: source}, stored); got != want {
				t.Errorf("%q with source %q takes %s of %q: %t", tt.pattern, tt.source, tt.name, source, got)
			}
		}
	}
}

func TestMatchEvent(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"git:push", "git:push", true}, {"git:push", "git:pull", false}, {"git:*", "git:push", true}, {"git:*", "git", false},
		{"git:*", "git:push:main", false}, {"git:**", "git:push:main", true}, {"**", "a", true}, {"*:push", "git:push", true},
		{"a git:*", "git:push", true}, {"a b", "git:push", false}, {"**", "sentinel:a:failed", false}, {"sentinel:a:failed sentinel:b:*", "sentinel:b:x", true},
		{"sentinel:a:ended", "sentinel:a:timed_out", true}, {"sentinel:*:ended", "sentinel:a:ended", true}, {"sentinel:a:ended", "sentinel:a:paused", false},
		{"sentinel:a:ended", "sentinel:b:failed", false}, {"x:a:ended", "x:a:failed", false},
		{"git", "git:push", false}, {"git:*:x", "git:a:x", true}, {"git:*:x", "git:a:y", false}, {"git:**", "git", false}, {"*", "", false},
	} {
		if got := sentinels.MatchEvent(tt.pattern, tt.name); got != tt.want {
			t.Errorf("MatchEvent(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
	for pattern, want := range map[string]bool{"a:*:**": true, "": false, "a:**:b": false, "a*": false, "a::b": false, "a b": false, "**": true} {
		if sentinels.ValidPattern(pattern) != want {
			t.Errorf("ValidPattern(%q) = %v", pattern, !want)
		}
	}
}

// TestDecodeMany checks that thousands of problems on one line take a time that is
// proportional to the text.
func TestDecodeMany(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"name": "ä", "steps": []`)
	for i := range 9000 {
		b.WriteString(`, "some_long_unknown_key_` + strconv.Itoa(i) + `": "` + strings.Repeat("x", 60) + `"`)
	}
	b.WriteString("}")
	_, problems := sentinels.Decode([]byte(b.String()), options(t))
	if len(problems) != 9000 {
		t.Fatalf("%d problems", len(problems))
	}
	last := problems[8999]
	if want := strings.Index(b.String(), `"some_long_unknown_key_8999"`); last.Column != want || last.Hint != "" {
		t.Errorf("%+v, want column %d (one character of two bytes before it)", last, want)
	}
}

func BenchmarkDecode(b *testing.B) {
	src, err := os.ReadFile("testdata/spec/1-build-fix-loop.json")
	if err != nil {
		b.Fatal(err)
	}
	opt := options(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := sentinels.Decode(src, opt); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

// TestResolveField resolves the fields of a type with their schemas.
func TestResolveField(t *testing.T) {
	lookup := func(name string) (json.RawMessage, bool) {
		value, ok := map[string]string{"n": `5`, "review": `{"text": "looks \"good\""}`}[name]
		return json.RawMessage(value), ok
	}
	spec, _ := types(t).Lookup("llm")
	if out, _, err := spec.ResolveField("prompt", json.RawMessage(`"$review"`), lookup); err != nil || string(out) != `"looks \"good\""` {
		t.Errorf("%s, %v", out, err)
	}
	if out, _, err := spec.ResolveField("temperature", json.RawMessage(`"$n"`), lookup); err != nil || string(out) != `5` {
		t.Errorf("%s, %v", out, err)
	}
}
