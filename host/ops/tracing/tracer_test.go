package tracing_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sentinel-runtime/sentinel/host/ops/tracing"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// A span as a collector sees it, with the numbers that matter.
type span struct {
	TraceID    string `json:"traceId"`
	SpanID     string `json:"spanId"`
	Parent     string `json:"parentSpanId"`
	Name       string
	Kind       int
	Start      string `json:"startTimeUnixNano"`
	End        string `json:"endTimeUnixNano"`
	Attributes []struct {
		Key   string
		Value map[string]any
	}
	Events []struct{ Name string }
	Status struct {
		Code    int
		Message string
	}
}

func (s span) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return fmt.Sprint(v)
			}
		}
	}
	return ""
}

// A collector takes spans, and answers as configured.
type collector struct {
	*httptest.Server
	t       testing.TB
	answer  func(n int, w http.ResponseWriter) // nil is 200; n counts requests from 1
	posts   atomic.Int64
	headers http.Header

	mu    sync.Mutex
	spans []span
	about map[string]string // the resource
}

func collect(t testing.TB) *collector {
	c := &collector{t: t}
	c.Server = httptest.NewServer(c)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		c.Close()
	})
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(c.posts.Add(1))
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			c.t.Error(err)
			return
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		c.t.Errorf("%s %v: %v", r.Method, r.Header, err)
	}
	if c.answer != nil {
		c.answer(n, w)
	}
	// The protocol's own definition knows every member and its kind.
	if err := protojson.Unmarshal(b, &v1.TracesData{}); err != nil {
		c.t.Errorf("%v: %s", err, b)
	}
	var v struct {
		ResourceSpans []struct {
			Resource   span
			ScopeSpans []struct{ Spans []span }
		}
	}
	if err := json.Unmarshal(b, &v); err != nil {
		c.t.Error(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = r.Header.Clone()
	c.about = map[string]string{}
	for _, rs := range v.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			c.about[a.Key] = rs.Resource.attribute(a.Key)
		}
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

func (c *collector) tracer(o tracing.Options) *tracing.Tracer {
	c.t.Helper()
	o.Endpoint = c.URL + "/v1/traces"
	t, err := tracing.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { t.Close(context.Background()) })
	return t
}

// tree writes the spans as lines, indented by depth, each with what it took.
func (c *collector) tree(show ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	below := map[string][]span{}
	known := map[string]bool{}
	for _, s := range c.spans {
		known[s.SpanID] = true
	}
	for _, s := range c.spans {
		if !known[s.Parent] && s.Parent != "" {
			below["?"] = append(below["?"], s)
			continue
		}
		below[s.Parent] = append(below[s.Parent], s)
	}
	var lines []string
	var write func(parent, indent string)
	write = func(parent, indent string) {
		list := below[parent]
		slices.SortStableFunc(list, func(a, b span) int { return strings.Compare(a.Start, b.Start) })
		for _, s := range list {
			line := indent + s.Name
			for _, key := range show {
				if v := s.attribute(key); v != "" {
					line += " " + v
				}
			}
			if s.Status.Code == 2 {
				line += " !" + s.attribute("error.type")
			}
			var from, to int64
			fmt.Sscan(s.Start, &from)
			fmt.Sscan(s.End, &to)
			lines = append(lines, fmt.Sprintf("%s %v+%v", line, time.Unix(0, from).Sub(zero), time.Duration(to-from)))
			write(s.SpanID, indent+"  ")
		}
	}
	write("", "")
	write("?", "? ")
	return lines
}

// root is a run id of version 7 whose time is zero.
const root = sentinels.RunID("01a1fe2b-dca1-7383-92b6-9b70167a3919")

var zero = time.UnixMilli(0x01a1fe2bdca1)

// told makes progress that is reported some seconds after zero.
func told(at float64, p runtime.Progress) runtime.Progress {
	p.Time = zero.Add(time.Duration(at * float64(time.Second)))
	if p.Run == "" {
		p.Run = root
	}
	p.Root, p.Sentinel = root, "demo"
	if p.Iteration == 0 {
		p.Iteration = 1
	}
	return p
}

var bad = abi.New(abi.Timeout, "took too long")

