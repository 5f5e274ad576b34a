package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/config"
)

// Finding 12 of writing sentinels with the binary alone: in models.known and
// models.providers no key was documented, [{}] was accepted, and the unit of prices was a
// guess.
func TestFinding12ModelSettings(t *testing.T) {
	load := func(text string, vars map[string]string) string {
		_, err := config.Load(config.Options{File: file(t, text), Getenv: env(vars)})
		if err == nil {
			return ""
		}
		return err.Error()
	}
	for text, want := range map[string]string{
		"{\"models\": {\n  \"known\": [{}]}}":                                                    `:2:13: models.known[0]: "name" is missing`,
		"{\"models\": {\"providers\": [\n  {}]}}":                                                `:2:3: models.providers[0]: "name" is missing`,
		`{"models": {"known": [{"name": "m", "input": -1}]}}`:                                    `:1:46: models.known[0].input: -1 is negative`,
		`{"models": {"known": [{"name": "m", "cacheRead": -0.5}]}}`:                              `models.known[0].cacheRead: -0.5 is negative`,
		`{"models": {"known": [{"name": "m", "cacheWrite": -1}]}}`:                               `models.known[0].cacheWrite: -1 is negative`,
		`{"models": {"known": [{"name": "m", "long": {"above": -1, "input": 1, "output": 1}}]}}`: `models.known[0].long.above: -1 is negative`,
		`{"models": {"known": [{"name": "m", "long": {"above": 9, "input": 1, "output": -2}}]}}`: `models.known[0].long.output: -2 is negative`,
		`{"models": {"known": [{"name": "m", "long": {"above": 9}}]}}`:                           `models.known[0].long: "input" is missing`,
		`{"models": {"known": [{"name": "m", "inputPrice": 1}]}}`:                                `models.known[0].inputPrice: unknown key "inputPrice", did you mean "input"?; known: cacheRead, cacheWrite, charsPerToken, context, date, input, long,`,
		`{"models": {"known": [{"name": "m", "context": 1.5}]}}`:                                 `models.known[0].context: want an integer, got a number`,
		`{"models": {"known": [{"name": "m", "noTools": "yes"}]}}`:                               `models.known[0].noTools: want a boolean, got a string`,
		`{"models": {"known": {"name": "m"}}}`:                                                   `:1:22: models.known: want an array, got an object`,
		`{"models": {"known": ["gpt"]}}`:                                                         `models.known[0]: want an object, got a string`,
		`{"models": {"providers": [{"name": "a", "kind": "gemini", "baseUrl": "http://h"}]}}`:    `models.providers[0].kind: "gemini" is none of openai, anthropic`,
		`{"models": {"providers": [{"name": "a", "tools": "some", "baseUrl": "http://h"}]}}`:     `models.providers[0].tools: "some" is none of auto, native, text`,
		`{"models": {"providers": [{"name": "a", "headers": {"X": 1}, "baseUrl": "http://h"}]}}`: `models.providers[0].headers.X: want a string, got an integer`,
		// What only a start found.
		`{"models": {"providers": [{"name": "lab"}]}}`:                                                            `:1:27: models.providers[0]: provider "lab": base URL "" is no http or https address`,
		`{"models": {"providers": [{"name": "a/b", "baseUrl": "http://h"}]}}`:                                     `models.providers[0].name: provider "a/b": a name has neither spaces nor slashes`,
		`{"models": {"providers": [{"name": "a", "baseUrl": "http://h"}, {"name": "a", "baseUrl": "http://h"}]}}`: `models.providers[1]: provider "a": configured twice`,
		`{"models": {"default": "acme/m"}}`:                                                                       `:1:24: models.default: model "acme/m": unknown provider "acme"`,
	} {
		if got := load(text, nil); !strings.Contains(got, want) || !strings.Contains(got, "config.json:") {
			t.Errorf("%s:\n%s\nwant %s", text, got, want)
		}
	}
	if got := load(`{}`, map[string]string{"SENTINEL_MODELS_KNOWN": `[{"name": ""}]`}); !strings.Contains(got, "SENTINEL_MODELS_KNOWN: [0].name: is empty") {
		t.Errorf("from the environment: %s", got)
	}
	if got := load(`{"models": {"known": [{}, {"name": 1}, {"x": 1}]}}`, nil); strings.Count(got, "models.known[") != 4 {
		t.Errorf("not all problems: %s", got)
	}
	good := `{"models": {"default": "lab/m", "providers": [{"name": "lab", "baseUrl": "http://h/v1", "local": true, "headers": {"X": "y"}}],
		"known": [{"provider": "lab", "name": "m", "input": 1.5, "output": 2, "context": 128000, "long": {"above": 1000, "input": 3, "output": 4}}]}}`
	if got := load(good, nil); got != "" {
		t.Error(got)
	}

	type schema struct {
		Text       string            `json:"description"`
		Required   []string          `json:"required"`
		Properties map[string]schema `json:"properties"`
		Items      *schema           `json:"items"`
	}
	var root schema
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"known", "providers"} {
		item := root.Properties["models"].Properties[key].Items
		if item == nil || strings.Join(item.Required, " ") != "name" || len(item.Properties) < 8 {
			t.Fatalf("%s: %+v", key, item)
		}
		for name, p := range item.Properties {
			if p.Text == "" {
				t.Errorf("%s.%s has no meaning", key, name)
			}
		}
	}
	prices := root.Properties["models"].Properties["known"].Items.Properties
	for _, p := range []schema{prices["input"], prices["cacheWrite"], prices["long"].Properties["output"]} {
		if !strings.Contains(p.Text, "US dollars per million tokens") {
			t.Errorf("a price without its unit: %q", p.Text)
		}
	}
}

// TestServersOfModels reads a row of the table of model servers, with what is in its lists.
func TestServersOfModels(t *testing.T) {
	for text, want := range map[string]string{
		`{"models": {"servers": [{"name": "a", "hosts": ["x.example"], "finish": {"x": "stop"}, "call": {"a": {"b": 1}}, "rules": [{"class": "refused", "status": [400], "words": "no"}]}]}}`: "",
		`{"models": {"servers": [{"name": "a", "hosts": "x"}]}}`:                               "models.servers[0].hosts: want an array, got a string",
		`{"models": {"servers": [{"name": "a", "rules": [{"class": "slow"}]}]}}`:               `unknown class "slow"`,
		`{"models": {"servers": [{"name": "a", "rules": [{"klass": "refused"}]}]}}`:            `unknown key "klass"`,
		`{"models": {"servers": [{"name": "a", "rules": [{"class":"refused","words":"("}]}]}}`: "models.servers[0].rules[0].words",
	} {
		l, err := config.Load(config.Options{File: file(t, text), Getenv: env(nil)})
		switch {
		case want == "" && (err != nil || len(l.Models.Servers) != 1):
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
