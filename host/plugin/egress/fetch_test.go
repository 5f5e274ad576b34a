package egress_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// fetch is a GET with usual bounds.
func fetch(url string) egress.Fetch {
	return egress.Fetch{Method: http.MethodGet, URL: url, Timeout: 10 * time.Second, MaxBody: 1 << 20, Redirects: 5}
}

// TestFetchAddresses: a request of the host may go to any host whose address is public, and to those
// private ones that are listed, each redirect too; never to addresses that serve metadata.
func TestFetchAddresses(t *testing.T) {
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		fmt.Fprint(w, "here")
	})
	c := egress.New(egress.Options{Resolver: &names{lists: map[string][][]string{
		"inner.example": {{"127.0.0.1"}}, "other.example": {{"127.0.0.1"}}, "meta.example": {{"169.254.169.254"}}, "both.example": {{"169.254.169.254", "127.0.0.1"}},
	}}})
	for name, tt := range map[string]struct {
		url     string
		private []string
		code    abi.Code
		says    string
	}{
		"listed with its port":   {"http://inner.example:" + port, []string{"inner.example:" + port}, "", ""},
		"listed with any port":   {"http://inner.example:" + port, []string{"inner.example:*"}, "", ""},
		"listed as an address":   {"http://127.0.0.1:" + port, []string{"127.0.0.1:*"}, "", ""},
		"below a listed name":    {"http://inner.example:" + port, []string{"*.example.com:*", "*.inner.example:*"}, abi.Denied, "no address is a public one"},
		"not listed":             {"http://inner.example:" + port, nil, abi.Denied, "no address is a public one"},
		"loopback, not listed":   {"http://127.0.0.1:" + port, []string{"localhost:*"}, abi.Denied, "no address is a public one"},
		"another port":           {"http://inner.example:" + port, []string{"inner.example"}, abi.Denied, "no address is a public one"},
		"metadata, listed":       {"http://meta.example/latest", []string{"meta.example"}, abi.Denied, "no address is a public one"},
		"metadata as an address": {"http://169.254.169.254/", []string{"169.254.169.254"}, abi.Denied, "no address is a public one"},
		"one of two addresses":   {"http://both.example:" + port, []string{"both.example:*"}, "", ""},
		"redirect to one that is not listed": {"http://inner.example:" + port + "?to=http://other.example:" + port, []string{"inner.example:*"},
			abi.Denied, "no address is a public one"},
		"redirect to loopback":   {"http://inner.example:" + port + "?to=http://127.0.0.1:" + port, []string{"inner.example:*"}, abi.Denied, "no address is a public one"},
		"redirect to metadata":   {"http://inner.example:" + port + "?to=http://169.254.169.254/", []string{"inner.example:*"}, abi.Denied, "no address is a public one"},
		"redirect to a file":     {"http://inner.example:" + port + "?to=file:///etc/passwd", []string{"inner.example:*"}, abi.Denied, "not http or https"},
		"redirect that is meant": {"http://inner.example:" + port + "?to=http://other.example:" + port, []string{"inner.example:*", "other.example:*"}, "", ""},
		"no list":                {"http://inner.example:" + port, []string{"inner example"}, abi.BadFields, "host \"inner example\""},
		"unknown":                {"http://none.example:" + port, nil, abi.Unavailable, "no such host"},
		"not http":               {"ftp://inner.example/", nil, abi.BadFields, "url: wanted http:// or https://"},
		"a password":             {"http://a:b@inner.example/", nil, abi.BadFields, "url: a user or password"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fetch(tt.url)
			f.Private = tt.private
			got, err := c.Fetch(t.Context(), f)
			if tt.code == "" {
				if err != nil || string(got.Body) != "here" || got.Status != 200 {
					t.Fatalf("%+v, %v", got, err)
				}
				return
			}
			e := wantCode(t, err, tt.code)
			if !strings.Contains(e.Message, tt.says) || strings.Contains(e.Message, abi.FuncHTTP) {
				t.Errorf("error %q, want %q in it", e.Message, tt.says)
			}
			if tt.code == abi.Denied && strings.Contains(tt.says, "public") && !strings.Contains(e.Hint, "SENTINEL_HTTP_PRIVATE=HOST:PORT") {
				t.Errorf("hint %q", e.Hint)
			}
		})
	}
}

