package manual_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
	"github.com/sentinel-runtime/sentinel/triggers/manual"
)

func TestNeverFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := manual.New(manual.Options{}).Arm(sentinels.Trigger{Type: "manual"}, triggers.Env{Starting: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		err = a.Run(ctx, func(context.Context, triggers.Firing) (triggers.Admission, error) {
			t.Error("a manual trigger fired")
			return triggers.Admission{}, nil
		})
		if err != nil || ctx.Err() == nil {
			t.Errorf("Run returned %v before its context ended", err)
		}
	})
}

func TestCheck(t *testing.T) {
	k := manual.New(manual.Options{})
	if err := k.Check(sentinels.Trigger{Type: "manual", Options: json.RawMessage(`{"debounceMs":1}`)}); err != nil {
		t.Error(err)
	}
	if _, err := k.Arm(sentinels.Trigger{Type: "manual", Options: json.RawMessage(`{"paths":[]}`)}, triggers.Env{}); err == nil {
		t.Error("an unknown option was accepted")
	}
}
