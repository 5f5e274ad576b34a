package shell

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// # Readiness
//
// A program that is started in the background may have a probe. The call then ends when the probe is answered,
// and fails if the program ends before or if it takes too long, which ends the program. The probes of http and tcp
// connect to this machine alone, follow no redirect and read no body: they are no way to reach other servers.

// readyIn is the probe of a program in the background.
type readyIn struct {
	HTTP      string `json:"http,omitempty" jsonschema:"URL on this machine, such as http://localhost:3000/health: it is ready at the first answer with a status of 200 to 399"`
	TCP       string `json:"tcp,omitempty" jsonschema:"port of this machine, such as 5432 or localhost:5432: it is ready when it takes a connection"`
	Match     string `json:"match,omitempty" jsonschema:"regular expression (RE2): it is ready at the first line of its output that matches"`
	TimeoutMs int64  `json:"timeoutMs,omitempty" jsonschema:"how long to wait until it is ready; 60000 if not given" minimum:"1"`
}

const (
	readyTimeout = time.Minute     // of a probe without timeoutMs
	probeTimeout = 2 * time.Second // of one request or connection
	// The delay between two probes: it grows from the first to the last.
	minProbeDelay, maxProbeDelay = 50 * time.Millisecond, 500 * time.Millisecond
)

// A probe asks whether a program is ready; nil without an error is yes.
type probe func(ctx context.Context) error

func badReady(field, problem string) error {
	field = "ready." + field
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: fmt.Sprintf("execute: field %q: %s", field, problem)}
}

// check returns the address that a probe of http or tcp connects to, empty for one of the output.
func (in *readyIn) check() (address string, err error) {
	given := 0
	for _, text := range []string{in.HTTP, in.TCP, in.Match} {
		if text != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return "", badReady("http", "want exactly one of http, tcp and match")
	case in.TimeoutMs < 0:
		return "", badReady("timeoutMs", "must be at least 1")
	case in.Match != "":
		_, _, err := compileRules([]Rule{{Pattern: in.Match}}, nil)
		if e := abi.As(err); e != nil {
			return "", badReady("match", e.Message)
		}
		return "", err
	case in.TCP != "":
		address = in.TCP
		if !strings.Contains(address, ":") {
			address = "localhost:" + address
		}
		host, port, err := net.SplitHostPort(address)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 {
			return "", badReady("tcp", fmt.Sprintf("%q is not a port from 1 to 65535, alone or behind a host", in.TCP))
		}
		if !onThisMachine(host) {
			return "", badReady("tcp", fmt.Sprintf("%q is not on this machine: want localhost or an address such as 127.0.0.1", in.TCP))
		}
		return net.JoinHostPort(loopbackHost(host), port), nil
	}
	u, err := url.Parse(in.HTTP)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.User != nil {
		return "", badReady("http", fmt.Sprintf("%q is not a URL such as http://localhost:3000/health; for https use tcp with its port", in.HTTP))
	}
	if !onThisMachine(u.Hostname()) {
		return "", badReady("http", fmt.Sprintf("%q is not on this machine: want localhost or an address such as 127.0.0.1", in.HTTP))
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(loopbackHost(u.Hostname()), port), nil
}

// onThisMachine reports whether a host names this machine. What localhost resolves to is checked when it is connected to.
func onThisMachine(host string) bool {
	return endpoint.ThisMachine(loopbackHost(host))
}

// loopbackHost returns the host to connect to for one of a server: one that listens on every address is reached by localhost.
func loopbackHost(host string) string {
	if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
		return "localhost"
	}
	return host
}

// dialLoopback connects to an address of this machine, and to no other.
var dialLoopback = net.Dialer{Timeout: probeTimeout, Control: func(_, address string, _ syscall.RawConn) error {
	if !endpoint.IsThisMachine(address) {
		return fmt.Errorf("%s is not an address of this machine", address)
	}
	return nil
}}

// probeHTTP is ready when the URL is answered with a status of 200 to 399.
func probeHTTP(target, address string) probe {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialLoopback.DialContext(ctx, network, address)
	}
	client := &http.Client{
		Timeout:       probeTimeout,
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close() // nothing of it is read
		if resp.StatusCode < 200 || resp.StatusCode > 399 {
			return fmt.Errorf("GET %s: status %d", target, resp.StatusCode)
		}
		return nil
	}
}

