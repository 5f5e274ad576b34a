package cond_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
)

func TestMain(m *testing.M) {
	if cond.ServeChild() {
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// open returns an evaluator whose children are this test binary.
func open(t testing.TB, opt cond.Options) *cond.Evaluator {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	opt.Child = subprocess.Command{Path: path}
	e := cond.New(opt)
	t.Cleanup(e.Close)
	return e
}

type values map[string]string

func (v values) vars() cond.Vars {
	return func(name string) (json.RawMessage, bool) {
		s, ok := v[name]
		return json.RawMessage(s), ok
	}
}

func check(e *cond.Evaluator, src string) error {
	_, err := e.Check(context.Background(), src)
	return err
}

func eval(t testing.TB, e *cond.Evaluator, src string, vars values) (cond.Value, error) {
	t.Helper()
	return e.Eval(context.Background(), "", src, vars.vars())
}
