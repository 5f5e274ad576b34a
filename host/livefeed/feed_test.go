package livefeed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, o livefeed.Options) *livefeed.Feed {
	t.Helper()
	f := livefeed.New(o)
	t.Cleanup(f.Close)
	return f
}

func subscribe(t testing.TB, f *livefeed.Feed, cursor string, topics ...string) *livefeed.Subscription {
	t.Helper()
	s, err := f.Subscribe(cursor, topics)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// next returns the next entry in short: "topic+also kind body", or "gap 3~ (1)".
func next(t testing.TB, s *livefeed.Subscription) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	e, err := s.Next(ctx)
	if err != nil {
		return err.Error()
	}
	return short(e)
}

func short(e livefeed.Entry) string {
	if e.Gap != nil {
		out := fmt.Sprintf("gap %d", e.Gap.Lost)
		if e.Gap.UpTo {
			out += "~"
		}
		if e.Gap.Text > 0 {
			out += fmt.Sprintf(" (%d)", e.Gap.Text)
		}
		return out
	}
	return strings.Join(append([]string{e.Topic}, e.Also...), "+") + " " + e.Kind + " " + string(e.Body())
}

// rest returns all that is there now.
func rest(t testing.TB, s *livefeed.Subscription) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var all []string
	for {
		e, err := s.Next(ctx)
		if errors.Is(err, context.Canceled) || errors.Is(err, livefeed.ErrClosed) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, short(e))
	}
}

func step(run, root, kind string) runtime.Progress {
	return runtime.Progress{Event: runtime.ProgressKind(kind), Run: sentinels.RunID(run), Root: sentinels.RunID(root), Path: "0"}
}

