// Command embed is a Go program with the engine inside: two runtimes, one for
// each of two towns, in one process. It brings its own commands and no host: no
// CLI, no models, no shell.
//
//	go run ./examples/embed [FOLDER]
//
// With a folder the state stays there, and the diaries grow with each start.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// umbrella is a sentinel as any file would hold it. Its check is a regular
// expression, which no fast way of evaluating takes: it goes to a child process
// with limits, and that child is this program again.
const umbrella = `{
  "name": "umbrella",
  "inputs": { "day": { "type": "string", "required": true } },
  "steps": [
    { "command": "weather/on", "params": { "day": "$day" }, "outputTo": "weather" },
    { "check": "/rain|snow|hail/.test($weather.sky)",
      "then": [ { "command": "diary/add", "params": { "text": "On $day take an umbrella: $weather.sky." }, "outputTo": "entry" } ],
      "else": [ { "command": "diary/add", "params": { "text": "On $day go without: $weather.sky." }, "outputTo": "entry" } ] }
  ],
  "loop": { "type": "once" }
}`

func main() {
	runtime.ServeChild() // first of all: in a child process it does not return
	dir := ""
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(context.Background(), os.Stdout, dir); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// run asks in two towns whether to take an umbrella. An empty dir keeps all
// state in memory.
func run(ctx context.Context, w io.Writer, dir string) (err error) {
	bergen, err := open(ctx, dir, "bergen", town{"monday": "heavy rain", "tuesday": "sun"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bergen.Close()) }()
	cairo, err := open(ctx, dir, "cairo", town{"monday": "sun", "tuesday": "haze"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cairo.Close()) }()

	for _, place := range []struct {
		name string
		rt   *runtime.Runtime
	}{{"Bergen", bergen}, {"Cairo", cairo}} {
		for _, day := range []string{"monday", "tuesday"} {
			res, err := ask(ctx, place.rt, day)
			if err != nil {
				return fmt.Errorf("%s: %w", place.name, err)
			}
			fmt.Fprintf(w, "%s, %s: %s, %s\n", place.name, day, res.Status, res.Variables["entry"])
		}
		fmt.Fprintf(w, "%s's diary:\n", place.name)
		if err := diary(ctx, place.rt, w); err != nil {
			return err
		}
	}
	return nil
}

// open opens a runtime with a state of its own. The built-in step types are a
// plugin like any other; it is trusted because it came with the module.
func open(ctx context.Context, dir, name string, t town) (*runtime.Runtime, error) {
	opt := runtime.Options{
		Plugins:  []plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}},
		Commands: t,
	}
	if dir != "" {
		opt.Dir = filepath.Join(dir, name)
	}
	return runtime.Open(ctx, opt)
}

// ask runs the sentinel once.
func ask(ctx context.Context, rt *runtime.Runtime, day string) (runtime.Result, error) {
	def, problems := rt.Decode([]byte(umbrella), "umbrella.json")
	if len(problems) > 0 {
		return runtime.Result{}, problems // each with its line and column
	}
	input, err := json.Marshal(day)
	if err != nil {
		return runtime.Result{}, err
	}
	id, err := rt.Start(ctx, def, runtime.StartOptions{Inputs: map[string]json.RawMessage{"day": input}})
	if err != nil {
		return runtime.Result{}, err
	}
	res, err := rt.Wait(ctx, id)
	if err == nil && res.Error != nil {
		err = res.Error
	}
	return res, err
}
