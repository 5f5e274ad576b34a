package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A printedText is an output of which a part is printed after it was opened.
type printedText struct {
	*bytes.Reader
	later []string
}

func (p *printedText) Close() error { return nil }

func (p *printedText) Skip(n int64) error {
	_, err := p.Seek(n, io.SeekCurrent)
	return err
}

func (p *printedText) Follow(context.Context) (bool, error) {
	if len(p.later) == 0 {
		return false, nil
	}
	p.Reader, p.later = bytes.NewReader([]byte(p.later[0])), p.later[1:]
	return true, nil
}

// TestOutput: the output of the attempt that is asked for, with ranges, and as it goes on.
func TestOutput(t *testing.T) {
	var opened []string
	s := open(t, api.Options{
		Commands: commands(t, map[string]any{
			"logs/list?": `{"executions":[
				{"executionId":"d","step":"1#1.steps.0","iteration":2,"attempt":1},
				{"executionId":"c","step":"0","iteration":2,"attempt":2},
				{"executionId":"b","step":"0","iteration":2,"attempt":2},
				{"executionId":"a","step":"0","iteration":2,"attempt":1},
				{"executionId":"z","step":"0","iteration":1,"attempt":1}]}`,
			"code/shell/status?":  `{"executionId":"b","run":"r1","step":"0","iteration":2,"attempt":2}`,
			"sentinel/step/list?": `{"steps":[{"address":"0","id":"build"},{"address":"1.steps.0","id":"inner"}]}`,
		}),
		Output: func(_ context.Context, id string, opt api.OutputOptions) (api.Output, error) {
			opened = append(opened, fmt.Sprintf("%s %s %d %t", id, opt.Stream, opt.Tail, opt.Times))
			return &printedText{Reader: bytes.NewReader([]byte(strings.Repeat(id, 3) + "\xff|")), later: []string{"later|", "last|"}}, nil
		},
	})
	for path, want := range map[string]string{
		"0/output":                           "bbb\xff|ccc\xff|",
		"build/output":                       "bbb\xff|ccc\xff|",
		"0/output?attempt=1":                 "aaa\xff|",
		"0/output?iteration=1":               "zzz\xff|",
		"0/output?execution=b":               "bbb\xff|",
		"1%231.steps.0/output":               "ddd\xff|",
		"inner/output":                       "ddd\xff|",
		"1.steps.0/output?offset=2":          "d\xff|",
		"0/output?offset=6":                  "cc\xff|",
		"inner/output?follow=true":           "ddd\xff|later|last|",
		"inner/output?follow=true&offset=3":  "\xff|later|last|",
		"inner/output?tail=5&times=true":     "ddd\xff|",
		"inner/output?stream=stdout&tail=12": "ddd\xff|",
	} {
		if got := s.do("GET", "/v1/runs/r1/steps/"+path, ""); got.status != 200 || got.body != want || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %q, want %q", path, got.status, got.body, want)
		}
	}
	if !slices.Contains(opened, "d stdout 12 false") || !slices.Contains(opened, "d  5 true") {
		t.Errorf("opened %q", opened)
	}
	for _, c := range []struct{ asked, want string }{{"bytes=2-3", "b\xff"}, {"bytes=-3", "c\xff|"}, {"bytes=4-7", "|ccc"}} {
		got := s.do("GET", "/v1/runs/r1/steps/0/output", "", "Range: "+c.asked)
		if got.status != 206 || got.body != c.want {
			t.Errorf("%s: %d %q, want %q", c.asked, got.status, got.body, c.want)
		}
	}
	if got := s.do("GET", "/v1/runs/r1/steps/0/output", "", "Range: bytes=4-7,2-3,0-1"); got.status != 200 || !strings.HasSuffix(got.body, "ccc\xff|") {
		t.Errorf("several ranges: %d %q, want all", got.status, got.body)
	}
	for path, code := range map[string]abi.Code{"9/output": abi.NotFound, "0/output?attempt=7": abi.NotFound, "0/output?offset=-1": abi.BadFields, "0/output?offset=1&tail=1": abi.BadFields, "0/output?tail=x": abi.BadFields} {
		if got := s.do("GET", "/v1/runs/r1/steps/"+path, ""); got.problem.Code != code {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
