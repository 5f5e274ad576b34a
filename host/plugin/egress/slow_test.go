package egress_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// pipe dials to a server inside the test's bubble.
func pipe(server func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			if _, err := http.ReadRequest(bufio.NewReader(there)); err == nil {
				server(there)
			}
		}()
		return here, nil
	}
}

var slowServers = map[string]func(net.Conn){
	"silent": func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) },
	"a header byte a second": func(c net.Conn) {
		for _, b := range []byte("HTTP/1.1 200 OK\r\nX-Slow: " + strings.Repeat("x", 1000)) {
			time.Sleep(time.Second)
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
		}
	},
	"a body byte a second": func(c net.Conn) {
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
		for {
			time.Sleep(time.Second)
			if _, err := c.Write([]byte{'x'}); err != nil {
				return
			}
		}
	},
	"redirects to itself, slowly": func(c net.Conn) {
		time.Sleep(7 * time.Second)
		fmt.Fprint(c, "HTTP/1.1 302 Found\r\nLocation: /again\r\n\r\n")
	},
}

// TestTimeIsLimited runs slow servers on a clock that does not wait.
func TestTimeIsLimited(t *testing.T) {
	for name, server := range slowServers {
		for _, test := range []struct {
			option, asked, want time.Duration
		}{
			{0, 0, 30 * time.Second},
			{time.Minute, 0, time.Minute},
			{time.Hour, 0, 5 * time.Minute},
			{0, 2 * time.Second, 2 * time.Second},
			{time.Second, 5 * time.Minute, 5 * time.Minute},
		} {
			t.Run(fmt.Sprintf("%s for %v", name, test.want), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := egress.New(egress.Options{Timeout: test.option, MaxRedirects: 1000, Resolver: everywhere("8.8.8.8"), Dial: pipe(server)})
					start := time.Now()
					_, err := do(t, c, []string{"a.test"}, map[string]any{"url": "http://a.test", "timeoutMs": test.asked.Milliseconds()})
					if e := abi.As(err); e == nil || e.Code != abi.Timeout {
						t.Errorf("%v, want code timeout", err)
					}
					if took := time.Since(start); took != test.want {
						t.Errorf("took %v, want %v", took, test.want)
					}
					time.Sleep(time.Minute) // what is left by then makes the bubble fail
				})
			})
		}
	}
}

// TestCallerGivesUp tells the end of the step from that of the request.
func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := egress.New(egress.Options{Resolver: everywhere("8.8.8.8"), Dial: pipe(slowServers["silent"])})
		why := errors.New("the run was stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		_, err := c.Do(ctx, egress.Call{Hosts: []string{"a.test"}, Request: json.RawMessage(`{"url":"http://a.test"}`)})
		if abi.CodeOf(err) != abi.Cancelled || !errors.Is(err, why) {
			t.Errorf("stopped: %v", err)
		}
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		_, err = c.Do(ctx, egress.Call{Hosts: []string{"a.test"}, Request: json.RawMessage(`{"url":"http://a.test"}`)})
		if abi.CodeOf(err) != abi.Timeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("deadline: %v", err)
		}
	})
}

// TestAddressesRace has an address that never answers before one that does.
func TestAddressesRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var tried []string
		answering := pipe(func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\nhello") })
		c := egress.New(egress.Options{
			Resolver: everywhere("10.0.0.1", "2001:4860::1", "8.8.8.8", "8.8.4.4"),
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				mu.Lock()
				tried = append(tried, network+" "+address)
				mu.Unlock()
				if strings.HasPrefix(address, "[2001") {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return answering(ctx, network, address)
			},
		})
		a, err := get(t, c, []string{"a.test"}, "http://a.test")
		if err != nil || a.Body != "hello" {
			t.Fatalf("%+v, %v", a, err)
		}
		if got := strings.Join(tried, ", "); got != "tcp [2001:4860::1]:80, tcp 8.8.8.8:80" {
			t.Errorf("tried %s", got)
		}
	})
}

// TestLateConnectionIsClosed has the first address answer after the second won.
func TestLateConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answering := pipe(func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\nhello") })
		var late net.Conn
		c := egress.New(egress.Options{
			Resolver: everywhere("8.8.8.8", "8.8.4.4"),
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if address == "8.8.8.8:80" {
					time.Sleep(time.Second) // a connection that is there when ctx ends
					here, there := net.Pipe()
					late = there
					return here, nil
				}
				return answering(ctx, network, address)
			},
		})
		a, err := get(t, c, []string{"a.test"}, "http://a.test")
		if err != nil || a.Body != "hello" {
			t.Fatalf("%+v, %v", a, err)
		}
		if _, err := late.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the late connection: %v", err)
		}
	})
}

// TestNetworkErrorsTellNothing has errors with addresses in them.
func TestNetworkErrorsTellNothing(t *testing.T) {
	inner := func(err error) *net.OpError {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.9.8.7:80")), Err: err}
	}
	for name, opt := range map[string]egress.Options{
		"no such host": {Resolver: &names{}},
		"private":      {Resolver: everywhere("10.9.8.7")},
		"no addresses": {Resolver: &names{lists: map[string][][]string{"": {{}}}}},
		"unreachable": {Resolver: everywhere("8.8.8.8"), Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, inner(errors.New("network is unreachable"))
		}},
		"lookup fails": {Resolver: failing{&net.DNSError{Err: "server misbehaving", Name: "a.test", Server: "192.168.7.7:53", IsTemporary: true}}},
		"lookup odd":   {Resolver: failing{inner(errors.New("odd"))}},
	} {
		_, err := get(t, egress.New(opt), []string{"a.test"}, "http://a.test")
		e := abi.As(err)
		if e == nil || e.Code != abi.Unavailable && e.Code != abi.Denied {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.Contains(e.Message, `"a.test"`) || strings.ContainsAny(strings.ReplaceAll(err.Error()+e.Hint, "a.test", ""), "0123456789") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, f.err
}

// TestAtOnce has many requests share a client, each within its own grant.
func TestAtOnce(t *testing.T) {
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/on" {
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, r.Host)
	})
	c := local(t, egress.Options{})
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			host := fmt.Sprintf("h%d.test:%s", i, port)
			out, err := c.Do(t.Context(), egress.Call{Hosts: []string{host}, Request: json.RawMessage(`{"url":"http://` + host + `/on"}`)})
			var a answers
			if err != nil || json.Unmarshal(out, &a) != nil || a.Body != host {
				t.Errorf("%s: %s, %v", host, out, err)
			}
			other := fmt.Sprintf("h%d.test:%s", i+1, port)
			if _, err := c.Do(t.Context(), egress.Call{Hosts: []string{host}, Request: json.RawMessage(`{"url":"http://` + other + `/on"}`)}); abi.CodeOf(err) != abi.Denied {
				t.Errorf("%s under the grant of %s: %v", other, host, err)
			}
		})
	}
	group.Wait()
}
