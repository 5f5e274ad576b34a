package code_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A language is a project that the tools of a language build and test.
type language struct {
	tool  string
	files map[string]string
	// file is replaced by wrong code: noBuild does not build, noPass fails its test.
	file, noBuild, noPass string
	// each result has these parts of its output.
	buildSays, testSays string
	checks, tests       []string // names of the steps with and without tests
	leaves              string   // the folder in which the tools build
}

var languages = map[string]language{
	"Go": {
		tool:  "go",
		files: map[string]string{"go.mod": "module x\n\ngo 1.21\n", "add.go": "package x\n\nfunc add(a, b int) int { return a + b }\n", "add_test.go": "package x\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif add(2, 3) != 5 {\n\t\tt.Error(\"wrong sum\")\n\t}\n}\n"},
		file:  "add.go", noBuild: "package x\n\nfunc add(a, b int) int { return c }\n", noPass: "package x\n\nfunc add(a, b int) int { return a - b }\n",
		buildSays: "undefined: c", testSays: "wrong sum", checks: []string{"go build", "go vet"}, tests: []string{"go test"},
	},
	"Node": {
		tool: "npm",
		files: map[string]string{
			"package.json": `{"name":"x","scripts":{"build":"node --check add.js","test":"node test.js"}}`, "add.js": "module.exports = (a, b) => a + b\n",
			"test.js": "if (require('./add.js')(2, 3) !== 5) { console.error('wrong sum'); process.exit(1) }\n",
		},
		file: "add.js", noBuild: "module.exports = (a, b => a\n", noPass: "module.exports = (a, b) => a - b\n",
		buildSays: "SyntaxError", testSays: "wrong sum", checks: []string{"npm run build"}, tests: []string{"npm run test"},
	},
	"Rust": {
		tool: "cargo",
		files: map[string]string{
			"Cargo.toml": "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
			"src/lib.rs": "pub mod add;\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn sum() { assert_eq!(super::add::add(2, 3), 5, \"wrong sum\"); }\n}\n", "src/add.rs": "pub fn add(a: i32, b: i32) -> i32 { a + b }\n",
		},
		file: "src/add.rs", noBuild: "pub fn add(a: i32, b: i32) -> i32 { c }\n", noPass: "pub fn add(a: i32, b: i32) -> i32 { a - b }\n",
		buildSays: "cannot find value `c`", testSays: "wrong sum", checks: []string{"cargo build"}, tests: []string{"cargo test"}, leaves: "target",
	},
	"Python": {
		tool: "python3",
		files: map[string]string{
			"setup.py": "raise SystemExit('not executed')\n", "add.py": "def add(a, b):\n    return a + b\n", "os.py": "raise SystemExit('not imported by the check')\n",
			"tests/test_add.py": "import unittest\nfrom add import add\n\nclass Add(unittest.TestCase):\n    def test(self):\n        self.assertEqual(add(2, 3), 5, 'wrong sum')\n",
		},
		file: "add.py", noBuild: "def add(a, b:\n", noPass: "def add(a, b):\n    return a - b\n",
		buildSays: "add.py", testSays: "wrong sum", checks: []string{"python syntax"}, tests: []string{"unittest tests"},
	},
	"Python with a folder src, pytest and mypy": {
		tool: "pytest",
		files: map[string]string{
			"pyproject.toml": "[project]\nname = \"x\"\n\n[tool.pytest.ini_options]\n\n[tool.mypy]\n", "src/sum/__init__.py": "", "src/sum/add.py": "def add(a, b):\n    return a + b\n",
			"tests/test_add.py": "from sum.add import add\n\ndef test_add():\n    assert add(2, 3) == 5, 'wrong sum'\n",
		},
		file: "src/sum/add.py", noBuild: "return 1\n", noPass: "def add(a, b):\n    return a - b\n",
		buildSays: "'return' outside function", testSays: "wrong sum", checks: []string{"python syntax", "mypy"}, tests: []string{"pytest"},
	},
}

