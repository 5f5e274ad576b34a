package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A requestServer is what steps of type http ask in scripts. Its paths end in a name, so that scripts that run
// at the same time do not meet:
//
//	/echo          answers with the request as JSON
//	/status/N      has this status, and the header Retry-After of ?after
//	/flaky/NAME    has the status ?status, by default 503, for the first two requests of the name
//	/hold/NAME     answers when /release/NAME was asked
//	/count/NAME    the number of requests of the name, and their idempotency keys, each once
//	/to?url=URL    redirects there; /circle to itself
//	/endless       a body without end; /latin one that is not UTF-8; /short one that breaks off
type requestServer struct {
	mu       sync.Mutex
	requests map[string][]string      // idempotency keys by name
	released map[string]chan struct{} // closed
	over     chan struct{}            // closed when the scripts have ended
}

func (s *requestServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	switch kind {
	case "echo":
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "query": r.URL.RawQuery, "body": string(body), "type": r.Header.Get("Content-Type"),
			"authorization": r.Header.Get("Authorization"), "x": r.Header.Get("X-Api-Key"),
		})
	case "status":
		status, _ := strconv.Atoi(name)
		if after := query.Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "this is %d", status)
	case "flaky":
		if s.add(name, r) <= 2 {
			status, err := strconv.Atoi(query.Get("status"))
			if err != nil {
				status = http.StatusServiceUnavailable
			}
			w.WriteHeader(status)
			return
		}
		fmt.Fprint(w, "at last")
	case "hold":
		n := s.add(name, r)
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not noticed
		select {
		case <-s.gate(name):
			fmt.Fprintf(w, "request %d", n)
		case <-r.Context().Done():
		case <-s.over:
		}
	case "release":
		close(s.gate(name))
	case "count":
		s.mu.Lock()
		defer s.mu.Unlock()
		keys := map[string]bool{}
		for _, key := range s.requests[name] {
			keys[key] = key != ""
		}
		delete(keys, "")
		fmt.Fprintf(w, "%d requests, %d keys\n", len(s.requests[name]), len(keys))
	case "to":
		http.Redirect(w, r, query.Get("url"), http.StatusFound)
	case "circle":
		http.Redirect(w, r, "/circle", http.StatusFound)
	case "endless":
		for part := make([]byte, 64<<10); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	case "latin":
		fmt.Fprint(w, "gr\xfcn")
	case "short":
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "short")
	default:
		http.NotFound(w, r)
	}
}

// add counts a request and returns its number.
func (s *requestServer) add(name string, r *http.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests == nil {
		s.requests = map[string][]string{}
	}
	s.requests[name] = append(s.requests[name], r.Header.Get("Idempotency-Key"))
	return len(s.requests[name])
}

// gate returns what is closed when a name is released.
func (s *requestServer) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released == nil {
		s.released = map[string]chan struct{}{}
	}
	if s.released[name] == nil {
		s.released[name] = make(chan struct{})
	}
	return s.released[name]
}
