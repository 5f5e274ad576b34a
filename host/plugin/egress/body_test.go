package egress_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const wholeAnswer = 256<<10 - len(`{"ok":}`)

func zip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	z.Close()
	return out.Bytes()
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestBodies has bodies of all kinds come out as they went in, or a beginning
// of them, in an answer that is never too long.
func TestBodies(t *testing.T) {
	for _, test := range []struct {
		name     string
		body     []byte
		encoding string
		cut      bool
	}{
		{"empty", nil, "", false},
		{"text", []byte("hello"), "", false},
		{"markup", []byte("<a href=\"x\">&amp;</a>\u2028"), "", false},
		{"binary", []byte{0, 1, 2, 0xff}, "base64", false},
		{"latin-1", []byte("caf\xe9"), "base64", false},
		{"240 KiB", bytes.Repeat([]byte("0123456789abcdef"), 15<<10), "", false},
		{"and a byte", append(bytes.Repeat([]byte("0123456789abcdef"), 15<<10), 'x'), "", true},
		{"1 MiB", bytes.Repeat([]byte("0123456789abcdef"), 64<<10), "", true},
		{"quotes", bytes.Repeat([]byte{'"'}, 200<<10), "", true},
		{"control characters", bytes.Repeat([]byte{1, 2, 3, 0x7f}, 50<<10), "", true},
		{"line separators", bytes.Repeat([]byte("\u2028\u2029"), 30<<10), "", true},
		{"runes that straddle the cut", []byte("x" + strings.Repeat("€", 100<<10)), "", true},
		{"emoji that straddle the cut", []byte("xy" + strings.Repeat("😀", 100<<10)), "", true},
		{"180 KiB of noise", noise(180 << 10), "base64", false},
		{"1 MiB of noise", noise(1 << 20), "base64", true},
	} {
		for _, zipped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s zipped %v", test.name, zipped), func(t *testing.T) {
				port := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					if zipped && len(test.body) > 0 {
						w.Header().Set("Content-Encoding", "gzip")
						_, _ = w.Write(zip(test.body))
						return
					}
					_, _ = w.Write(test.body)
				})
				out, err := local(t, egress.Options{}).Do(t.Context(), egress.Call{Hosts: []string{"a.test:" + port}, Request: json.RawMessage(`{"url":"http://a.test:` + port + `"}`)})
				if err != nil {
					// Repeated text is small as gzip; the ratio has its own test.
					if e := abi.As(err); zipped && e.Code == abi.Limit && strings.Contains(e.Message, "100 to 1") && len(zip(test.body))*100 < len(test.body) {
						return
					}
					t.Fatal(err)
				}
				if len(out) > wholeAnswer {
					t.Errorf("an answer of %d bytes, %d too many", len(out), len(out)-wholeAnswer)
				}
				var a answers
				if err := json.Unmarshal(out, &a); err != nil {
					t.Fatal(err)
				}
				got := a.bytes(t)
				if a.Encoding != test.encoding || a.Truncated != test.cut || !bytes.HasPrefix(test.body, got) || !a.Truncated && len(got) != len(test.body) {
					t.Errorf("%d of %d bytes, encoding %q, truncated %v; want %q, %v", len(got), len(test.body), a.Encoding, a.Truncated, test.encoding, test.cut)
				}
				if a.Truncated && len(out) < wholeAnswer*9/10 {
					t.Errorf("only %d bytes of answer for a body of %d", len(out), len(test.body))
				}
				if a.Encoding == "" && !utf8.ValidString(a.Body) || a.Headers["content-encoding"] != "" {
					t.Errorf("headers %v", a.Headers)
				}
			})
		}
	}
}

func TestMaxBody(t *testing.T) {
	port := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "abcdé") })
	for most, want := range map[int]string{4: "abcd", 5: "abcd", 6: "abcdé"} {
		a, err := get(t, local(t, egress.Options{MaxBody: most}), []string{"a.test:" + port}, "http://a.test:"+port)
		if err != nil || a.Body != want || a.Truncated != (most < 6) {
			t.Errorf("%d: %+v, %v; want %q", most, a, err, want)
		}
	}
}

// TestEndlessBody has a server that never stops; the answer is a beginning.
func TestEndlessBody(t *testing.T) {
	gone := make(chan struct{})
	port := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(gone)
		for {
			if _, err := w.Write(bytes.Repeat([]byte("for ever "), 1000)); err != nil {
				return
			}
		}
	})
	a, err := get(t, local(t, egress.Options{}), []string{"a.test:" + port}, "http://a.test:"+port)
	if err != nil || !a.Truncated || len(a.Body) != 240<<10 {
		t.Fatalf("%d bytes, %v, %v", len(a.Body), a.Truncated, err)
	}
	<-gone // the connection was closed, not drained
}

