package sdk

import (
	"strings"
	"testing"
)

// TestHandle: a handle is read only when its value is, and is passed on as it came.
func TestHandle(t *testing.T) {
	loads := 0
	blocks = func(handle uint64) string {
		loads++
		return map[uint64]string{64: `"a\nb"`, 72: `[1, {"a": "x"}]`, 80: `{"a":1,"a":2}`, 88: `{"n":12345678901234567890}`}[handle]
	}
	defer func() { blocks = nil }()
	v, err := (&parser{text: `{"s":@s64,"l":@l72,"o":@o88,"bad":@o80}`, handles: true}).all()
	if err != nil {
		t.Fatal(err)
	}
	s, l, o := v.Get("s"), v.Get("l"), v.Get("o")
	if s.Kind() != KindString || l.Kind() != KindList || o.Kind() != KindObject || !s.Given() || !l.Exists() {
		t.Error("the kinds are wrong")
	}
	if got, want := Object(F("v", List(s, l)), F("w", v)).encode(), `{"v":[@s64,@l72],"w":{"s":@s64,"l":@l72,"o":@o88,"bad":@o80}}`; got != want || loads != 0 {
		t.Errorf("%s after %d loads, want %s without any", got, loads, want)
	}
	if got, ok := s.AsString(); !ok || got != "a\nb" {
		t.Errorf("%q", got)
	}
	if l.Len() != 2 || l.At(1).Get("a").StringOr("") != "x" || o.Get("n").String() != "12345678901234567890" || loads != 3 {
		t.Errorf("%s %s after %d loads", l, o, loads)
	}
	for i, item := range l.Items() {
		if i == 0 && item.IntOr(0) != 1 {
			t.Error(item)
		}
	}
	for key, item := range o.Fields() {
		if key != "n" || item.Kind() != KindNumber {
			t.Error(key, item)
		}
	}
	// Read or not, it is passed on as its handle, and it is a value in every other text.
	if got := List(s, l, o).encode(); got != `[@s64,@l72,@o88]` || loads != 3 {
		t.Error(got, loads)
	}
	if got := List(s, l).String(); got != `["a\nb",[1,{"a":"x"}]]` {
		t.Error(got)
	}
	if got := List(o, l).Canonical(); got != `[{"n":12345678901234567890},[1,{"a":"x"}]]` {
		t.Error(got)
	}
	defer func() {
		if text := panicText(recover()); !strings.Contains(text, "duplicate key") {
			t.Errorf("panic %q of a value that Parse refuses", text)
		}
	}()
	v.Get("bad").Len()
}

// TestHandlesAreOfTheHost: no other text has handles.
func TestHandlesAreOfTheHost(t *testing.T) {
	for _, text := range []string{`@s64`, `{"a":@l1}`} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%s is parsed", text)
		}
	}
	for _, text := range []string{`@`, `@s`, `@x1`, `@sx`, `@1`, `[@s1`, `@s1x`} {
		if _, err := (&parser{text: text, handles: true}).all(); err == nil {
			t.Errorf("%s is parsed as a handle", text)
		}
	}
}
