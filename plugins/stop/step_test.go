package stop_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/plugins/stop"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestStop(t *testing.T) {
	for fields, want := range map[string]string{`{}`: "stopped", `{"status":"completed","message":"m"}`: "completed"} {
		_, fault := sdktest.Run(t, sdktest.Only(stop.Step()), "stop", fields, sdktest.New(t))
		if fault == nil || fault.End != want || !fault.Permanent {
			t.Errorf("%s: %+v", fields, fault)
		}
	}
}
