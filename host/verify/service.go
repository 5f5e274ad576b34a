package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/host/internal/peer"
)

const (
	defaultReady = 30 * time.Second
	readyEvery   = 50 * time.Millisecond
)

// A service is one that was started for checks.
type service struct {
	url     string
	process *confine.Process
	offline bool         // it is in a network of its own
	failed  *CheckResult // why it does not answer

	mu      sync.Mutex
	problem *CheckResult // that another process answers in its place, or may
}

func (s *service) stop() {
	if s.process != nil {
		s.process.Stop()
	}
}

func (s *service) output() string {
	if s.process == nil {
		return ""
	}
	return strings.ToValidUTF8(string(s.process.Output()), "\uFFFD")
}

// start starts a service and waits until it is ready. One that does not become ready
// fails its checks, since it is part of the work; a port that is taken does not.
func (s *session) start(ctx context.Context, c *Service) *service {
	fail := func(own *service, r CheckResult) *service {
		own.failed = &r
		own.stop()
		return own
	}
	own := new(service)
	port, err := freePort(ctx, c.Port)
	if err != nil {
		return fail(own, skip(Infrastructure, "service: port %d is taken by another program: %v", c.Port, err))
	}
	line, missing := s.shellLine(c.Command)
	if missing != "" {
		return fail(own, skip(Refused, "service: {{%s}}: no such variable for checks", missing))
	}
	command := s.command(line, c.Network)
	own.offline = command.Offline
	command.Env = maps.Clone(command.Env)
	if command.Env == nil {
		command.Env = map[string]string{}
	}
	command.Env["PORT"] = strconv.Itoa(port)
	if own.process, err = s.v.opt.Confine.Begin(ctx, command); err != nil {
		return fail(own, skip(Infrastructure, "service: could not be started: %v", err))
	}
	own.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	ready := defaultReady
	if c.TimeoutMs > 0 {
		ready = time.Duration(c.TimeoutMs) * time.Millisecond
	}
	until := time.NewTimer(ready)
	defer until.Stop()
	for !own.answers(ctx, c.ReadyPath) {
		if r := own.answeredByAnother(); r != nil {
			return fail(own, *r)
		}
		select {
		case <-ctx.Done():
			return fail(own, skip(Infrastructure, "service: %v", ctx.Err()))
		case <-own.process.Done():
			result, err := own.process.Wait()
			if err != nil {
				return fail(own, skip(Infrastructure, "service: could not be started: %v", err))
			}
			message := fmt.Sprintf("service: it ended with exit code %d before it was ready", result.ExitCode) + s.notFound(result.ExitCode, own.output())
			if result.Limit != "" {
				message = "service: ended before it was ready, because " + result.Limit
			}
			return fail(own, CheckResult{Status: Failed, Message: message, Output: own.output()})
		case <-until.C:
			return fail(own, CheckResult{Status: Failed, Message: fmt.Sprintf("service: it did not answer %s on port %d within %s", quote(or(c.ReadyPath, "a connection")), port, ready), Output: own.output()})
		case <-time.After(readyEvery):
		}
	}
	return own
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// freePort returns a port of this machine that nothing listens on: port, or any if it
// is 0. What another program answered there would be taken for the work.
func freePort(ctx context.Context, port int) (int, error) {
	if port != 0 {
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			connection.Close()
			return 0, fmt.Errorf("it answers")
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// A dialer connects to an address.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dial returns how the service is connected to.
func (s *service) dial() dialer {
	if !s.offline {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return s.check(c), nil
		}
	}
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return s.process.Dial(ctx, port)
	}
}

// A checkedConn is a connection to a service. It sends the end of a request and returns an answer
// only when it is known that a process of the service has accepted it: services of other checks, and
// all programs of the user, can listen on the same loopback interface.
type checkedConn struct {
	net.Conn
	cancel context.CancelFunc
	known  chan struct{}
	err    error // why it is not the service's, read behind known
}

// check begins to look for the process that accepts a connection.
func (s *service) check(c net.Conn) net.Conn {
	ctx, cancel := context.WithCancel(context.Background())
	own := &checkedConn{Conn: c, cancel: cancel, known: make(chan struct{})}
	go func() { // ends with the connection
		defer close(own.known)
		p, below, err := peer.Server(ctx, c, s.process.Root())
		switch {
		case below:
			return
		case errors.Is(err, peer.ErrUnknown):
			const why = "service: it cannot be found out which process answers on %s: %v; close the network of the check"
			own.err = s.note(skip(Infrastructure, why, c.RemoteAddr(), err))
		case err != nil:
			own.err = err
		default:
			who := "a process of another user"
			if p.PID != 0 {
				who = fmt.Sprintf("%s (process %d)", quote(p.Program), p.PID)
			}
			message := fmt.Sprintf("service: %s answers on %s and does not belong to this service", who, c.RemoteAddr())
			own.err = s.note(CheckResult{Status: Failed, Message: message})
		}
	}()
	return own
}

// note keeps the first result of a connection that is not the service's, and returns it as an error.
func (s *service) note(r CheckResult) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem == nil {
		s.problem = &r
	}
	return errors.New(r.Message)
}

// answeredByAnother returns the result of a service in whose place another process answers, or nil.
func (s *service) answeredByAnother() *CheckResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

func (c *checkedConn) Read(b []byte) (int, error) {
	if <-c.known; c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(b)
}

// Write holds the last byte back. A server may accept a connection only when it has data.
func (c *checkedConn) Write(b []byte) (n int, err error) {
	select {
	case <-c.known:
	default:
		if n, err = c.Conn.Write(b[:max(len(b)-1, 0)]); err != nil {
			return n, err
		}
	}
	if <-c.known; c.err != nil {
		return n, c.err
	}
	rest, err := c.Conn.Write(b[n:])
	return n + rest, err
}

func (c *checkedConn) Close() error {
	c.cancel()
	return c.Conn.Close()
}

// answers reports whether the service is ready.
func (s *service) answers(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if path == "" {
		connection, err := s.dial()(ctx, "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			return false
		}
		connection.Close()
		return true
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return false
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true, DialContext: s.dial()},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode < http.StatusInternalServerError
}
