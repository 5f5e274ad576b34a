package llm_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/llm/cassette"
	"github.com/sentinel-runtime/sentinel/host/llm/llmtest"
	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// standIn returns the stand-in for a provider and Models that are configured for it as the page of
// models says, with a price, and with the reports of the turns.
func standIn(t *testing.T, spec llmtest.Spec) (*llmtest.Server, *llm.Models, *[]llm.Report) {
	t.Helper()
	s, reports := llmtest.New(spec), &[]llm.Report{}
	p := llm.Provider{Name: "p", BaseURL: spec.Base, Key: key}
	switch spec.Protocol {
	case llmtest.Messages:
		p.Kind = llm.KindAnthropic
	case llmtest.Responses:
		p.Protocol = llm.ProtocolResponses
	default:
		p.Protocol = llm.ProtocolChat
	}
	return s, open(t, llm.Config{
		Env: env(), Default: "p/" + llmtest.Model, Providers: []llm.Provider{p}, HTTPClient: s.Client(),
		Models:  []llm.Model{{Provider: "p", Name: llmtest.Model, Input: 1, Output: 10}},
		Observe: func(_ context.Context, r llm.Report) { *reports = append(*reports, r) },
	}), reports
}

// tasks are executed with the stand-in of each provider.
var tasks = []struct {
	name string
	run  func(*testing.T, *llmtest.Server, *llm.Models, *[]llm.Report)
}{
	{"text", taskText}, {"tools", taskTools}, {"parallel tools", taskParallel}, {"structured output", taskSchema}, {"long output", taskLong},
	{"thinking with tools", taskThinking}, {"overflow", taskOverflow}, {"rate limit", taskRateLimit}, {"cut stream", taskCut}, {"cancel", taskCancel},
	{"budget", taskBudget}, {"replay", taskReplay}, {"errors", taskErrors}, {"moved from another model", taskMoved},
}

// TestProviders executes the same tasks with a stand-in for each provider, which refuses what the
// real one refuses.
func TestProviders(t *testing.T) {
	for _, spec := range llmtest.Specs() {
		t.Run(spec.String(), func(t *testing.T) {
			for _, task := range tasks {
				t.Run(task.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s, m, reports := standIn(t, spec)
						task.run(t, s, m, reports)
						for _, r := range s.Requests() {
							if t.Failed() {
								t.Logf("%d: %s", r.Status, r.Body)
							}
						}
					})
				})
			}
		})
	}
}

// TestEachProviderHasAStandIn: one for each row of the table, each with its sources, and
// the page for users says which have not been compared with the real server.
func TestEachProviderHasAStandIn(t *testing.T) {
	have, tried := map[string]bool{}, map[string]bool{}
	for _, s := range llmtest.Specs() {
		have[s.Name] = true
		if s.Tried != "" {
			tried[s.Name] = true
		}
		if s.Row().Name == "" {
			t.Errorf("%s has no row", s)
		}
		if row := providers.Of(s.Base, llmtest.Model); len(row.Hosts) > 0 && row.Name != s.Name {
			t.Errorf("%s: its base URL is that of %q", s, row.Name)
		}
		for _, source := range s.Source {
			if !strings.HasPrefix(source, "https://") {
				t.Errorf("%s: source %q", s, source)
			}
		}
		if len(s.Source) == 0 {
			t.Errorf("%s has no source", s)
		}
	}
	page, err := os.ReadFile("../cli/help/topics/models.md")
	if err != nil {
		t.Fatal(err)
	}
	untried := "all of them"
	if len(tried) > 0 {
		untried = strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(have)), func(name string) bool { return tried[name] }), ", ")
	}
	if want := "Not tried with the server itself: " + untried + "."; !strings.Contains(string(page), want) {
		t.Errorf("the page of models does not say %q", want)
	}
	for _, row := range providers.Rows() {
		if !have[row.Name] && row.Name != "copilot" { // it is not for other programs
			t.Errorf("no stand-in for %s", row.Name)
		}
	}
}

