package host

import (
	"reflect"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// TestLimitsAreConfigured: each limit of the engine can be configured, and one of the
// options goes before it.
func TestLimitsAreConfigured(t *testing.T) {
	h := &Host{settings: &config.Loaded{}}
	configured := reflect.ValueOf(&h.settings.Limits).Elem()
	for i := range configured.NumField() {
		configured.Field(i).SetInt(int64(i + 1))
	}
	h.opt.Limits.Steps = 1000
	got := reflect.ValueOf(h.limits())
	for i := range got.NumField() {
		name := got.Type().Field(i).Name
		f := configured.FieldByName(name)
		if !f.IsValid() {
			t.Errorf("limit %s has no configuration", name)
			continue
		}
		want := f.Int()
		if name == "Steps" {
			want = 1000
		}
		if got.Field(i).Int() != want {
			t.Errorf("limit %s is %d, configured as %d", name, got.Field(i).Int(), want)
		}
	}
	if reflect.TypeFor[runtime.Limits]().NumField()+1 != configured.NumField() { // and freeSpace
		t.Error("a configured limit is none of the engine's")
	}
}

// An interval of 0 is never, which is no default of the engine's.
func TestSnapshotEvery(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{0: -1, time.Minute: time.Minute} {
		if got := snapshotEvery(config.Snapshots{Every: config.Duration(every)}); got != want {
			t.Errorf("configured as %s, the engine has %s, want %s", every, got, want)
		}
	}
}
