package code

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// Limits of the search for tests that are written for pytest.
const (
	maxTestFiles = 500
	maxTestFile  = 1 << 20 // bytes
)

var (
	pytestStyle = lazyregexp.New(`(?m)^(import pytest|from pytest|(async )?def test)`)
	pytestGone  = lazyregexp.New(`^\S+: No module named pytest\s*$`)
	pytestCache = lazyregexp.New(`--(lf|ff|nf|sw|last-failed|failed-first|new-first|stepwise|cache)`)
	noUnittests = lazyregexp.New(`(?m)^Ran 0 tests in `)
)

// testStages runs the tests with pytest if the project uses it. Where it is not
// installed, and for other projects, unittest finds them.
func (y *python) testStages() ([]stage, error) {
	unittests := y.unittestStages()
	uses, err := y.usesPytest()
	if err != nil || !uses {
		return unittests, err
	}
	argv := []string{y.interpreter(), "-m", "pytest", "--color=no"}
	// The cache would be a folder of the workspace; without its plugin some options
	// do not exist.
	if !slices.ContainsFunc(slices.Collect(maps.Values(y.config)), pytestCache.MatchString) {
		argv = append(argv, "-p", "no:cacheprovider")
	}
	return []stage{{
		name: "pytest", argv: argv, test: true, env: y.testEnv(), optional: "pytest is not installed, and the project uses it; unittest ran instead", instead: unittests,
		absent:   func(code int, output string) bool { return code == 1 && pytestGone.MatchString(output) },
		untested: func(code int, _ string) bool { return code == 5 },
	}}, nil
}

// usesPytest reports whether a file of the project names pytest, or a test is written
// for it.
func (y *python) usesPytest() (bool, error) {
	if y.conftest {
		return true, nil
	}
	for name, text := range y.config {
		if strings.Contains(name, "pytest") || strings.Contains(text, "pytest") {
			return true, nil
		}
	}
	for _, name := range y.tests[:min(len(y.tests), maxTestFiles)] {
		name = path.Join(y.dir, name)
		info, err := y.Root().Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxTestFile {
			continue
		}
		data, err := filewalk.ReadFile(y.Root(), name, info, maxTestFile)
		if err != nil {
			return false, y.Explain(name, err)
		}
		if pytestStyle.MatchString(string(data)) {
			return true, nil
		}
	}
	return false, nil
}

// unittestStages discovers tests. Discovery enters packages only, so it starts at
// each folder with tests that is not in one.
func (y *python) unittestStages() []stage {
	type start struct{ dir, pattern string }
	starts := map[start]bool{}
	for _, name := range y.tests {
		dir := path.Dir(name)
		for dir != "." && y.has(path.Join(dir, "__init__.py")) {
			dir = path.Dir(dir)
		}
		starts[start{dir, testPattern(path.Base(name))}] = true
	}
	if len(starts) == 0 {
		starts[start{".", "test*.py"}] = true // says that there are none
	}
	order := slices.SortedFunc(maps.Keys(starts), func(a, b start) int { return strings.Compare(a.dir+"\x00"+a.pattern, b.dir+"\x00"+b.pattern) })
	var stages []stage
	env := y.testEnv()
	for _, s := range order {
		st := stage{name: "unittest", argv: []string{y.interpreter(), "-m", "unittest", "discover"}, test: true, env: env}
		if s.dir != "." {
			st.name += " " + s.dir
			st.argv = append(st.argv, "-s", s.dir)
		}
		if s.pattern != "test*.py" {
			st.name += " " + s.pattern
			st.argv = append(st.argv, "-p", s.pattern)
		}
		st.untested = func(code int, output string) bool { return (code == 0 || code == 5) && noUnittests.MatchString(output) }
		stages = append(stages, st)
	}
	return stages
}

// testEnv has the variables of tests. A folder src that is not a package is where a
// project keeps its modules, which tests import as if they were installed.
func (y *python) testEnv() map[string]string {
	if !slices.ContainsFunc(y.sources, func(name string) bool { return strings.HasPrefix(name, "src/") }) || y.has("src/__init__.py") {
		return pythonEnv
	}
	env := maps.Clone(pythonEnv)
	env["PYTHONPATH"] = "src"
	return env
}
