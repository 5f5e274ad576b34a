package code

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A stage is one program that code/verify starts.
type stage struct {
	name string // go build, npm test
	argv []string
	test bool // runs with fullTest, or if the project has no other stages
	// env has variables of the program. Values of the host and of the step take
	// precedence.
	env map[string]string
}

// callFor returns call with the stage's variables.
func (s stage) callFor(call *command.Call) *command.Call {
	env := maps.Clone(s.env)
	for name := range s.env {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	if len(env) == 0 {
		return call
	}
	maps.Copy(env, call.Env)
	own := *call
	own.Env = env
	return &own
}

// kinds are the known kinds of projects, each with the file that identifies it. Make
// is last and only used alone, because a Makefile beside another kind usually calls
// the tool of that kind.
var kinds = []struct {
	marker string
	stages func(data []byte, has func(name string) bool) ([]stage, error)
	alone  bool
}{
	{marker: "go.mod", stages: goStages},
	{marker: "package.json", stages: nodeStages},
	{marker: "Cargo.toml", stages: rustStages},
	{marker: "Makefile", stages: makeStages, alone: true},
}

// stagesOf returns the programs that build and test the project in dir.
func (w *workspace) stagesOf(dir string) ([]stage, error) {
	var all []stage
	for _, k := range kinds {
		if k.alone && len(all) > 0 {
			continue
		}
		name := path.Join(dir, k.marker)
		info, err := w.Root().Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		data, err := filewalk.ReadFile(w.Root(), name, info, maxFile)
		if err != nil {
			return nil, w.Explain(name, err)
		}
		stages, err := k.stages(data, func(file string) bool {
			_, err := w.Root().Stat(path.Join(dir, file))
			return err == nil
		})
		if err != nil {
			return nil, abi.New(abi.BadFields, fmt.Sprintf("verify: read %q: %v", name, err))
		}
		all = append(all, stages...)
	}
	return all, nil
}

// goStages includes go vet. go test finds the same problems, but it only runs with
// fullTest.
//
// GOTOOLCHAIN is local because a model may write go.mod and go.work, whose toolchain
// line could select another program named go1.x on PATH or a download. An operator
// who wants that sets GOTOOLCHAIN for the host.
func goStages([]byte, func(string) bool) ([]stage, error) {
	local := map[string]string{"GOTOOLCHAIN": "local"}
	return []stage{
		{name: "go build", argv: []string{"go", "build", "-o", os.DevNull, "./..."}, env: local},
		{name: "go vet", argv: []string{"go", "vet", "./..."}, env: local},
		{name: "go test", argv: []string{"go", "test", "./..."}, test: true, env: local},
	}, nil
}

// rustStages builds tests and examples too, so that a test that does not compile is
// found without running the tests.
func rustStages([]byte, func(string) bool) ([]stage, error) {
	return []stage{
		{name: "cargo build", argv: []string{"cargo", "build", "--all-targets"}},
		{name: "cargo test", argv: []string{"cargo", "test"}, test: true},
	}, nil
}

// nodeStages runs the scripts of the project, with the package manager of its lock
// file.
func nodeStages(data []byte, has func(string) bool) ([]stage, error) {
	var manifest struct {
		Scripts map[string]string `json:"scripts"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return nil, err
	}
	manager := "npm"
	switch {
	case has("pnpm-lock.yaml"):
		manager = "pnpm"
	case has("yarn.lock"):
		manager = "yarn"
	case has("bun.lock"), has("bun.lockb"):
		manager = "bun"
	}
	var stages []stage
	for _, script := range []string{"build", "typecheck", "lint", "test"} {
		line, ok := manifest.Scripts[script]
		// npm init writes a test script that always fails; it is not a test.
		if !ok || script == "test" && strings.Contains(line, "no test specified") {
			continue
		}
		stages = append(stages, stage{name: manager + " run " + script, argv: []string{manager, "run", script}, test: script == "test"})
	}
	return stages, nil
}

var makeTarget = lazyregexp.New(`(?m)^([A-Za-z0-9_.-]+)[ \t]*:(?:[^=]|$)`)

// makeStages uses the targets build or all, and test or check, or else the default
// target.
func makeStages(data []byte, _ func(string) bool) ([]stage, error) {
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllSubmatch(data, -1) {
		targets[string(m[1])] = true
	}
	first := func(test bool, names ...string) []stage {
		for _, n := range names {
			if targets[n] {
				return []stage{{name: "make " + n, argv: []string{"make", n}, test: test}}
			}
		}
		return nil
	}
	stages := first(false, "build", "all")
	tests := first(true, "test", "check")
	if len(stages) == 0 && len(tests) == 0 {
		stages = []stage{{name: "make", argv: []string{"make"}}}
	}
	return append(stages, tests...), nil
}