// TestFetchRedirects: with 0 a redirect is the answer, a circle ends at the limit, and credentials
// do not go along to another host.
func TestFetchRedirects(t *testing.T) {
	var authorized []string
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		authorized = append(authorized, r.Host[:1]+r.Header.Get("X-Api-Key"))
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://b.example:"+r.URL.Query().Get("port")+"/end", http.StatusTemporaryRedirect)
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusFound)
		default:
			fmt.Fprint(w, "end")
		}
	})
	c := local(t, egress.Options{})
	f := fetch("http://a.example:" + port + "/circle")
	f.Redirects = 3
	_, err := c.Fetch(t.Context(), f)
	if e := wantCode(t, err, abi.Limit); !strings.Contains(e.Message, "more than 3 redirects") {
		t.Errorf("%q", e.Message)
	}
	if len(authorized) != 4 {
		t.Errorf("%d requests", len(authorized))
	}
	f.Redirects = 0
	got, err := c.Fetch(t.Context(), f)
	if err != nil || got.Status != http.StatusFound || got.Header["location"] != "/circle" {
		t.Errorf("%+v, %v", got, err)
	}
	authorized = nil
	f = fetch("http://a.example:" + port + "/away?port=" + port)
	f.Header, f.Secret = map[string]string{"X-Api-Key": "key"}, true
	got, err = c.Fetch(t.Context(), f)
	if err != nil || string(got.Body) != "end" || got.URL != "http://b.example:"+port+"/end" {
		t.Fatalf("%+v, %v", got, err)
	}
	if fmt.Sprint(authorized) != "[akey b]" {
		t.Errorf("the hosts got %v", authorized)
	}
}

