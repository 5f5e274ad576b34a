package serve

import (
	"reflect"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// Each bound of the configuration is one of the engine's.
func TestRetentionIsConfigured(t *testing.T) {
	got := retention(config.Retention{Age: 1, Runs: 2, Size: 3, KeepFailed: 4, Every: 5})
	want := runtime.Retention{MaxAge: 1, MaxRuns: 2, MaxBytes: 3, KeepFailed: 4}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if reflect.TypeFor[config.Retention]().NumField() != reflect.TypeFor[runtime.Retention]().NumField() { // Every and Removed differ
		t.Error("a bound of one is none of the other")
	}
}