// TestVerifyLanguages builds and tests projects with the tools of their language: with
// code that does not build, with a test that fails, and with code that is right.
func TestVerifyLanguages(t *testing.T) {
	for name, l := range languages {
		if testing.Short() && name != "Node" && name != "Python" {
			continue // compilers and the checkers of other tools take seconds
		}
		t.Run(name, func(t *testing.T) {
			needsTool(t, l.tool)
			b := newHarness(t, code.Options{Run: execute}, l.files)
			files := b.listing(l.leaves)
			right := b.get(l.file)

			b.put(l.file, l.noBuild)
			out := b.do("code/verify", params{"fullTest": true})
			if text := out["output"].(string); out["success"] != false || !strings.Contains(text, l.buildSays) || strings.Contains(text, "\x1b") {
				t.Errorf("code that does not build: success %v, output %q", out["success"], text)
			}
			if last := out["steps"].([]any)[len(out["steps"].([]any))-1].(map[string]any); last["skipped"] != true {
				t.Errorf("code that does not build is tested: %v", last)
			}

			b.put(l.file, l.noPass)
			out = b.do("code/verify", nil)
			if out["success"] != true {
				t.Errorf("without the tests: %v", out["output"])
			}
			out = b.do("code/verify", params{"fullTest": true})
			if text := out["output"].(string); out["success"] != false || !strings.Contains(text, l.testSays) || strings.Contains(text, "\x1b") {
				t.Errorf("code that fails its test: success %v, output %q", out["success"], text)
			}

			b.put(l.file, right)
			out = b.do("code/verify", params{"fullTest": true})
			if out["success"] != true {
				t.Errorf("code that is right: %v", out["output"])
			}
			var steps []string
			for _, s := range out["steps"].([]any) {
				steps = append(steps, s.(map[string]any)["name"].(string))
			}
			if diff := cmp.Diff(slices.Concat(l.checks, l.tests), steps); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(files, b.listing(l.leaves)); diff != "" {
				t.Errorf("files of the workspace (-before +after):\n%s", diff)
			}
		})
	}
}

