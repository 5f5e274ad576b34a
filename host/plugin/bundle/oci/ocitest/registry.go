// Package ocitest is a container registry in memory, for tests of code that packs
// and fetches STEP PLUGINS. It keeps to the distribution API as far as pushing
// and pulling go, and can be made to lie.
package ocitest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// A Registry answers on this machine until it is closed. Safe for concurrent use;
// its fields are set before the first request.
type Registry struct {
	*httptest.Server
	// User and Password, if set, are asked for.
	User, Password string
	// Before is called first; it returns true if it has answered. Default none.
	Before func(w http.ResponseWriter, r *http.Request) (answered bool)

	mu        sync.Mutex
	blobs     map[string][]byte   // by digest
	manifests map[string]manifest // by name:tag and by digest
	uploads   int
}

// A manifest is kept with the type that it was stored under: registries give back
// what they received.
type manifest struct {
	mediaType string
	content   []byte
}

// New starts a registry; secure gives it TLS with a certificate of the test.
func New(secure bool) *Registry {
	r := &Registry{blobs: map[string][]byte{}, manifests: map[string]manifest{}}
	if secure {
		r.Server = httptest.NewTLSServer(r)
	} else {
		r.Server = httptest.NewServer(r)
	}
	return r
}

// Host is how a reference names the registry.
func (r *Registry) Host() string { return r.Listener.Addr().String() }

// Put keeps a blob and returns its digest.
func (r *Registry) Put(content []byte) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := digestOf(content)
	r.blobs[d] = content
	return d
}

// Tag keeps a manifest under a name with a tag.
func (r *Registry) Tag(name, tag, mediaType string, content []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.manifests[name+":"+tag] = manifest{mediaType, content}
	r.manifests[name+":"+digestOf(content)] = manifest{mediaType, content}
}

// digestOf is how registries name content.
func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ServeHTTP answers one request.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.Before != nil && r.Before(w, req) {
		return
	}
	if r.User != "" {
		if user, password, ok := req.BasicAuth(); !ok || user != r.User || password != r.Password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			refuse(w, http.StatusUnauthorized, "UNAUTHORIZED")
			return
		}
	}
	rest, ok := strings.CutPrefix(req.URL.Path, "/v2/")
	switch {
	case !ok:
		refuse(w, http.StatusNotFound, "UNSUPPORTED")
	case rest == "":
		w.WriteHeader(http.StatusOK)
	case strings.Contains(rest, "/blobs/uploads/"):
		name, _, _ := strings.Cut(rest, "/blobs/uploads/")
		r.upload(w, req, name)
	case strings.Contains(rest, "/blobs/"):
		_, digest, _ := strings.Cut(rest, "/blobs/")
		r.mu.Lock()
		content, ok := r.blobs[digest]
		r.mu.Unlock()
		give(w, req, ok, "application/octet-stream", content)
	case strings.Contains(rest, "/manifests/"):
		name, ref, _ := strings.Cut(rest, "/manifests/")
		r.manifest(w, req, name, ref)
	default:
		refuse(w, http.StatusNotFound, "UNSUPPORTED")
	}
}

// upload takes a blob in one piece, in the two requests that clients make of it.
func (r *Registry) upload(w http.ResponseWriter, req *http.Request, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch req.Method {
	case http.MethodPost:
		r.uploads++
		w.Header().Set("Location", fmt.Sprintf("/v2/%s/blobs/uploads/%d", name, r.uploads))
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPut:
		content, err := io.ReadAll(req.Body)
		if want := req.URL.Query().Get("digest"); err != nil || digestOf(content) != want {
			refuse(w, http.StatusBadRequest, "DIGEST_INVALID")
			return
		}
		r.blobs[digestOf(content)] = content
		w.Header().Set("Location", "/v2/"+name+"/blobs/"+digestOf(content))
		w.WriteHeader(http.StatusCreated)
	default:
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED")
	}
}

// manifest gives or takes one; parts that it names must be there before it, as
// real registries have it.
func (r *Registry) manifest(w http.ResponseWriter, req *http.Request, name, ref string) {
	if req.Method != http.MethodPut {
		r.mu.Lock()
		m, ok := r.manifests[name+":"+ref]
		r.mu.Unlock()
		give(w, req, ok, m.mediaType, m.content)
		return
	}
	content, err := io.ReadAll(req.Body)
	var parts struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	if err != nil || json.Unmarshal(content, &parts) != nil {
		refuse(w, http.StatusBadRequest, "MANIFEST_INVALID")
		return
	}
	for _, d := range append(parts.Layers, parts.Config) {
		r.mu.Lock()
		_, ok := r.blobs[d.Digest]
		r.mu.Unlock()
		if !ok {
			refuse(w, http.StatusBadRequest, "MANIFEST_BLOB_UNKNOWN")
			return
		}
	}
	r.Tag(name, ref, req.Header.Get("Content-Type"), content)
	w.Header().Set("Docker-Content-Digest", digestOf(content))
	w.WriteHeader(http.StatusCreated)
}

// give answers with content, or with its head alone where that is asked for.
func give(w http.ResponseWriter, req *http.Request, ok bool, mediaType string, content []byte) {
	if !ok {
		refuse(w, http.StatusNotFound, "NOT_FOUND")
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", digestOf(content))
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	if req.Method != http.MethodHead {
		_, _ = w.Write(content) // the client may have closed the connection
	}
}

// refuse answers with an error in the form of the distribution API.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":"said by the test"}]}`, code)
}