func said(t *testing.T, m *llm.Models, turn sentinels.Turn) sentinels.Reply {
	t.Helper()
	reply, err := m.Turn(t.Context(), turn, nil)
	if err != nil {
		e := asError(t, err)
		t.Fatalf("%s: %s\n%s", e.Code, e.Message, e.Hint)
	}
	return reply
}

func wantThought(t *testing.T, s *llmtest.Server, r sentinels.Reply) {
	t.Helper()
	want := llmtest.Thought
	if s.Thinking == "" || s.Thinking == "call" {
		want = ""
	}
	if r.Reasoning != want || strings.Contains(r.Text, llmtest.Thought) {
		t.Errorf("reasoning %q, text %q; want the reasoning %q", r.Reasoning, r.Text, want)
	}
}

func taskText(t *testing.T, s *llmtest.Server, m *llm.Models, reports *[]llm.Report) {
	temperature := 0.5
	turn := ask(llmtest.Text)
	turn.Temperature = &temperature
	reply := said(t, m, turn)
	if reply.Text != llmtest.Hello || reply.Finish != "stop" || len(reply.ToolCalls) > 0 || (*reports)[0].Served == "" {
		t.Errorf("%+v, %+v", reply, *reports)
	}
	wantThought(t, s, reply)
	if reply = said(t, m, again(turn, reply)); reply.Text != llmtest.Done {
		t.Errorf("the second turn: %+v", reply)
	}
	// What the first turn has learned is not learned again.
	refused := 0
	for _, r := range s.Requests() {
		if r.Status != 200 {
			refused++
		}
	}
	before := len(s.Requests())
	if said(t, m, turn); len(s.Requests()) != before+1 || refused > 3 {
		t.Errorf("%d requests for one turn, %d refused before", len(s.Requests())-before, refused)
	}
}

func taskTools(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	turn := withTools(ask(llmtest.Tools), "code/read")
	reply := said(t, m, turn)
	if len(reply.ToolCalls) != 1 || reply.ToolCalls[0].Name != "code/read" || !strings.Contains(string(reply.ToolCalls[0].Arguments), "a<b>.txt") || reply.Finish != "tools" || reply.Text != "" {
		t.Fatalf("%+v", reply)
	}
	turn = again(turn, reply)
	if reply = said(t, m, turn); reply.Text != llmtest.Done || reply.Finish != "stop" {
		t.Errorf("%+v", reply)
	}
	turn = again(turn, reply)
	turn.Tools = nil // a later part of the conversation offers none
	if reply = said(t, m, turn); reply.Text != llmtest.Done {
		t.Errorf("without tools: %+v", reply)
	}
}

func taskParallel(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	turn := withTools(ask(llmtest.Parallel), "code/read")
	reply := said(t, m, turn)
	if len(reply.ToolCalls) != 2 || reply.ToolCalls[0].ID == reply.ToolCalls[1].ID || !strings.Contains(string(reply.ToolCalls[1].Arguments), "c.txt") {
		t.Fatalf("%+v", reply)
	}
	if reply = said(t, m, again(turn, reply)); reply.Text != llmtest.Done {
		t.Errorf("%+v", reply)
	}
}

func taskSchema(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	turn := ask(llmtest.Schema)
	turn.Schema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	reply := said(t, m, turn)
	if string(reply.JSON) != llmtest.Object || len(reply.Problems) > 0 {
		t.Errorf("%+v", reply)
	}
	wantThought(t, s, reply)
}

func taskLong(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	turn := ask(llmtest.Long)
	turn.MaxTokens = 2500
	got := 0
	reply, err := m.Turn(t.Context(), turn, func(text string) { got += len(text) })
	if err != nil || reply.Finish != "length" || len(reply.Text) < 9000 || got < len(reply.Text) {
		t.Errorf("%v, finish %q, %d bytes, %d streamed", err, reply.Finish, len(reply.Text), got)
	}
	if last := s.Requests()[len(s.Requests())-1]; last.Limit != turn.MaxTokens {
		t.Errorf("the limit was %d", last.Limit)
	}
}