// life is a run with a nested step, a retry, a model call and a child.
func life() []runtime.Progress {
	const child = sentinels.RunID("01a1fe2b-e000-7383-92b6-9b70167a3919")
	at := told
	return []runtime.Progress{
		at(0.1, runtime.Progress{Event: runtime.OnRunStart, Revision: 4}),
		at(0.2, runtime.Progress{Event: runtime.OnIterationStart, Revision: 4}),
		at(1, runtime.Progress{Event: runtime.OnStepStart, Address: "0", Path: "0", Type: "loop", Attempt: 1}),
		at(1, runtime.Progress{Event: runtime.OnCallStart, Address: "0", Path: "0", Type: "loop", Attempt: 1, Function: abi.FuncBlock}),
		at(2, runtime.Progress{Event: runtime.OnStepStart, Address: "0.steps.0", Path: "0#0.steps.0", Type: "llm", Step: "ask", Attempt: 1}),
		at(3, runtime.Progress{Event: runtime.OnCallEnd, Address: "0.steps.0", Path: "0#0.steps.0", Type: "llm", Step: "ask", Attempt: 1, Function: abi.FuncLLM, Label: "m1", Duration: time.Second, Error: bad}),
		at(3, runtime.Progress{Event: runtime.OnRetry, Address: "0.steps.0", Path: "0#0.steps.0", Type: "llm", Step: "ask", Attempt: 1, Error: bad, Category: "transient"}),
		at(5, runtime.Progress{Event: runtime.OnStepStart, Address: "0.steps.0", Path: "0#0.steps.0", Type: "llm", Step: "ask", Attempt: 2}),
		at(5, runtime.Progress{Event: runtime.OnText, Path: "0#0.steps.0", Message: "hm"}),
		at(6, runtime.Progress{Event: runtime.OnCallEnd, Address: "0.steps.0", Path: "0#0.steps.0", Type: "llm", Step: "ask", Attempt: 2, Function: abi.FuncLLM, Label: "m1", Duration: time.Second, Usage: &sentinels.Usage{InputTokens: 7, OutputTokens: 3, CostUSD: 0.25}}),
		at(6, runtime.Progress{Event: runtime.OnStepEnd, Address: "0.steps.0", Path: "0#0.steps.0", Type: "llm", Step: "ask", Duration: 4 * time.Second}),
		at(7, runtime.Progress{Event: runtime.OnCallEnd, Address: "0", Path: "0", Type: "loop", Attempt: 1, Function: abi.FuncBlock, Duration: 6 * time.Second}),
		at(7, runtime.Progress{Event: runtime.OnStepEnd, Address: "0", Path: "0", Type: "loop", Duration: 6 * time.Second}),
		at(8, runtime.Progress{Event: runtime.OnStepEnd, Address: "1", Path: "1", Type: "shell", Skipped: "condition"}),
		at(9, runtime.Progress{Event: runtime.OnRunStart, Run: child}),
		at(10, runtime.Progress{Event: runtime.OnRunEnd, Run: child, Status: sentinels.StatusStopped, Duration: time.Second}),
		at(11, runtime.Progress{Event: runtime.OnStatus, Status: sentinels.StatusPaused, Message: "asked to"}),
		at(12, runtime.Progress{Event: runtime.OnIterationEnd, Duration: 11 * time.Second}),
		at(13, runtime.Progress{Event: runtime.OnStatus, Status: sentinels.StatusRunning}),
		at(14, runtime.Progress{Event: runtime.OnRunEnd, Status: sentinels.StatusCompleted, Duration: 14 * time.Second}),
	}
}

// lifeTree is what a collector sees of it.
var lifeTree = []string{
	"run demo 4 completed 0s+14s",
	"  iteration 1 4 200ms+11.8s",
	"    step loop 1 0 1s+6s",
	"      attempt 1 0 1 1s+6s",
	"        block 1 0 1 1s+6s",
	"      step llm 1 0.steps.0 2s+4s",
	"        attempt 1 0.steps.0 1 transient !timeout 2s+1s",
	"          chat m1 1 0.steps.0 1 !timeout 2s+1s",
	"        attempt 1 0.steps.0 2 5s+1s",
	"          chat m1 1 0.steps.0 2 5s+1s",
	"    step shell 1 1 condition 8s+0s",
	"  run demo stopped 863ms+9.137s",
}

var shown = []string{"sentinel.iteration", "sentinel.revision", "sentinel.step.address", "sentinel.attempt", "sentinel.retry.category", "sentinel.step.skipped", "sentinel.run.status"}

// plain drops the iteration of runs, which has them in any case.
func plain(lines []string) []string {
	for i, l := range lines {
		for _, of := range []string{"run demo 1 0", "run demo 1"} {
			l = strings.Replace(l, of, "run demo", 1)
		}
		lines[i] = l
	}
	return lines
}

