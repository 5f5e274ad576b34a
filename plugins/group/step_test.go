package group_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/plugins/group"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestGroup(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_block", `{"blocks":[{"success":true,"output":"x"}]}`)
	out, fault := sdktest.Run(t, sdktest.Only(group.Step()), "group", `{"steps":{"count":1},"finally":{"count":1}}`, h)
	if fault != nil || out.String() != `{"output":"x"}` {
		t.Errorf("got %s %v", out, fault)
	}
	if out, fault := sdktest.Run(t, sdktest.Only(group.Step()), "group", `{"steps":{"count":0}}`, sdktest.New(t)); fault != nil || out.String() != `{"output":null}` {
		t.Errorf("no steps: %s %v", out, fault)
	}
	if problems := sdktest.Problems(t, sdktest.Only(group.Step()), "group", `{"steps":{"count":1},"finallyTimeoutMs":5}`); len(problems) != 1 || !strings.Contains(problems[0], "requires finally or onFailure") {
		t.Errorf("got %v", problems)
	}
}