func taskThinking(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	turn := withTools(ask(llmtest.Tools+" and think"), "code/read")
	for round := range 3 {
		reply := said(t, m, turn)
		wantThought(t, s, reply)
		if round == 0 != (len(reply.ToolCalls) == 1) {
			t.Fatalf("round %d: %+v", round, reply)
		}
		raw, err := json.Marshal(reply) // as a journal keeps it
		if err != nil {
			t.Fatal(err)
		}
		kept := sentinels.Reply{}
		if err := json.Unmarshal(raw, &kept); err != nil {
			t.Fatal(err)
		}
		turn = again(turn, kept)
	}
}

func taskOverflow(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	_, err := m.Turn(t.Context(), ask(llmtest.Text+strings.Repeat(" word", 8000)), nil)
	if e := asError(t, err); e.Code != abi.Limit || !e.Permanent || e.Field != "append" || e.Hint == "" {
		t.Errorf("%+v", e)
	}
	said(t, m, ask(llmtest.Text))
}

func taskRateLimit(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	for _, class := range []providers.Class{providers.RateLimit, providers.Overloaded} {
		f := s.Errors[class]
		if f == nil {
			continue
		}
		said(t, m, ask(llmtest.Text)) // so that all it refuses of a request is known
		s.Next(string(class))
		_, err := m.Turn(t.Context(), ask(llmtest.Text), nil)
		e := asError(t, err)
		if e.Code != abi.Unavailable || e.Permanent || e.RetryAfterMs != f.WaitMs {
			t.Errorf("%s: %+v, want a wait of %d ms", class, e, f.WaitMs)
		}
		started := time.Now()
		said(t, m, ask(llmtest.Text))
		if waited := time.Since(started); class == providers.RateLimit && waited < time.Duration(f.WaitMs)*time.Millisecond {
			t.Errorf("the next turn has waited %s, and the server has asked for %d ms", waited, f.WaitMs)
		}
	}
}

func taskCut(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	said(t, m, ask(llmtest.Text))
	ends := []string{"cut"}
	if s.Stream.Body != nil {
		ends = append(ends, "stream")
	}
	for _, end := range ends {
		s.Next(end)
		reply, err := m.Turn(t.Context(), ask(llmtest.Text), nil)
		if e := asError(t, err); e.Code != abi.Unavailable || e.Permanent || reply.Text != "" || reply.Usage.InputTokens == 0 {
			t.Errorf("%s: %+v, %+v", end, e, reply)
		}
		if reply = said(t, m, ask(llmtest.Text)); reply.Text != llmtest.Hello {
			t.Errorf("behind it: %+v", reply)
		}
	}
}

func taskCancel(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	said(t, m, ask(llmtest.Text))
	s.Next("hang")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-s.Hangs()
		cancel()
	}()
	if _, err := m.Turn(ctx, ask(llmtest.Text), nil); abi.CodeOf(err) != abi.Cancelled {
		t.Errorf("%v", err)
	}
	<-s.Gone()
}

func taskBudget(t *testing.T, s *llmtest.Server, m *llm.Models, reports *[]llm.Report) {
	turn := ask(llmtest.Text + strings.Repeat(" word", 400))
	turn.MaxTokens = 1000
	quote, err := m.Quote(t.Context(), turn)
	if err != nil || !quote.Priced {
		t.Fatalf("%+v, %v", quote, err)
	}
	reply := said(t, m, turn)
	last, report := s.Requests()[len(s.Requests())-1], (*reports)[len(*reports)-1]
	u := reply.Usage
	if last.Limit != quote.Worst.OutputTokens {
		t.Errorf("the quote is of %d tokens of output, the request allows %d", quote.Worst.OutputTokens, last.Limit)
	}
	if s.Usage == "none" != report.Estimated || !report.Estimated && (u.InputTokens != last.Input || u.OutputTokens != last.Output) {
		t.Errorf("counted %+v, estimated %t; the server has counted %d and %d", u, report.Estimated, last.Input, last.Output)
	}
	if u.InputTokens < last.Input/2 || u.OutputTokens < last.Output/2 || u.CostUSD <= 0 || u.CostUSD > quote.Worst.CostUSD {
		t.Errorf("counted %+v of at most %+v", u, quote.Worst)
	}
}