func TestTopicsSortWhatHappens(t *testing.T) {
	f := open(t, livefeed.Options{})
	readers := map[string]*livefeed.Subscription{}
	for _, topics := range []string{
		"run:a", "run:a/tree", "run:b", "runs", "sentinels", "health", "events:git:*", "events:**",
		"run:b,run:a/tree,runs", "events:git:push,events:git:*",
	} {
		readers[topics] = subscribe(t, f, "", strings.Split(topics, ",")...)
	}
	f.Progress(step("a", "a", "run.start"))
	f.Progress(step("b", "a", "step.end"))
	f.Progress(step("c", "c", "run.end"))
	f.Publish(livefeed.TopicSentinels, "saved", map[string]int{"n": 1})
	f.Publish(livefeed.EventTopic("git:push"), "git:push", json.RawMessage(`{"n":2}`))
	f.Publish(livefeed.EventTopic("ci:done"), "ci:done", 3)

	kinds := func(s *livefeed.Subscription) (out []string) {
		for _, e := range rest(t, s) {
			topic, kind, _ := strings.Cut(e, " ")
			kind, _, _ = strings.Cut(kind, " ")
			out = append(out, topic+" "+kind)
		}
		return out
	}
	got := map[string][]string{}
	for topics, s := range readers {
		got[topics] = kinds(s)
	}
	want := map[string][]string{
		"run:a":                        {"run:a run.start"},
		"run:a/tree":                   {"run:a/tree run.start", "run:a/tree step.end"},
		"run:b":                        {"run:b step.end"},
		"runs":                         {"runs run.start", "runs run.end"},
		"sentinels":                    {"sentinels saved"},
		"health":                       nil,
		"events:git:*":                 {"events:git:* git:push"},
		"events:**":                    {"events:** git:push", "events:** ci:done"},
		"run:b,run:a/tree,runs":        {"run:a/tree+runs run.start", "run:b+run:a/tree step.end", "runs run.end"},
		"events:git:push,events:git:*": {"events:git:push+events:git:* git:push"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBodies(t *testing.T) {
	f := open(t, livefeed.Options{})
	s := subscribe(t, f, "", "health", "run:a")
	f.Publish("health", "raw", json.RawMessage(`{"a":1}`))
	f.Publish("health", "torn", json.RawMessage(`{"a":`))
	f.Publish("health", "none", func() {})
	f.Publish("health", "long", strings.Repeat("x", 300<<10))
	p := step("a", "a", "step.end")
	p.Output = json.RawMessage(`"` + strings.Repeat("y", 100<<10) + `"`)
	f.Progress(p)
	raw := json.RawMessage(`[1]`)
	f.Publish("health", "mine", raw)
	raw[1] = '2' // the caller's again
	want := []string{
		`health raw {"a":1}`,
		`health torn {"problem":"encode json.RawMessage: json: error calling MarshalJSON for type json.RawMessage: unexpected end of JSON input"}`,
		`health none {"problem":"encode func(): json: unsupported type: func()"}`,
		`health long {"bytes":307202,"problem":"too long for the feed"}`,
		`run:a step.end {"event":"step.end","run":"a","root":"a","time":"0001-01-01T00:00:00Z","path":"0","outputBytes":102402}`,
		`health mine [1]`,
	}
	if diff := cmp.Diff(want, rest(t, s)); diff != "" {
		t.Error(diff)
	}
}

// numbers publishes the bodies from..to-1 on a topic.
func numbers(f *livefeed.Feed, topic string, from, to int) {
	for n := from; n < to; n++ {
		f.Publish(topic, "n", n)
	}
}

func TestGapIsExact(t *testing.T) {
	f := open(t, livefeed.Options{Entries: 8})
	one := subscribe(t, f, "", "health")
	two := subscribe(t, f, "", "health", "plugins")
	wild := subscribe(t, f, "", "events:a:*")
	numbers(f, "health", 0, 5)
	if got := next(t, one); got != "health n 0" { // reads the other four ahead, too
		t.Fatal(got)
	}
	numbers(f, "plugins", 5, 15)
	numbers(f, "events:a:b", 15, 20)
	numbers(f, "health", 20, 22)
	for name, c := range map[string]struct {
		s    *livefeed.Subscription
		want []string
	}{
		"one":  {one, []string{"gap 4", "health n 20", "health n 21"}},
		"two":  {two, []string{"gap 14", "plugins n 14", "health n 20", "health n 21"}},
		"wild": {wild, []string{"events:a:* n 15", "events:a:* n 16", "events:a:* n 17", "events:a:* n 18", "events:a:* n 19"}},
	} {
		if diff := cmp.Diff(c.want, rest(t, c.s)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	numbers(f, "events:x", 0, 9)
	numbers(f, "events:a:c", 9, 10)
	if diff := cmp.Diff([]string{"gap 2~", "events:a:* n 9"}, rest(t, wild)); diff != "" {
		t.Error("events that did not fit were lost too, so the count is a bound:", diff)
	}
	if st := f.Stats(); st.Gaps != 3 || st.Lost != 4+14+2 {
		t.Errorf("stats %+v", st)
	}
}

// TestGapOfOverlappingTopics has entries that are in two of a reader's topics.
func TestGapOfOverlappingTopics(t *testing.T) {
	f := open(t, livefeed.Options{Entries: 4})
	s := subscribe(t, f, "", "run:a", "run:a/tree")
	apart := subscribe(t, f, "", "run:a", "run:b")
	for range 10 {
		f.Progress(step("a", "a", "step.end"))
	}
	for range 2 {
		f.Progress(step("b", "b", "step.end"))
	}
	if got := next(t, s); got != "gap 8~" {
		t.Errorf("%q: at most the eight that went can be lost", got)
	}
	if got := next(t, apart); got != "gap 8" {
		t.Errorf("%q", got)
	}
}

func TestResume(t *testing.T) {
	f := open(t, livefeed.Options{Entries: 8})
	s := subscribe(t, f, "", "health")
	numbers(f, "health", 0, 3)
	next(t, s)
	at := s.Cursor().String()
	s.Close()
	if got := next(t, s); got != livefeed.ErrClosed.Error() {
		t.Error(got)
	}

	if diff := cmp.Diff([]string{"health n 1", "health n 2"}, rest(t, subscribe(t, f, at, "health"))); diff != "" {
		t.Error(diff)
	}
	numbers(f, "health", 3, 20)
	if got := next(t, subscribe(t, f, at, "health")); got != "gap 11~" {
		t.Errorf("%q: 1 to 11 have gone; whether they were of these topics is not always known", got)
	}
	if got := rest(t, subscribe(t, f, "", "health")); got != nil {
		t.Errorf("%q: no cursor is from now on", got)
	}
	for _, foreign := range []string{"0-1", "zz-99", strings.Split(at, "-")[0] + "-999"} {
		s := subscribe(t, f, foreign, "health")
		if got := next(t, s); got != "gap -1" {
			t.Errorf("cursor %s: %q", foreign, got)
		}
		if s.Cursor() != f.Cursor() {
			t.Errorf("cursor %s leads to %v, not to %v", foreign, s.Cursor(), f.Cursor())
		}
	}
}

// TestIndexesAreForgotten has a topic for every run, as a host does over months.
func TestIndexesAreForgotten(t *testing.T) {
	f := open(t, livefeed.Options{Entries: 64})
	watched := subscribe(t, f, "", "run:r3")
	for i := range 10_000 {
		f.Progress(step(fmt.Sprintf("r%d", i), fmt.Sprintf("r%d", i), "run.start"))
	}
	if n := livefeed.Indexes(f); n > 2*64+2 { // two for each entry in the ring, "runs", the watched one
		t.Errorf("%d indexes are kept", n)
	}
	if got := next(t, watched); got != "gap 1" {
		t.Error(got)
	}
	watched.Close()
	f.Publish("health", "n", 0)
	if n := livefeed.Indexes(f); n > 2*64+2 {
		t.Errorf("%d indexes are kept", n)
	}
}

func TestBadTopicsAndCursors(t *testing.T) {
	f := open(t, livefeed.Options{})
	many := make([]string, livefeed.MaxTopics+1)
	for i := range many {
		many[i] = fmt.Sprintf("run:r%d", i)
	}
	for _, c := range []struct {
		cursor string
		topics []string
		field  string
	}{
		{"", []string{"nothing"}, "topics"},
		{"", []string{"run:"}, "topics"},
		{"", []string{"run:../x"}, "topics"},
		{"", []string{"run:a/tree/tree"}, "topics"},
		{"", []string{"runs", "events:"}, "topics"},
		{"", []string{"events:a*"}, "topics"},
		{"", many, "topics"},
		{"x", nil, "cursor"},
		{"-1", nil, "cursor"},
		{"E-1", nil, "cursor"},
		{"e-01", nil, "cursor"},
		{"e--1", nil, "cursor"},
		{"e-99999999999999999999", nil, "cursor"},
	} {
		_, err := f.Subscribe(c.cursor, c.topics)
		if e := abi.As(err); e == nil || e.Field != c.field {
			t.Errorf("cursor %q topics %.3q: %v", c.cursor, c.topics, err)
		}
	}
	if n := f.Stats().Subscribers; n != 0 {
		t.Errorf("%d subscribers", n)
	}
	if n := livefeed.Indexes(f); n != 0 {
		t.Errorf("%d indexes", n)
	}
}

func TestAddAndRemove(t *testing.T) {
	f := open(t, livefeed.Options{})
	s := subscribe(t, f, "", "health")
	numbers(f, "plugins", 0, 1)
	if err := s.Add("plugins", "health"); err != nil {
		t.Fatal(err)
	}
	numbers(f, "plugins", 1, 3)
	numbers(f, "health", 3, 5)
	if got := next(t, s); got != "plugins n 1" {
		t.Error(got)
	}
	s.Remove("plugins", "runs")
	if diff := cmp.Diff([]string{"health n 3", "health n 4"}, rest(t, s)); diff != "" {
		t.Error(diff)
	}
	if err := s.Add("runs", "nothing"); err == nil {
		t.Error("a bad topic was added")
	}
	if diff := cmp.Diff([]string{"health"}, s.Topics()); diff != "" {
		t.Error("all or none:", diff)
	}
	s.Close()
	s.Close()
	if err := s.Add("runs"); !errors.Is(err, livefeed.ErrClosed) {
		t.Error(err)
	}
}

func TestCloseEndsReaders(t *testing.T) {
	f := livefeed.New(livefeed.Options{})
	s := subscribe(t, f, "", "health")
	late := make(chan string, 1)
	numbers(f, "health", 0, 1)
	f.Close()
	f.Close()
	numbers(f, "health", 1, 2)
	f.Progress(step("a", "a", "text"))
	go func() { late <- next(t, s) + ", " + next(t, s) }()
	if got := <-late; got != "health n 0, feed is closed" {
		t.Error(got)
	}
}

// TestNextWaits has readers asleep when entries come, half of them woken by
// another topic than the first.
func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := livefeed.New(livefeed.Options{})
		defer f.Close()
		got := make(chan string, 200)
		for i := range cap(got) {
			topics := []string{"plugins", "run:a"}
			s, err := f.Subscribe("", topics[i%2:])
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			go func() { got <- next(t, s) }()
		}
		synctest.Wait()
		f.Progress(step("a", "a", "step.end"))
		for range cap(got) {
			if e := <-got; !strings.HasPrefix(e, "run:a step.end") {
				t.Fatal(e)
			}
		}
	})
}

// TestHammer has readers that come and go, each back with its last cursor, while
// several publish. Every reader sees every number of each of its topics once
// and in order.
func TestHammer(t *testing.T) {
	const each, writers, readers = 3000, 4, 12
	f := open(t, livefeed.Options{Entries: 2 * each * writers})
	start := f.Cursor().String()
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for n := range each {
				f.Publish(livefeed.EventTopic(fmt.Sprintf("w:%d", w)), "n", n)
			}
		})
	}
	for r := range readers {
		topics := []string{"events:w:0", fmt.Sprintf("events:w:%d", 1+r%3)}
		if r == 0 {
			topics = []string{"events:**"}
		}
		want := each * len(topics)
		if r == 0 {
			want = each * writers
		}
		work.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 1))
			cursor, seen := start, map[string]int{}
			for total := 0; total < want; {
				s, err := f.Subscribe(cursor, topics)
				if err != nil {
					t.Error(err)
					return
				}
				for range 1 + rng.IntN(300) {
					if total == want {
						break
					}
					e, err := s.Next(t.Context())
					if err != nil || e.Gap != nil {
						t.Errorf("reader %d: %v %+v", r, err, e.Gap)
						s.Close()
						return
					}
					total++
					cursor = e.Cursor.String()
					if r == 0 {
						continue // cannot tell the writers apart, counts only
					}
					if string(e.Body()) != fmt.Sprint(seen[e.Topic]) {
						t.Errorf("reader %d, %s: %s after %d others", r, e.Topic, e.Body(), seen[e.Topic])
						s.Close()
						return
					}
					seen[e.Topic]++
				}
				s.Close()
			}
		})
	}
	work.Wait()
}

