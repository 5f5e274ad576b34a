package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// SocketName is the name of the socket in the state folder.
const SocketName = "owner.sock"

// maxBody bounds the parameters of one command, in bytes.
const maxBody = 16 << 20

// ServerOptions configure a [Server]. State and one of Call and Handler must be
// set.
type ServerOptions struct {
	// State is the folder whose store the caller has open. Having it open is
	// what makes replacing a socket file there safe.
	State string
	// Call carries out a command for the person behind the other process. Its
	// context ends when that process goes away or the server closes.
	Call func(ctx context.Context, name string, params json.RawMessage) (json.RawMessage, error)
	// Handler answers every path but GET /v1/owner, the commands too, in place
	// of Call and Commands. Who gets this far is the user that this process
	// belongs to, so it asks for no token. Default none.
	Handler http.Handler
	// Commands lists what Call takes. Default none.
	Commands func() []Command
	// Runs lists the runs that this process carries out. Default none.
	Runs func() []string
	// Serves says that the process stays and takes runs of others in. Default
	// false: it ends with what it does.
	Serves bool
	// Version is the program's. Default empty.
	Version string
	// Logger takes faults of the listener. Default discards.
	Logger *slog.Logger
}

// A Server answers other processes of the same user.
//
// # Concurrency
//
// Requests are answered concurrently. Close gives those that are under way a
// moment, cancels what is left of them and returns when all have ended; it may
// be called more than once.
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

// Listen puts the socket into the state folder and answers on it. A socket file
// that a dead process left is replaced.
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
			opt.Logger.Error("owner's socket is closed", "error", err)
		}
	})
	return s, nil
}

// grace is how long Close lets requests go on. One that stops a run is answered
// when the run has ended, and that may be what the owner closes for.
const grace = 2 * time.Second

// Close ends the listener and the requests under way, and takes the socket
// away. Close it before the store, while the folder is still the caller's.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	ctx, end := context.WithTimeout(context.Background(), grace)
	defer end()
	err := s.http.Shutdown(ctx)
	s.cancel()
	if err != nil {
		err = s.http.Close()
	}
	s.serving.Wait()
	s.requests.Wait()
	if gone := os.Remove(filepath.Join(s.opt.State, SocketName)); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// begin counts a request in, unless the server is closing.
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
	mux.HandleFunc("GET /v1/owner", s.answer(func(*http.Request) (any, error) {
		info := s.info
		info.Runs = []string{}
		if s.opt.Runs != nil {
			info.Runs = append(info.Runs, s.opt.Runs()...)
		}
		return info, nil
	}))
	if s.opt.Handler != nil {
		mux.HandleFunc("/", s.pass)
		return mux
	}
	mux.HandleFunc("GET /v1/commands", s.answer(func(*http.Request) (any, error) {
		if s.opt.Commands == nil {
			return []Command{}, nil
		}
		return s.opt.Commands(), nil
	}))
	mux.HandleFunc("POST /v1/commands/{name...}", s.answer(s.call))
	mux.HandleFunc("/", s.answer(func(r *http.Request) (any, error) {
		return nil, abi.New(abi.NotFound, fmt.Sprintf("%s %s: there is nothing here", r.Method, r.URL.Path))
	}))
	return mux
}

// answer renders what a handler returns; errors become problems here and
// nowhere else.
func (s *Server) answer(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.begin() {
			httpproblem.Write(w, abi.New(abi.Unavailable, "the process that has the store is ending"))
			return
		}
		defer s.requests.Done()
		body, err := do(r)
		var text []byte
		if err == nil {
			text, err = json.Marshal(body)
		}
		if err != nil {
			httpproblem.Write(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n')) // an error here is the other side's going away
	}
}

// pass hands a request on. It is counted, so that Close waits for it too when
// its connection has become a WebSocket.
func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		httpproblem.Write(w, abi.New(abi.Unavailable, "the process that has the store is ending"))
		return
	}
	defer s.requests.Done()
	s.opt.Handler.ServeHTTP(w, r)
}

func (s *Server) call(r *http.Request) (any, error) {
	params, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, abi.New(abi.Limit, fmt.Sprintf("parameters have more than %d bytes", maxBody))
	}
	if err != nil {
		return nil, abi.New(abi.BadFields, fmt.Sprintf("read parameters: %v", err))
	}
	if len(params) == 0 {
		params = []byte("{}")
	}
	limits := strictjson.Limits{Bytes: maxBody, Depth: 72, Keys: 100_000, StringBytes: maxBody} // as POST /v1/commands, but for the bytes
	if err := strictjson.Check(params, limits); err != nil {
		return nil, httpproblem.BadJSON("parameters", err)
	}
	result, err := s.opt.Call(r.Context(), r.PathValue("name"), params)
	if err == nil && len(result) == 0 {
		result = json.RawMessage("null")
	}
	return result, err
}
