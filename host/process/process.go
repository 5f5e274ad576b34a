package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options configure a [Process].
type Options struct {
	// Host says which store is opened and how; see [host.Options]. Its Observer is
	// replaced.
	Host host.Options
	// Version is the version of the program, sent to clients. Default "dev".
	Version string
	// Private keeps other processes out: there is no control socket. It is for a
	// store that only this process knows.
	Private bool
}

// A Process has the store of a state folder open, from [Open] to Close.
//
// # Concurrency
//
// All methods are safe for concurrent use. Close may be called once.
type Process struct {
	host      *host.Host
	feed      *livefeed.Feed
	sockets   *livefeed.Sockets
	socket    *control.Server // nil if private
	admission admission
	version   string
	opened    time.Time
	tokens    *api.TokenFile // nil if private
	log       *slog.Logger

	handler func() (http.Handler, error) // of the control socket; built when it is first used

	events    context.CancelFunc // ends the publication of events; nil before AcceptRuns
	following sync.WaitGroup
}

// The longest output and body in the feed, in bytes. They are larger than those of a
// server, whose feed many clients share: a run that is followed from here shows
// everything that its log has.
const (
	maxOutput = 8 << 20
	maxBody   = 16 << 20
)

// Open opens the store. If another process has it, the error is [runtime.ErrHeld].
func Open(ctx context.Context, opt Options) (*Process, error) {
	if opt.Host.Logger == nil {
		opt.Host.Logger = slog.New(slog.DiscardHandler)
	}
	opt.Host.Redactor = new(redact.Redactor)
	feed := livefeed.New(livefeed.Options{MaxOutput: maxOutput, MaxBody: maxBody, Redact: opt.Host.Redactor.JSON})
	p := &Process{version: opt.Version, opened: time.Now().UTC(), log: opt.Host.Logger, feed: feed}
	p.handler = sync.OnceValues(p.openAPI)
	if err := p.open(ctx, opt); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Process) open(ctx context.Context, opt Options) (err error) {
	opt.Host.Observer, opt.Host.Version = p.feed.Observer(), p.version
	if p.host, err = host.Open(ctx, opt.Host); err != nil {
		return err
	}
	p.log = p.host.Logger() // without secrets
	p.sockets = livefeed.Handler(livefeed.HandlerOptions{
		Feed: p.feed, Version: p.version, Logger: p.log, Redact: p.host.WithoutSecrets,
		AllowedOrigins: func(*http.Request) bool { return true }, // the API has checked the origin
	})
	if opt.Private {
		return nil
	}
	// Clients look for the token when they find the socket.
	store := api.TokenStore{State: p.host.State(), Trust: p.host.Trust()}
	if p.tokens, err = store.Open(p.log, p.host.RedactToken); err != nil {
		return err
	}
	p.socket, err = control.Listen(control.ServerOptions{
		State: p.host.State(), Handler: http.HandlerFunc(p.serveHTTP), Logger: p.log,
		Limit: func(l net.Listener) net.Listener { return api.LimitConns(l, p.log) }, ConnContext: api.ConnContext, ConnState: api.ConnState,
	})
	return err
}

// openAPI creates the API that the control socket serves.
func (p *Process) openAPI() (http.Handler, error) {
	a, err := api.New(api.Options{
		Commands: (*commands)(p), Tokens: p.tokens, Feed: p.sockets, Version: p.version, Logger: p.log, Schema: p.host.Schema,
		Logs: p.host.OpenRunLog,
		Output: func(ctx context.Context, id string, opt api.OutputOptions) (api.Output, error) {
			return p.host.Output(ctx, id, host.OutputOptions(opt))
		},
		Denied: func(d api.Denial) { p.host.RecordDenial(d.Actor, d.Event, d.Remote, d.Process, d.Err) },
		Mounts: []api.Mount{api.OwnerMount(control.Describe(func() control.Info {
			return control.Info{PID: os.Getpid(), Version: p.version, Started: p.opened, Runs: p.activeRuns(), AcceptsRuns: p.admission.isOpen()}
		})), api.BackupMount(p.host.BackupHandler())},
	})
	if err != nil {
		return nil, err
	}
	return a.Local(), nil
}

func (p *Process) serveHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := p.handler()
	if err != nil {
		httpproblem.Write(w, err)
		return
	}
	h.ServeHTTP(w, r)
}

// Close closes the control socket and then the store: a process that takes the store
// next creates a socket of the same name.
func (p *Process) Close() error {
	if p.events != nil {
		p.events()
	}
	p.following.Wait()
	if p.sockets != nil {
		p.sockets.Close()
	}
	var errs []error
	if p.socket != nil {
		errs = append(errs, p.socket.Close())
	}
	if p.host != nil {
		errs = append(errs, p.host.Close())
	}
	p.feed.Close()
	return errors.Join(errs...)
}

// Host returns the host that is open.
func (p *Process) Host() *host.Host { return p.host }

// activeRuns returns the active runs of this process, oldest first, without the
// children of others: who names a root run names its children.
func (p *Process) activeRuns() []string {
	runs, err := p.host.Runtime().Runs(runtime.RunFilter{Statuses: runtime.Unfinished()})
	if err != nil {
		p.log.Warn("runs cannot be listed", "error", err)
		return []string{}
	}
	live := map[sentinels.RunID]bool{}
	for _, r := range runs {
		live[r.ID] = r.Live
	}
	ids := []string{}
	for i := len(runs) - 1; i >= 0; i-- {
		if r := runs[i]; r.Live && !live[r.Parent] {
			ids = append(ids, string(r.ID))
		}
	}
	return ids
}

// publishEvents publishes the event log on the live feed until the process closes.
func (p *Process) publishEvents() {
	ctx, end := context.WithCancel(context.Background())
	p.events = end
	p.following.Go(func() {
		if err := p.feed.PublishEvents(ctx, p.host.Runtime(), nil); err != nil {
			p.log.Error("events are no longer published to the live feed", "error", err)
		}
	})
}

var _ client.Engine = (*Process)(nil)

// errClosed is the error of a watch whose process has closed.
var errClosed = fmt.Errorf("watch: %w", livefeed.ErrClosed)
