package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/sentinel-runtime/sentinel/host/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/host/ops/metrics"
	"github.com/sentinel-runtime/sentinel/host/ops/tracing"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	watch "github.com/sentinel-runtime/sentinel/triggers/files"
)

// A Server is the host process as a value. It has the store of its state folder
// from Open to Close.
//
// # Concurrency
//
// Run is called once. Everything else may be called at any time by anyone; Close
// may come more than once and ends a Run that is on.
type Server struct {
	opt     Options
	log     *slog.Logger
	host    *host.Host
	feed    *livefeed.Feed
	sockets *livefeed.Sockets
	metrics *metrics.Metrics
	tracer  *tracing.Tracer // nil unless traces are wanted
	folder  *foldersync.Reload
	api     *api.API
	state   state

	socketMu sync.Mutex
	socket   *control.Server // nil until there is space for it, and once it is closed

	life  context.Context // of Run; ended by Close
	stop  context.CancelFunc
	ended chan struct{} // closed when Run has ended, or never begins
	begun sync.Once
	close sync.Once
	err   error
}

// Open takes the store and readies everything; nothing runs, fires or listens
// on a port before [Server.Run], but the socket in the state folder answers.
// When another process has the store, errors.Is(err, runtime.ErrHeld) holds.
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
	s := &Server{opt: opt, log: opt.Logger, ended: make(chan struct{}), feed: livefeed.New(livefeed.Options{})}
	s.life, s.stop = context.WithCancel(context.Background())
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context) (err error) {
	s.metrics = metrics.New(s.figures())
	opt := s.opt.Host
	if opt.Settings == nil {
		if opt.Settings, err = config.Load(config.Options{File: opt.Config, Getenv: opt.Getenv, Flags: opt.Set}); err != nil {
			return err
		}
	}
	if s.tracer, err = s.openTracer(opt.Settings.Tracing.Endpoint); err != nil {
		return err
	}
	opt.Logger, opt.Observer, opt.Kinds = s.log, s.observer(), append(opt.Kinds, s.opt.Kinds...)
	opt.Watched, opt.Regrant = true, s.regrant
	opt.Files = (*files)(s)
	if !trust.Supported {
		s.log.Warn("who may write definitions, plugins and the state is not checked: this system has no Unix modes")
	}
	if s.host, err = host.Open(ctx, opt); err != nil {
		return err
	}
	if s.folder, err = s.openFolder(); err != nil {
		return err
	}
	s.sockets = livefeed.Handler(livefeed.HandlerOptions{
		Feed: s.feed, Version: s.opt.Version, Logger: s.log, MaxConns: watchers(),
		AllowedOrigins: func(*http.Request) bool { return true }, // the API's guard has judged already
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

// openSocket puts the control socket into the state folder.
func (s *Server) openSocket() error {
	s.socketMu.Lock()
	defer s.socketMu.Unlock()
	socket, err := control.Listen(control.ServerOptions{
		State: s.host.State(), Version: s.opt.Version, Logger: s.log, Serves: true,
		Runs: s.runs, Handler: s.api.Local(),
	})
	if err != nil {
		return err
	}
	s.socket = socket
	return nil
}

// closeSocket takes the control socket away.
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

// socketRetry is the time between two tries to make the socket.
const socketRetry = time.Second

// retrySocket makes the socket once there is space, until ctx ends.
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

// openAPI makes the API over this server's parts.
func (s *Server) openAPI() (*api.API, error) {
	settled := s.host.Settings().Serve
	tokens, err := s.tokens()
	if err != nil {
		return nil, err
	}
	return api.New(api.Options{
		Commands: (*commands)(s), Tokens: tokens, NoAuth: settled.NoAuth, Hosts: settled.Hosts,
		Hooks: s.host.Runtime(), Feed: s.sockets, Metrics: s.metrics.Handler(), Logs: s.openLog,
		Health: s.health, Ready: s.ready, Version: s.opt.Version, Logger: s.log,
		Observe: func(o api.Observation) { s.metrics.HTTP(o.Route, o.Status, o.Duration) },
	})
}

// Handler is the API for programs that listen themselves. It asks for tokens
// and checks Host and Origin as it does on a port of its own.
func (s *Server) Handler() http.Handler { return s.api.Handler() }

// Host returns what the server has open: the engine, the commands.
func (s *Server) Host() *host.Host { return s.host }

// Token returns the bearer token of the API.
func (s *Server) Token() (string, error) { return s.tokenStore().Token() }

func (s *Server) tokenStore() api.TokenStore {
	return api.TokenStore{State: s.host.State(), Trust: s.host.Trust()}
}

// Close ends Run, if it is on, as a context that ends does, and lets go of the
// store. It is idempotent.
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
		if s.tracer != nil {
			ctx, cancel := context.WithTimeout(context.Background(), flushTime)
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

// openLog opens what a run told.
func (s *Server) openLog(run sentinels.RunID) (io.ReadCloser, error) {
	f, _, err := regularfile.Open(s.host.RunLog(run))
	return f, err
}

// watchers is how many clients may follow the live feed at once: three quarters of
// the connections that the API's port takes, so that requests always find one.
func watchers() int { return api.MaxConns() * 3 / 4 }

// flushTime is how long the last traces may take to their collector.
const flushTime = 3 * time.Second

// openTracer makes the traces, if somebody wants them.
func (s *Server) openTracer(endpoint string) (*tracing.Tracer, error) {
	getenv := s.opt.Host.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	opt, wanted, err := tracing.FromEnv(func(name string) string {
		if value := getenv(name); value != "" || name != "OTEL_EXPORTER_OTLP_ENDPOINT" {
			return value
		}
		return endpoint // the setting stands below the variables that everybody knows
	})
	if err != nil || !wanted {
		return nil, err
	}
	opt.Version, opt.Logger = s.opt.Version, s.log
	return tracing.New(opt)
}

// openFolder makes what follows the folders with definitions and plugins.
func (s *Server) openFolder() (*foldersync.Reload, error) {
	if err := os.MkdirAll(filepath.Join(s.host.Dir(), "sentinels"), 0o755); runtime.IsDiskFull(err) {
		s.log.Warn("there is no folder of definitions yet", "error", err) // one that is made later is watched
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
			}
			s.feed.Publish(topic, "file", f)
		},
	})
}

// runs are those that this process carries out, for people who want the store.
func (s *Server) runs() []string {
	var ids []string
	for _, r := range s.live() {
		ids = append(ids, string(r.ID))
	}
	return ids
}