func TestCompressionBombs(t *testing.T) {
	members := bytes.Repeat(zip(nil), 20_000)
	named := []byte{0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 0} // a name without an end
	for name, test := range map[string]struct {
		body []byte
		code abi.Code
	}{
		"zeros":                  {zip(make([]byte, 10<<20)), abi.Limit},
		"zeros that just fit":    {zip(make([]byte, 200<<10)), abi.Limit},
		"members without end":    {members, abi.Limit},
		"name without end":       {append(named, bytes.Repeat([]byte("x"), 1<<20)...), abi.Unavailable},
		"not gzip":               {[]byte("hello, this is no gzip at all"), abi.Unavailable},
		"cut off":                {zip(noise(1000))[:500], abi.Unavailable},
		"wrong checksum":         {append(zip([]byte("hello"))[:len(zip([]byte("hello")))-8], 1, 2, 3, 4, 5, 0, 0, 0), abi.Unavailable},
		"zipped twice is fine":   {zip(zip(make([]byte, 10<<20))), ""},
		"low ratio is fine":      {zip(bytes.Repeat(noise(1000), 64)), ""},
		"little text at any":     {zip(make([]byte, 60<<10)), ""},
		"empty as gzip is fine":  {zip(nil), ""},
		"nothing at all is fine": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			port := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", "GZIP")
				w.WriteHeader(http.StatusOK)
				_, _ = w.Write(test.body)
			})
			a, err := get(t, local(t, egress.Options{}), []string{"a.test:" + port}, "http://a.test:"+port)
			if test.code != "" {
				wantCode(t, err, test.code)
			} else if err != nil || a.Status != 200 {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

// TestOtherCodings are left alone, and a HEAD has headers only.
func TestOtherCodings(t *testing.T) {
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", r.URL.Query().Get("coding"))
		_, _ = w.Write(zip([]byte("hello")))
	})
	hosts := []string{"a.test:" + port}
	for _, coding := range []string{"br", "gzip, gzip", "deflate"} {
		a, err := get(t, local(t, egress.Options{}), hosts, "http://a.test:"+port+"/?coding="+coding)
		if err != nil || a.Headers["content-encoding"] != coding || a.Encoding != "base64" || !bytes.Equal(a.bytes(t), zip([]byte("hello"))) {
			t.Errorf("%s: %+v, %v", coding, a, err)
		}
	}
	a, err := do(t, local(t, egress.Options{}), hosts, map[string]any{"method": "HEAD", "url": "http://a.test:" + port + "/?coding=gzip"})
	if err != nil || a.Status != 200 || a.Body != "" || a.Headers["content-encoding"] != "gzip" {
		t.Errorf("HEAD: %+v, %v", a, err)
	}
}

func TestLongHeaders(t *testing.T) {
	for name, response := range map[string]string{
		"one value":    "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n",
		"many":         "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Y: z\r\n", 12<<10) + "\r\n",
		"interim":      strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 5000) + "HTTP/1.1 200 OK\r\n\r\n",
		"long as JSON": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("\"", 60<<10) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			port := raw(t, response)
			_, err := get(t, local(t, egress.Options{}), []string{"a.test:" + port}, "http://a.test:"+port)
			wantCode(t, err, abi.Limit)
		})
	}
}

// TestLongHeadersAndBody has headers that leave a body less room.
func TestLongHeadersAndBody(t *testing.T) {
	for _, value := range []string{strings.Repeat("\"", 40<<10), strings.Repeat("\xe9\"", 20<<10), strings.Repeat("<", 60<<10)} {
		port := raw(t, "HTTP/1.1 200 OK\r\nX: "+value+"\r\n\r\n"+strings.Repeat("y", 240<<10))
		out, err := local(t, egress.Options{}).Do(t.Context(), egress.Call{Hosts: []string{"a.test:" + port}, Request: json.RawMessage(`{"url":"http://a.test:` + port + `"}`)})
		if err != nil || len(out) > wholeAnswer || len(out) < wholeAnswer-1000 {
			t.Errorf("an answer of %d bytes, %v", len(out), err)
		}
	}
}

// TestServersThatAreNone answer with what is not HTTP, or not all of it.
func TestServersThatAreNone(t *testing.T) {
	for name, response := range map[string]string{
		"nothing":         "",
		"a banner":        "SSH-2.0-OpenSSH_9.9\r\n",
		"broken header":   "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"short body":      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
		"two lengths":     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		"other protocol":  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello",
		"broken chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"unended chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			port := raw(t, response)
			_, err := get(t, local(t, egress.Options{}), []string{"a.test:" + port}, "http://a.test:"+port)
			e := wantCode(t, err, abi.Unavailable)
			if strings.Contains(e.Message, "127.0.0.1") {
				t.Errorf("the error tells an address: %s", e.Message)
			}
		})
	}
	// A body that ends with its connection is whole.
	port := raw(t, "HTTP/1.0 200 OK\r\n\r\nhello")
	if a, err := get(t, local(t, egress.Options{}), []string{"a.test:" + port}, "http://a.test:"+port); err != nil || a.Body != "hello" {
		t.Errorf("%+v, %v", a, err)
	}
}
