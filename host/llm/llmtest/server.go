package llmtest

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/llm/providers"
)

// Protocols of a [Spec].
const (
	Chat      = "chat"
	Responses = "responses"
	Messages  = "messages" // of Anthropic
)

// Model is the name of the model that each server has.
const Model = "stand-in"

// A Spec is one provider with one protocol, as servers.json describes it.
type Spec struct {
	Name      string            `json:"name"`     // of its row in the table of package providers
	Protocol  string            `json:"protocol"` // chat, responses or messages
	Like      string            `json:"like"`     // name/protocol of a server before it, which it has the rest of
	Base      string            `json:"base"`     // URL
	Query     string            `json:"query"`    // that each request must have
	Source    []string          `json:"source"`   // addresses, read on the day that the table of package providers has
	Tried     string            `json:"tried"`    // day on which the tasks of TestProviders passed with the real server, "" for none
	Window    int               `json:"window"`   // of the model, in tokens of four bytes
	MaxOutput int               `json:"maxOutput"`
	Reserves  bool              `json:"reserves"`   // refuses a request whose input and limit of the reply are larger than the window
	Thinking  string            `json:"thinking"`   // form of it, see said.go
	Whole     bool              `json:"wholeCalls"` // sends a tool call in one piece
	NoIDs     bool              `json:"noIDs"`      // sends tool calls without an id
	Usage     string            `json:"usage"`      // where it is: a chunk of its own by default, choice, last, x_groq or none
	Outside   bool              `json:"outside"`    // tokens of thinking are not part of completion_tokens
	Comment   string            `json:"comment"`    // sent before the events
	First     json.RawMessage   `json:"first"`      // an event before the others
	CallID    string            `json:"callID"`     // regular expression that ids must match
	Finish    map[string]string `json:"finish"`     // finish reasons for stop, tools and length, where they are not those of the protocol
	// Ends are finish reasons of replies that have failed, with what they mean.
	Ends map[string]providers.Class `json:"ends"`
	// Listed are members that an entry of its list of models has.
	Listed  json.RawMessage            `json:"listed"`
	Refuses map[string]Fault           `json:"refuses"` // members of a request
	Needs   *Fault                     `json:"needs"`   // refusal of a message with calls and without the thinking that its row or its form wants
	Unknown *Fault                     `json:"unknown"` // refusal of other members of messages; nil if it ignores them
	BadID   *Fault                     `json:"badID"`   // refusal of an id that CallID does not match
	Errors  map[providers.Class]*Fault `json:"errors"`
	Stream  Fault                      `json:"stream"` // error within a stream
}

// A Fault is an error response.
type Fault struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Body   json.RawMessage   `json:"body"`
	WaitMs int64             `json:"waitMs"` // that it asks for
	Class  providers.Class   `json:"class"`  // of an error within a stream
}

//go:embed servers.json
var serversJSON []byte

// Specs returns the servers.
var Specs = sync.OnceValue(func() []Spec {
	var raw []json.RawMessage
	if err := json.Unmarshal(serversJSON, &raw); err != nil {
		panic(fmt.Sprintf("servers.json: %v", err))
	}
	byName := map[string]int{}
	var list []Spec
	for i, text := range raw {
		var s Spec
		fill := func(from json.RawMessage) {
			if err := json.Unmarshal(from, &s); err != nil {
				panic(fmt.Sprintf("servers.json, server %d: %v", i, err))
			}
		}
		fill(text)
		var chain []json.RawMessage
		for like := s.Like; like != ""; {
			j, ok := byName[like]
			if !ok {
				panic(fmt.Sprintf("servers.json, server %d: no server %q before it", i, like))
			}
			chain = append([]json.RawMessage{raw[j]}, chain...)
			like = list[j].Like
		}
		if s = (Spec{}); len(chain) > 0 {
			for _, from := range chain {
				fill(from)
			}
			var own map[string]json.RawMessage
			_ = json.Unmarshal(text, &own) // an object: it was read above
			for name, reset := range map[string]func(){"refuses": func() { s.Refuses = nil }, "ends": func() { s.Ends = nil }} {
				if own[name] != nil {
					reset() // in place of those, not beside them
				}
			}
		}
		fill(text)
		byName[s.String()] = i
		list = append(list, s)
	}
	return list
})

// String returns the name of the server.
func (s Spec) String() string { return s.Name + "/" + s.Protocol }

// Row returns the row of the table of providers.
func (s Spec) Row() providers.Row {
	for _, row := range providers.Rows() {
		if row.Name == s.Name {
			return row
		}
	}
	return providers.Row{}
}

// A Server answers as one provider does. What its model says depends on the first message of the
// conversation, see said.go.
//
// # Concurrency
//
// Safe for concurrent use.
type Server struct {
	Spec
	row providers.Row

	mu       sync.Mutex
	next     []string            // what the next requests get, see Next
	said     map[string][]string // messages of the model, by conversation
	requests []Request
	hangs    chan struct{} // closed when a stream does not end
	gone     chan struct{} // closed when a client has left it
}

