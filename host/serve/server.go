package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/host/ops/metrics"
	"github.com/sentinel-runtime/sentinel/host/ops/tracing"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	watch "github.com/sentinel-runtime/sentinel/triggers/files"
)

// A Server is a host with its API, live feed and watched folder. It owns the
// store of its state folder from Open to Close.
//
// # Concurrency
//
// Run may be called once. All other methods are safe for concurrent use. Close
// may be called more than once, and ends an active Run.
type Server struct {
	opt      Options
	log      *slog.Logger
	host     *host.Host
	feed     *livefeed.Feed
	sockets  *livefeed.Sockets
	metrics  *metrics.Metrics
	activity activityLog
	tracer   *tracing.Tracer // nil unless tracing is configured
	folder   *foldersync.Syncer
	api      *api.API
	state    state
	opened   time.Time

	socketMu sync.Mutex
	socket   *control.Server // nil until there is disk space for it, and once it is closed

	life  context.Context // of Run; canceled by Close
	stop  context.CancelFunc
	ended chan struct{} // closed when Run has ended, or never begins
	begun sync.Once
	close sync.Once
	err   error
}

// Open opens the store and prepares the server. Nothing runs, fires or listens on
// a port before [Server.Run], but the control socket answers. If another process
// has the store, the error is [runtime.ErrHeld].
func Open(ctx context.Context, opt Options) (*Server, error) {
	if opt.Logger == nil {
		opt.Logger = opt.Host.Logger
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Version == "" {
		opt.Version = "dev"
	}
	opt.Host.Redactor = new(redact.Redactor)
	feed := livefeed.New(livefeed.Options{Redact: opt.Host.Redactor.JSON})
	s := &Server{opt: opt, log: opt.Logger, opened: time.Now().UTC(), ended: make(chan struct{}), feed: feed}
	s.life, s.stop = context.WithCancel(context.Background())
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context) (err error) {
	opt := s.opt.Host
	if opt.Settings == nil {
		if opt.Settings, err = config.Load(config.Options{File: opt.Config, Getenv: opt.Getenv, Flags: opt.Set}); err != nil {
			return err
		}
	}
	if s.tracer, err = s.openTracer(opt.Settings.Tracing.Endpoint); err != nil {
		return err
	}
	s.metrics = metrics.New(s.gauges())
	opt.Logger, opt.Observer, opt.Recorded, opt.Kinds = s.log, s.observer(), s.activity.recorded, append(opt.Kinds, s.opt.Kinds...)
	opt.Tickets = ticket.Observer{
		Retried:   func(c retry.Category, delay time.Duration) { s.metrics.TicketRetried(string(c), delay) },
		Exhausted: func(retry.Category) { s.metrics.TicketExhausted() }, Recovered: s.metrics.TicketRecovered,
	}
	opt.Version, opt.Watched, opt.Regrant = s.opt.Version, true, s.regrant
	opt.Files = (*files)(s)
	if !trust.Supported {
		s.log.Warn("permissions of definitions, plugins and the state are not checked: this system has no Unix modes")
	}
	if s.host, err = host.Open(ctx, opt); err != nil {
		return err
	}
	s.log = s.host.Logger()                                       // without secrets
	if err := s.opt.LogPlace.Record(s.host.State()); err != nil { // no reason not to serve
		s.log.Warn("where this log is cannot be recorded: sentinel logs does not find it", "error", err)
	}
	s.activity.open(s.log)
	if s.folder, err = s.openFolder(); err != nil {
		return err
	}
	s.sockets = livefeed.Handler(livefeed.HandlerOptions{
		Feed: s.feed, Version: s.opt.Version, Logger: s.log, MaxConns: maxSockets(), Redact: s.host.WithoutSecrets, Busy: api.Busy,
		AllowedOrigins: func(*http.Request) bool { return true }, // the API's guard has checked the origin
	})
	if s.api, err = s.openAPI(); err != nil {
		return err
	}
	err = s.openSocket()
	if runtime.IsDiskFull(err) {
		s.log.Error("other processes of this user cannot reach this one until there is space for its socket", "error", err)
		return nil
	}
	return err
}

// openSocket opens the control socket.
func (s *Server) openSocket() error {
	s.socketMu.Lock()
	defer s.socketMu.Unlock()
	socket, err := control.Listen(control.ServerOptions{
		State: s.host.State(), Handler: s.api.Local(), Logger: s.log,
		Limit: func(l net.Listener) net.Listener { return api.LimitConns(l, s.log) }, ConnContext: api.ConnContext, ConnState: api.ConnState,
	})
	if err != nil {
		return err
	}
	s.socket = socket
	return nil
}

// closeSocket closes and removes the control socket.
func (s *Server) closeSocket() error {
	s.socketMu.Lock()
	defer s.socketMu.Unlock()
	if s.socket == nil {
		return nil
	}
	err := s.socket.Close()
	s.socket = nil
	return err
}

// socketRetry is the time between attempts to open the socket.
const socketRetry = time.Second

// retrySocket retries to open the socket until it is open or ctx ends.
func (s *Server) retrySocket(ctx context.Context) {
	for {
		s.socketMu.Lock()
		there := s.socket != nil
		s.socketMu.Unlock()
		if there || s.openSocket() == nil {
			return
		}
		select {
		case <-time.After(socketRetry):
		case <-ctx.Done():
			return
		}
	}
}

// openAPI creates the API of this server.
func (s *Server) openAPI() (*api.API, error) {
	settings := s.host.Settings().Serve
	tokens, err := s.tokens()
	if err != nil {
		return nil, err
	}
	return api.New(api.Options{
		Commands: (*commands)(s), Tokens: tokens, NoAuth: settings.NoAuth, Hosts: settings.Hosts,
		Hooks: s.host.Runtime(), Chain: s.host.SenderChain, Sends: s.host.Sends, Feed: s.sockets, RefuseSocket: livefeed.Refuse, Metrics: s.metrics.Handler(),
		Logs: s.host.OpenRunLog, Output: s.openOutput, Schema: s.host.Schema,
		Health: s.health, Ready: s.ready, Version: s.opt.Version, Logger: s.log,
		Observe: func(o api.Observation) { s.metrics.HTTP(o.Route, o.Status, o.Duration) },
		Denied:  func(d api.Denial) { s.host.RecordDenial(d.Actor, d.Event, d.Remote, d.Process, d.Err) },
		Mounts: []api.Mount{api.OwnerMount(control.Describe(func() control.Info {
			return control.Info{PID: os.Getpid(), Version: s.opt.Version, Started: s.opened, Runs: s.runs(), Serves: true}
		})), api.BackupMount(s.host.BackupHandler())},
	})
}

// Handler returns the API for programs with a listener of their own. It requires
// tokens and checks Host and Origin, as on the server's port.
func (s *Server) Handler() http.Handler { return s.api.Handler() }

// Host returns the host that the server has open.
func (s *Server) Host() *host.Host { return s.host }

// Token returns the bearer token of the API.
func (s *Server) Token() (string, error) { return s.tokenStore().Token() }

func (s *Server) tokenStore() api.TokenStore {
	return api.TokenStore{State: s.host.State(), Trust: s.host.Trust()}
}

// Close ends an active Run, as the end of its context does, and closes the store.
// It is idempotent.
func (s *Server) Close() error {
	s.stop()
	s.begun.Do(func() { close(s.ended) })
	<-s.ended
	s.close.Do(func() {
		var errs []error
		errs = append(errs, s.closeSocket())
		if s.host != nil {
			errs = append(errs, s.host.Close())
		}
		s.activity.close()
		if s.tracer != nil {
			ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
			errs = append(errs, s.tracer.Close(ctx))
			cancel()
		}
		s.feed.Close()
		if s.sockets != nil {
			s.sockets.Close()
		}
		s.err = errors.Join(errs...)
	})
	return s.err
}

// openOutput opens the output of an execution.
func (s *Server) openOutput(ctx context.Context, id string, opt api.OutputOptions) (api.Output, error) {
	return s.host.Output(ctx, id, host.OutputOptions(opt))
}

// maxSockets is how many clients may follow the live feed at once: three quarters
// of the connections of the API's port, so that some are left for requests.
func maxSockets() int { return api.MaxConns() * 3 / 4 }

// flushTimeout bounds the export of the last traces at the end.
const flushTimeout = 3 * time.Second

// openTracer returns a tracer, or nil if tracing is not configured.
func (s *Server) openTracer(endpoint string) (*tracing.Tracer, error) {
	getenv := s.opt.Host.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	opt, wanted, err := tracing.FromEnv(func(name string) string {
		if value := getenv(name); value != "" || name != "OTEL_EXPORTER_OTLP_ENDPOINT" {
			return value
		}
		return endpoint // the variables of OpenTelemetry override the setting
	})
	if err != nil || !wanted {
		return nil, err
	}
	opt.Version, opt.Logger = s.opt.Version, s.log
	return tracing.New(opt)
}

// openFolder returns the synchronization of the folders with definitions and
// plugins.
func (s *Server) openFolder() (*foldersync.Syncer, error) {
	if err := os.MkdirAll(filepath.Join(s.host.Dir(), "sentinels"), 0o755); runtime.IsDiskFull(err) {
		s.log.Warn("there is no folder of definitions yet", "error", err) // a folder that is created later is watched
	} else if err != nil {
		return nil, fmt.Errorf("make folder of definitions: %w", err)
	}
	rt := s.host.Runtime()
	return foldersync.New(foldersync.Options{
		Dir: s.host.Dir(), Workspace: s.host.Workspace(), Marks: filepath.Join(s.host.State(), "files.json"),
		Trust: s.host.Trust(), Definitions: rt, Plugins: rt, Lock: lock.Folder{Dir: filepath.Join(s.host.Dir(), "plugins")}, Logger: s.log,
		Watch: watch.Options{Rescan: s.host.Settings().Serve.Rescan.Std()},
		Changed: func(f foldersync.FileInfo) {
			topic := livefeed.TopicSentinels
			if f.Kind == foldersync.KindPlugin {
				topic = livefeed.TopicPlugins
				if f.State == foldersync.Gone && f.Plugin != "" {
					s.host.RecordRemovedPlugin(f.Plugin, f.Digest, f.File)
				}
			}
			s.feed.Publish(topic, "file", f)
		},
	})
}

// runs returns the active runs of this process, for users that want the store.
func (s *Server) runs() []string {
	ids := []string{}
	for _, r := range s.activeRuns() {
		ids = append(ids, string(r.ID))
	}
	return ids
}