func TestSpansOfARun(t *testing.T) {
	c := collect(t)
	tr := c.tracer(tracing.Options{Service: "mine", Version: "1.2.3", Resource: map[string]string{"host.name": "h"}, Headers: map[string]string{"X-Key": "secret"}, Compress: true, Batch: 5})
	for _, p := range life() {
		tr.Progress(p)
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lifeTree, plain(c.tree(shown...))); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{"service.name": "mine", "service.version": "1.2.3", "host.name": "h"}
	if diff := cmp.Diff(want, c.about); diff != "" {
		t.Error(diff)
	}
	if got := c.headers.Get("X-Key"); got != "secret" {
		t.Errorf("header %q", got)
	}
	if st := tr.Stats(); st.Sent != uint64(len(lifeTree)) || st.Dropped+st.Failed != 0 {
		t.Errorf("%+v", st)
	}
	for _, s := range c.spans {
		if s.TraceID != strings.ReplaceAll(string(root), "-", "") {
			t.Errorf("span %s is in trace %s", s.Name, s.TraceID)
		}
		switch {
		case s.Name == "run demo" && s.Parent == "":
			if len(s.Events) != 2 {
				t.Errorf("the run's notes: %+v", s.Events)
			}
		case strings.HasPrefix(s.Name, "chat"):
			if s.Kind != 3 || s.attribute("gen_ai.request.model") != "m1" {
				t.Errorf("%+v", s)
			}
			if s.Status.Code == 0 && (s.attribute("gen_ai.usage.input_tokens") != "7" || s.attribute("sentinel.cost_usd") != "0.25") {
				t.Errorf("%+v", s)
			}
		}
	}
}

