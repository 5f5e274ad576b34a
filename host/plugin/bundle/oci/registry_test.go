package oci_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci/ocitest"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/wire"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// trusting are options for a registry of the test.
func trusting(r *ocitest.Registry) oci.RegistryOptions {
	opt := oci.RegistryOptions{Wire: wire.Options{Plain: r.TLS == nil}}
	if r.TLS != nil {
		pool := x509.NewCertPool()
		pool.AddCert(r.Certificate())
		opt.Wire.TLS = &tls.Config{RootCAs: pool}
	}
	return opt
}

func roundTrip(t *testing.T, host string, opt oci.RegistryOptions) {
	t.Helper()
	a := pack(t, []byte("a signature"))
	digest, err := a.Push(t.Context(), host+"/team/slack:1.2.0", opt)
	if err != nil || digest != a.Digest() {
		t.Fatalf("push: %s, %v", digest, err)
	}
	if _, err := a.Push(t.Context(), "oci://"+host+"/team/slack:latest", opt); err != nil {
		t.Fatalf("push again: %v", err)
	}
	for _, ref := range []string{"/team/slack:1.2.0", "/team/slack:latest", "/team/slack@" + digest} {
		b, err := oci.Pull(t.Context(), host+ref, opt)
		if err != nil {
			t.Fatalf("pull %s: %v", ref, err)
		}
		if b.Digest() != digest || !bytes.Equal(a.Module, b.Module) || !bytes.Equal(a.Signature, b.Signature) {
			t.Errorf("pull %s: other content", ref)
		}
	}
	if _, err := oci.Pull(t.Context(), host+"/team/slack:9", opt); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("pull what is not there: %v (%s)", err, abi.CodeOf(err))
	}
}

func TestRegistry(t *testing.T) {
	for _, secure := range []bool{false, true} {
		r := ocitest.New(secure)
		defer r.Close()
		roundTrip(t, r.Host(), trusting(r))
	}
}

// TestPassword: given for the registry that is named, asked for where missing.
func TestPassword(t *testing.T) {
	r := ocitest.New(false)
	defer r.Close()
	r.User, r.Password = "me", "open sesame"
	opt := trusting(r)
	if _, err := oci.Pull(t.Context(), r.Host()+"/a:1", opt); abi.CodeOf(err) != abi.Denied || !strings.Contains(abi.As(err).Hint, "docker login") {
		t.Errorf("without a password: %v", err)
	}
	opt.Host, opt.User, opt.Password = r.Host(), "me", "wrong"
	if _, err := oci.Pull(t.Context(), r.Host()+"/a:1", opt); abi.CodeOf(err) != abi.Denied || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong one: %v", err)
	}
	opt.Password = "open sesame"
	roundTrip(t, r.Host(), opt)
	for host, want := range map[string]abi.Code{"": abi.BadFields, "registry.example.com": abi.Denied} {
		opt.Host = host
		if _, err := oci.Pull(t.Context(), r.Host()+"/a:1", opt); abi.CodeOf(err) != want {
			t.Errorf("for the host %q: %v", host, err)
		}
	}

	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	config := fmt.Sprintf(`{"auths":{%q:{"auth":"bWU6b3BlbiBzZXNhbWU="}}}`, r.Host())
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	opt.Host, opt.User, opt.Password, opt.Docker = "", "", "", true
	roundTrip(t, r.Host(), opt)
}

