package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// listen runs a server until the test ends.
func listen(t *testing.T, opt api.Options, at api.ListenOptions) *api.Server {
	t.Helper()
	if opt.Commands == nil {
		opt.Commands = commands(t, nil)
	}
	if opt.Tokens == nil {
		opt.Tokens = oneToken(goodToken)
	}
	a, err := api.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if at.Addr == "" {
		at.Addr = "127.0.0.1:0"
	}
	s, err := a.Listen(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error("close:", err)
		}
		if err := <-ran; err != nil {
			t.Error("run:", err)
		}
	})
	return s
}

// certificate makes one for localhost.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(cert)
	return certFile, keyFile, pool
}

// L1: an address that others can reach wants TLS and tokens, or says how.
func TestPublicAddress(t *testing.T) {
	cert, key, _ := certificate(t)
	for _, tt := range []struct {
		addr   string
		noAuth bool
		opt    api.ListenOptions
		code   abi.Code
		hint   string
	}{
		{"127.0.0.1:0", false, api.ListenOptions{}, "", ""},
		{"localhost:0", false, api.ListenOptions{}, "", ""},
		{"localhost:0", true, api.ListenOptions{}, "", ""},
		{"0.0.0.0:0", false, api.ListenOptions{}, abi.Denied, "--tls-cert"},
		{":0", false, api.ListenOptions{}, abi.Denied, "--tls-cert"},
		{"[::]:0", false, api.ListenOptions{}, abi.Denied, "--tls-cert"},
		{"192.0.2.1:0", false, api.ListenOptions{}, abi.Denied, "--tls-cert"},
		{"0.0.0.0:0", true, api.ListenOptions{CertFile: cert, KeyFile: key}, abi.Denied, "--no-auth"},
		{"0.0.0.0:0", true, api.ListenOptions{TLSElsewhere: true}, abi.Denied, "--no-auth"},
		{"0.0.0.0:0", false, api.ListenOptions{CertFile: cert, KeyFile: key}, "", ""},
		{"0.0.0.0:0", false, api.ListenOptions{TLSElsewhere: true}, "", ""},
		{"0.0.0.0:0", false, api.ListenOptions{CertFile: cert}, abi.BadFields, "both"},
		{"8080", false, api.ListenOptions{}, abi.BadFields, "HOST:PORT"},
		{"no.such.host.invalid:0", false, api.ListenOptions{}, abi.BadFields, ""},
		{"127.0.0.1:99999", false, api.ListenOptions{}, abi.Unavailable, "--listen"},
	} {
		a, err := api.New(api.Options{Commands: commands(t, nil), NoAuth: tt.noAuth})
		if err != nil {
			t.Fatal(err)
		}
		tt.opt.Addr = tt.addr
		s, err := a.Listen(t.Context(), tt.opt)
		if err == nil {
			s.Close() // also before Run
		}
		e := abi.As(err)
		if e == nil {
			e = &abi.Error{}
		}
		if e.Code != tt.code || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%s (no auth %v): %v (%s)", tt.addr, tt.noAuth, err, e.Hint)
		}
	}
}

func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	s := listen(t, api.Options{}, api.ListenOptions{CertFile: cert, KeyFile: key})
	for _, h2 := range []bool{false, true} { // a client that prefers it gets HTTP/1.1 too
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: h2}}
		res, err := c.Get(s.URL() + "/health")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		c.CloseIdleConnections()
		if res.StatusCode != http.StatusOK || res.ProtoMajor != 1 {
			t.Errorf("%d over %s", res.StatusCode, res.Proto)
		}
	}
}

// A key that every user of the machine can read is named in the log.
func TestReadableKeyIsNamed(t *testing.T) {
	cert, key, _ := certificate(t)
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		listen(t, api.Options{Logger: textLogger(&log)}, api.ListenOptions{CertFile: cert, KeyFile: key})
		if strings.Contains(log.String(), "every user of this machine can read the key") != warned {
			t.Errorf("%o: %s", mode, log.String())
		}
	}
}

// The server answers nothing by itself: OPTIONS * has no answer without a token.
func TestOptionsOfTheServer(t *testing.T) {
	s := listen(t, api.Options{}, api.ListenOptions{})
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
		t.Errorf("%v %q", err, answer)
	}
}

// A request that is under way is answered; one that does not end is ended.
func TestCloseDrains(t *testing.T) {
	for _, patient := range []bool{true, false} {
		began, closing := make(chan struct{}), make(chan struct{})
		reg := commands(t, map[string]any{"code/slow": reply(func(ctx context.Context, _ *command.Call) (json.RawMessage, error) {
			close(began)
			if patient {
				<-closing
				return json.RawMessage(`"done"`), ctx.Err()
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})})
		at := api.ListenOptions{Grace: time.Minute}
		if !patient {
			at.Grace = time.Millisecond
		}
		s := listen(t, api.Options{Commands: reg}, at)
		got := make(chan string, 1)
		go func() {
			req, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, s.URL()+"/v1/commands/code/slow", strings.NewReader("{}"))
			req.Header.Set("Authorization", "Bearer "+goodToken)
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				got <- "cut off"
				return
			}
			defer res.Body.Close()
			text, _ := io.ReadAll(res.Body)
			got <- strings.TrimSpace(string(text))
		}()
		<-began
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		for { // until no new connection is accepted
			c, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				break
			}
			c.Close()
		}
		close(closing)
		if text := <-got; patient && text != `"done"` {
			t.Errorf("the request was answered %q", text)
		}
		if err := <-closed; err != nil {
			t.Errorf("patient %v: close: %v", patient, err)
		}
	}
}

// The context of Run ends the server as well.
func TestRunEndsWithItsContext(t *testing.T) {
	a, err := api.New(api.Options{Commands: commands(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Listen(t.Context(), api.ListenOptions{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- s.Run(ctx) }()
	res, err := http.Get(s.URL() + "/ready")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}
