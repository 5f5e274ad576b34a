package egress_test

import (
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// canary counts the connections that reach loopback on one port.
type canary struct {
	port     string
	accepted atomic.Int32
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, c.port, _ = net.SplitHostPort(l.Addr().String())
	listeners := []net.Listener{l}
	if l6, err := net.Listen("tcp6", "[::1]:"+c.port); err == nil { // some machines have no IPv6
		listeners = append(listeners, l6)
	}
	for _, l := range listeners {
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				c.accepted.Add(1)
				// What is not read before the close would reset the connection
				// and take the answer with it.
				_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
				_, _ = conn.Read(make([]byte, 64<<10))
				_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret"))
				conn.Close()
			}
		}()
	}
	return c
}

// hostile are URLs that reach loopback, or would for some reader of URLs. PORT
// is the canary's. Every name in them leads to 127.0.0.1 and ::1.
var hostile = []string{
	// loopback as it is
	"http://127.0.0.1:PORT/", "http://127.0.0.1:PORT", "https://127.0.0.1:PORT/", "http://127.1.2.3:PORT/",
	"http://127.255.255.254:PORT/", "http://0.0.0.0:PORT/", "http://[::1]:PORT/", "http://[::]:PORT/",
	"http://[0:0:0:0:0:0:0:1]:PORT/", "http://[0000:0000::0001]:PORT/", "http://127.0.0.1.:PORT/",
	// other spellings of the same address
	"http://2130706433:PORT/", "http://0x7f000001:PORT/", "http://0X7F000001:PORT/", "http://017700000001:PORT/",
	"http://0x7f.0.0.1:PORT/", "http://0x7f.0x0.0x0.0x1:PORT/", "http://0177.0.0.1:PORT/", "http://0177.0.0.01:PORT/",
	"http://127.1:PORT/", "http://127.0.1:PORT/", "http://127.0.0.0x1:PORT/", "http://127.00.00.01:PORT/",
	"http://127.0.0.001:PORT/", "http://0:PORT/", "http://00:PORT/", "http://0x0:PORT/", "http://0x:PORT/",
	"http://4294967297:PORT/", "http://6425673729:PORT/", "http://127.0.0.1.1:PORT/", "http://2130706433.:PORT/",
	"http://0x7f.1:PORT/", "http://0177.1:PORT/", "http://a.127.1:PORT/", "http://a.0x1:PORT/",
	// letters that others fold to digits and dots
	"http://１２７.0.0.1:PORT/", "http://127。0。0。1:PORT/", "http://127．0．0．1:PORT/", "http://①②⑦.⓪.⓪.①:PORT/",
	"http://𝟏𝟐𝟕.𝟎.𝟎.𝟏:PORT/", "http://ⓛocalhost:PORT/", "http://ｌｏｃａｌｈｏｓｔ:PORT/", "http://%31%32%37.0.0.1:PORT/",
	"http://127%2e0%2e0%2e1:PORT/", "http://%E3%80%82:PORT/", "http://l%6fcalhost:PORT/", "http://local\u00adhost:PORT/",
	// IPv4 inside IPv6, and gateways to it
	"http://[::ffff:127.0.0.1]:PORT/", "http://[::ffff:7f00:1]:PORT/", "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/",
	"http://[::127.0.0.1]:PORT/", "http://[::7f00:1]:PORT/", "http://[64:ff9b::127.0.0.1]:PORT/", "http://[64:ff9b::7f00:1]:PORT/",
	"http://[64:ff9b:1::7f00:1]:PORT/", "http://[2002:7f00:1::]:PORT/", "http://[2002:7f00:1::1]:PORT/",
	"http://[2001:0:0:0:0:0:80ff:fffe]:PORT/", "http://[::ffff:0:127.0.0.1]:PORT/",
	// zones and brackets
	"http://[::1%25lo]:PORT/", "http://[fe80::1%25lo]:PORT/", "http://[::1%lo]:PORT/", "http://[127.0.0.1]:PORT/",
	"http://[::1]a:PORT/", "http://[[::1]]:PORT/", "http://::1:PORT/", "http://[::1:PORT/", "http://[localhost]:PORT/",
	// other places inside
	"http://10.0.0.1:PORT/", "http://172.16.0.1:PORT/", "http://192.168.1.1:PORT/", "http://169.254.169.254/latest/meta-data/",
	"http://[fd00:ec2::254]/latest/meta-data/", "http://100.100.100.200/", "http://168.63.129.16/", "http://192.0.0.192/",
	"http://[fe80::1]:PORT/", "http://[fc00::1]:PORT/", "http://[ff02::1]:PORT/", "http://224.0.0.1:PORT/",
	"http://255.255.255.255:PORT/", "http://100.64.0.1:PORT/", "http://198.18.0.1:PORT/", "http://192.0.2.1:PORT/",
	"http://[2001:db8::1]:PORT/", "http://240.0.0.1:PORT/",
	// names that lead there
	"http://localhost:PORT/", "http://LOCALHOST:PORT/", "http://localhost.:PORT/", "http://localhost..:PORT/", "http://localtest.me:PORT/",
	"http://127.0.0.1.nip.io:PORT/", "http://metadata.google.internal:PORT/", "http://a.example.com:PORT/",
	// readers of URLs that disagree
	"http://api.example.com@127.0.0.1:PORT/", "http://127.0.0.1:PORT@api.example.com:PORT/", "http://api.example.com:80@127.0.0.1:PORT/",
	"http://api.example.com%40127.0.0.1:PORT/", "http://api.example.com\\@127.0.0.1:PORT/", "http://127.0.0.1:PORT\\@api.example.com/",
	"http://api.example.com#@127.0.0.1:PORT/", "http://api.example.com:PORT#@127.0.0.1/", "http://api.example.com?@127.0.0.1:PORT/",
	"http://127.0.0.1:PORT/\r\nHost: api.example.com", "http://api.example.com\r\n@127.0.0.1:PORT/", "http:127.0.0.1:PORT/",
	"http:/127.0.0.1:PORT/", "http:///127.0.0.1:PORT/", "//127.0.0.1:PORT/", "127.0.0.1:PORT", "http://127.0.0.1 :PORT/",
	" http://127.0.0.1:PORT/", "http://127.0.0.1:0PORT/", "http://127.0.0.1:+PORT/", "http://127.0.0.1:99999/", "http://127.0.0.1:0/",
	"http://api_example.com:PORT/", "http://*.example.com:PORT/", "http://:PORT/", "http://.:PORT/",
	// other schemes
	"file:///etc/passwd", "ftp://127.0.0.1:PORT/", "gopher://127.0.0.1:PORT/_GET", "unix:///var/run/docker.sock", "ws://127.0.0.1:PORT/",
	"HTTPS+unix://127.0.0.1:PORT/", "data:text/plain,hi", "javascript:alert(1)", "jar:http://127.0.0.1:PORT!/",
}

