package llm_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestRowsOfTheConfiguration: a row of the configuration says what the errors and finish reasons of a
// server mean, and a row with the name of a built-in one changes that.
func TestRowsOfTheConfiguration(t *testing.T) {
	var rows []providers.Row
	err := json.Unmarshal([]byte(`[
		{"name": "mine", "hosts": ["llm.example.com"], "finish": {"zensiert": "refused"}, "call": {"extra": 1}, "completionTokens": true,
			"rules": [{"class": "overloaded", "status": [418], "words": "kaffeepause"}]},
		{"name": "deepseek", "rules": [{"class": "rate_limit", "status": [400], "words": "too fast"}]}]`), &rows)
	if err != nil {
		t.Fatal(err)
	}
	with := func(base string, answer http.HandlerFunc) (*fake, error) {
		f := newFake(t, answer)
		_, err := known(t, f, base, func(c *llm.Config) { c.Servers = rows }).Turn(t.Context(), ask("x"), nil)
		return f, err
	}
	f, err := with("https://llm.example.com/v1", status(418, `{"error":{"message":"Kaffeepause bis drei"}}`))
	if e := asError(t, err); e.Code != abi.Unavailable || e.Permanent {
		t.Errorf("%+v", e)
	}
	if body := f.turns()[0].body; body["max_completion_tokens"] == nil || body["max_tokens"] != nil {
		t.Errorf("sent %v", body)
	}
	if _, err := with("https://llm.example.com/v1", deltas("zensiert", `{"content":"half"}`)); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a finish reason of the configuration: %v", err)
	}
	if _, err := with("https://api.deepseek.com", status(400, `{"error":{"message":"you are too fast"}}`)); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("a rule for a built-in row: %v", err)
	}
	if _, err := with("https://api.deepseek.com", status(402, `{"error":{"message":"Insufficient Balance"}}`)); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a built-in rule of a changed row: %v", err)
	}
	if _, err := with("https://other.example.com/v1", status(418, `{"error":{"message":"Kaffeepause"}}`)); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("rules of all rows hold for an unknown server, such as a gateway: %v", err)
	}
}

// TestWrongRows: a mistake in a row has its place.
func TestWrongRows(t *testing.T) {
	for text, want := range map[string]string{
		`[{}]`: "[0].name",
		`[{"name":"a","rules":[{"class":"slow"}]}]`:                                                 "[0].rules[0].class",
		`[{"name":"a"},{"name":"b","rules":[{"class":"refused"},{"class":"refused","words":"("}]}]`: "[1].rules[1].words",
		`[{"name":"a","finish":{"x":"rate_limit"}}]`:                                                "[0].finish.x",
		`[{"name":"a","protocol":"grpc"}]`:                                                          "[0].protocol",
	} {
		var rows []providers.Row
		if err := json.Unmarshal([]byte(text), &rows); err != nil {
			t.Fatal(err)
		}
		_, err := llm.Open(llm.Config{Env: env(), Servers: rows})
		var wrong *llm.Mistake
		if !errors.As(err, &wrong) || wrong.Key != "servers" || wrong.Path != want || !strings.Contains(wrong.Text, "row ") {
			t.Errorf("%s: %+v, %v", text, wrong, err)
		}
	}
}
