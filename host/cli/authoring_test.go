package cli_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptedModel starts the language model of a script that has a file model.txt, and
// sets OPENAI_BASE_URL to it. Each line of the file is the answer to one request, in
// order; the last one is repeated:
//
//	a text
//	call code_read {"path": "a.txt"}
//	status 503
//
// The requests are written to asked.txt, one a line.
func scriptedModel(env *testscript.Env) error {
	text, err := os.ReadFile(filepath.Join(env.WorkDir, "model.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	asked := filepath.Join(env.WorkDir, "asked.txt")
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			answer(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller went away
		}
		mu.Lock()
		line := lines[min(n, len(lines)-1)]
		n++
		if f, err := os.OpenFile(asked, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil { // else the script sees that it is missing
			_, _ = f.Write(append(bytes.TrimSpace(body), '\n'))
			_ = f.Close()
		}
		mu.Unlock()
		reply(w, line)
	}))
	env.Defer(server.Close)
	env.Setenv("OPENAI_BASE_URL", server.URL+"/v1")
	env.Setenv("OPENAI_API_KEY", "test-key-not-a-secret")
	return nil
}

// reply answers a request as a line of model.txt says.
func reply(w http.ResponseWriter, line string) {
	var status int
	if n, _ := fmt.Sscanf(line, "status %d", &status); n == 1 {
		w.Header().Set("Retry-After", "0")
		http.Error(w, `{"error": {"message": "overloaded", "type": "server_error"}}`, status)
		return
	}
	delta, finish := map[string]any{"role": "assistant", "content": line}, "stop"
	if call, ok := strings.CutPrefix(line, "call "); ok {
		name, args, _ := strings.Cut(call, " ")
		delta, finish = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": name, "arguments": args},
		}}}, "tool_calls"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []map[string]any{
		{"index": 0, "delta": delta, "finish_reason": nil},
		{"index": 0, "delta": map[string]any{}, "finish_reason": finish},
	} {
		chunk, _ := json.Marshal(map[string]any{"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": []any{choice}})
		fmt.Fprintf(w, "data: %s\n\n", chunk)
	}
	fmt.Fprint(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`+"\n\ndata: [DONE]\n\n")
}

// request is the program `http METHOD URL [BODY [HEADER: VALUE]...]`: it prints the body of
// the answer, and its status to standard error. A header X-Hub-Signature-256 whose value is
// a secret becomes the signature of the body. The exit code is 1 if the status is an error.
func request(args []string) int {
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: http METHOD URL [BODY [HEADER: VALUE]...]")
		return 2
	}
	body := ""
	if len(args) > 2 {
		body = args[2]
	}
	req, err := http.NewRequest(args[0], args[1], strings.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	req.Header.Set("Content-Type", "application/json")
	for _, header := range args[min(3, len(args)):] {
		name, value, _ := strings.Cut(header, ": ")
		if name == "X-Hub-Signature-256" {
			mac := hmac.New(sha256.New, []byte(value))
			mac.Write([]byte(body))
			value = fmt.Sprintf("sha256=%x", mac.Sum(nil))
		}
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(os.Stdout, res.Body); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Fprintln(os.Stderr, res.Status)
	if res.StatusCode >= 400 {
		return 1
	}
	return 0
}