// TestAnotherProcessGoesOn cuts the run anywhere: what a second tracer makes of
// the rest fits to what the first one made, and nothing comes twice.
func TestAnotherProcessGoesOn(t *testing.T) {
	all := life()
	shape := func(parts ...[]runtime.Progress) []string {
		c := collect(t)
		for _, part := range parts {
			tr := c.tracer(tracing.Options{})
			for _, p := range part {
				tr.Progress(p)
			}
			if err := tr.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var names []string // when things began is not known to the second process
		for _, line := range c.tree("sentinel.attempt") {
			names = append(names, line[:strings.LastIndexByte(line, ' ')])
		}
		slices.Sort(names)
		return names
	}
	whole := shape(all)
	for cut, p := range all {
		if p.Event == runtime.OnStepEnd && p.Type == "llm" {
			continue // the end of a step does not tell which attempt it was: the second one is taken for the first
		}
		if diff := cmp.Diff(whole, shape(all[:cut], all[cut:])); diff != "" {
			t.Errorf("cut before %d (%s): %s", cut, p.Event, diff)
		}
	}
}

// TestRunThatIsCutOff ends while steps are under way: they end with it.
func TestRunThatIsCutOff(t *testing.T) {
	c := collect(t)
	tr := c.tracer(tracing.Options{})
	for _, p := range append(life()[:5], told(9, runtime.Progress{Event: runtime.OnRunEnd, Status: sentinels.StatusStopped})) {
		tr.Progress(p)
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"run demo 4 stopped 0s+9s",
		"  iteration 1 4 !cancelled 200ms+8.8s",
		"    step loop 1 0 !cancelled 1s+8s",
		"      attempt 1 0 1 !cancelled 1s+8s",
		"      step llm 1 0.steps.0 !cancelled 2s+7s",
		"        attempt 1 0.steps.0 1 !cancelled 2s+7s",
	}
	if diff := cmp.Diff(want, plain(c.tree(shown...))); diff != "" {
		t.Error(diff)
	}
}

func TestParentAndSampling(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, c := range []struct {
		parent string
		sample float64
		spans  bool
		trace  string
	}{
		{"00-" + trace + "-" + span + "-01", 1, true, trace},
		{"00-" + trace + "-" + span + "-01", 1e-12, true, trace}, // who asked has decided
		{"00-" + trace + "-" + span + "-00", 1, false, ""},
		{"nonsense", 1, true, strings.ReplaceAll(string(root), "-", "")},
		{"", 1e-12, false, ""},
	} {
		k := collect(t)
		tr := k.tracer(tracing.Options{Sample: c.sample, Parent: func(id sentinels.RunID) string {
			if id != root {
				t.Errorf("asked for %s", id)
			}
			return c.parent
		}})
		for _, p := range life() {
			tr.Progress(p)
		}
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if (len(k.spans) > 0) != c.spans {
			t.Errorf("%+v: %d spans", c, len(k.spans))
		}
		for _, s := range k.spans {
			if s.TraceID != c.trace || s.Parent == "" && c.trace == trace {
				t.Errorf("%+v: span %+v", c, s)
			}
		}
	}
}

// TestSamplingIsEven keeps a tenth of runs whose ids are as runs have them.
func TestSamplingIsEven(t *testing.T) {
	c := collect(t)
	tr := c.tracer(tracing.Options{Sample: 0.1, Queue: 10_000})
	const runs = 5000
	for range runs {
		id := sentinels.RunID(uuid.Must(uuid.NewV7()).String())
		p := told(1, runtime.Progress{Event: runtime.OnRunEnd, Run: id})
		p.Root = id
		tr.Progress(p)
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(c.spans); n < runs/10-150 || n > runs/10+150 { // seven standard deviations
		t.Errorf("%d of %d", n, runs)
	}
}

// TestMemoryIsBounded has more steps under way than are remembered, and more
// ended than may wait.
func TestMemoryIsBounded(t *testing.T) {
	c := collect(t)
	release := make(chan struct{})
	c.answer = func(int, http.ResponseWriter) { <-release }
	tr := c.tracer(tracing.Options{Open: 10, Queue: 20, Batch: 5})
	for i := range 100 {
		tr.Progress(told(1, runtime.Progress{Event: runtime.OnStepStart, Path: fmt.Sprint(i), Type: "x", Attempt: 1}))
	}
	if n := tracing.Open(tr); n != 10 {
		t.Errorf("%d steps are remembered", n)
	}
	for i := range 100 {
		tr.Progress(told(2, runtime.Progress{Event: runtime.OnStepEnd, Path: fmt.Sprint(i), Type: "x"}))
	}
	tr.Progress(told(3, runtime.Progress{Event: runtime.OnRunEnd}))
	if n := tracing.Open(tr); n != 0 {
		t.Errorf("%d steps are remembered after the end", n)
	}
	close(release)
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// 100 steps, each with an attempt, the iteration and the run.
	if st := tr.Stats(); st.Dropped < 202-20-5-5 || st.Sent+st.Dropped != 202 || st.Failed != 0 {
		t.Errorf("%+v", st)
	}
}

func TestSendingGoesWrong(t *testing.T) {
	for name, c := range map[string]struct {
		answer       func(n int, w http.ResponseWriter)
		posts        int64
		sent, failed uint64
	}{
		"at first": {func(n int, w http.ResponseWriter) {
			if n < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}, 3, 1, 0},
		"for good": {func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) }, 1, 0, 1},
		"in part": {func(_ int, w http.ResponseWriter) {
			io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}`)
		}, 1, 0, 1},
		"elsewhere": {func(_ int, w http.ResponseWriter) {
			w.Header().Set("Location", "/x")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, 1, 0, 1},
		"not at all": {func(_ int, w http.ResponseWriter) { io.WriteString(w, `{"partialSuccess":{}}`) }, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := collect(t)
			k.answer = c.answer
			tr := k.tracer(tracing.Options{})
			tr.Progress(told(1, runtime.Progress{Event: runtime.OnRunEnd, Status: sentinels.StatusCompleted}))
			if err := tr.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st := tr.Stats(); st.Sent != c.sent || st.Failed != c.failed || k.posts.Load() != c.posts {
				t.Errorf("%+v after %d posts", st, k.posts.Load())
			}
		})
	}
}

// TestCloseDoesNotWaitForTheDead has a collector that never answers.
func TestCloseDoesNotWaitForTheDead(t *testing.T) {
	c := collect(t)
	release := make(chan struct{})
	defer close(release)
	c.answer = func(int, http.ResponseWriter) { <-release }
	tr := c.tracer(tracing.Options{})
	tr.Progress(told(1, runtime.Progress{Event: runtime.OnRunEnd}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := tr.Close(ctx); err == nil {
		t.Error("closed without a message about the lost span")
	}
	if st := tr.Stats(); st.Failed != 1 {
		t.Errorf("%+v", st)
	}
	tr.Progress(told(2, runtime.Progress{Event: runtime.OnRunEnd}))
}

func BenchmarkProgress(b *testing.B) {
	c := collect(b)
	tr := c.tracer(tracing.Options{Queue: 1})
	start := told(1, runtime.Progress{Event: runtime.OnStepStart, Path: "0#1", Type: "x", Attempt: 1})
	end := told(2, runtime.Progress{Event: runtime.OnStepEnd, Path: "0#1", Type: "x"})
	b.ReportAllocs()
	for b.Loop() {
		tr.Progress(start)
		tr.Progress(end)
	}
}