// A Request is one that was answered with a reply or with an error.
type Request struct {
	Body   string
	Status int
	// Input and Output are the tokens that the reply has cost.
	Input, Output int64
	Limit         int64 // of the reply
}

// New returns a server.
func New(s Spec) *Server {
	return &Server{Spec: s, row: s.Row(), said: map[string][]string{}, hangs: make(chan struct{}), gone: make(chan struct{})}
}

// Next says what the next requests get, in order: the class of an error, cut for a stream that ends
// early, hang for one that does not end, at most once, stream for one with an error, or end:REASON for a reply with
// that finish reason.
func (s *Server) Next(what ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = append(s.next, what...)
}

// Requests returns the requests for turns so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.requests...)
}

// Hangs is closed when all has been sent of a stream that does not end.
func (s *Server) Hangs() <-chan struct{} { return s.hangs }

// Gone is closed when a client has left a stream that does not end.
func (s *Server) Gone() <-chan struct{} { return s.gone }

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		entry := map[string]any{"id": Model, "object": "model"}
		_ = json.Unmarshal(s.Listed, &entry)
		text, _ := json.Marshal(map[string]any{"object": "list", "data": []any{entry}})
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
		return
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	body, fault := s.check(r, raw)
	entry := Request{Body: string(raw), Status: http.StatusOK}
	s.mu.Lock()
	what := ""
	if fault == nil && len(s.next) > 0 {
		what, s.next = s.next[0], s.next[1:]
	}
	s.mu.Unlock()
	if f := s.Errors[providers.Class(what)]; fault == nil && f != nil {
		fault = f.with(values{"asked": "8192"})
	}
	if fault != nil {
		entry.Status = fault.Status
		s.record(entry)
		fault.write(w)
		return
	}
	reply := s.reply(body)
	end := s.finish(reply)
	if reason, ok := strings.CutPrefix(what, "end:"); ok {
		end = reason
	}
	entry.Input, entry.Output, entry.Limit = reply.input, reply.output, body.limit
	events, message := s.render(reply, end)
	s.record(entry)
	w.Header().Set("Content-Type", "text/event-stream")
	if s.Comment != "" {
		_, _ = fmt.Fprintf(w, ": %s\n\n", s.Comment)
	}
	switch what {
	case "cut", "hang", "stream":
		events = events[:(len(events)+1)/2]
		if what == "stream" {
			events = append(events, event{"error", string(s.Stream.Body)})
		}
	case "":
		s.mu.Lock()
		s.said[body.conversation] = append(s.said[body.conversation], message)
		s.mu.Unlock()
	}
	for _, e := range events {
		if s.Protocol != Chat {
			_, _ = fmt.Fprintf(w, "event: %s\n", e.name)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", e.data)
		_ = http.NewResponseController(w).Flush()
	}
	if what == "hang" {
		close(s.hangs)
		<-r.Context().Done()
		close(s.gone)
	}
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// values take the place of {name} in the body of a fault.
type values map[string]string

func (f *Fault) with(v values) *Fault {
	out := *f
	text := string(f.Body)
	for name, value := range v {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	out.Body = json.RawMessage(text)
	return &out
}

func (f *Fault) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write(f.Body)
}

// Client returns a client whose requests go to the server without a network, so that a test in a
// bubble of package synctest can make them.
func (s *Server) Client() *http.Client { return &http.Client{Transport: inProcess{s}} }

type inProcess struct{ http.Handler }

// RoundTrip implements [http.RoundTripper].
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = writer.CloseWithError(context.Cause(ctx)) })
	answer := &pipeWriter{recorder: httptest.NewRecorder(), to: writer, begun: make(chan struct{})}
	r = r.Clone(ctx)
	if r.Body == nil {
		r.Body = http.NoBody
	}
	go func() {
		t.ServeHTTP(answer, r)
		answer.begin()
		_ = writer.Close()
		cancel(nil)
	}()
	<-answer.begun
	return &http.Response{
		StatusCode: answer.recorder.Code, Status: strconv.Itoa(answer.recorder.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.recorder.Header().Clone(), Body: body{reader, cancel}, Request: r, ContentLength: -1,
	}, nil
}

// A pipeWriter passes on a response as it is written.
type pipeWriter struct {
	recorder *httptest.ResponseRecorder // has the header and the status
	to       *io.PipeWriter
	begun    chan struct{}
	once     sync.Once
}

func (w *pipeWriter) begin()              { w.once.Do(func() { close(w.begun) }) }
func (w *pipeWriter) Header() http.Header { return w.recorder.Header() }
func (w *pipeWriter) WriteHeader(status int) {
	w.recorder.Code = status
	w.begin()
}
func (w *pipeWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.to.Write(p)
}

// body is that of a response. Closed, it ends the request.
type body struct {
	*io.PipeReader
	cancel context.CancelCauseFunc
}

func (b body) Close() error {
	b.cancel(nil)
	return b.PipeReader.Close()
}
