package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/serve"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// shopfront is the program: the shop, and the host process beside it.
type shopfront struct {
	shop   *shop
	server *serve.Server
	keys   map[[sha256.Size]byte]string // digest of a caller's key -> who that is
	inner  string                       // token between our guard and the service
}

// open opens both in a folder. The caller calls serve or close.
func open(ctx context.Context, dir string, keys map[string]string) (*shopfront, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &shopfront{keys: map[[sha256.Size]byte]string{}, inner: rand.Text()}
	for key, who := range keys {
		s.keys[sha256.Sum256([]byte(key))] = who
	}
	var err error
	if s.shop, err = openShop(dir); err != nil {
		return nil, err
	}
	s.server, err = serve.Open(ctx, serve.Options{
		Host: host.Options{
			Workspace: dir,
			Dir:       filepath.Join(dir, host.DirName),
			// The program's own file, not that of the person who runs it, and no
			// port: we listen.
			Config: filepath.Join(dir, "sentinel.json"),
			Set:    map[string]string{"serve.listen": ""},
			Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		},
		Kinds:  triggers.Set{kind{s.shop}},
		Tokens: []string{s.inner},
	})
	if err != nil {
		return nil, errors.Join(err, s.shop.close())
	}
	// Before anything runs: a resumed run may need it at once.
	if err := s.server.Host().Commands().Add(s.shop.shipping()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// serve carries runs out and fires triggers until ctx ends. Then it drains, and
// closes everything.
func (s *shopfront) serve(ctx context.Context) error {
	return errors.Join(s.server.Run(ctx), s.close())
}

// close closes everything.
func (s *shopfront) close() error { return errors.Join(s.server.Close(), s.shop.close()) }

// handler is everything that the program answers.
func (s *shopfront) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.order)
	mux.Handle("/sentinel/", http.StripPrefix("/sentinel", s.guard(s.server.Handler())))
	return mux
}

// guard lets those through who have a key of ours. The service wants a token of
// its own, which no caller ever sees; what it checks besides, such as the Host
// header and bounds of bodies, it checks behind us.
func (s *shopfront) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// What a comparison's time tells of a digest tells nothing of the key.
		if _, ok := s.keys[sha256.Sum256([]byte(bearer(r)))]; !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+s.inner)
		next.ServeHTTP(w, r)
	})
}

// bearer returns the key of a request.
func bearer(r *http.Request) string {
	const scheme = "Bearer "
	if h := r.Header.Get("Authorization"); len(h) > len(scheme) && h[:len(scheme)] == scheme {
		return h[len(scheme):]
	}
	return ""
}

// order takes an order from anybody: it is what the program is there for.
func (s *shopfront) order(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&o); err != nil || o.What == "" || o.Cents <= 0 {
		http.Error(w, `want {"what": TEXT, "cents": NUMBER}`, http.StatusBadRequest)
		return
	}
	o, err := s.shop.place(o)
	if err != nil {
		http.Error(w, "the order could not be taken", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(o); err != nil {
		return // who ordered has gone; the order stands
	}
}
