package standard_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// TestOptionsHaveEffects: an option that has no effect beside the other options of a
// trigger is an error or a warning, and every option is looked at here.
func TestOptionsHaveEffects(t *testing.T) {
	bases := map[string]string{
		"schedule": `{"type":"schedule","cronExpression":"0 9 * * *"`, "event": `{"type":"event","event":"a:b"`, "immediate": `{"type":"immediate"`,
		"file": `{"type":"file","paths":["*"]`, "webhook": `{"type":"webhook","secretEnv":"S"`, "manual": `{"type":"manual"`,
	}
	// What each option needs beside the base, "" for nothing, and what takes its effect.
	options := map[string]struct{ value, needs, without string }{
		"filter": {`"true"`, "", ""}, "debounceMs": {"5", "", ""}, "maxWaitMs": {"50", `"debounceMs":5`, "-"}, "allowConcurrent": {"true", "", ""},
		"maxRuns": {"3", "", ""}, "until": {`"2100-01-01T00:00:00Z"`, "", ""},
		"schedule.timeZone": {`"Asia/Tokyo"`, "", `"cronExpression":"@every 5m"`}, "schedule.catchUp": {`"all"`, "", ""},
		"schedule.catchUpWindowMs": {"60000", "", `"catchUp":"none"`}, "schedule.jitterMs": {"5", "", ""},
		"schedule.expectWithinMs": {"60000", "", `"jitterMs":60000`}, "schedule.expect": {`"completed"`, `"expectWithinMs":60000`, "-"},
		"immediate.on": {`"edit"`, "", ""}, "event.source": {`"user"`, `"event":"sentinel:a:b"`, "-"},
		"file.paths": {`["a"]`, "", ""}, "file.ignore": {`["b"]`, "", ""}, "file.on": {`["created"]`, "", ""}, "file.settleMs": {"5", "", ""}, "file.ignoreOwn": {"false", "", ""},
		"webhook.secretEnv": {`"T"`, "", `"auth":"none","insecure":true`}, "webhook.auth": {`"token"`, "", `"insecure":true`}, "webhook.insecure": {"false", "", ""},
		"webhook.signatureHeader": {`"X-S"`, "", `"auth":"token"`}, "webhook.tokenHeader": {`"X-T"`, `"auth":"token"`, "-"}, "webhook.methods": {`["PUT"]`, "", ""},
		"webhook.event": {`"e"`, "", ""}, "webhook.eventHeader": {`"X-E"`, "", ""}, "webhook.idempotencyHeader": {`"X-I"`, "", ""},
		"webhook.replayWindowMs": {"5", "", `"auth":"token"`},
	}
	set := standard.Set()
	check := func(text string) (problems []string) {
		t.Helper()
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		opt := sentinels.DecodeOptions{Triggers: set.Formats(), CheckTrigger: set.Check}
		for _, p := range sentinels.Inspect(fmt.Appendf(nil, `{"name":"a","trigger":%s,"steps":[]}`, text), opt).Problems {
			if strings.HasPrefix(p.Path, "trigger") {
				problems = append(problems, p.String())
			}
		}
		return problems
	}
	for _, kind := range set.Formats() {
		base, known := bases[kind.Name]
		if !known {
			t.Errorf("no trigger of kind %q", kind.Name)
			continue
		}
		for _, o := range append(kind.Options, triggers.OptionsOf(triggers.Common{})...) {
			row, known := options[kind.Name+"."+o.Name]
			if !known {
				row, known = options[o.Name]
			}
			if !known {
				t.Errorf("%s: the effect of %q is not known", kind.Name, o.Name)
				continue
			}
			with := func(more string) string {
				var members map[string]json.RawMessage
				text := base + `,"` + o.Name + `":` + row.value + "}"
				if err := json.Unmarshal([]byte(text), &members); err != nil {
					t.Fatal(err)
				}
				if more != "" {
					if err := json.Unmarshal([]byte("{"+more+"}"), &members); err != nil {
						t.Fatal(err)
					}
				}
				b, err := json.Marshal(members)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			if text := with(row.needs); (len(check(text)) > 0) != (kind.Name == "manual") { // which never fires
				t.Errorf("%s: %v", text, check(text))
			}
			if row.without != "" {
				if text := with(strings.TrimPrefix(row.without, "-")); len(check(text)) == 0 {
					t.Errorf("%s: %q has no effect and no problem", text, o.Name)
				}
			}
		}
	}
}
