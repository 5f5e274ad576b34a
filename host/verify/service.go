package verify

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/confine"
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
		select {
		case <-ctx.Done():
			return fail(own, skip(Infrastructure, "service: %v", ctx.Err()))
		case <-own.process.Done():
			result, err := own.process.Wait()
			if err != nil {
				return fail(own, skip(Infrastructure, "service: could not be started: %v", err))
			}
			message := fmt.Sprintf("service: it ended with exit code %d before it was ready", result.ExitCode)
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
		return (&net.Dialer{}).DialContext
	}
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return s.process.Dial(ctx, port)
	}
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
