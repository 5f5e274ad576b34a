package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// SocketName is the name of the socket in the state folder.
const SocketName = "control.sock"

// ServerOptions configure a [Server]. State and Handler must be set.
type ServerOptions struct {
	// State is the folder whose store the caller has open. The lock of the store
	// makes it safe to replace a socket file there.
	State string
	// Handler serves every path but GET /v1/owner. Its clients run as the user of
	// this process, so it needs no token.
	Handler http.Handler
	// Runs lists the active runs of this process. Default none.
	Runs func() []string
	// AcceptsRuns reports whether the process starts and resumes runs for other
	// processes. Default: it does not.
	AcceptsRuns func() bool
	// Serves is set by a server, which stays when its runs have ended. Default false.
	Serves bool
	// Version is the version of the program. Default empty.
	Version string
	// Logger receives faults of the listener. Default discards.
	Logger *slog.Logger
}

// A Server serves the control socket.
//
// # Concurrency
//
// Requests are served concurrently. Close waits for a grace period, cancels the
// requests that are left and returns when all have ended. It may be called more
// than once.
type Server struct {
	opt     ServerOptions
	info    Info
	http    *http.Server
	cancel  context.CancelFunc
	serving sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	requests sync.WaitGroup // handlers that have begun; Add with mu held
}

// Listen creates the socket in the state folder and serves it. A socket file of
// a dead process is replaced.
func Listen(opt ServerOptions) (*Server, error) {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	l, err := listen(opt.State)
	if err != nil {
		return nil, fmt.Errorf("listen in %q: %w", opt.State, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{opt: opt, cancel: cancel, info: Info{PID: os.Getpid(), Version: opt.Version, Started: time.Now().UTC(), Serves: opt.Serves}}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(opt.Logger.Handler(), slog.LevelWarn),
	}
	s.serving.Go(func() {
		if err := s.http.Serve(&sameUser{Listener: l, log: opt.Logger}); err != nil && !errors.Is(err, http.ErrServerClosed) {
			opt.Logger.Error("control socket closed", "error", err)
		}
	})
	return s, nil
}

// gracePeriod is how long Close waits for requests to end. A request that stops
// a run is answered when the run has ended, and its end may be why the owner
// closes.
const gracePeriod = 2 * time.Second

// Close closes the listener, ends the requests and removes the socket file. Call
// it before closing the store: afterwards another process may own the folder.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	ctx, end := context.WithTimeout(context.Background(), gracePeriod)
	defer end()
	err := s.http.Shutdown(ctx)
	s.cancel()
	if err != nil {
		err = s.http.Close()
	}
	s.serving.Wait()
	s.requests.Wait()
	if removeErr := os.Remove(filepath.Join(s.opt.State, SocketName)); removeErr != nil && !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}

// begin registers a request for Close to wait for. It reports false if the
// server is closing.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.requests.Add(1)
	}
	return !s.closed
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/owner", s.answer(func() Info {
		info := s.info
		info.Runs = []string{}
		if s.opt.Runs != nil {
			info.Runs = append(info.Runs, s.opt.Runs()...)
		}
		info.AcceptsRuns = s.opt.AcceptsRuns != nil && s.opt.AcceptsRuns()
		return info
	}))
	mux.HandleFunc("/", s.forward)
	return mux
}

// answer writes the result of describe as JSON.
func (s *Server) answer(describe func() Info) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if !s.begin() {
			httpproblem.Write(w, abi.New(abi.Unavailable, "the process that has the store is ending"))
			return
		}
		defer s.requests.Done()
		text, err := json.Marshal(describe())
		if err != nil {
			httpproblem.Write(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n')) // fails only if the client has disconnected
	}
}

// forward calls Handler. The request is registered, so that Close also waits for
// connections that have become WebSockets, which http.Server does not track.
func (s *Server) forward(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		httpproblem.Write(w, abi.New(abi.Unavailable, "the process that has the store is ending"))
		return
	}
	defer s.requests.Done()
	s.opt.Handler.ServeHTTP(w, r)
}
