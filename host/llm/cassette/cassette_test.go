package cassette_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/llm/cassette"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// echo answers with what it was asked last.
type echo struct {
	answer func(sentinels.Turn) (sentinels.Reply, error)
}

func (e echo) Quote(context.Context, sentinels.Turn) (llm.Quote, error) {
	return llm.Quote{Provider: "echo", Model: "m", Priced: true}, nil
}

func (e echo) Turn(_ context.Context, turn sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	if e.answer != nil {
		return e.answer(turn)
	}
	text := "re: " + turn.Messages[len(turn.Messages)-1].Content
	if delta != nil {
		delta(text)
	}
	return sentinels.Reply{
		Text: text, ToolCalls: []sentinels.ToolCall{}, Finish: "stop", Provider: "echo", Model: "m",
		Usage: sentinels.Usage{InputTokens: 3, OutputTokens: 4, CostUSD: 0.5, Calls: 1},
	}, nil
}

func ask(text string) sentinels.Turn {
	return sentinels.Turn{Model: "auto", Messages: []sentinels.Message{{Role: "user", Content: text}}}
}

// record makes the turns and returns the cassette's file.
func record(t *testing.T, models cassette.Models, o cassette.RecordOptions, turns ...sentinels.Turn) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.jsonl")
	r, err := cassette.Record(file, models, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range turns {
		_, _ = r.Turn(t.Context(), turn, nil)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func play(t *testing.T, file string, o cassette.PlayOptions) *cassette.Player {
	t.Helper()
	p, err := cassette.Open(file, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func report(t *testing.T, p *cassette.Player) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteReport(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestARecordedRunPlaysBack(t *testing.T) {
	failing := echo{func(turn sentinels.Turn) (sentinels.Reply, error) {
		if turn.Messages[0].Content == "fail" {
			return sentinels.Reply{}, &abi.Error{Code: abi.Unavailable, Message: "busy", RetryAfterMs: 70}
		}
		return echo{}.Turn(context.Background(), turn, nil)
	}}
	file := record(t, failing, cassette.RecordOptions{}, ask("one"), ask("fail"), ask("two"))
	p := play(t, file, cassette.PlayOptions{Strict: true})
	q, err := p.Quote(t.Context(), ask("two"))
	if err != nil || q.Provider != "cassette" || q.Model != "m" || q.Worst.CostUSD != 0.5 || !q.Priced {
		t.Errorf("quote is %+v, %v", q, err)
	}
	var streamed string
	reply, err := p.Turn(t.Context(), ask("one"), func(text string) { streamed += text })
	want := sentinels.Reply{
		Text: "re: one", ToolCalls: []sentinels.ToolCall{}, Finish: "stop", Provider: "cassette", Model: "m",
		Usage: sentinels.Usage{InputTokens: 3, OutputTokens: 4, CostUSD: 0.5, Calls: 1},
	}
	if diff := cmp.Diff(want, reply); diff != "" || err != nil {
		t.Errorf("reply (-want +got):\n%s%v", diff, err)
	}
	if streamed != "re: one" {
		t.Errorf("streamed %q", streamed)
	}
	_, err = p.Turn(t.Context(), ask("fail"), nil)
	if diff := cmp.Diff(&abi.Error{Code: abi.Unavailable, Message: "busy", RetryAfterMs: 70}, abi.As(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if got := p.Unused(); len(got) != 1 || got[0] != 3 {
		t.Errorf("unused are %v", got)
	}
	if _, err = p.Turn(t.Context(), ask("two"), nil); err != nil {
		t.Error(err)
	}
	if got := report(t, p); !strings.Contains(got, "3 requests, 3 recorded turns, no divergence") {
		t.Errorf("report:\n%s", got)
	}
	_, err = p.Turn(t.Context(), ask("three"), nil)
	if e := abi.As(err); e == nil || e.Code != abi.NotFound || !e.Permanent || !strings.Contains(e.Hint, "--record") {
		t.Errorf("beyond the end: %v", err)
	}
}

func TestEqualRequestsAnswerInOrder(t *testing.T) {
	n := 0
	counting := echo{func(sentinels.Turn) (sentinels.Reply, error) {
		n++
		return sentinels.Reply{Text: fmt.Sprint(n), Finish: "stop"}, nil
	}}
	p := play(t, record(t, counting, cassette.RecordOptions{}, ask("x"), ask("x"), ask("x")), cassette.PlayOptions{})
	for i := 1; i <= 3; i++ {
		if reply, err := p.Turn(t.Context(), ask("x"), nil); err != nil || reply.Text != fmt.Sprint(i) {
			t.Errorf("turn %d answers %q, %v", i, reply.Text, err)
		}
	}
}

func TestBranchesMayAskInAnyOrder(t *testing.T) {
	var turns []sentinels.Turn
	for i := range 50 {
		turns = append(turns, ask(fmt.Sprint("branch ", i)))
	}
	p := play(t, record(t, echo{}, cassette.RecordOptions{}, turns...), cassette.PlayOptions{})
	var wg sync.WaitGroup
	for i := len(turns) - 1; i >= 0; i-- {
		wg.Go(func() {
			reply, err := p.Turn(t.Context(), turns[i], nil)
			if err != nil || reply.Text != "re: "+turns[i].Messages[0].Content {
				t.Errorf("turn %d: %q, %v", i, reply.Text, err)
			}
		})
	}
	wg.Wait()
	if got := p.Divergences(); len(got) != 0 {
		t.Errorf("divergences: %v", got)
	}
}

func TestRecordingSideBySide(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	r, err := cassette.Record(file, echo{}, cassette.RecordOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := r.Turn(t.Context(), ask(fmt.Sprint(i)), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error("closed twice:", err)
	}
	if n := play(t, file, cassette.PlayOptions{}).Len(); n != 20 {
		t.Errorf("%d turns recorded", n)
	}
	if _, err := r.Turn(t.Context(), ask("late"), nil); err == nil {
		t.Error("a turn after Close has no error")
	}
}

// conversation is a tool loop's second turn, with a result.
func conversation(first, result string) sentinels.Turn {
	turn := ask(first)
	turn.Tools = []sentinels.ToolSpec{{Name: "code/read"}}
	turn.Messages = append(turn.Messages,
		sentinels.Message{Role: "assistant", ToolCalls: []sentinels.ToolCall{{ID: "1", Name: "code/read", Arguments: json.RawMessage(`{"path":"a"}`)}}},
		sentinels.Message{Role: "tool", ToolCallID: "1", Content: result})
	return turn
}

func TestAChangedRequestIsAnsweredAndReported(t *testing.T) {
	other := ask("another task")
	other.Tools = []sentinels.ToolSpec{{Name: "code/read"}}
	same := ask("task")
	same.Tools = other.Tools
	file := record(t, echo{}, cassette.RecordOptions{}, other, same, conversation("another task", "A"), conversation("task", "old result"))

	p := play(t, file, cassette.PlayOptions{})
	reply, err := p.Turn(t.Context(), conversation("task", "new result"), nil)
	if err != nil || reply.Text != "re: old result" {
		t.Errorf("got %q, %v", reply.Text, err)
	}
	want := []cassette.Divergence{{Call: 1, Entry: 4, Changes: []cassette.Change{
		{Path: "messages[2].content", Was: `"old result"`, Now: `"new result"`},
	}}}
	if diff := cmp.Diff(want, p.Divergences()); diff != "" {
		t.Errorf("divergences (-want +got):\n%s", diff)
	}
	got := report(t, p)
	for _, line := range []string{
		"1 diverged, 3 turns not asked for",
		"request 1 is answered by turn 4 and differs from it in messages[2].content",
		`was "old result"`, `now "new result"`, "not asked for: 1-3",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in the report:\n%s", line, got)
		}
	}

	strict := play(t, file, cassette.PlayOptions{Strict: true})
	_, err = strict.Turn(t.Context(), conversation("task", "new result"), nil)
	if e := abi.As(err); e == nil || e.Code != abi.Conflict || !e.Permanent || !strings.Contains(e.Message, "messages[2].content") {
		t.Errorf("strict: %v", err)
	}
	if len(strict.Unused()) != 4 {
		t.Error("a refused request used a turn up")
	}
}

// TestAReportShowsWhatCounts: the place it shows is not the first difference of
// all, if that one is left out of the comparison.
func TestAReportShowsWhatCounts(t *testing.T) {
	long := strings.Repeat(" and on", 20)
	file := record(t, echo{}, cassette.RecordOptions{}, ask("after 1s"+long+": red"))
	p := play(t, file, cassette.PlayOptions{})
	if _, err := p.Turn(t.Context(), ask("after 2s"+long+": green"), nil); err != nil {
		t.Fatal(err)
	}
	want := []cassette.Change{{Path: "messages[0].content", Was: `"...d on and on and on: red"`, Now: `"...d on and on and on: green"`}}
	got := p.Divergences()[0].Changes
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAChangedPromptTakesTheTurnAtItsPlace(t *testing.T) {
	file := record(t, echo{}, cassette.RecordOptions{}, ask("errors: 3"), ask("errors: 2"))
	p := play(t, file, cassette.PlayOptions{})
	for i, want := range []string{"re: errors: 3", "re: errors: 2"} {
		if reply, err := p.Turn(t.Context(), ask(fmt.Sprint("fewer errors: ", i)), nil); err != nil || reply.Text != want {
			t.Errorf("got %q, %v", reply.Text, err)
		}
	}
	if n := len(p.Divergences()); n != 2 {
		t.Errorf("%d divergences", n)
	}
}

func TestWhatDiffersFromRunToRunIsNoDivergence(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	text := func(workspace, time, uuid, duration, ms string) string {
		return fmt.Sprintf(`%s/a.go ok in %s at %s {"executionId":"%s","durationMs":%s,"cwd":"%s"}`, workspace, duration, time, uuid, ms, workspace)
	}
	file := record(t, echo{}, cassette.RecordOptions{Workspace: before}, conversation("x",
		text(before, "2026-01-02T03:04:05Z", "01900000-0000-7000-8000-000000000001", "1.52s", "1520")))
	p := play(t, file, cassette.PlayOptions{Workspace: after, Strict: true})
	reply, err := p.Turn(t.Context(), conversation("x",
		text(after, "2027-11-12 13:14:15.678+01:00", "01911111-1111-7111-8111-111111111111", "12 ms", "12")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(reply.Text, "re: "+after+"/a.go") {
		t.Errorf("the reply does not speak of the new workspace: %q", reply.Text)
	}
	raw, err := os.ReadFile(file)
	if err != nil || bytes.Contains(raw, []byte(before)) {
		t.Errorf("the cassette holds the workspace's path: %s, %v", raw, err)
	}
}

func TestSecretsAreNotRecorded(t *testing.T) {
	var r redact.Redactor
	const secret = "hunter2-hunter2"
	if err := r.Register(secret); err != nil {
		t.Fatal(err)
	}
	turn := conversation("my key is "+secret, `{"hunter2-hunter2":"hunter2\u002dhunter2"}`)
	turn.Messages[1].ToolCalls[0].Arguments = json.RawMessage(`{"hunter2-hunter2":"hunter2\u002dhunter2"}`)
	file := record(t, echo{}, cassette.RecordOptions{Redact: &r}, turn)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "hunter2-") || !strings.Contains(string(raw), redact.Mark) {
		t.Errorf("the cassette is %s", raw)
	}
	if _, err := play(t, file, cassette.PlayOptions{Redact: &r, Strict: true}).Turn(t.Context(), turn, nil); err != nil {
		t.Error(err)
	}
}

// TestACancelledTurnIsCancelledAgain: a turn that the run cancelled takes no turn of another request in a replay, and one of
// its own request, as of a later attempt, if there is one.
func TestACancelledTurnIsCancelledAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "run.jsonl")
	r, err := cassette.Record(file, echo{func(sentinels.Turn) (sentinels.Reply, error) {
		cancel()
		return sentinels.Reply{}, &abi.Error{Code: abi.Cancelled, Message: "cancelled"}
	}}, cassette.RecordOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Turn(ctx, ask("x"), nil); abi.CodeOf(err) != abi.Cancelled {
		t.Errorf("got %v", err)
	}
	more, err := cassette.Record(file, echo{}, cassette.RecordOptions{Append: true})
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if _, err := more.Turn(t.Context(), ask("finally"), nil); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := play(t, file, cassette.PlayOptions{})
		if q, err := p.Quote(t.Context(), ask("x")); err != nil || !q.Priced {
			t.Errorf("quote %+v, %v", q, err)
		}
		again, cancelAgain := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := p.Turn(again, ask("x"), nil)
			ended <- err
		}()
		synctest.Wait()
		if reply, err := p.Turn(t.Context(), ask("finally"), nil); err != nil || reply.Text != "re: finally" {
			t.Errorf("the turn behind it: %+v, %v", reply, err)
		}
		cancelAgain()
		if err := <-ended; abi.CodeOf(err) != abi.Cancelled {
			t.Errorf("cancelled again: %v", err)
		}
		if got := report(t, p); p.Len() != 1 || !strings.Contains(got, "2 requests, 1 recorded turns, no divergence") {
			t.Errorf("%d turns, report %s", p.Len(), got)
		}
		// A run that does not cancel it has an error after a while.
		unchanged := play(t, file, cassette.PlayOptions{})
		if _, err := unchanged.Turn(t.Context(), ask("x"), nil); abi.CodeOf(err) != abi.NotFound {
			t.Errorf("never cancelled: %v", err)
		}
	})
	if _, err := more.Turn(t.Context(), ask("x"), nil); err != nil { // the next attempt
		t.Fatal(err)
	}
	if reply, err := play(t, file, cassette.PlayOptions{}).Turn(t.Context(), ask("x"), nil); err != nil || reply.Text != "re: x" {
		t.Errorf("with a reply to the same request: %+v, %v", reply, err)
	}
}

func TestAReplyThatCannotBeWrittenDownIsAnError(t *testing.T) {
	r, err := cassette.Record(filepath.Join(t.TempDir(), "run.jsonl"), echo{}, cassette.RecordOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CloseFileForTest(); err != nil {
		t.Fatal(err)
	}
	reply, err := r.Turn(t.Context(), ask("x"), nil)
	if e := abi.As(err); e == nil || !e.Permanent || reply.Usage.Calls != 1 {
		t.Errorf("got %+v, %v", reply, err)
	}
}

// TestWhatAModelSaidIsKept: a cassette has the message of a model byte for byte, and a replay
// sends it back.
func TestWhatAModelSaidIsKept(t *testing.T) {
	said := &sentinels.Said{Provider: "p", Protocol: "openai", Message: `{"role":"assistant", "z":1,"a":[1e2,null],"content":null,"reasoning_content":"in /home/me/work/a.go <b>"}`}
	file := filepath.Join(t.TempDir(), "c.jsonl")
	r, err := cassette.Record(file, saying{said}, cassette.RecordOptions{Workspace: "/home/me/work"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Turn(t.Context(), ask("x"), nil); err != nil {
		t.Fatal(err)
	}
	reply, err := play(t, file, cassette.PlayOptions{Workspace: "/home/me/work"}).Turn(t.Context(), ask("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(said, reply.Said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type saying struct{ said *sentinels.Said }

func (s saying) Quote(context.Context, sentinels.Turn) (llm.Quote, error) { return llm.Quote{}, nil }

func (s saying) Turn(context.Context, sentinels.Turn, func(string)) (sentinels.Reply, error) {
	return sentinels.Reply{Said: s.said}, nil
}