// TestHostileRegistry: one that lies, redirects, or hangs is reported with a code.
func TestHostileRegistry(t *testing.T) {
	a := pack(t, nil)
	elsewhere := ocitest.New(false) // a canary: it must never see a password
	defer elsewhere.Close()
	var seen atomic.Int32
	elsewhere.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" {
			seen.Add(1)
		}
		_, _ = w.Write([]byte("\x00asm module"))
		return true
	}
	module := "/blobs/sha256:" + hexOf(a.Module)
	raw := func(w http.ResponseWriter, header, body string) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n%s\r\n%s", header, body)
		_ = conn.Close()
	}
	hang := make(chan struct{})
	defer close(hang)
	tests := []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request) bool
		code   abi.Code
		want   string
	}{
		{"other bytes", func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = w.Write([]byte("\x00asm MODULE"))
			return true
		}, abi.Denied, "what the registry sends is not"},
		{"short", func(w http.ResponseWriter, r *http.Request) bool {
			raw(w, "", "\x00asm")
			return true
		}, abi.Denied, "what the registry sends is not"},
		{"long", func(w http.ResponseWriter, r *http.Request) bool {
			raw(w, "", "\x00asm module and more")
			return true
		}, abi.Denied, "what the registry sends is not"},
		{"lying length", func(w http.ResponseWriter, r *http.Request) bool {
			raw(w, "Content-Length: 1000000\r\n", "\x00asm module")
			return true
		}, "", "mismatch Content-Length"},
		{"hangs", func(w http.ResponseWriter, r *http.Request) bool {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return true
		}, abi.Timeout, "in time"},
		{"stalls", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", "11")
			_, _ = w.Write([]byte("\x00asm"))
			w.(http.Flusher).Flush()
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return true
		}, abi.Timeout, "in time"},
		{"leads in circles", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}, abi.Denied, "redirects"},
		{"leads to plain http", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, elsewhere.URL+"/x", http.StatusTemporaryRedirect)
			return true
		}, abi.Denied, "http"},
		{"leads to a file", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}, abi.Denied, ""},
		{"fails", func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusTeapot)
			return true
		}, abi.BadFields, "418"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := ocitest.New(true)
			defer r.Close()
			r.User, r.Password = "me", "open sesame"
			opt := trusting(r)
			opt.Host, opt.User, opt.Password, opt.Wire.Stall = r.Host(), r.User, r.Password, 500*time.Millisecond
			if _, err := a.Push(t.Context(), r.Host()+"/slack:1", opt); err != nil {
				t.Fatal(err)
			}
			r.Before = func(w http.ResponseWriter, req *http.Request) bool {
				return strings.HasSuffix(req.URL.Path, module) && tt.answer(w, req)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := oci.Pull(ctx, r.Host()+"/slack:1", opt)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.code != "" && abi.CodeOf(err) != tt.code {
				t.Errorf("error %v (%s), want one with %q (%s)", err, abi.CodeOf(err), tt.want, tt.code)
			}
		})
	}
	// Where it leads by https, the content comes and the password does not.
	safe := ocitest.New(true)
	defer safe.Close()
	safe.Before = elsewhere.Before
	r := ocitest.New(true)
	defer r.Close()
	r.User, r.Password = "me", "open sesame"
	opt := trusting(r)
	opt.Wire.TLS.RootCAs.AddCert(safe.Certificate())
	opt.Host, opt.User, opt.Password = r.Host(), r.User, r.Password
	if _, err := a.Push(t.Context(), r.Host()+"/slack:1", opt); err != nil {
		t.Fatal(err)
	}
	r.Before = func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.HasSuffix(req.URL.Path, module) {
			return false
		}
		http.Redirect(w, req, safe.URL+"/signed?secret=1", http.StatusTemporaryRedirect)
		return true
	}
	if b, err := oci.Pull(t.Context(), r.Host()+"/slack:1", opt); err != nil || !bytes.Equal(b.Module, a.Module) {
		t.Errorf("content from a storage service: %v", err)
	}
	if seen.Load() > 0 {
		t.Error("the password went to another host")
	}
}

// TestHostileManifest: what a registry says is the manifest is bounded and typed.
func TestHostileManifest(t *testing.T) {
	r := ocitest.New(false)
	defer r.Close()
	const image = "application/vnd.oci.image.manifest.v1+json"
	for tag, tt := range map[string]struct {
		mediaType, text string
		code            abi.Code
	}{
		"bomb":  {image, `{"schemaVersion":2,"x":"` + strings.Repeat("a", 5<<20) + `"}`, abi.Limit},
		"index": {"application/vnd.oci.image.index.v1+json", `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`, abi.BadFields},
		"image": {image, `{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json"},"layers":[]}`, abi.BadFields},
		"none":  {image, `[]`, abi.BadFields},
		"html":  {"text/html", `<html>`, abi.BadFields},
	} {
		r.Tag("x", tag, tt.mediaType, []byte(tt.text))
		if _, err := oci.Pull(t.Context(), r.Host()+"/x:"+tag, trusting(r)); abi.CodeOf(err) != tt.code {
			t.Errorf("%s: error %v (%s), want %s", tag, err, abi.CodeOf(err), tt.code)
		}
	}
}

func TestReference(t *testing.T) {
	for _, bad := range []string{"", "oci://", "slack", "host/slack", "host/Slack:1", "host/slack@md5:1", "host/slack:1 2", "host/../x:1", "me:secret@host/slack:1"} {
		if got, err := oci.Reference(bad); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%q is %q, %v", bad, got, err)
		}
	}
}

// TestDistribution: the registry of the Docker distribution takes what we push.
func TestDistribution(t *testing.T) {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("there is no docker-registry; have it with: apt-get install docker-registry")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	config := fmt.Sprintf("version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: %s\nhttp:\n  addr: %s\n  secret: test\n", filepath.Join(dir, "data"), addr)
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "serve", filepath.Join(dir, "config.yml"))
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get("http://" + addr + "/v2/"); err == nil {
			resp.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the registry does not answer: %s", said.String())
		}
	}
	roundTrip(t, addr, oci.RegistryOptions{Wire: wire.Options{Plain: true}})
}
