package code_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/internal/needs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A steering is a file that determines what a program of code/verify executes.
type steering struct {
	tool  string // the program that reads the file
	file  string
	text  string            // CANARY is the path of a file that the injected code creates
	files map[string]string // the project around it
	full  bool              // with fullTest
	// allowed files may be written by models, so they must have no effect.
	allowed bool
}

// steerings are all known ways to make a tool of code/verify execute code by one file
// of the project. The test that models are refused such files also covers tools that
// are not installed.
var steerings = []steering{
	{tool: "make", file: "Makefile", text: "build:\n\ttouch CANARY\n"},
	{tool: "make", file: "Makefile", text: "X := $(shell touch CANARY)\nall:\n"},
	{tool: "make", file: "GNUmakefile", text: "build:\n\ttouch CANARY\n", files: map[string]string{"Makefile": "build:\n"}},
	{tool: "make", file: "makefile", text: "build:\n\ttouch CANARY\n", files: map[string]string{"Makefile": "build:\n"}},
	{tool: "make", file: "rules.mk", text: "X := $(shell touch CANARY)\n", files: map[string]string{"Makefile": "include rules.mk\nbuild:\n"}},
	{tool: "npm", file: "package.json", text: `{"scripts":{"build":"touch CANARY"}}`},
	{tool: "npm", file: "package.json", text: `{"scripts":{"test":"touch CANARY"}}`, full: true},
	{tool: "npm", file: "package.json", text: `{"scripts":{"prebuild":"touch CANARY","build":"true"}}`},
	{tool: "npm", file: ".npmrc", text: "script-shell=EVIL\n", files: map[string]string{"package.json": `{"scripts":{"build":"true"}}`}},
	{tool: "npm", file: "node_modules/.bin/tsc", text: "#!/bin/sh\ntouch CANARY\n", files: map[string]string{"package.json": `{"scripts":{"build":"tsc"}}`}},
	{tool: "pnpm", file: "pnpm-workspace.yaml", text: "scriptShell: EVIL\n", files: map[string]string{"package.json": `{"scripts":{"build":"true"}}`, "pnpm-lock.yaml": ""}},
	{tool: "pnpm", file: ".pnpmfile.cjs", text: "require('child_process').execSync('touch CANARY')\n"},
	{tool: "yarn", file: ".yarnrc.yml", text: "yarnPath: EVIL\n", files: map[string]string{"package.json": `{"scripts":{"build":"true"}}`, "yarn.lock": ""}},
	{tool: "yarn", file: ".yarnrc", text: "yarn-path \"EVIL\"\n"},
	{tool: "yarn", file: ".yarn/releases/yarn.cjs", text: "x"},
	{tool: "yarn", file: ".pnp.cjs", text: "x"},
	{tool: "bun", file: "bunfig.toml", text: "preload = [\"EVIL\"]\n"},
	{tool: "cargo", file: "build.rs", text: `fn main() { std::fs::write("CANARY", "").unwrap(); }`, files: crate},
	{tool: "cargo", file: "Cargo.toml", text: "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\nbuild = \"notes.txt\"\n", files: map[string]string{
		"src/lib.rs": "", "Cargo.toml": "", "notes.txt": `fn main() { std::fs::write("CANARY", "").unwrap(); }`,
	}},
	{tool: "cargo", file: ".cargo/config.toml", text: "[build]\nrustc-wrapper = \"EVIL\"\n", files: crate},
	{tool: "rustup", file: "rust-toolchain.toml", text: "[toolchain]\npath = \"TOOLCHAIN\"\n", files: crate},
	{tool: "rustup", file: "rust-toolchain", text: "[toolchain]\npath = \"TOOLCHAIN\"\n", files: crate},
	{tool: "go", file: "go.mod", text: "module x\n\ngo 1.21\n\ntoolchain go1.999.0-canary\n", files: map[string]string{"x.go": "package x\n"}, allowed: true},
	{tool: "go", file: "go.work", text: "go 1.21\n\ntoolchain go1.999.0-canary\n\nuse .\n", files: map[string]string{"x.go": "package x\n", "go.mod": "module x\n\ngo 1.21\n"}, allowed: true},
	{tool: "python3", file: ".venv/bin/python", text: "#!/bin/sh\ntouch CANARY\n", files: map[string]string{".venv/pyvenv.cfg": "", "setup.py": ""}},
	{tool: "python3", file: "src/sitecustomize.py", text: pythonCanary, full: true, files: map[string]string{"src/a.py": "", "setup.py": ""}},
	{tool: "venv", file: ".venv/lib/python3.11/site-packages/x.pth", text: "import os; os.system('touch CANARY')\n"},
	{tool: "site", file: "usercustomize.py", text: pythonCanary},
	{tool: "pyenv", file: ".python-version", text: "evil\n"},
	{tool: "pytest", file: "conftest.py", text: pythonCanary, full: true, files: pytestProject},
	{tool: "pytest", file: "pyproject.toml", text: "[tool.pytest.ini_options]\naddopts = \"-p evil\"\n", full: true, files: pytestProject},
	{tool: "pytest", file: "pytest.ini", text: "[pytest]\naddopts = -p evil\n", full: true, files: pytestProject},
	{tool: "pytest", file: "tox.ini", text: "[pytest]\naddopts = -p evil\n", full: true, files: pytestProject},
	{tool: "mypy", file: "setup.cfg", text: "[mypy]\nplugins = notes.py\n", files: mypyProject},
	{tool: "mypy", file: "mypy.ini", text: "[mypy]\nplugins = notes.py\n", files: mypyProject},
	{tool: "flake8", file: ".flake8", text: "[flake8:local-plugins]\nextension =\n    X = evil:plugin\npaths = .\n", files: mypyProject},
	{tool: "pylint", file: ".pylintrc", text: "[MAIN]\ninit-hook='import os; os.system(\"touch CANARY\")'\n", files: mypyProject},
	{tool: "ruff", file: "ruff.toml", text: "cache-dir = \"x\"\n"},
	{tool: "pyright", file: "pyrightconfig.json", text: "{}"},
	{tool: "git", file: ".git/hooks/post-checkout", text: "#!/bin/sh\ntouch CANARY\n"},
	{tool: "git", file: ".git/config", text: "[core]\n\tfsmonitor = EVIL\n"},
	{tool: "git", file: ".gitattributes", text: "* filter=evil\n"},
}

