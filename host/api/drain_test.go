package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// TestSearchesEndAtDrain: a search that is under way when the server begins to stop ends, one
// that comes later too, and another command is completed (G16).
func TestSearchesEndAtDrain(t *testing.T) {
	began, hold := make(chan struct{}, 10), make(chan struct{})
	work := func(ctx context.Context, _ *command.Call) (json.RawMessage, error) {
		began <- struct{}{}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-hold:
			return json.RawMessage(`{}`), nil
		}
	}
	r := commands(t, map[string]any{"code/write": work})
	if err := r.Add(command.NewDynamic("code/search", "A fake.", nil, nil, command.Options{Effect: command.Reads, Search: true}, work)); err != nil {
		t.Fatal(err)
	}
	s := open(t, api.Options{Tokens: kindTokens{}, Commands: r})
	send := func(name string) <-chan answer {
		got := make(chan answer, 1)
		go func() { got <- s.as("person-ann", "POST", "/v1/commands/"+name, "{}") }()
		<-began
		return got
	}
	search, other := send("code/search"), send("code/write")
	s.api.Drain()
	// One that comes now may be refused before it begins.
	for _, got := range []answer{<-search, s.as("person-ann", "POST", "/v1/commands/code/search", "{}")} {
		if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "the server is stopping") {
			t.Errorf("a search: %d %s", got.status, got.body)
		}
	}
	close(hold)
	if got := <-other; got.status != http.StatusOK {
		t.Errorf("another command: %d %s", got.status, got.body)
	}
}
