package code_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// alternatives returns a pattern of n alternatives with 1,800 instructions each.
func alternatives(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("x{0,900}y%d", i)
	}
	return strings.Join(list, "|")
}

// A pattern that is within the bound of its text can still need hours for a file.
func TestSearchRefusesLargePatterns(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"a.txt": "x\n"})
	_, err := b.try(command.ByModel, "code/search", params{"pattern": alternatives(60)})
	if abi.CodeOf(err) != abi.BadFields || abi.As(err).Field != "pattern" || !strings.Contains(err.Error(), "instructions, the limit is 10000: repeat less") {
		t.Errorf("got %v", err)
	}
	if out := b.do("code/search", params{"pattern": alternatives(5) + "|x"}); len(out["matches"].([]any)) != 1 {
		t.Errorf("a pattern within the limit: %v", out)
	}
}

// A search ends with its caller also within one file, and within one line of it: this one
// needs an hour.
func TestSearchEndsWithinAFile(t *testing.T) {
	for name, text := range map[string]string{"lines": strings.Repeat(strings.Repeat("x", 999)+"\n", 8_000), "one line": strings.Repeat("x", 8_000_000)} {
		for _, pattern := range []string{alternatives(5), alternatives(5) + "$"} {
			b := newHarness(t, code.Options{}, map[string]string{"a.txt": text})
			for _, path := range []string{".", "a.txt"} {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				request, _ := json.Marshal(params{"pattern": pattern, "path": path})
				_, err := b.reg.Call(ctx, &command.Call{Command: "code/search", Params: request, By: command.ByUser, Workspace: b.dir})
				cancel()
				if abi.CodeOf(err) != abi.Timeout {
					t.Errorf("%s, %s: %v", name, path, err)
				}
			}
		}
	}
}

// Files that exceed what is matched at once are searched as others.
func TestSearchInLargeFiles(t *testing.T) {
	filler := strings.Repeat("nothing here\n", 200_000)
	long := strings.Repeat("nothing ", 300_000)
	b := newHarness(t, code.Options{}, map[string]string{
		"end.txt": filler + "needle 1", "middle.txt": filler + "needle 2\n" + filler, "line.txt": "first\n" + long + "needle 3" + long + "\nlast\n", "other.txt": "n\needle\n" + filler,
	})
	for _, pattern := range []string{`needle \d`, `[n]eedle \d`, `(?m)needle (\d$|\d )`, `needle \dn?`} {
		var got []string
		for _, m := range b.do("code/search", params{"pattern": pattern})["matches"].([]any) {
			m := m.(map[string]any)
			got = append(got, fmt.Sprintf("%v:%v:%v", m["path"], m["line"], m["column"]))
		}
		want := []string{"end.txt:200001:1", "line.txt:2:2.400001e+06", "middle.txt:200001:1"}
		if strings.Contains(pattern, "$") {
			want = []string{"end.txt:200001:1", "middle.txt:200001:1"}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
}