var crate = map[string]string{"Cargo.toml": "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "src/lib.rs": ""}

// Python code that creates the file of the case, in all ways that plugins are loaded.
const pythonCanary = "import os\nos.system('touch CANARY')\ndef plugin(*a): pass\n"

// The files of these projects are source code, which models may write. It is executed
// by tests, or because a file that steers says so.
var (
	pytestProject = map[string]string{"setup.py": "", "evil.py": pythonCanary, "test_a.py": "import pytest\ndef test(): pass\n"}
	mypyProject   = map[string]string{"setup.py": "", "evil.py": pythonCanary, "notes.py": pythonCanary}
)

// verified are the tools that code/verify starts. Git belongs to code/git, which has
// tests of its own for what Git executes.
var verified = map[string]bool{
	"make": true, "npm": true, "pnpm": true, "yarn": true, "bun": true, "cargo": true, "rustup": true, "go": true,
	"python3": true, "pytest": true, "mypy": true, "flake8": true, "pylint": true,
}

// newSteering creates the project of a case. PATH contains a program that Go would
// use as the toolchain of the case.
func newSteering(t *testing.T, s steering) (b *harness, text, canary string) {
	t.Helper()
	outside := t.TempDir()
	canary = filepath.Join(outside, "canary")
	evil := filepath.Join(outside, "go1.999.0-canary")
	for _, program := range []string{evil, filepath.Join(outside, "toolchain", "bin", "cargo"), filepath.Join(outside, "toolchain", "bin", "rustc")} {
		if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, []byte("#!/bin/sh\ntouch "+canary+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", os.Getenv("PATH")+string(os.PathListSeparator)+outside)
	t.Setenv("GOTOOLCHAIN", "") // so that it is restored after the test
	if err := os.Unsetenv("GOTOOLCHAIN"); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("CANARY", canary, "EVIL", evil, "TOOLCHAIN", filepath.Join(outside, "toolchain"))
	files := map[string]string{}
	for name, text := range s.files {
		files[name] = fill.Replace(text)
	}
	return newHarness(t, code.Options{Run: execute}, files), fill.Replace(s.text), canary
}

// needsTool skips the test if a tool does not work as [execute] starts it. pytest is a module of the
// python3 that code/verify starts.
func needsTool(t *testing.T, tool string) {
	t.Helper()
	argv := []string{tool, "--version"}
	switch tool {
	case "pytest":
		argv = []string{"python3", "-m", "pytest", "--version"}
	case "go":
		argv = []string{"go", "version"}
	case "rustup": // cargo is what reads its files
		needsTool(t, "cargo")
	}
	needs.Program(t, t.TempDir(), append(os.Environ(), executedWith...), argv...)
}

// executedWith are the variables that [execute] adds.
var executedWith = []string{"GOFLAGS=", "GOPROXY=off", "CARGO_NET_OFFLINE=true"}

// execute executes a program as the host does, with the variables of the call.
func execute(ctx context.Context, call *command.Call, dir string, argv []string, stdin string) (int, string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(call.Workspace, dir)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), executedWith...)
	for name, value := range call.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return 0, "", abi.New(abi.NotFound, err.Error())
	}
	return cmd.ProcessState.ExitCode(), string(out), nil
}

// asModel calls a command as a model whose step lists tools.
func (b *harness) asModel(tools []string, name string, p params) error {
	b.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		b.t.Fatal(err)
	}
	_, err = b.reg.Call(b.t.Context(), &command.Call{Command: name, Params: text, By: command.ByModel, Tools: tools, Workspace: b.dir})
	return err
}

