package sentinel

import (
	"encoding/json"
	"github.com/sentinel-runtime/sentinel/host/command"
	"testing"
	"time"
)

func TestEventOf(t *testing.T) {
	var f family
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e, err := f.eventOf(&command.Call{By: command.ByUser}, json.RawMessage(`{"path":"x"}`), now)
	if err != nil || e.Name != "manual" || string(e.Data) != `{"path":"x"}` || e.ID == "" || !e.Time.Equal(now) {
		t.Errorf("data alone: %+v, %v", e, err)
	}
	e, err = f.eventOf(&command.Call{By: command.ByUser}, json.RawMessage(`{"type":"git:push","source":"s","id":"7","data":[1]}`), now)
	if err != nil || e.Name != "git:push" || e.ID != "7" || string(e.Data) != `[1]` {
		t.Errorf("a whole record: %+v, %v", e, err)
	}
	if _, err = f.eventOf(&command.Call{By: command.ByUser}, json.RawMessage(`{"type":1,"source":"s"}`), now); err == nil {
		t.Error("a type that is a number was taken")
	}
}