// generous is the widest grant a URL could come with: all that its own text can
// be read as, so that it is the address that decides wherever there is one.
func generous(url, port string) []string {
	hosts := []string{"api.example.com", "*.example.com", "api.example.com:" + port, "*.example.com:" + port, "localhost:" + port, "127.0.0.1", "127.0.0.1:" + port}
	_, rest, _ := strings.Cut(url, "//")
	rest, _, _ = strings.Cut(rest, "/")
	for _, h := range []string{rest, rest[strings.LastIndexByte(rest, '@')+1:]} {
		if egress.CheckHosts([]string{h}) == nil {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

func TestNothingReachesLoopback(t *testing.T) {
	if len(hostile) < 80 {
		t.Fatalf("%d URLs, want at least 80", len(hostile))
	}
	bird := newCanary(t)
	for _, resolver := range []*names{everywhere("127.0.0.1", "::1"), everywhere("::ffff:127.0.0.1"), everywhere("64:ff9b::7f00:1")} {
		c := egress.New(egress.Options{Resolver: resolver})
		byAddress := 0
		for _, u := range hostile {
			u = strings.ReplaceAll(u, "PORT", bird.port)
			_, err := get(t, c, generous(u, bird.port), u)
			e := abi.As(err)
			if e == nil || e.Code != abi.Denied && e.Code != abi.BadFields {
				t.Errorf("%q: %v (%s), want it denied", u, err, abi.CodeOf(err))
				continue
			}
			if strings.Contains(e.Message, "no address") {
				byAddress++
			}
			if n := bird.accepted.Load(); n != 0 {
				t.Fatalf("%q: %d connections accepted", u, n)
			}
		}
		if byAddress < 30 {
			t.Errorf("only %d URLs were refused for their address: the grants are too narrow to test that", byAddress)
		}
	}
	// The same canary is reached once an operator says so.
	a, err := get(t, local(t, egress.Options{}), []string{"localhost:" + bird.port}, "http://localhost:"+bird.port+"/")
	if err != nil || a.Body != "secret" || bird.accepted.Load() != 1 {
		t.Fatalf("with AllowPrivate: %+v, %v, %d accepted", a, err, bird.accepted.Load())
	}
}

// TestAddressIsCheckedAtTheSocket has names change their answer between two
// lookups, and looks at the check in the dialer by itself.
func TestAddressIsCheckedAtTheSocket(t *testing.T) {
	bird := newCanary(t)
	port := serve(t, hello)
	flip := &names{lists: map[string][][]string{"a.test": {{"127.0.0.9"}, {"127.0.0.1"}, {"127.0.0.9"}}}}
	c := egress.New(egress.Options{Resolver: flip, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}})
	hosts := []string{"a.test:" + bird.port, "a.test:" + port}
	for i := range 2 {
		_, err := get(t, c, hosts, "http://a.test:"+bird.port+"/")
		want := abi.Unavailable // no server listens on 127.0.0.9
		if i == 1 {
			want = abi.Denied
		}
		wantCode(t, err, want)
	}
	if bird.accepted.Load() != 0 || flip.lookups != 2 {
		t.Fatalf("%d connections accepted, %d lookups; want none, and one for each request", bird.accepted.Load(), flip.lookups)
	}
	for _, address := range []string{"127.0.0.1:" + bird.port, "[::1]:" + bird.port, "[::ffff:127.0.0.1]:" + bird.port, "localhost:" + bird.port} {
		if conn, err := c.Dialer().DialContext(t.Context(), "tcp", address); err == nil {
			conn.Close()
			t.Errorf("the dialer connected to %s", address)
		}
	}
	if bird.accepted.Load() != 0 {
		t.Fatalf("%d connections accepted", bird.accepted.Load())
	}
}

// TestMixedAnswers has a name with a private and an allowed address.
func TestMixedAnswers(t *testing.T) {
	port := serve(t, hello)
	c := egress.New(egress.Options{
		Resolver:     everywhere("10.1.2.3", "169.254.169.254", "127.0.0.1"),
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	})
	a, err := get(t, c, []string{"a.test:" + port}, "http://a.test:"+port)
	if err != nil || a.Body != "hello" {
		t.Fatalf("%+v, %v", a, err)
	}
}
