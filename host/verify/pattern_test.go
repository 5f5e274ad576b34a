package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/verify"
)

// alternatives returns a pattern of n alternatives with 1,800 instructions each.
func alternatives(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("x{0,900}y%d", i)
	}
	return strings.Join(list, "|")
}

func pattern(fields map[string]any) string {
	text, err := json.Marshal(map[string]any{"type": "code_pattern", "verify": fields})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestLargePatternsAreRefused(t *testing.T) {
	var own ticket.Criteria
	if err := json.Unmarshal([]byte(`[`+pattern(map[string]any{"file": "a", "pattern": alternatives(200)})+`]`), &own); err != nil {
		t.Fatal(err)
	}
	if err := verify.Check(&own); err == nil || !strings.Contains(err.Error(), "checks[0].verify.pattern: the pattern compiles to ") || !strings.Contains(err.Error(), "the limit is 10000") {
		t.Errorf("criteria: %v", err)
	}
	v := verifier(t) // which also gets criteria that were stored before there was a limit
	r := run(t, v, verify.Job{Criteria: &own, RepoURL: repo(t, map[string]string{"a": "x"}), Branch: "work"})
	if r.Status != verify.Failing || !strings.Contains(r.Checks[0].Message, "the limit is 10000") {
		t.Errorf("a verification: %+v", r)
	}
}

// A pattern of 9,000 instructions and a file of 8 MB are an hour.
func TestPatternsAreBounded(t *testing.T) {
	dir := repo(t, map[string]string{"large": strings.Repeat("x", 8_000_000), "slow": strings.Repeat("x", 440_000), "lines": strings.Repeat("é\n", 2_000_000) + "a\nb\n"})
	v := verifier(t)
	for _, c := range []struct {
		name            string
		fields          map[string]any
		status, message string
	}{
		{"too much work", map[string]any{"file": "large", "pattern": alternatives(5)}, "failed", "large: has 8000000 bytes, and a pattern that compiles to 90"},
		{"too much work, absent", map[string]any{"file": "large", "pattern": alternatives(5), "should_match": false}, "failed", "large: has 8000000 bytes"},
		{"the time limit", map[string]any{"file": "slow", "pattern": alternatives(5), "timeoutMs": 100}, "failed", "no end in slow within the time limit: x{0,900}y0"},
		{"the time limit, absent", map[string]any{"file": "slow", "pattern": alternatives(5), "timeoutMs": 100, "should_match": false}, "failed", "no end in slow within the time limit"},
		{"a large file", map[string]any{"file": "lines", "pattern": `^\w+$\n^b$`}, "passed", "Pattern found in lines:2000001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, check := one(t, v, dir, pattern(c.fields)); check.Status != c.status || !strings.Contains(check.Message, c.message) {
				t.Errorf("got %s: %s, want %s: %s", check.Status, check.Message, c.status, c.message)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller has gone")
	job := verify.Job{Criteria: criteria(t, `[{"type":"file_exists","verify":{"path":"slow"}},`+pattern(map[string]any{"file": "slow", "pattern": alternatives(5)})+`]`), RepoURL: dir, Branch: "work"}
	job.OnCheck = func(verify.CheckResult) { time.AfterFunc(50*time.Millisecond, func() { cancel(gone) }) } // while the second is matched
	if _, err := v.Run(ctx, job); !errors.Is(err, gone) {
		t.Errorf("cancelled: %v", err)
	}
}
