package code

import (
	"context"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// pythonMarkers are files that only Python projects have.
var pythonMarkers = []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini", "pytest.ini"}

// pythonConfig are files that name the tools of a project.
var pythonConfig = append([]string{
	"mypy.ini", ".mypy.ini", "pyrightconfig.json", "ruff.toml", ".ruff.toml", ".flake8", ".pylintrc", "pylintrc", ".pytest.ini", "pytest.toml", ".pytest.toml",
	"Pipfile", "noxfile.py", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt", "test-requirements.txt",
}, pythonMarkers...)

// pythonEnv keeps Python to the project and its files as they are.
var pythonEnv = map[string]string{
	"PYTHONDONTWRITEBYTECODE": "1", // a worktree with __pycache__ folders would be committed with them
	"PYTHONNOUSERSITE":        "1", // modules and hooks of the user's home are not part of the project
	"MYPY_CACHE_DIR":          os.DevNull,
	"RUFF_NO_CACHE":           "true",
}

// pythonSyntax compiles the files of standard input, separated by zero bytes, and
// writes and executes nothing. Its output names each file that does not compile.
const pythonSyntax = `import os, sys, traceback, warnings
warnings.simplefilter("ignore")
names = [n for n in sys.stdin.buffer.read().split(b"\0") if n]
bad = 0
for name in names:
    try:
        with open(name, "rb") as f:
            compile(f.read(), os.fsdecode(name), "exec", dont_inherit=True)
    except Exception as e:
        bad += 1
        print(os.fsdecode(name).encode(errors="replace").decode() + ":")
        print("".join(traceback.format_exception_only(type(e), e)).encode(errors="replace").decode())
print("%d of %d files do not compile" % (bad, len(names)), "with Python", sys.version.split()[0])
sys.exit(bad > 0)
`

// A checker is a type checker or a linter of Python.
type checker struct {
	name     string
	files    []string          // one of them configures it,
	sections map[string]string // or a section of one of these
	args     []string
	targets  bool // followed by the files and folders to check
}

var checkers = []checker{
	{name: "mypy", files: []string{"mypy.ini", ".mypy.ini"}, sections: map[string]string{"pyproject.toml": "tool.mypy", "setup.cfg": "mypy"}},
	{name: "pyright", files: []string{"pyrightconfig.json"}, sections: map[string]string{"pyproject.toml": "tool.pyright"}},
	{name: "ruff", files: []string{"ruff.toml", ".ruff.toml"}, sections: map[string]string{"pyproject.toml": "tool.ruff"}, args: []string{"check"}},
	{name: "flake8", files: []string{".flake8"}, sections: map[string]string{"setup.cfg": "flake8", "tox.ini": "flake8"}, targets: true},
	{
		name: "pylint", files: []string{".pylintrc", "pylintrc"}, sections: map[string]string{"pyproject.toml": "tool.pylint", "setup.cfg": "pylint"},
		args: []string{"--recursive=y", "--persistent=n"}, targets: true,
	},
}

// A python is a Python project with its files, all relative to its folder.
type python struct {
	project
	sources  []string
	tests    []string
	conftest bool
	config   map[string]string // content of pythonConfig, of those that exist
	venv     string            // folder of its virtual environment; empty for none
}

func pythonStages(ctx context.Context, p project) ([]stage, error) {
	y, err := openPython(ctx, p)
	if err != nil || len(y.sources) == 0 {
		return nil, err
	}
	return y.stages()
}

// pythonTestStages is for folders that only their tests identify.
func pythonTestStages(ctx context.Context, p project) ([]stage, error) {
	y, err := openPython(ctx, p)
	if err != nil || len(y.tests) == 0 {
		return nil, err
	}
	return y.stages()
}

// openPython finds the files of a project. Those that git ignores and those of
// virtual environments belong to others.
func openPython(ctx context.Context, p project) (*python, error) {
	y := &python{project: p, config: map[string]string{}}
	_, err := p.walk(ctx, filewalk.Options{Start: p.dir}, func(name string, d fs.DirEntry) error {
		if d.IsDir() {
			if _, err := p.Root().Stat(path.Join(name, "pyvenv.cfg")); err == nil {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".py" || !d.Type().IsRegular() {
			return nil
		}
		if p.dir != "." {
			name = strings.TrimPrefix(name, p.dir+"/")
		}
		y.sources = append(y.sources, name)
		switch base := path.Base(name); {
		case base == "conftest.py":
			y.conftest = true
		case testPattern(base) != "":
			y.tests = append(y.tests, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range pythonConfig {
		data, err := p.read(name)
		if err != nil {
			return nil, err
		}
		if data != nil {
			y.config[name] = string(data)
		}
	}
	for _, name := range []string{".venv", "venv"} {
		if y.venv == "" && p.hasFile(path.Join(name, "pyvenv.cfg")) {
			y.venv = name
		}
	}
	return y, nil
}

// testPattern returns the pattern of unittest that a file of tests matches, and
// nothing for other files.
func testPattern(base string) string {
	switch {
	case strings.HasPrefix(base, "test"):
		return "test*.py"
	case strings.HasSuffix(base, "_test.py"):
		return "*_test.py"
	}
	return ""
}

// stages checks the syntax of all files, runs the checkers that the project
// configures, and its tests.
func (y *python) stages() ([]stage, error) {
	// Isolated, so that neither a file of the project such as os.py nor a variable
	// decides what is imported.
	all := []stage{{name: "python syntax", argv: []string{y.interpreter(), "-I", "-B", "-c", pythonSyntax}, stdin: strings.Join(y.sources, "\x00")}}
	for _, c := range checkers {
		if file := y.configures(c); file != "" {
			all = append(all, stage{
				name: c.name, argv: append([]string{y.program(c.name)}, y.arguments(c)...),
				optional: c.name + " is not installed; " + file + " configures it",
			})
		}
	}
	tests, err := y.testStages()
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].env = pythonEnv
	}
	return append(all, tests...), nil
}

// interpreter returns the Python of the project's virtual environment, or else that
// of PATH.
func (y *python) interpreter() string {
	if runtime.GOOS == "windows" {
		return y.program("python")
	}
	if p := y.program("python"); p != "python" {
		return p
	}
	return "python3"
}

// program returns the path of a program of the project's virtual environment, or else
// its name.
func (y *python) program(name string) string {
	file := path.Join(y.venv, "bin", name)
	if runtime.GOOS == "windows" {
		file = path.Join(y.venv, "Scripts", name+".exe")
	}
	// It is usually a link that leads out of the workspace.
	if _, err := y.Root().Lstat(path.Join(y.dir, file)); y.venv == "" || err != nil {
		return name
	}
	return file
}

// configures returns the file in which the project configures a checker.
func (y *python) configures(c checker) string {
	for _, name := range c.files {
		if _, ok := y.config[name]; ok {
			return name
		}
	}
	for _, name := range pythonMarkers {
		if title, ok := c.sections[name]; ok {
			if _, ok := section(y.config[name], title); ok {
				return name
			}
		}
	}
	return ""
}

// arguments returns those of a checker. Targets are named one by one because
// flake8 and pylint would otherwise descend into virtual environments.
func (y *python) arguments(c checker) []string {
	args := slices.Clone(c.args)
	targets := c.targets
	if c.name == "mypy" {
		if python := y.interpreter(); y.venv != "" && y.program(c.name) == c.name {
			args = append(args, "--python-executable", python)
		}
		targets = !y.mypyTargets()
	}
	if targets {
		var tops []string
		for _, name := range y.sources {
			top, _, _ := strings.Cut(name, "/")
			tops = append(tops, top)
		}
		slices.Sort(tops)
		args = append(args, slices.Compact(tops)...)
	}
	return args
}

var mypyTargets = lazyregexp.New(`(?m)^\s*(files|packages|modules)\s*=`)

// mypyTargets reports whether the configuration of mypy says what to check.
func (y *python) mypyTargets() bool {
	for name, title := range map[string]string{"mypy.ini": "mypy", ".mypy.ini": "mypy", "setup.cfg": "mypy", "pyproject.toml": "tool.mypy"} {
		if body, ok := section(y.config[name], title); ok && mypyTargets.MatchString(body) {
			return true
		}
	}
	return false
}

// section returns the lines of a section of a TOML or INI file. ok is also true if it
// has only sections below it, such as [tool.ruff.lint].
func section(text, title string) (body string, ok bool) {
	var b strings.Builder
	in := false
	for line := range strings.Lines(text) {
		if heading := strings.TrimSpace(line); strings.HasPrefix(heading, "[") {
			heading = strings.Trim(strings.SplitN(heading, "#", 2)[0], "[] \t")
			in = heading == title
			ok = ok || in || strings.HasPrefix(heading, title+".")
			continue
		}
		if in {
			b.WriteString(line)
		}
	}
	return b.String(), ok
}
