//go:build unix

package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
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

func rules(patterns ...string) (list []shell.Rule) {
	for _, p := range patterns {
		list = append(list, shell.Rule{Pattern: p, Classification: "error"})
	}
	return list
}

func TestLargePatternsAreRefused(t *testing.T) {
	b := newBench(t, shell.Options{})
	id := b.do("code/shell/execute", params{"command": "echo x"}).ExecutionID
	for _, c := range []struct {
		name  string
		p     params
		field string
	}{
		{"logs/search", params{"pattern": alternatives(60)}, "pattern"},
		{"code/shell/watch", params{"executionId": id, "rules": rules("x", alternatives(60))}, "rules[1].pattern"},
		{"code/shell/watch", params{"executionId": id, "rules": rules(alternatives(5), alternatives(5), alternatives(5))}, "rules"},
		{"code/shell/sentinel", params{"executionId": id, "rules": rules(alternatives(60))}, "rules[0].pattern"},
		{"code/shell/execute", params{"command": "true", "rules": rules(alternatives(60))}, "rules[0].pattern"},
	} {
		_, err := b.call(t.Context(), c.name, command.Call{}, c.p)
		if known := abi.As(err); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "instructions, the limit is ") || known.Field != c.field {
			t.Errorf("%s, %s: %v", c.name, c.field, err)
		}
	}
	request := json.RawMessage(fmt.Sprintf(`{"file":"a","timeoutMs":1,"rules":[{"pattern":%q}]}`, alternatives(60)))
	if _, err := b.m.FileStart(shell.FileWatch{Workspace: b.dir, Request: request}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("a watch of a file: %v", err)
	}
	if out := b.do("code/shell/watch", params{"executionId": id, "rules": rules(alternatives(5) + "|x")}); len(out.Lines) != 1 || out.Lines[0].Classification != "error" {
		t.Errorf("a pattern within the limit: %+v", out)
	}
}

// Matching ends with the caller and with the time limit: these lines need an hour.
func TestMatchingEndsWithItsCaller(t *testing.T) {
	b := newBench(t, shell.Options{})
	id := b.do("code/shell/execute", params{"command": "head -c 8000000 /dev/zero | tr '\\0' x | fold -w 30000"}).ExecutionID
	for _, c := range []struct {
		name string
		p    params
	}{
		{"logs/search", params{"executionId": id, "pattern": alternatives(5)}},
		{"code/shell/watch", params{"executionId": id, "rules": rules(alternatives(5), alternatives(5)), "cursor": 0}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := b.call(ctx, c.name, command.Call{}, c.p); abi.CodeOf(err) != abi.Timeout {
			t.Errorf("%s: %v", c.name, err)
		}
		cancel()
	}
	if _, err := b.call(t.Context(), "code/shell/watch", command.Call{}, params{"executionId": id, "rules": rules(alternatives(5)), "cursor": 0, "timeoutMs": 100}); abi.CodeOf(err) != abi.Timeout {
		t.Errorf("code/shell/watch with a time limit: %v", err)
	}
}

// The rules of a watch of a file end soon after its time limit. What they have matched by
// then is the result, and the next watch reads on behind it.
func TestMatchingInAFileEndsWithTheTimeLimit(t *testing.T) {
	l := newLog(t)
	text, err := json.Marshal(rules(alternatives(5), alternatives(5)))
	if err != nil {
		t.Fatal(err)
	}
	l.rule = `,"rules":` + string(text)
	slow := strings.Repeat(strings.Repeat("x", 30_000)+"\n", 200)
	l.write(slow)
	_, err = l.m.WatchFile(t.Context(), shell.FileWatch{Workspace: l.dir, Request: l.request("start"), Position: l.start("start"), Due: over()})
	if abi.CodeOf(err) != abi.Timeout || !strings.Contains(err.Error(), "the rules did not match the first lines within the time limit") {
		t.Errorf("only slow lines: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err = l.m.WatchFile(ctx, shell.FileWatch{Workspace: l.dir, Request: l.request("start"), Position: l.start("start")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller has gone: %v", err)
	}

	if raceEnabled {
		t.Skip("under the race detector the first lines alone take longer than the time limit")
	}
	l.name = "fast.log"
	l.write(strings.Repeat("fast\n", 20_000) + slow)
	a := l.watch(l.start("start"), over())
	if !a.TimedOut || len(a.Lines) == 0 || a.Lines[0].Text != "fast" {
		t.Fatalf("fast lines before slow ones: %+v", a)
	}
	if b, err := l.m.FileStart(shell.FileWatch{Workspace: l.dir, Request: l.request(a.Position)}); err != nil || b != a.Position {
		t.Errorf("the position of the next watch is %s, %v, want %s", b, err, a.Position)
	}
}
