package notify

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Names of the configured targets.
const (
	Webhook = "webhook"
	Mail    = "email"
	Command = "command"
)

// remembered is how many deliveries are known, so that a repetition leaves them out.
const remembered = 1000

// Options are what a Service needs. The zero value sends nothing.
type Options struct {
	Webhook string // https URL, http only for this machine; default none
	// Secret signs the requests of the webhook: base64 with an optional prefix whsec_.
	// Default: they are not signed.
	Secret   func() (string, error)
	Format   string                   // of the webhook's body, see [Formats]; default [Standard]
	Template string                   // of the format [Template]
	Email    Email                    // default none
	Command  string                   // shell line that gets each message; default none
	Shell    Shell                    // starts Command
	Rate     int                      // messages of each owner in an hour; default no bound
	Logger   *slog.Logger             // default none
	Notifier Notifier                 // further targets; default none
	Hide     func(text string) string // removes secrets; default the text as it is
	Timeout  time.Duration            // of a delivery; default 10 s
	// Transport sends the requests of the webhook; default that of package http, with the
	// proxy of the environment.
	Transport http.RoundTripper
	Now       func() time.Time // default [time.Now]
}

// A Service sends messages.
type Service struct {
	opt  Options
	http *http.Client

	template *template.Template // of the format Template

	ctx        context.Context // of the background, until Close
	cancel     context.CancelFunc
	background sync.WaitGroup

	mu     sync.Mutex
	rates  map[string]*rate // by owner of messages
	closed bool
	done   map[string]bool // deliveries that were taken, by target and id
	ring   []string        // their keys, oldest first
}

