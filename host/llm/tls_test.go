package llm_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// authority signs certificates for the test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-100 * time.Hour), NotAfter: time.Now().Add(100 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{cert, key, x509.NewCertPool()}
	a.pool.AddCert(cert)
	return a
}

// issue makes a server's certificate.
func (a *authority) issue(t *testing.T, from, to time.Time, hosts ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: from, NotAfter: to, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Every way in which TLS of a model server can be wrong is an error of its own,
// which says what to do and is not tried again.
func TestTLSErrors(t *testing.T) {
	a := newAuthority(t)
	now := time.Now()
	good := a.issue(t, now.Add(-time.Hour), now.Add(time.Hour), "127.0.0.1")
	for _, tt := range []struct {
		name   string
		cert   tls.Certificate
		config *tls.Config
		scheme string // of the base URL
		plain  bool   // the server has no TLS
		trust  *x509.CertPool
		says   string
		hint   string
	}{
		{name: "good", cert: good, scheme: "https", trust: a.pool},
		{name: "expired", cert: a.issue(t, now.Add(-48*time.Hour), now.Add(-24*time.Hour), "127.0.0.1"), scheme: "https", trust: a.pool,
			says: "TLS: the server's certificate is not valid now: it holds from " + now.Add(-48*time.Hour).UTC().Format(time.DateOnly), hint: "renew the certificate"},
		{name: "not yet valid", cert: a.issue(t, now.Add(24*time.Hour), now.Add(48*time.Hour), "127.0.0.1"), scheme: "https", trust: a.pool,
			says: "TLS: the server's certificate is not valid now", hint: "clock"},
		{name: "unknown authority", cert: good, scheme: "https", trust: x509.NewCertPool(),
			says: "TLS: the server's certificate is from an unknown authority", hint: "SSL_CERT_FILE"},
		{name: "wrong host", cert: a.issue(t, now.Add(-time.Hour), now.Add(time.Hour), "models.example"), scheme: "https", trust: a.pool,
			says: "TLS: the server's certificate is for another host", hint: "base URL"},
		{name: "TLS on the plain port", plain: true, scheme: "https", trust: a.pool,
			says: "TLS: the server does not speak TLS on this port", hint: "write http://"},
		{name: "old version", cert: good, config: &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, scheme: "https", trust: a.pool, //nolint:gosec // the server of the test
			says: "TLS: the server refused the connection", hint: "version of TLS"},
	} {
		for _, kind := range []string{"openai", "anthropic"} {
			t.Run(kind+" "+tt.name, func(t *testing.T) {
				var asked atomic.Int32
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					if kind == "anthropic" {
						sse("message_start\n"+`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
							"message_delta\n"+`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, "message_stop\n"+`{"type":"message_stop"}`)(w, r)
						return
					}
					chat("hello")(w, r)
				}))
				server.Config.ErrorLog = log.New(io.Discard, "", 0)
				if tt.plain {
					server.Start()
				} else {
					server.TLS = &tls.Config{}
					if tt.config != nil {
						server.TLS = tt.config.Clone()
					}
					server.TLS.Certificates = []tls.Certificate{tt.cert}
					server.StartTLS()
				}
				defer server.Close()
				base := tt.scheme + "://" + server.Listener.Addr().String() + "/v1"
				transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: tt.trust}}
				defer transport.CloseIdleConnections()
				m := open(t, llm.Config{
					Default: "p/m", Env: env("KEY", key), HTTPClient: &http.Client{Transport: transport},
					Providers: []llm.Provider{{Name: "p", Kind: kind, BaseURL: base, KeyEnv: "KEY"}},
				})
				_, err := m.Turn(t.Context(), ask("hi"), nil)
				if tt.says == "" {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				e := asError(t, err)
				if e.Code != abi.Unavailable || !e.Permanent || !strings.Contains(e.Message, tt.says) || !strings.Contains(e.Hint, tt.hint) {
					t.Errorf("got %+v", e)
				}
				if class := retry.ClassifyError(e); !class.Permanent || class.Category != retry.API {
					t.Errorf("classified as %+v", class)
				}
				if asked.Load() != 0 || strings.Contains(e.Message+e.Hint, key) {
					t.Errorf("%d requests were answered; %+v", asked.Load(), e)
				}
			})
		}
	}
}

// TestTLSPortForPlainHTTP: a TLS server answers plain HTTP with an alert, or as Go and
// nginx do with a 400 that says so. Both servers read the request first: a server that
// closes with bytes unread may reset the connection before the client has the answer.
func TestTLSPortForPlainHTTP(t *testing.T) {
	for name, answer := range map[string]string{
		"alert": "\x15\x03\x01\x00\x02\x02\x0a",
		"400":   "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
	} {
		for _, kind := range []string{"openai", "anthropic"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
							_, _ = io.Copy(io.Discard, r.Body)
						}
						_, _ = io.WriteString(c, answer)
						c.Close()
					}
				}()
				m := open(t, llm.Config{Default: "p/m", Env: env("KEY", key), Providers: []llm.Provider{
					{Name: "p", Kind: kind, BaseURL: "http://" + l.Addr().String() + "/v1", KeyEnv: "KEY"}}})
				_, err = m.Turn(t.Context(), ask("hi"), nil)
				e := asError(t, err)
				if !e.Permanent || !strings.Contains(e.Message, "speaks TLS on this port") || !strings.Contains(e.Hint, "write https://") {
					t.Errorf("got %+v", e)
				}
				if class := retry.ClassifyError(e); !class.Permanent || class.Category != retry.API {
					t.Errorf("classified as %+v", class)
				}
			})
		}
	}
}
