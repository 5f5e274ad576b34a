package egress_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// answers is what a plugin gets.
type answers struct {
	Status    int
	Headers   map[string]string
	Body      string
	Encoding  string
	Truncated bool
}

func (a answers) bytes(t *testing.T) []byte {
	t.Helper()
	if a.Encoding == "" {
		return []byte(a.Body)
	}
	b, err := base64.StdEncoding.DecodeString(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// names is a resolver: every name has the addresses listed under it, or under "".
// With more than one list, each lookup takes the next.
type names struct {
	mu      sync.Mutex
	lists   map[string][][]string
	lookups int
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups++
	key := host
	lists, ok := n.lists[key]
	if !ok {
		key = ""
		if lists, ok = n.lists[key]; !ok {
			return nil, &net.DNSError{Err: "no such host", Name: host, Server: "192.168.7.7:53", IsNotFound: true}
		}
	}
	if len(lists) > 1 {
		n.lists[key] = lists[1:]
	}
	var out []netip.Addr
	for _, s := range lists[0] {
		out = append(out, netip.MustParseAddr(s))
	}
	return out, nil
}

func everywhere(address ...string) *names {
	return &names{lists: map[string][][]string{"": {address}}}
}

// local is a client that may reach loopback, where every name leads.
func local(t *testing.T, opt egress.Options) *egress.Client {
	t.Helper()
	opt.AllowPrivate = loopback
	if opt.Resolver == nil {
		opt.Resolver = everywhere("127.0.0.1")
	}
	return egress.New(opt)
}

func serve(t *testing.T, handler http.HandlerFunc) (port string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL[strings.LastIndexByte(s.URL, ':')+1:]
}

// raw serves bytes as they are, one connection after the other.
func raw(t *testing.T, response string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 8<<10))
				_, _ = conn.Write([]byte(response))
			}()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

func do(t *testing.T, c *egress.Client, hosts []string, request any) (answers, error) {
	t.Helper()
	b, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Do(t.Context(), egress.Call{Hosts: hosts, Request: b})
	if err != nil {
		return answers{}, err
	}
	var a answers
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("answer %.200s: %v", out, err)
	}
	return a, nil
}

func get(t *testing.T, c *egress.Client, hosts []string, url string) (answers, error) {
	t.Helper()
	return do(t, c, hosts, map[string]any{"url": url})
}

func wantCode(t *testing.T, err error, code abi.Code) *abi.Error {
	t.Helper()
	e := abi.As(err)
	if e == nil || e.Code != code {
		t.Fatalf("error %v (%s), want code %s", err, abi.CodeOf(err), code)
	}
	return e
}

// relay listens at address and hands each connection on.
func relay(t *testing.T, address, to string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp4", address)
	if err != nil {
		t.Skipf("this machine has only one loopback address: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp4", to)
			if err != nil {
				in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); out.Close() }()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}
