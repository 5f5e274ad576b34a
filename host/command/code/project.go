package code

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A stage is one program that code/verify starts.
type stage struct {
	kind  string // Go, Rust
	name  string // go build, npm test
	argv  []string
	stdin string
	test  bool // runs with fullTest, or if the project has no other stages
	// env has variables of the program. Values of the host and of the step take
	// precedence.
	env map[string]string
	// optional says why the check does not fail without the program. The stage is
	// then skipped, and instead runs in its place.
	optional string
	instead  []stage
	// absent recognizes by the exit code and the output that a part of the program is
	// not installed. Default: nothing.
	absent func(exitCode int, output string) bool
	// untested recognizes tests that ended without a test. Default: nothing.
	untested func(exitCode int, output string) bool
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
	for name := range call.Environment.Variables {
		delete(env, name) // what the definition says
	}
	maps.Copy(env, call.Env)
	own := *call
	own.Env = env
	return &own
}

// A kind is a kind of project that code/verify knows.
type kind struct {
	name    string
	markers []string // files of the folder; one of them identifies the kind
	stages  func(ctx context.Context, p project) ([]stage, error)
	// last kinds are used if no other kind has stages: a Makefile beside another kind
	// usually calls the tool of that kind.
	last bool
}

var kinds = []kind{
	{name: "Go", markers: []string{"go.mod"}, stages: goStages},
	{name: "Node", markers: []string{"package.json"}, stages: nodeStages},
	{name: "Rust", markers: []string{"Cargo.toml"}, stages: rustStages},
	{name: "Python", markers: pythonMarkers, stages: pythonStages},
	{name: "Make", markers: []string{"Makefile"}, stages: makeStages, last: true},
	// Files with tests are enough for Python, which needs no other file.
	{name: "Python", stages: pythonTestStages, last: true},
}

// A project is a folder of the workspace that is built and tested.
type project struct {
	*workspace
	dir string
}

// stages returns the programs that build and test the project, those of one kind
// after the other.
func (p project) stages(ctx context.Context) ([]stage, error) {
	var all []stage
	for _, k := range kinds {
		if k.last && len(all) > 0 || len(k.markers) > 0 && !slices.ContainsFunc(k.markers, p.hasFile) {
			continue
		}
		stages, err := k.stages(ctx, p)
		if err != nil {
			return nil, err
		}
		for i := range stages {
			stages[i].kind = k.name
		}
		all = append(all, stages...)
	}
	return all, nil
}

// has reports whether the folder has an entry of that name.
func (p project) has(name string) bool {
	_, err := p.Root().Stat(path.Join(p.dir, name))
	return err == nil
}

// hasFile reports whether the folder has a regular file of that name.
func (p project) hasFile(name string) bool {
	info, err := p.Root().Stat(path.Join(p.dir, name))
	return err == nil && info.Mode().IsRegular()
}

// read returns the content of a file of the folder, and nothing if there is none.
func (p project) read(name string) ([]byte, error) {
	name = path.Join(p.dir, name)
	info, err := p.Root().Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	data, err := filewalk.ReadFile(p.Root(), name, info, maxFile)
	if err != nil {
		return nil, p.Explain(name, err)
	}
	return data, nil
}

// goStages includes go vet. go test finds the same problems, but it only runs with
// fullTest.
//
// GOTOOLCHAIN is local because a model may write go.mod and go.work, whose toolchain
// line could select another program named go1.x on PATH or a download. An operator
// who wants that sets GOTOOLCHAIN for the host.
func goStages(context.Context, project) ([]stage, error) {
	local := map[string]string{"GOTOOLCHAIN": "local"}
	return []stage{
		{name: "go build", argv: []string{"go", "build", "-o", os.DevNull, "./..."}, env: local},
		{name: "go vet", argv: []string{"go", "vet", "./..."}, env: local},
		{name: "go test", argv: []string{"go", "test", "./..."}, test: true, env: local},
	}, nil
}

// rustStages builds tests and examples too, so that a test that does not compile is
// found without running the tests.
//
// Colour is off because the output is read by models and people in a log: neither
// NO_COLOR nor TERM reaches the compiler that cargo starts.
func rustStages(context.Context, project) ([]stage, error) {
	plain := map[string]string{"CARGO_TERM_COLOR": "never"}
	return []stage{
		{name: "cargo build", argv: []string{"cargo", "build", "--all-targets"}, env: plain},
		{name: "cargo test", argv: []string{"cargo", "test"}, test: true, env: plain, untested: func(_ int, output string) bool {
			return strings.Contains(output, "running 0 tests") && !rustTests.MatchString(output)
		}},
	}, nil
}

var rustTests = lazyregexp.New(`(?m)^running [1-9]\d* tests?$`)

// nodeStages runs the scripts of the project, with the package manager of its lock
// file.
func nodeStages(_ context.Context, p project) ([]stage, error) {
	data, err := p.read("package.json")
	if err != nil {
		return nil, err
	}
	// As npm reads it: names are exact, and the last of two equal ones counts.
	var manifest map[string]json.RawMessage
	scripts := map[string]string{}
	err = json.Unmarshal(data, &manifest)
	if raw, ok := manifest["scripts"]; ok && err == nil {
		err = json.Unmarshal(raw, &scripts)
	}
	if err != nil {
		return nil, abi.New(abi.BadFields, fmt.Sprintf("verify: read %q: %v", path.Join(p.dir, "package.json"), err))
	}
	manager := "npm"
	switch {
	case p.has("pnpm-lock.yaml"):
		manager = "pnpm"
	case p.has("yarn.lock"):
		manager = "yarn"
	case p.has("bun.lock"), p.has("bun.lockb"):
		manager = "bun"
	}
	var stages []stage
	for _, script := range []string{"build", "typecheck", "lint", "test"} {
		line, ok := scripts[script]
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
func makeStages(_ context.Context, p project) ([]stage, error) {
	data, err := p.read("Makefile")
	if err != nil {
		return nil, err
	}
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
