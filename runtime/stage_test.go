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

// A stage is the outside of a script: commands and a model that answer as the
// script says.
type stage struct {
	// Commands answers by name, one answer after the other; the last one stays.
	Commands map[string][]cue `json:"commands"`
	// Model answers turn by turn in the same way. Without it every turn is "ok".
	Model []cue `json:"model"`
	// Recalled answers depend on how far the conversation is, not on how many
	// turns were made.
	Recalled bool `json:"recalled"`
	// Unpriced models have no known price.
	Unpriced bool `json:"unpriced"`

	mu   sync.Mutex
	next map[string]int
	seen []string // what was called, with its parameters
}

// A cue is one answer.
type cue struct {
	Result    json.RawMessage      `json:"result"`
	Error     *abi.Error           `json:"error"`
	DelayMs   int64                `json:"delayMs"`
	Hang      bool                 `json:"hang"` // until the call is cancelled
	Big       int                  `json:"big"`  // the result is a text of so many bytes
	Text      string               `json:"text"`
	ToolCalls []sentinels.ToolCall `json:"toolCalls"`
}

func (s *stage) take(name string, from []cue) cue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = map[string]int{}
	}
	i := min(s.next[name], len(from)-1)
	s.next[name]++
	return from[i]
}

func (c cue) play(ctx context.Context) error {
	var timer <-chan time.Time
	if !c.Hang {
		timer = time.After(time.Duration(c.DelayMs) * time.Millisecond)
	}
	select {
	case <-timer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.Error != nil {
		return c.Error
	}
	return nil
}

func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, fmt.Sprintf(format, args...))
}

// happened is what was called. Calls of parallel branches have no order, so
// there is none.
func (s *stage) happened() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := append([]string(nil), s.seen...)
	sort.Strings(seen)
	return seen
}

func (s *stage) Lookup(name string) (runtime.CommandInfo, bool) {
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

func (s *stage) Tools(patterns []string) []runtime.CommandInfo {
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

// Call answers test/echo with its parameters, code/shell/execute with what it
// was given, test/note by writing a record, all others as the script says.
func (s *stage) Call(ctx context.Context, c runtime.CommandCall) (json.RawMessage, error) {
	by := ""
	if c.ByModel {
		by = " by model"
	}
	cues := s.Commands[c.Command]
	cue := cue{}
	if len(cues) > 0 {
		cue = s.take(c.Command, cues)
	}
	if !cue.Hang { // whether a call that is cancelled had begun is chance
		s.note("%s%s %s", c.Command, by, c.Params)
	}
	if len(cues) > 0 {
		if cue.Big > 0 {
			cue.Result, _ = json.Marshal(strings.Repeat("x", cue.Big))
		}
		return cue.Result, cue.play(ctx)
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

func (s *stage) Quote(context.Context, sentinels.Turn) (runtime.ModelQuote, error) {
	return runtime.ModelQuote{Provider: "stage", Model: "prompter", Priced: !s.Unpriced,
		Worst: sentinels.Usage{InputTokens: 100, OutputTokens: 100, CostUSD: 0.02}}, nil
}

func (s *stage) Turn(ctx context.Context, t sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	last := t.Messages[len(t.Messages)-1]
	s.note("turn %d %s %q", len(t.Messages), last.Role, last.Content)
	answer := cue{Text: "ok"}
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
	r := sentinels.Reply{Text: answer.Text, ToolCalls: answer.ToolCalls, Finish: "stop", Provider: "stage", Model: "prompter",
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