// New returns a Service, or the error bad_fields for options that it cannot send with. The caller
// closes it.
func New(opt Options) (*Service, error) {
	if opt.Webhook != "" {
		if err := checkURL(opt.Webhook); err != nil {
			return nil, err
		}
	}
	if opt.Format == "" {
		opt.Format = Standard
	}
	var body *template.Template
	switch opt.Format {
	case Ntfy:
		if _, topic := ntfyTopic(opt.Webhook); opt.Webhook != "" && topic == "" {
			return nil, noTopic()
		}
	case Template:
		var err error
		if body, err = parseTemplate(opt.Template); err != nil {
			return nil, err
		}
	}
	if opt.Email.TLS == "" {
		opt.Email.TLS = StartTLS
	}
	if key, problem := opt.Email.Check(); problem != "" {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: key, Message: key + ": " + problem}
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Hide == nil {
		opt.Hide = func(text string) string { return text }
	}
	if opt.Timeout == 0 {
		opt.Timeout = 10 * time.Second
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	// A redirect would send the message to a server that is not configured.
	client := &http.Client{Transport: opt.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ctx, cancel := context.WithCancel(context.Background())
	return &Service{opt: opt, http: client, template: body, ctx: ctx, cancel: cancel, rates: map[string]*rate{}, done: map[string]bool{}}, nil
}

// Sent is what became of a message at one target.
type Sent struct {
	To     string `json:"to" jsonschema:"webhook, email, command, or the name of a notifier"`
	OK     bool   `json:"ok"`
	Status int    `json:"status,omitempty" jsonschema:"HTTP status that the webhook answered with"`
	Error  string `json:"error,omitempty"`
}

// Send sends a message to all targets at the same time. The results are in the order of
// the targets, and empty if there is none. It is an error if a target may take the message
// later, so that the caller repeats it with the same key, or if none took it. An empty key
// is that of no other message. What is left out because of [Options.Rate] is a result, not an
// error: a later message says how many there were.
func (s *Service) Send(ctx context.Context, m Message, key string) ([]Sent, error) {
	m, err := m.prepare(s.opt.Hide)
	if err != nil {
		return nil, err
	}
	id := "msg_" + rand.Text()
	if key != "" {
		sum := sha256.Sum256([]byte(key))
		id = "msg_" + hex.EncodeToString(sum[:16])
	}
	targets := s.targets()
	if len(targets) == 0 {
		return nil, nil
	}
	if !s.admit(m, id) {
		left := make([]Sent, len(targets))
		for i, t := range targets {
			left[i] = Sent{To: t.name, Error: fmt.Sprintf("left out: notify.rate is %d messages in an hour", s.opt.Rate)}
		}
		return left, nil
	}
	return s.deliver(ctx, targets, m, id)
}

// A target takes messages.
type target struct {
	name string
	key  string // differs from that of each other target
	// send returns the status of an answer of HTTP, 0 if there is none.
	send func(ctx context.Context, m Message, id string) (status int, err error)
}

// targets returns what takes messages now.
func (s *Service) targets() []target {
	var all []target
	if s.opt.Webhook != "" {
		all = append(all, target{Webhook, Webhook, s.post})
	}
	if s.opt.Email.Server != "" {
		all = append(all, target{Mail, Mail, func(ctx context.Context, m Message, id string) (int, error) { return 0, s.mail(ctx, m, id) }})
	}
	if s.opt.Command != "" {
		all = append(all, target{Command, Command, func(ctx context.Context, m Message, _ string) (int, error) { return 0, s.execute(ctx, m) }})
	}
	if s.opt.Notifier == nil {
		return all
	}
	for _, name := range s.opt.Notifier.Names() {
		all = append(all, target{name, "plugin " + name, func(ctx context.Context, m Message, id string) (int, error) {
			return 0, s.opt.Notifier.Notify(ctx, name, m, id)
		}})
	}
	return all
}

// deliver sends a message to all targets that have not taken it.
func (s *Service) deliver(ctx context.Context, targets []target, m Message, id string) ([]Sent, error) {
	sent, errs := make([]Sent, len(targets)), make([]error, len(targets))
	var work sync.WaitGroup
	for i, t := range targets {
		work.Go(func() {
			sent[i].To = t.name
			if sent[i].OK = s.was(t.key, id); sent[i].OK {
				return
			}
			limited, cancel := context.WithTimeout(ctx, s.opt.Timeout)
			defer cancel()
			if sent[i].Status, errs[i] = t.send(limited, m, id); errs[i] != nil {
				errs[i] = failure(ctx, limited, t.name, s.opt.Timeout, errs[i])
				sent[i].Error = s.opt.Hide(errs[i].Error())
				return
			}
			sent[i].OK = true
			s.remember(t.key, id)
		})
	}
	work.Wait()
	return sent, s.outcome(ctx, sent, errs)
}

// failure gives the error of a delivery a code.
func failure(ctx, limited context.Context, name string, limit time.Duration, err error) *abi.Error {
	out := &abi.Error{Code: abi.Unavailable, Message: name + ": " + err.Error()}
	switch e := abi.As(err); {
	case ctx.Err() != nil:
		out.Code = abi.Cancelled
	case limited.Err() != nil:
		out.Code, out.Message = abi.Timeout, fmt.Sprintf("%s: no answer within %s", name, limit)
	case e != nil:
		*out = *e
		out.Message = name + ": " + e.Message
	}
	return out
}

// outcome is the error of a message, nil if there is none: the one that a repetition can
// help with, else the first one if no target took the message.
func (s *Service) outcome(ctx context.Context, sent []Sent, errs []error) error {
	var first, later *abi.Error
	var texts []string
	taken := 0
	for i, err := range errs {
		e := abi.As(err)
		if e == nil {
			taken++
			continue
		}
		texts = append(texts, sent[i].Error)
		if first == nil {
			first = e
		}
		if later == nil && !e.Permanent && (e.Code == abi.Unavailable || e.Code == abi.Timeout) {
			later = e
		}
	}
	switch {
	case first == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("notify: %w", ctx.Err())
	case later == nil && taken > 0:
		return nil
	}
	out := *cmp.Or(later, first)
	out.Message = "notify: " + strings.Join(texts, "; ")
	if taken > 0 {
		out.Hint = "a repetition with the same key leaves out those that took the message"
	}
	return &out
}

func (s *Service) was(name, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done[name+" "+id]
}

func (s *Service) remember(name, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := name + " " + id
	s.done[key] = true
	if s.ring = append(s.ring, key); len(s.ring) > remembered {
		delete(s.done, s.ring[0])
		s.ring = s.ring[1:]
	}
}