// TestHammerWithLosses has a ring that is too small: what a reader got and what
// its gaps count add up to what was published, for each of them.
func TestHammerWithLosses(t *testing.T) {
	const total = 20_000
	f := open(t, livefeed.Options{Entries: 128})
	var work sync.WaitGroup
	for r := range 6 {
		s := subscribe(t, f, "", "health", "plugins")
		work.Go(func() {
			var got, lost int64
			for got+lost < total {
				e, err := s.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if e.Gap == nil {
					got++
				} else if lost += e.Gap.Lost; e.Gap.UpTo || e.Gap.Lost <= 0 {
					t.Errorf("gap %+v", e.Gap)
					return
				}
				if r%2 == 0 && got%100 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			if got+lost != total {
				t.Errorf("reader %d: %d + %d, not %d", r, got, lost, total)
			}
		})
	}
	numbers(f, "health", 0, total/2)
	numbers(f, "plugins", total/2, total-1)
	numbers(f, "health", total-1, total)
	work.Wait()
}

// TestBodiesAreRedacted: subscribers get bodies and reports without secrets.
func TestBodiesAreRedacted(t *testing.T) {
	var r redact.Redactor
	if err := r.Register("hunter2-secret"); err != nil {
		t.Fatal(err)
	}
	f := open(t, livefeed.Options{Redact: r.JSON})
	s := subscribe(t, f, "", "sentinels", "runs")
	f.Publish("sentinels", "file", map[string]string{"problem": `unknown step type "hunter2-secret"`})
	f.Progress(runtime.Progress{Run: "a", Event: runtime.OnRunStart, Message: "hunter2-secret"})
	for range 2 {
		e, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text := string(e.Body()); strings.Contains(text, "hunter2") || !strings.Contains(text, redact.Mark) {
			t.Error(text)
		}
	}
}
