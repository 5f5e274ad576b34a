package cond_test

import (
	"testing"

	"github.com/dop251/goja"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
)

const (
	benchFast  = `$a.exitCode === 0 && $a.stdout.includes('passed')`
	benchChild = `$a.exitCode === 0 && $a.lines.some(l => l === 3)`
)

var benchVars = values{"a": `{"exitCode":0,"stdout":"all tests passed","lines":[1,2,3]}`}

func benchEval(b *testing.B, src string) {
	e := open(b, cond.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if v, err := eval(b, e, src, benchVars); err != nil || !v.Truthy {
			b.Fatal(v, err)
		}
	}
}

func BenchmarkFastPath(b *testing.B) { benchEval(b, benchFast) }
func BenchmarkChild(b *testing.B)    { benchEval(b, benchChild) }

// BenchmarkGoja is the reference for the fast path: goja with a compiled
// program, on one VM for all evaluations and on a new VM for each.
func BenchmarkGoja(b *testing.B) {
	code := goja.MustCompile("", "(function($a){return "+benchFast+"})", true)
	for name, fresh := range map[string]bool{"kept": false, "new": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			vm := goja.New()
			for b.Loop() {
				if fresh {
					vm = goja.New()
				}
				parse, _ := goja.AssertFunction(vm.Get("JSON").(*goja.Object).Get("parse"))
				f, err := vm.RunProgram(code)
				if err != nil {
					b.Fatal(err)
				}
				call, _ := goja.AssertFunction(f)
				arg, err := parse(nil, vm.ToValue(benchVars["a"]))
				if err != nil {
					b.Fatal(err)
				}
				if v, err := call(nil, arg); err != nil || !v.ToBoolean() {
					b.Fatal(v, err)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for b.Loop() {
		e := cond.New(cond.Options{})
		if err := check(e, benchFast); err != nil {
			b.Fatal(err)
		}
	}
}