// TestModelsExecuteNothingWithoutAGrant lets a model whose tools are patterns write
// the file of each case and call code/verify. Then a step calls code/verify.
func TestModelsExecuteNothingWithoutAGrant(t *testing.T) {
	for _, s := range steerings {
		t.Run(fmt.Sprintf("%s %s", s.tool, s.file), func(t *testing.T) {
			b, text, canary := newSteering(t, s)
			for _, tools := range [][]string{{"*"}, {"code/*"}, {"code/write", "code/edit"}, nil} {
				err := b.asModel(tools, "code/write", params{"path": s.file, "content": text})
				if denied := abi.CodeOf(err) == abi.Denied; denied == s.allowed || err != nil && !denied {
					t.Errorf("%q: write: got %v, want denied: %v", tools, err, !s.allowed)
				}
				if err := b.asModel(tools, "code/verify", params{"fullTest": true}); abi.CodeOf(err) != abi.Denied {
					t.Errorf("%q: verify: got %v, want denied", tools, err)
				}
			}
			if s.allowed { // the file was written
				if _, err := b.try(command.ByStep, "code/verify", params{"fullTest": true}); err != nil {
					t.Logf("verify: %v", err)
				}
			}
			if _, err := os.Stat(canary); err == nil {
				t.Error("the code was executed")
			}
		})
	}
}

// TestModelsEditNothingThatSteersABuild checks edits of existing files, also through
// links.
func TestModelsEditNothingThatSteersABuild(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"Makefile": "build:\n\tcc a.c\n", "sub/package.json": "{}"})
	if err := os.Symlink("Makefile", filepath.Join(b.dir, "notes.txt")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Makefile", "notes.txt", "sub/../Makefile"} {
		if err := b.asModel([]string{"*"}, "code/edit", params{"path": name, "old": "cc a.c", "new": "evil"}); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s: got %v, want denied", name, err)
		}
	}
	if got := b.get("Makefile"); strings.Contains(got, "evil") {
		t.Errorf("the file is %q", got)
	}
}

// TestModelThatMayExecuteEditsTheBuild checks that a model may write such a file if
// its step names a command that executes code, because it may execute code anyway.
func TestModelThatMayExecuteEditsTheBuild(t *testing.T) {
	run := func(context.Context, *command.Call, string, []string, string) (int, string, error) { return 0, "", nil }
	b := newHarness(t, code.Options{Run: run}, nil)
	tools := []string{"code/write", "code/verify"}
	if err := b.asModel(tools, "code/write", params{"path": "Makefile", "content": "build:\n"}); err != nil {
		t.Error(err)
	}
	if err := b.asModel(tools, "code/verify", nil); err != nil {
		t.Error(err)
	}
	if err := b.asModel(tools, "code/write", params{"path": ".npmrc", "content": "x"}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a file that steers other tools: got %v, want denied", err)
	}
}

// TestSteeringFilesSteer checks that each file of the cases makes its tool execute
// code if a user has written it. Tools that are not installed are skipped.
func TestSteeringFilesSteer(t *testing.T) {
	tried := map[string]bool{}
	for _, s := range steerings {
		if !verified[s.tool] || testing.Short() && tried[s.tool] { // in the short form one case of each tool
			continue
		}
		tried[s.tool] = true
		t.Run(fmt.Sprintf("%s %s", s.tool, s.file), func(t *testing.T) {
			needsTool(t, s.tool)
			b, text, canary := newSteering(t, s)
			t.Setenv("GOTOOLCHAIN", "auto") // the default of Go
			b.put(s.file, text)
			if err := os.Chmod(filepath.Join(b.dir, s.file), 0o755); err != nil {
				t.Fatal(err)
			}
			out, err := b.try(command.ByStep, "code/verify", params{"fullTest": s.full})
			if _, missing := os.Stat(canary); missing != nil {
				t.Errorf("the code was not executed: %v, %v", out, err)
			}
		})
	}
}

// TestEveryToolHasACase fails if code/verify starts a program that has no case.
func TestEveryToolHasACase(t *testing.T) {
	covered := map[string]bool{}
	for _, s := range steerings {
		covered[s.tool] = true
	}
	text := map[string]string{"package.json": `{"scripts":{"build":"x"}}`}
	checks := "[tool.mypy]\n[tool.ruff]\n[tool.pyright]\n[tool.pylint]\n[tool.pytest]\n"
	for _, marker := range code.Markers() {
		for _, lock := range []string{"none", "pnpm-lock.yaml", "yarn.lock", "bun.lock"} {
			run := func(_ context.Context, _ *command.Call, _ string, argv []string, _ string) (int, string, error) {
				if argv[0] == "python3" && slices.Contains(argv, "pytest") {
					argv = []string{"pytest"}
				}
				if !covered[argv[0]] {
					t.Errorf("%s beside %s: no case for %q", marker, lock, argv[0])
				}
				return 0, "", nil
			}
			b := newHarness(t, code.Options{Run: run}, map[string]string{marker: text[marker], lock: ""})
			if marker == "pyproject.toml" {
				b.put(marker, checks)
				b.put(".flake8", "")
			}
			b.put("a.py", "")
			b.do("code/verify", params{"fullTest": true})
		}
	}
}
