// Package clitest runs the command line against a scripted engine: tests of a verb see
// which commands it calls with which parameters, and choose the results.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An Engine is a client.Engine that answers from a script. The zero value knows no
// command. It is for one goroutine.
type Engine struct {
	// Results are the results of commands by their name: JSON, or an error. A command
	// without one is an error of code internal.
	Results map[string]any
	// Calls are the calls so far, "name params" each, with the keys of params in order.
	Calls []string
}

// Call implements client.Engine.
func (e *Engine) Call(_ context.Context, name string, params, into any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	var ordered any // a struct has its fields in their order, a map has none
	if err := json.Unmarshal(text, &ordered); err != nil {
		return err
	}
	if text, err = json.Marshal(ordered); err != nil {
		return err
	}
	e.Calls = append(e.Calls, name+" "+string(text))
	switch result := e.Results[name].(type) {
	case error:
		return result
	case string:
		if into == nil {
			return nil
		}
		return json.Unmarshal([]byte(result), into)
	}
	return &abi.Error{Code: abi.Internal, Message: fmt.Sprintf("no result is scripted for %q", name)}
}

var errNone = errors.New("not scripted")

// Commands implements client.Engine.
func (e *Engine) Commands(context.Context) ([]client.Command, error) { return nil, errNone }

// Cursor implements client.Engine.
func (e *Engine) Cursor(context.Context) (string, error) { return "", errNone }

// Watch implements client.Engine.
func (e *Engine) Watch(context.Context, client.WatchOptions, func(client.Message) error) error {
	return errNone
}

// Logs implements client.Engine.
func (e *Engine) Logs(context.Context, sentinels.RunID, int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) { yield(nil, errNone) }
}

// Output implements client.Engine.
func (e *Engine) Output(context.Context, client.OutputOptions) (io.ReadCloser, error) {
	return nil, errNone
}

// Now is the time that verbs see.
var Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Output is what an invocation has written, and its exit code.
type Output struct {
	Stdout, Stderr string
	Code           int
}

// Run runs one command line in the folder dir. stdin is the text of standard input.
func Run(t *testing.T, e *Engine, dir, stdin string, args ...string) Output {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), app.Env{
		Args: args, Dir: dir, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Engine: e,
		Now: func() time.Time { return Now },
		Getenv: func(name string) string {
			return map[string]string{"USER": "ann", "XDG_CONFIG_HOME": dir, "SENTINEL_TRUST_ROOTS": "/"}[name]
		},
	})
	return Output{out.String(), errs.String(), code}
}

// Write writes files, by their path in dir, that only the user can read.
func Write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A Case is one command line with the calls that it makes and what it writes.
type Case struct {
	Args    []string
	Stdin   string
	Files   map[string]string // files of the folder by their path in it
	Results map[string]any    // see [Engine]
	Calls   []string          // see [Engine], with DIR for the folder and TEMP for a temporary file; nil means none
	Stdout  []string          // parts of standard output, with DIR for the folder
	Stderr  []string          // parts of standard error, with DIR for the folder
	Code    int
}

// tempFile is the name of a file that a verb wrote for one call.
var tempFile = regexp.MustCompile(`"[^"]*/sentinel-[0-9]+\.json"`)

// Check runs every case in a new folder and compares.
func Check(t *testing.T, cases []Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(strings.Join(c.Args, " "), func(t *testing.T) {
			e := &Engine{Results: c.Results}
			dir := t.TempDir()
			Write(t, dir, c.Files)
			out := Run(t, e, dir, c.Stdin, c.Args...)
			out.Stdout, out.Stderr = strings.ReplaceAll(out.Stdout, dir, "DIR"), strings.ReplaceAll(out.Stderr, dir, "DIR")
			calls := tempFile.ReplaceAllString(strings.ReplaceAll(strings.Join(e.Calls, "\n"), dir, "DIR"), `"TEMP"`)
			if out.Code != c.Code {
				t.Errorf("exit code %d, want %d", out.Code, c.Code)
			}
			if want := strings.Join(c.Calls, "\n"); calls != want {
				t.Errorf("calls:\n%s\nwant:\n%s", calls, want)
			}
			for _, part := range c.Stdout {
				if !strings.Contains(out.Stdout, part) {
					t.Errorf("%q is not in standard output", part)
				}
			}
			for _, part := range c.Stderr {
				if !strings.Contains(out.Stderr, part) {
					t.Errorf("%q is not in standard error", part)
				}
			}
			if len(c.Stdout) == 0 && out.Stdout != "" {
				t.Error("standard output is not empty")
			}
			if t.Failed() {
				t.Logf("standard output:\n%s\nstandard error:\n%s", out.Stdout, out.Stderr)
			}
		})
	}
}
