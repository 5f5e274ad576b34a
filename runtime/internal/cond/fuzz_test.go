//go:build unix

package cond_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// FuzzPathsAgree checks that a source of the fast path gives the same result as
// in a child, and that its names are exact.
func FuzzPathsAgree(f *testing.F) {
	for _, r := range rows {
		f.Add(r.src, `{"x":[1,"a",null]}`)
	}
	for _, src := range []string{
		`$a.x[0]-$b?.y`, `$a<!--$b`, `$a--$b`, `1 ?? 2 || 3`, `$a.b ? .5 : 1`, `'\u{41}'`, `$a /1/ 2`, `$a?.5:1`, `-$a.x ** 2`,
		"$a\n.x", "'a\u2028b'", `$a.constructor.name`, `$a.x.__proto__`, `$b == $a`, `typeof typeof $a`, `"use strict"`, `$a.x.at(1)[0]`,
	} {
		f.Add(src, `"text"`)
	}
	e := cond.New(cond.Options{})
	f.Cleanup(e.Close)
	f.Fuzz(func(t *testing.T, src, value string) {
		if !cond.Fast(src) || len(value) > 4096 || !json.Valid([]byte(value)) || !utf8.ValidString(value) {
			return
		}
		vars := values{"a": value, "buildOutput": value, "list": value, "one": "1", "nil": "null"}
		got, err := e.Eval(t.Context(), "", src, vars.vars())
		if code := abi.CodeOf(err); code == abi.Timeout || code == abi.Unavailable {
			return // a busy machine, or variables that need a child
		}
		other, otherErr := cond.EvalAsChild(src, vars.vars())
		if diff := cmp.Diff(got, other); diff != "" {
			t.Errorf("%q: %s", src, diff)
		}
		a, b := abi.As(err), abi.As(otherErr)
		if (a == nil) != (b == nil) || a != nil && (a.Code != b.Code || a.Message != b.Message) {
			t.Errorf("%q: %v, in the child %v", src, err, otherErr)
		}
		if a != nil && a.Code == abi.Internal {
			t.Errorf("%q: %v", src, err)
		}
		if len(got.JSON) > 0 && !json.Valid(got.JSON) {
			t.Errorf("%q: not JSON: %q", src, got.JSON)
		}
	})
}

// FuzzCheck checks that no text crashes the process that checks it, and that a
// refused source is refused with an expected code.
func FuzzCheck(f *testing.F) {
	for _, r := range rows {
		f.Add(r.src)
	}
	for _, k := range hostileSources {
		f.Add(k.src[:min(len(k.src), 2000)])
	}
	e := cond.New(cond.Options{})
	f.Cleanup(e.Close)
	f.Fuzz(func(t *testing.T, src string) {
		err := check(e, src)
		switch code := abi.CodeOf(err); code {
		case "", abi.BadFields, abi.Limit, abi.Unavailable:
		default:
			t.Errorf("%q: %s %v", src, code, err)
		}
		names, nerr := cond.Names(src)
		if nerr == nil && cond.Fast(src) && err == nil {
			if _, err := cond.EvalAsChild(src, values{}.vars()); abi.CodeOf(err) == abi.BadFields {
				t.Errorf("%q with names %v: %v", src, names, err)
			}
		}
	})
}

// FuzzDecode checks that a variable is decoded as by encoding/json.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e3,"\u0041\ud83d\ude00",null,true]}`, `-0`, `1e400`, `"\ud800"`, `{"__proto__":1,"a":2,"a":3}`, `[01]`, `"\x"`, `[1,]`, "\"\xff\"", `12345678901234567890`, ` [ ] `, `{}x`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		got, err := cond.Decode(text)
		valid := json.Valid([]byte(text)) && utf8.ValidString(text)
		if (err == nil) != valid {
			t.Fatalf("%q: %v, valid %v", text, err, valid)
		}
		var want, have any
		if !valid || json.Unmarshal([]byte(text), &want) != nil {
			return // numbers beyond float64 are Infinity, which is null in JSON
		}
		if err := json.Unmarshal([]byte(got), &have); err != nil {
			t.Fatalf("%q gave %q: %v", text, got, err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%q gave %q: %s", text, got, diff)
		}
	})
}

// FuzzFrame checks that any bytes from the pipe are a frame or an error.
func FuzzFrame(f *testing.F) {
	f.Add(cond.AppendFrame(nil, "eval", "1", ""))
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{4, 0, 0, 0, 255, 255, 255, 255})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := cond.ReadFrame(bytes.NewReader(b))
		if err != nil {
			if errors.Is(err, io.EOF) && len(b) != 0 {
				t.Errorf("%x: io.EOF within a frame", b)
			}
			return
		}
		again, err := cond.ReadFrame(bytes.NewReader(cond.AppendFrame(nil, parts...)))
		if diff := cmp.Diff(parts, again); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	})
}