// TestFetchBodies: a body has a bound that is an error, unpacked too, and one that breaks off is
// another.
func TestFetchBodies(t *testing.T) {
	c := local(t, egress.Options{})
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, "unpacked")
	z.Close()
	endless := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for part := make([]byte, 64<<10); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	for name, tt := range map[string]struct {
		port string
		body string
		code abi.Code
		says string
	}{
		"endless":              {endless, "", abi.Limit, "the answer has more than 1 MiB"},
		"longer than promised": {raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcdef"), "ab", "", ""},
		"shorter":              {raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nabc"), "", abi.Unavailable, "the answer broke off"},
		"promises 10 GB":       {raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\nabc"), "", abi.Unavailable, "the answer broke off"},
		"two lengths":          {raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"), "", abi.Unavailable, ""},
		"not HTTP":             {raw(t, "SSH-2.0-x\r\n"), "", abi.Unavailable, "not HTTP"},
		"nothing":              {raw(t, ""), "", abi.Unavailable, "broke off"},
		"not UTF-8":            {raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\xffb"), "a\xffb", "", ""},
		"packed":               {raw(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", zipped.Len(), zipped.String())), "unpacked", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.Fetch(t.Context(), fetch("http://a.example:"+tt.port))
			if tt.code == "" {
				if err != nil || string(got.Body) != tt.body {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if e := wantCode(t, err, tt.code); !strings.Contains(e.Message, tt.says) {
				t.Errorf("error %q, want %q in it", e.Message, tt.says)
			}
		})
	}
}

// TestFetchRequests: what is sent, and what cannot be.
func TestFetchRequests(t *testing.T) {
	var sent []string
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := new(bytes.Buffer)
		_, _ = body.ReadFrom(r.Body)
		sent = append(sent, r.Method+" "+r.RequestURI+" "+r.Header.Get("Content-Type")+" "+r.UserAgent()+" "+body.String())
	})
	c := local(t, egress.Options{})
	f := fetch("http://a.example:" + port + "/x y?q={{secret.NAME}}#part")
	f.Method, f.Body, f.Header = http.MethodPost, "{{secret.NAME}}", map[string]string{"content-type": "text/plain"}
	if _, err := c.Fetch(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if want := "[POST /x%20y?q={{secret.NAME}} text/plain sentinel {{secret.NAME}}]"; fmt.Sprint(sent) != want {
		t.Errorf("sent %v, want %s", sent, want)
	}
	for name, change := range map[string]func(*egress.Fetch){
		"method: \"TRACE\" is none of":          func(f *egress.Fetch) { f.Method = "TRACE" },
		"body: a GET has none":                  func(f *egress.Fetch) { f.Body = "x" },
		"headers.Host: only the host sets this": func(f *egress.Fetch) { f.Header = map[string]string{"Host": "x"} },
		"headers.X: a value with a control":     func(f *egress.Fetch) { f.Header = map[string]string{"X": "a\r\nY: b"} },
		"headers.X Y: not the name of a header": func(f *egress.Fetch) { f.Header = map[string]string{"X Y": "a"} },
		"duplicate header":                      func(f *egress.Fetch) { f.Header = map[string]string{"x-a": "a", "X-A": "b"} },
		"headers: more than":                    func(f *egress.Fetch) { f.Header = map[string]string{"X": strings.Repeat("x", 40<<10)} },
		"url: more than 8192 bytes":             func(f *egress.Fetch) { f.URL += strings.Repeat("x", 9<<10) },
	} {
		f := fetch("http://a.example:" + port)
		change(&f)
		if _, err := c.Fetch(t.Context(), f); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q in it", err, name)
		}
	}
}

// TestFetchHangs: a server that says nothing, or a byte a second, ends at the time limit.
func TestFetchHangs(t *testing.T) {
	for name, server := range map[string]func(net.Conn){
		"silent":                      slowServers["silent"],
		"a header byte a second":      slowServers["a header byte a second"],
		"redirects to itself, slowly": slowServers["redirects to itself, slowly"],
		"a body byte a second": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
			for {
				time.Sleep(time.Second)
				if _, err := c.Write([]byte{'x'}); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := egress.New(egress.Options{Resolver: everywhere("93.184.216.34"), Dial: pipe(server), AllowPrivate: []netip.Prefix{}})
				begun := time.Now()
				f := fetch("http://a.example/")
				f.Redirects = 50
				_, err := c.Fetch(t.Context(), f)
				if e := wantCode(t, err, abi.Timeout); !strings.Contains(e.Message, "no whole answer within 10s") {
					t.Errorf("%q", e.Message)
				}
				if took := time.Since(begun); took != 10*time.Second {
					t.Errorf("it took %v", took)
				}
				time.Sleep(10 * time.Second) // the server notices that the client has gone
			})
		})
	}
}

// TestUnlisted: what is known of a URL without a look-up.
func TestUnlisted(t *testing.T) {
	private := []string{"localhost:3000", "10.0.0.7:*"}
	for url, want := range map[string]string{
		"http://localhost:3000/x": "", "http://localhost:3001/x": "localhost:3001", "http://a.localhost/": "a.localhost", "http://127.0.0.1:3000": "127.0.0.1:3000",
		"http://10.0.0.7:8443": "", "https://10.0.0.8": "10.0.0.8", "http://[::1]/": "[::1]", "http://169.254.169.254/": "169.254.169.254 never",
		"http://100.100.100.200/": "100.100.100.200 never", "https://api.example.com": "", "http://93.184.216.34": "", "ftp://localhost": "", "x": "",
	} {
		host, unlisted := egress.Unlisted(private, url)
		got := ""
		if unlisted {
			got = host
		}
		if egress.Never(url) {
			got += " never"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	for _, entry := range []string{"", "*", "*:80", "http://localhost", "localhost:0", "a b"} {
		if egress.CheckPrivate(entry) == nil {
			t.Errorf("entry %q is accepted", entry)
		}
	}
}