// probeTCP is ready when the address takes a connection.
func probeTCP(address string) probe {
	return func(ctx context.Context) error {
		conn, err := dialLoopback.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// startReady starts a program in the background and returns when it is ready. Otherwise the program has ended
// with everything that it started.
func (m *Manager) startReady(ctx context.Context, j job, in *readyIn) (executeOut, error) {
	address, err := in.check()
	if err != nil {
		return executeOut{}, err
	}
	if err := m.endEarlier(ctx, j); err != nil {
		return executeOut{}, err
	}
	if address != "" && probeTCP(address)(ctx) == nil {
		return executeOut{}, &abi.Error{
			Code:    abi.Conflict,
			Message: fmt.Sprintf("execute: %s takes connections before the program is started, so another program listens there", address),
			Hint:    "end that program, or use another port",
		}
	}
	e, c, err := m.start(ctx, j)
	if err != nil {
		return executeOut{}, err
	}
	limit := readyTimeout
	if in.TimeoutMs > 0 {
		limit = time.Duration(in.TimeoutMs) * time.Millisecond
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- m.awaitReady(waiting, e, in, address) }()
	select {
	case <-c.over:
		err = errEnded
	case err = <-ready:
	}
	switch {
	case err == nil && !ended(c):
		r := e.record() // of this start: the caller of another one would have waited for this one to end
		return executeOut{ExecutionID: e.id, Running: true, PID: r.PID, URL: in.HTTP, DurationMs: time.Since(r.StartedAt).Milliseconds()}, nil
	case err == nil || errors.Is(err, errEnded):
		<-c.over
		return executeOut{}, m.notReady(e, c, j, "ended with "+howEnded(&c.result)+" before it was ready")
	}
	c.stop(reasonCancelled)
	<-c.known
	if ctx.Err() != nil {
		return executeOut{}, context.Cause(ctx)
	}
	failed := m.notReady(e, c, j, fmt.Sprintf("was not ready within %s (%v), and was ended", limit, err))
	failed.Code = abi.Timeout
	return executeOut{}, failed
}

// errEnded is the error of a probe whose program has ended.
var errEnded = errors.New("the program has ended")

func ended(c *child) bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// awaitReady asks until the answer is yes. Its error is that of the last probe.
func (m *Manager) awaitReady(ctx context.Context, e *execution, in *readyIn, address string) error {
	if in.Match != "" {
		set, _, err := compileRules([]Rule{{Pattern: in.Match}}, nil)
		if err != nil {
			return err
		}
		a, err := e.follow(ctx, e.record().First, "match", set, collector{size: linesSize})
		switch {
		case err != nil:
			return fmt.Errorf("no line matches %q", in.Match)
		case a.Finished:
			return errEnded
		}
		return nil
	}
	ask := probeTCP(address)
	if in.HTTP != "" {
		ask = probeHTTP(in.HTTP, address)
	}
	last := errors.New("not asked yet")
	for delay := minProbeDelay; ; delay = min(delay*2, maxProbeDelay) {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(delay):
		}
	}
}

// howEnded says how a program ended.
func howEnded(r *Record) string {
	if r.Signal != "" {
		return "the signal " + r.Signal
	}
	return "exit code " + strconv.Itoa(*r.ExitCode)
}

// notReady returns the error of a program that has ended and was not ready, with its last lines.
func (m *Manager) notReady(e *execution, c *child, j job, what string) *abi.Error {
	failed := &abi.Error{
		Code: abi.Plugin, Message: fmt.Sprintf("execute %q: %s", commandLine(m.keptWords(j.argv)), what),
		Hint: "its output: sentinel logs, or code/shell/watch with executionId " + e.id,
		Data: abi.JSON(fmt.Sprintf(`{"executionId":%q,"exitCode":%d}`, e.id, *c.result.ExitCode)),
	}
	last := excerpt{size: 1 << 10}
	if err := e.excerpts(c.result.First, &last, nil, nil); err == nil && last.text() != "" {
		failed.Message += ", after writing:\n" + lineEnd(last.text())
	}
	return failed
}