func taskReplay(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	recorder, err := cassette.Record(file, m, cassette.RecordOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var live []sentinels.Reply
	turn := withTools(ask(llmtest.Tools), "code/read")
	for range 2 {
		reply, err := recorder.Turn(t.Context(), turn, nil)
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, reply)
		turn = again(turn, reply)
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	asked := len(s.Requests())
	player, err := cassette.Open(file, cassette.PlayOptions{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	turn = withTools(ask(llmtest.Tools), "code/read")
	for i, want := range live {
		got, err := player.Turn(t.Context(), turn, nil)
		if err != nil {
			t.Fatal(err)
		}
		want.Provider = cassette.Provider
		wanted, _ := json.Marshal(want)
		if played, _ := json.Marshal(got); string(played) != string(wanted) {
			t.Errorf("turn %d: played\n%s\nrecorded\n%s", i, played, wanted)
		}
		turn = again(turn, got)
	}
	if len(s.Requests()) != asked {
		t.Error("the server was asked again")
	}
}

// taskErrors has what the provider says of the other faults.
func taskErrors(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	said(t, m, ask(llmtest.Text))
	for class, want := range map[providers.Class]struct {
		code      abi.Code
		permanent bool
		hint      string
	}{
		providers.NoCredit: {abi.Denied, true, "credit"}, providers.Refused: {abi.Denied, true, "policy"}, providers.BrokenCall: {abi.Unavailable, false, "calls tools better"},
	} {
		if s.Errors[class] == nil {
			continue
		}
		s.Next(string(class))
		_, err := m.Turn(t.Context(), ask(llmtest.Text), nil)
		if e := asError(t, err); e.Code != want.code || e.Permanent != want.permanent || !strings.Contains(e.Hint, want.hint) || strings.Contains(e.Message, `{"`) {
			t.Errorf("%s: %+v", class, e)
		}
	}
	for reason, class := range s.Ends {
		s.Next("end:" + reason)
		_, err := m.Turn(t.Context(), ask(llmtest.Text), nil)
		if e := asError(t, err); (e.Code == abi.Denied) != (class == providers.Refused) || e.Permanent != (class == providers.Refused) {
			t.Errorf("%s: %+v", reason, e)
		}
	}
	if s.Errors[providers.NoTools] != nil {
		s.Next(string(providers.NoTools))
		reply := said(t, m, withTools(ask(llmtest.Tools), "code/read"))
		if len(reply.ToolCalls) != 1 {
			t.Errorf("calls in the text: %+v", reply)
		}
	}
}

// taskMoved continues a conversation that another model has begun, as a fallback does.
func taskMoved(t *testing.T, s *llmtest.Server, m *llm.Models, _ *[]llm.Report) {
	turn := again(withTools(ask(llmtest.Text), "code/read"), sentinels.Reply{
		Text:      "from another model",
		ToolCalls: []sentinels.ToolCall{{ID: "call_" + strings.Repeat("x", 24), Name: "code/read", Arguments: json.RawMessage(`{"path":"x"}`)}, {ID: "functions.code_read:1", Name: "code/read", Arguments: json.RawMessage(`{}`)}},
		Said:      &sentinels.Said{Provider: "other", Protocol: "openai", Message: `{"role":"assistant","content":"from another model","vendor":1}`},
	})
	reply := said(t, m, turn)
	if reply.Text != llmtest.Done {
		t.Errorf("%+v", reply)
	}
	said(t, m, again(turn, reply))
	if slices.ContainsFunc(s.Requests(), func(r llmtest.Request) bool { return strings.Contains(r.Body, "vendor") }) {
		t.Error("what the other provider has added was sent")
	}
}
