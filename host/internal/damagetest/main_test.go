//go:build linux

package damagetest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/runtime"
)

func TestMain(m *testing.M) {
	runtime.ServeChild()
	testscript.Main(withCompiled{m}, map[string]func(){
		"sentinel": func() { os.Exit(cli.Main(context.Background(), os.Args...)) },
	})
}

// compiledPlugins is the folder of compiled plugins that all projects share: compiling
// the built-in step types takes two seconds.
var compiledPlugins string

// withCompiled runs the tests with the folder compiledPlugins.
type withCompiled struct{ *testing.M }

func (m withCompiled) Run() int {
	dir, err := os.MkdirTemp("", "compiled-plugins-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	compiledPlugins = dir
	return m.M.Run()
}

// project makes a project folder without a store.
func project(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	state := filepath.Join(dir, ".sentinel", "state")
	if err := errors.Join(os.MkdirAll(state, 0o700), os.Symlink(compiledPlugins, filepath.Join(state, "cache"))); err != nil {
		t.Fatal(err)
	}
	return dir
}
