package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	stdruntime "runtime"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// DefaultAddr is the default address of a server.
const DefaultAddr = "127.0.0.1:8080"

// ListenOptions configure a [Server].
type ListenOptions struct {
	// Addr is host:port. Default [DefaultAddr]; port 0 chooses a free port.
	Addr string
	// CertFile and KeyFile hold the certificate for TLS, in PEM. Default none:
	// plain HTTP, for this machine only.
	CertFile, KeyFile string
	// TLSElsewhere states that a proxy in front of the server terminates TLS,
	// so that plain HTTP may listen on a public address. Tokens are still
	// required. Default false.
	TLSElsewhere bool
	// MaxConns bounds the connections open at once. At the limit a new
	// connection replaces an idle one. Default [MaxConns].
	MaxConns int
	// Paths reports whether a path is answered here. Default all are.
	Paths func(string) bool
	// Grace is how long active requests may take when the server closes.
	// Default 10 s.
	Grace time.Duration
}

// Bounds of every connection.
const (
	headerTime = 10 * time.Second // for the headers to arrive
	idleTime   = 2 * time.Minute  // between requests
	maxHeader  = 16 << 10         // bytes; the server reads 4 KB more
	maxConns   = 1024
	minConns   = 16
	graceTime  = 10 * time.Second
)

// Server serves an API at an address.
//
// # Concurrency
//
// Run is called once. Close may be called at any time, more than once, and
// before Run; it returns when everything has ended.
type Server struct {
	api    *API
	opt    ListenOptions
	l      net.Listener
	http   *http.Server
	tls    bool
	cancel context.CancelFunc // cancels active requests

	once     sync.Once
	closeErr error

	mu       sync.Mutex
	closed   bool
	requests sync.WaitGroup // active handlers; Add with mu held
}

// Listen opens the address; [Server.Run] serves it. An address that other
// machines can reach requires TLS and tokens; the hint of the error says how to
// configure them. ctx is used for opening only.
func (a *API) Listen(ctx context.Context, opt ListenOptions) (*Server, error) {
	opt.Addr = cmp.Or(opt.Addr, DefaultAddr)
	opt.MaxConns = cmp.Or(opt.MaxConns, MaxConns())
	opt.Grace = cmp.Or(opt.Grace, graceTime)
	config, err := opt.config()
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(opt.KeyFile); err == nil && info.Mode().Perm()&0o007 != 0 && stdruntime.GOOS != "windows" {
		a.log.Warn("every user of this machine can read the key of the certificate", "file", opt.KeyFile, "hint", "chmod 640, or 600")
	}
	addr, err := a.where(ctx, opt, config != nil)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("listen on %q: %v", opt.Addr, err), Hint: "choose another address with --listen HOST:PORT"}
	}
	// Below TLS, so that connections in the handshake count too.
	l = limitConns(l, opt.MaxConns, a.log)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	base, cancel := context.WithCancel(context.Background())
	s := &Server{api: a, opt: opt, l: l, tls: config != nil, cancel: cancel}
	handler := a.Handler()
	if opt.Paths != nil {
		handler = a.only(opt.Paths, handler)
	}
	// No ReadTimeout and no WriteTimeout: they count from the headers on, and a
	// command may take hours. Bodies and answers have deadlines of their own.
	s.http = &http.Server{
		Handler: s.counted(handler),
		// Else OPTIONS * has an answer before the handler asks who comes.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            headerTime,
		IdleTimeout:                  idleTime,
		MaxHeaderBytes:               maxHeader,
		BaseContext:                  func(net.Listener) context.Context { return base },
		ConnContext:                  ConnContext,
		ConnState:                    ConnState,
		ErrorLog:                     slog.NewLogLogger(a.log.Handler(), slog.LevelDebug), // such as failed handshakes, which any client can cause
	}
	return s, nil
}

// config returns the TLS configuration, nil for plain HTTP.
func (opt ListenOptions) config() (*tls.Config, error) {
	if opt.CertFile == "" && opt.KeyFile == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(opt.CertFile, opt.KeyFile)
	if err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("load certificate: %v", err), Hint: "give both a certificate and its key, in PEM"}
	}
	// Older versions have known weaknesses, and no client of the API needs
	// them. Nor does one need HTTP/2, whose connections have hundreds of requests each: the bound of
	// connections would be none of requests without a token.
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// resolve resolves the address and refuses a public one without TLS or tokens.
// It returns the checked IP address, so that a name cannot resolve to another
// one afterwards.
func (a *API) where(ctx context.Context, opt ListenOptions, secure bool) (string, error) {
	host, port, err := net.SplitHostPort(opt.Addr)
	if err != nil {
		return "", &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("listen on %q: %v", opt.Addr, err), Hint: "write HOST:PORT, such as " + DefaultAddr}
	}
	var ip net.IP
	if host != "" {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil || len(found) == 0 {
			return "", &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("listen on %q: %v", opt.Addr, err)}
		}
		ip = net.IP(found[0].Unmap().AsSlice())
		for _, f := range found {
			if v4 := f.Unmap(); v4.Is4() { // what users expect of "localhost"
				ip = net.IP(v4.AsSlice())
				break
			}
		}
	}
	if ip.IsLoopback() {
		return net.JoinHostPort(ip.String(), port), nil
	}
	switch {
	case a.opt.NoAuth:
		return "", &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("listen on %q: other machines can reach it, and no token is required", opt.Addr),
			Hint: "leave out --no-auth, or listen on " + DefaultAddr}
	case !secure && !opt.TLSElsewhere:
		return "", &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("listen on %q: other machines can reach it, and without TLS the network can read the token", opt.Addr),
			Hint: "give --tls-cert and --tls-key; or listen on " + DefaultAddr + " behind a proxy that terminates TLS; or give --tls-elsewhere if that proxy is on another machine"}
	}
	if ip == nil {
		return net.JoinHostPort("", port), nil
	}
	return net.JoinHostPort(ip.String(), port), nil
}

// Addr returns the address, with the actual port.
func (s *Server) Addr() net.Addr { return s.l.Addr() }

// URL returns the URL of the server for programs on this machine. With TLS the
// operator has to provide a certificate for that host.
func (s *Server) URL() string {
	scheme := "http"
	if s.tls {
		scheme = "https"
	}
	host, port, _ := net.SplitHostPort(s.l.Addr().String())
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// Run serves requests until ctx ends or the server is closed, and returns when
// all requests have ended.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // its error comes from the Close below
	defer stop()
	err := s.http.Serve(s.l)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, s.Close())
}

// Close stops accepting requests, lets active ones finish within the grace
// period, then cancels them and waits for them.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.api.Drain()
		ctx, end := context.WithTimeout(context.Background(), s.opt.Grace)
		defer end()
		// It waits for requests, but not for hijacked connections such as
		// WebSockets.
		err := s.http.Shutdown(ctx)
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.cancel()
		if err != nil {
			err = s.http.Close()
		}
		s.requests.Wait()
		if gone := s.l.Close(); gone != nil && !errors.Is(gone, net.ErrClosed) {
			err = errors.Join(err, gone)
		}
		s.closeErr = err
	})
	return s.closeErr
}

// counted makes Close wait for handlers of hijacked connections too.
func (s *Server) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			s.api.fail(w, r, abi.New(abi.Unavailable, "the server is stopping"))
			return
		}
		s.requests.Add(1)
		s.mu.Unlock()
		defer s.requests.Done()
		h.ServeHTTP(w, r)
	})
}
