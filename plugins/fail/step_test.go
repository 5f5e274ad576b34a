package fail_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/plugins/fail"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestFail(t *testing.T) {
	_, fault := sdktest.Run(t, sdktest.Only(fail.Step()), "fail", `{"message":"red","code":"tests_red"}`, sdktest.New(t))
	if fault == nil || fault.Message != "red" || fault.Code != "tests_red" || !fault.Permanent {
		t.Errorf("got %+v", fault)
	}
}
