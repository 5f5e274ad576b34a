package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A scriptedHost has the commands and the model of a script, which answer as the
// script says.
type scriptedHost struct {
	// Commands are the responses by name, used in order; the last one is repeated.
	Commands map[string][]response `json:"commands"`
	// Model are the responses of model turns, used the same way. Default "ok".
	Model []response `json:"model"`
	// Recalled selects the response by the length of the conversation instead of the
	// number of turns.
	Recalled bool `json:"recalled"`
	// Output is the quoted limit of a reply in tokens. Default 100.
	Output int64 `json:"output"`
	// Unpriced models have no known price.
	Unpriced bool `json:"unpriced"`

	mu   sync.Mutex
	next map[string]int
	seen []string // calls with their parameters
}

// A response is one answer.
type response struct {
	Result    json.RawMessage      `json:"result"`
	Error     *abi.Error           `json:"error"`
	DelayMs   int64                `json:"delayMs"`
	Hang      bool                 `json:"hang"` // until the call is cancelled
	Big       int                  `json:"big"`  // the result is a text of so many bytes
	Text      string               `json:"text"`
	ToolCalls []sentinels.ToolCall `json:"toolCalls"`
}

func (s *scriptedHost) take(name string, from []response) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = map[string]int{}
	}
	i := min(s.next[name], len(from)-1)
	s.next[name]++
	return from[i]
}

func (r response) play(ctx context.Context) error {
	var timer <-chan time.Time
	if !r.Hang {
		timer = time.After(time.Duration(r.DelayMs) * time.Millisecond)
	}
	select {
	case <-timer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if r.Error != nil {
		return r.Error
	}
	return nil
}

func (s *scriptedHost) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, fmt.Sprintf(format, args...))
}

// happened returns the calls, sorted, because calls of parallel branches have no order.
func (s *scriptedHost) happened() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := append([]string(nil), s.seen...)
	sort.Strings(seen)
	return seen
}

func (s *scriptedHost) Lookup(name string) (runtime.CommandInfo, bool) {
	switch name {
	case "test/echo":
		return runtime.CommandInfo{Name: name, ReadOnly: true}, true
	case "code/shell/execute":
		return runtime.CommandInfo{Name: name, Shell: []string{"command"}}, true
	case "test/note":
		return runtime.CommandInfo{Name: name, InStore: true}, true
	}
	_, ok := s.Commands[name]
	return runtime.CommandInfo{Name: name}, ok
}

func (s *scriptedHost) Tools(patterns []string) []runtime.CommandInfo {
	names := []string{"test/echo"}
	for name := range s.Commands {
		names = append(names, name)
	}
	sort.Strings(names)
	var infos []runtime.CommandInfo
	for _, name := range names {
		for _, p := range patterns {
			if p == "*" || p == name {
				infos = append(infos, runtime.CommandInfo{Name: name})
				break
			}
		}
	}
	return infos
}

// Call answers test/echo with its parameters, code/shell/execute with its line and
// environment, test/note by writing a record, all others from the script.
func (s *scriptedHost) Call(ctx context.Context, c runtime.CommandCall) (json.RawMessage, error) {
	by := ""
	if c.ByModel {
		by = " by model"
	}
	responses := s.Commands[c.Command]
	answer := response{}
	if len(responses) > 0 {
		answer = s.take(c.Command, responses)
	}
	if !answer.Hang { // whether a cancelled call had begun depends on timing
		s.note("%s%s %s", c.Command, by, c.Params)
	}
	if len(responses) > 0 {
		if answer.Big > 0 {
			answer.Result, _ = json.Marshal(strings.Repeat("x", answer.Big))
		}
		return answer.Result, answer.play(ctx)
	}
	switch c.Command {
	case "test/echo":
		return c.Params, nil
	case "code/shell/execute":
		var p struct{ Command string }
		if err := json.Unmarshal(c.Params, &p); err != nil {
			return nil, err
		}
		env := map[string]string{}
		for k, v := range c.Env {
			if strings.HasPrefix(k, "SENTINEL_") && len(k) < 12 {
				env[k] = v
			}
		}
		return json.Marshal(map[string]any{"success": true, "exitCode": 0, "line": p.Command, "env": env})
	case "test/note":
		doc, err := c.Documents.Put(ctx, "notes", c.Path, c.Params, sentinels.AnyRevision)
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{"revision": doc.Revision})
	}
	return nil, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("no command %q", c.Command)}
}

func (s *scriptedHost) Quote(context.Context, sentinels.Turn) (runtime.ModelQuote, error) {
	output := int64(100)
	if s.Output > 0 {
		output = s.Output
	}
	return runtime.ModelQuote{Provider: "fake", Model: "prompter", Priced: !s.Unpriced, OutputUSD: 0.0001,
		Worst: sentinels.Usage{InputTokens: 100, OutputTokens: output, CostUSD: 0.01 + 0.0001*float64(output)}}, nil
}

func (s *scriptedHost) Turn(ctx context.Context, t sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	last := t.Messages[len(t.Messages)-1]
	limit := ""
	if t.MaxTokens > 0 {
		limit = fmt.Sprintf(" to %s with at most %d tokens", t.Model, t.MaxTokens)
	}
	s.note("turn %d %s %q%s", len(t.Messages), last.Role, last.Content, limit)
	answer := response{Text: "ok"}
	switch n := len(s.Model); {
	case n > 0 && s.Recalled:
		answer = s.Model[min(len(t.Messages)/3, n-1)] // prompt, reply, tool result, reply, ...
	case n > 0:
		answer = s.take("", s.Model)
	}
	if err := answer.play(ctx); err != nil {
		return sentinels.Reply{}, err
	}
	delta(answer.Text)
	r := sentinels.Reply{Text: answer.Text, ToolCalls: answer.ToolCalls, Finish: "stop", Provider: "fake", Model: "prompter",
		Usage: sentinels.Usage{InputTokens: 10, OutputTokens: 5, CostUSD: 0.01}}
	if len(r.ToolCalls) > 0 {
		r.Finish = "tools"
	}
	var any map[string]json.RawMessage
	if json.Unmarshal([]byte(r.Text), &any) == nil {
		r.JSON = json.RawMessage(r.Text)
	}
	return r, nil
}