// listing returns the paths of all files, without those below a folder and the lock
// file that cargo writes.
func (b *harness) listing(without string) (list []string) {
	b.t.Helper()
	err := filepath.WalkDir(b.dir, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(b.dir, name)
		if d.IsDir() && rel == without {
			return fs.SkipDir
		}
		if rel != "Cargo.lock" {
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// TestVerifyPython checks how a Python project is recognized, and what is said of
// what could not be done.
func TestVerifyPython(t *testing.T) {
	const unittests = "import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\n"
	tests := []struct {
		name  string
		files map[string]string
		in    params
		// installed are the programs that exist; modules of python3 have no path.
		installed []string
		exits     map[string]int
		want      []string // name: exit code, or name: note
		ok        bool
	}{
		{"by a file with tests", map[string]string{"tests/a_test.py": unittests}, params{"fullTest": true}, nil, nil, []string{"python syntax: 0", "unittest tests *_test.py: 0"}, true},
		{"a Makefile comes before tests", map[string]string{"tests/test_a.py": unittests, "Makefile": "all:\n"}, nil, nil, nil, []string{"make all: 0"}, true},
		{"beside Go", map[string]string{"go.mod": "module x", "pyproject.toml": "", "gen.py": ""}, nil, nil, nil, []string{"go build: 0", "go vet: 0", "python syntax: 0"}, true},
		{"a marker without code", map[string]string{"go.mod": "module x", "requirements.txt": "mkdocs\n"}, nil, nil, nil, []string{"go build: 0", "go vet: 0"}, true},
		{"a package with tests", map[string]string{"setup.cfg": "", "a/__init__.py": "", "a/tests/__init__.py": "", "a/tests/test_a.py": unittests}, params{"fullTest": true}, nil, nil, []string{"python syntax: 0", "unittest: 0"}, true},
		{"no tests", map[string]string{"tox.ini": "", "a.py": ""}, params{"fullTest": true}, nil, map[string]int{"unittest": 5}, []string{"python syntax: 0", "unittest: no tests were found, so nothing was tested"}, true},
		{"no tests before Python 3.12", map[string]string{"tox.ini": "", "a.py": ""}, params{"fullTest": true}, nil, map[string]int{"unittest": -1}, []string{"python syntax: 0", "unittest: no tests were found, so nothing was tested"}, true},
		{"no tests for pytest", map[string]string{"pytest.ini": "", "a.py": ""}, params{"fullTest": true}, []string{"pytest"}, map[string]int{"pytest": 5}, []string{"python syntax: 0", "pytest: no tests were found, so nothing was tested"}, true},
		{"pytest is missing", map[string]string{"requirements.txt": "pytest==8\n", "test_a.py": unittests}, params{"fullTest": true}, nil, nil, []string{"python syntax: 0", "pytest: pytest is not installed, and the project uses it; unittest ran instead", "unittest: 0"}, true},
		{"pytest is missing, and a test fails", map[string]string{"conftest.py": "", "test_a.py": unittests}, params{"fullTest": true}, nil, map[string]int{"unittest": 1}, []string{"python syntax: 0", "pytest: pytest is not installed, and the project uses it; unittest ran instead", "unittest: 1"}, false},
		{"checkers", map[string]string{"pyproject.toml": "[tool.mypy]\nfiles = 'src'\n[tool.ruff.lint]\n", "setup.cfg": "[flake8]\nmax-line-length = 100\n", "src/a.py": "", "b.py": ""}, nil, []string{"mypy", "flake8"}, nil, []string{"python syntax: 0", "mypy: 0", "ruff: ruff is not installed; pyproject.toml configures it", "flake8 b.py src: 0"}, true},
		{"a checker fails", map[string]string{"mypy.ini": "[mypy]\n", "setup.py": "", "venv/pyvenv.cfg": "", "venv/x.py": ""}, params{"fullTest": true}, []string{"mypy"}, map[string]int{"mypy": 1}, []string{"python syntax: 0", "mypy --python-executable python3 setup.py: 1", "unittest: skipped"}, false},
		{"a checker of the virtual environment", map[string]string{".pylintrc": "", "setup.py": "", ".venv/pyvenv.cfg": "", ".venv/bin/pylint": "", ".venv/bin/python": ""}, nil, []string{"pylint"}, nil, []string{"python syntax: 0", "pylint --recursive=y --persistent=n setup.py: 0"}, true},
		{"a checker that its launcher does not find", map[string]string{"setup.py": "", ".flake8": ""}, nil, []string{"flake8"}, map[string]int{"flake8": 127}, []string{"python syntax: 0", "flake8: flake8 is not installed; .flake8 configures it"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := func(_ context.Context, call *command.Call, _ string, argv []string, stdin string) (int, string, error) {
				name := filepath.Base(argv[0])
				if name == "python3" || name == "python" {
					if _, venv := tt.files[".venv/pyvenv.cfg"]; venv != (argv[0] == ".venv/bin/python") {
						t.Errorf("the interpreter is %q", argv[0])
					}
					if call.Env["PYTHONDONTWRITEBYTECODE"] != "1" || call.Env["PYTHONNOUSERSITE"] != "1" {
						t.Errorf("%q: variables %v", argv, call.Env)
					}
					if strings.Contains(stdin, "venv") {
						t.Errorf("files of a virtual environment are checked: %q", stdin)
					}
					name = "python"
					if argv[1] == "-m" {
						name = argv[2]
					}
				}
				if checked := slices.Contains([]string{"python", "unittest", "go", "make"}, name); !checked && !slices.Contains(tt.installed, name) {
					if name == "pytest" {
						return 1, "/usr/bin/python3: No module named pytest\n", nil
					}
					return 0, "", abi.New(abi.NotFound, "no such program")
				}
				switch n := tt.exits[name]; {
				case name == "unittest" && n == -1:
					return 0, "Ran 0 tests in 0.000s\n\nOK\n", nil
				case name == "unittest" && n == 5:
					return 5, "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", nil
				default:
					return n, "", nil
				}
			}
			out := newHarness(t, code.Options{Run: run}, tt.files).do("code/verify", tt.in)
			var got []string
			for _, s := range out["steps"].([]any) {
				step := s.(map[string]any)
				result := fmt.Sprint(step["exitCode"])
				if note, ok := step["note"]; ok {
					result = note.(string)
				} else if step["skipped"] == true {
					result = "skipped"
				}
				line := step["name"].(string)
				if c := line; result != "skipped" && step["note"] == nil && slices.Contains([]string{"flake8", "mypy", "pylint"}, c) {
					for _, a := range step["argv"].([]any)[1:] {
						line += " " + a.(string)
					}
				}
				got = append(got, line+": "+result)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if out["success"] != tt.ok {
				t.Errorf("success %v, output %q", out["success"], out["output"])
			}
			for _, line := range tt.want {
				if name, note, _ := strings.Cut(line, ": "); len(note) > 10 && !strings.Contains(out["output"].(string), note) {
					t.Errorf("the output does not say that of %s: %q", name, out["output"])
				}
			}
		})
	}
}

// TestVerifyPythonFiles checks files that only Python itself can judge.
func TestVerifyPythonFiles(t *testing.T) {
	needsTool(t, "python3")
	odd := map[string]string{
		"setup.py": "", ".gitignore": "build/\n", "build/broken.py": "def (\n", ".venv/pyvenv.cfg": "home = /usr\n", ".venv/lib/broken.py": "def (\n",
		"env/pyvenv.cfg": "home = /usr\n", "env/broken.py": "def (\n", "line\nbreak.py": "x = 1\n", "latin.py": "# -*- coding: latin-1 -*-\nx = '\xe9'\n", "-c.py": "x = 1\n",
	}
	b := newHarness(t, code.Options{Run: execute}, odd)
	if out := b.do("code/verify", nil); out["success"] != true {
		t.Errorf("got %v", out["output"])
	}
	for _, text := range []string{"x = \x00\n", "x = '\xe9'\n", "def f(:\n", "\x1b[31m(", strings.Repeat("(", 300)} {
		b.put("bad.py", text)
		out := b.do("code/verify", nil)
		if out["success"] != false || !strings.Contains(out["output"].(string), "bad.py:") {
			t.Errorf("%.20q: got %v", text, out["output"])
		}
	}
	// A virtual environment is used although its interpreter is a link out of the
	// workspace.
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	if python, err = filepath.EvalSymlinks(python); err != nil {
		t.Fatal(err)
	}
	b.put("bad.py", "")
	if err := os.MkdirAll(filepath.Join(b.dir, ".venv/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(python, filepath.Join(b.dir, ".venv/bin/python")); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	out := b.do("code/verify", params{"fullTest": true})
	if argv := out["steps"].([]any)[0].(map[string]any)["argv"].([]any); argv[0] != ".venv/bin/python" || out["success"] != true {
		t.Errorf("with a virtual environment: %v, %v", argv, out["output"])
	}
}

// TestVerifyWithoutTheTool checks the error for a project whose tool is not installed.
func TestVerifyWithoutTheTool(t *testing.T) {
	run := func(context.Context, *command.Call, string, []string, string) (int, string, error) {
		return 0, "", abi.New(abi.NotFound, "no such program")
	}
	for marker, tool := range map[string]string{"Cargo.toml": "cargo", "setup.py": "python3", "go.mod": "go", "Makefile": "make"} {
		_, err := newHarness(t, code.Options{Run: run}, map[string]string{marker: ""}).try(command.ByStep, "code/verify", nil)
		if e := abi.As(err); e == nil || e.Code != abi.NotFound || !strings.Contains(e.Message, tool+" is not installed") || !strings.Contains(e.Hint, "install "+tool) {
			t.Errorf("%s: got %v", marker, err)
		}
	}
}

// TestVerifyRustWithoutTests checks that tests which run no test are not reported as
// tests. Documentation tests are counted separately.
func TestVerifyRustWithoutTests(t *testing.T) {
	for output, none := range map[string]bool{
		"running 0 tests\n\ntest result: ok.\n   Doc-tests x\nrunning 0 tests\n":    true,
		"running 1 test\ntest tests::sum ... ok\n   Doc-tests x\nrunning 0 tests\n": false,
		"running 0 tests\n   Running tests/all.rs\nrunning 12 tests\n":              false,
		"error: no such command\n": false,
	} {
		run := func(context.Context, *command.Call, string, []string, string) (int, string, error) {
			return 0, output, nil
		}
		out := newHarness(t, code.Options{Run: run}, map[string]string{"Cargo.toml": ""}).do("code/verify", params{"fullTest": true})
		if got := strings.Contains(out["output"].(string), "no tests were found"); got != none {
			t.Errorf("%q: %q", output, out["output"])
		}
	}
}
