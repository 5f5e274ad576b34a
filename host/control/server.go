package control

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

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/internal/peer"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// SocketName is the name of the socket in the state folder.
const SocketName = "control.sock"

// ServerOptions configure a [Server]. State and Handler must be set.
type ServerOptions struct {
	// State is the folder whose store the caller has open. The lock of the store
	// makes it safe to replace a socket file there.
	State string
	// Handler serves every path, with [Describe] at [OwnerPath]. It requires the token
	// of the state folder, which the caller has created before: every process of the
	// user can connect, also one that may read no file.
	Handler http.Handler
	// Limit bounds the connections of the listener. Default: any number.
	Limit func(net.Listener) net.Listener
	// ConnContext adds what Handler needs to know of a connection to the context of its
	// requests. Default [peer.ConnContext].
	ConnContext func(context.Context, net.Conn) context.Context
	// ConnState is the field of that name of the [http.Server]. Default none.
	ConnState func(net.Conn, http.ConnState)
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
	if opt.Limit == nil {
		opt.Limit = func(l net.Listener) net.Listener { return l }
	}
	if opt.ConnContext == nil {
		opt.ConnContext = peer.ConnContext
	}
	l, err := listen(opt.State)
	if err != nil {
		return nil, fmt.Errorf("listen in %q: %w", opt.State, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{opt: opt, cancel: cancel}
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.forward),
		// Else OPTIONS * has an answer before the handler asks who comes.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            5 * time.Second,
		MaxHeaderBytes:               16 << 10,
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnContext:                  opt.ConnContext,
		ConnState:                    opt.ConnState,
		ErrorLog:                     slog.NewLogLogger(opt.Logger.Handler(), slog.LevelWarn),
	}
	s.serving.Go(func() {
		if err := s.http.Serve(opt.Limit(&sameUser{Listener: l, log: opt.Logger})); err != nil && !errors.Is(err, http.ErrServerClosed) {
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
