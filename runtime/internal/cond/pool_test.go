package cond_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// An evaluation leaves no state on a pooled VM: on a VM that has run all
// sources, in both orders, each source gives the same result as on a new VM.
func TestPooledVMKeepsNoState(t *testing.T) {
	vars := values{
		"a": `{"b":[1,2,{"c":"x"}],"__proto__":{"includes":1},"toString":2}`,
		"l": `[3,1,2]`, "s": `"text"`, "nil": `null`,
	}
	sources := []string{
		`$a`, `$l`, `$s`, `$a.b[2].c`, `$a.__proto__`, `$l.__proto__`, `$s.__proto__.includes`, `$a.toString`,
		`$l.slice(1)`, `$l.constructor`, `$l.constructor.prototype`, `$s.constructor.name`, `$a.x.y`, `$nil.x`,
		`$s.trim()`, `$l.at(0)`, `'a'.includes.name`, `$u.x`, `$u.includes(1)`, `$l.includes(3)`, `typeof $s.at`,
		`$l.length`, `$l.__proto__.__proto__.x`, `$s + $l`, `$a + ''`, `undefined`,
	}
	want := map[string]string{}
	show := func(e *cond.Evaluator, src string) string {
		v, err := eval(t, e, src, vars)
		return fmt.Sprintf("%s %v %v", v.JSON, v.Truthy, err)
	}
	for _, src := range sources {
		e := cond.New(cond.Options{})
		want[src] = show(e, src)
		e.Close()
	}
	e := cond.New(cond.Options{})
	defer e.Close()
	for round := range 3 {
		for i := range sources {
			src := sources[i]
			if round == 1 {
				src = sources[len(sources)-1-i]
			}
			if !cond.Fast(src) {
				t.Fatalf("%s is not accepted by the fast path", src)
			}
			if diff := cmp.Diff(want[src], show(e, src)); diff != "" {
				t.Errorf("round %d, %s: %s", round, src, diff)
			}
		}
	}
	if n := e.IdleVMs(); n != 1 {
		t.Errorf("%d VMs for sequential evaluations, want 1", n)
	}
}

// A script with functions, which the fast path would refuse, cannot change a
// frozen VM either.
func TestFrozenVM(t *testing.T) {
	for _, src := range []string{
		`Array.prototype.includes = () => true`, `Object.prototype.x = 1`, `String.prototype.at = null`,
		`Object.defineProperty(Array.prototype, 'x', { value: 1 })`, `Object.setPrototypeOf(Array.prototype, null)`,
		`globalThis.x = 1`, `JSON.parse = null`, `Math.max = null`, `undefinedName = 1`, `delete Array.prototype.at`,
		`[][Symbol.iterator]().__proto__.next = null`, `(function*(){}).__proto__.prototype.next = null`,
		`Number.prototype.toString = null`, `Error.prototype.name = 'x'`, `Symbol.prototype.x = 1`, `RegExp.prototype.test = null`,
		`Reflect.set(Object, 'keys', 1) && (() => { throw 1 })() || (() => { throw 1 })()`,
	} {
		if err := cond.RunFrozen(src); err == nil {
			t.Errorf("%s: no error", src)
		}
	}
	if err := cond.RunFrozen(`[3, 1, 2].sort().map(x => x + 1).join()`); err != nil {
		t.Errorf("a valid script: %v", err)
	}
}

// Results do not depend on the order of children, VMs and evaluations.
func TestConcurrent(t *testing.T) {
	e := open(t, cond.Options{MaxChildren: 2})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 40 {
				vars := values{"n": fmt.Sprint(g*1000 + i), "s": `"x"`}
				src, want := `$n + 1`, fmt.Sprint(g*1000+i+1)
				if i%4 == 0 {
					src = `[$n].map(n => n + 1)[0]`
				}
				if v, err := eval(t, e, src, vars); err != nil || string(v.JSON) != want {
					t.Errorf("%s: %s %v, want %s", src, v.JSON, err, want)
				}
				if _, err := eval(t, e, `$big + 1`, values{"big": `9007199254740993`}); abi.CodeOf(err) != abi.Plugin {
					t.Errorf("exception: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(e.Pids()); n < 1 || n > 2 {
		t.Errorf("%d children", n)
	}
}

func TestPlansAreBounded(t *testing.T) {
	e := cond.New(cond.Options{})
	defer e.Close()
	for i := range 2000 {
		if v, err := eval(t, e, fmt.Sprintf("%d === $n", i), values{"n": fmt.Sprint(i)}); err != nil || !v.Truthy {
			t.Fatal(v, err)
		}
	}
	if n := e.Plans(); n > 512 {
		t.Errorf("%d plans", n)
	}
	// One source with every set of unset names.
	src := "$a||$b||$c||$d||$e"
	for mask := range 32 {
		vars := values{}
		for i, name := range strings.Split("abcde", "") {
			if mask>>i&1 == 1 {
				vars[name] = fmt.Sprint(i + 1)
			}
		}
		want := ""
		for i := range 5 {
			if want == "" && mask>>i&1 == 1 {
				want = fmt.Sprint(i + 1)
			}
		}
		if v, err := eval(t, e, src, vars); err != nil || string(v.JSON) != want {
			t.Errorf("%05b: %s %v, want %s", mask, v.JSON, err, want)
		}
	}
}
