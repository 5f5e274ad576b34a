package foldersync_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// slowly compiles only when the test says so.
type slowly struct {
	*runtime.Runtime
	begun, let chan struct{}
	fault      error
}

func (s *slowly) PreparePlugin(ctx context.Context, code []byte) (plugin.Prepared, error) {
	s.begun <- struct{}{}
	select {
	case <-s.let:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.fault != nil {
		return nil, s.fault
	}
	return s.Runtime.PreparePlugin(ctx, code)
}

// TestNothingWaitsForACompile: while a module is compiled definitions are saved,
// files are written back, other plugins end; then it is live, and what waited
// for its step type with it.
func TestNothingWaitsForACompile(t *testing.T) {
	s := newScene(t)
	slow := &slowly{Runtime: s.rt, begun: make(chan struct{}, 9), let: make(chan struct{})}
	s.beginWith(foldersync.Options{Plugins: slow})
	s.writePlugin("count.wasm", other(t))
	<-slow.begun
	s.eventually("the file is being compiled", func() bool { return s.info("plugins/count.wasm").State == foldersync.Compiling })

	s.write("sentinels/a.json", `{"id":"a","name":"a","steps":[{"type":"echo"}]}`)
	s.live("sentinels/a.json", "a", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s.must(s.r.Sync(ctx, "a"))
	s.write("sentinels/b.json", `{"id":"b","name":"b","steps":[{"type":"count"}]}`)
	s.invalid("sentinels/b.json", `"count"`)

	// Other content is another module; the one before is freed.
	s.writePlugin("count.wasm", []byte(strings.Replace(string(other(t)), `"version":"1"`, `"version":"2"`, 1)))
	<-slow.begun
	close(slow.let)
	s.live("sentinels/b.json", "b", 1)
	if i := s.info("plugins/count.wasm"); i.State != foldersync.Live {
		t.Errorf("the plugin is %+v", i)
	}
	for _, p := range s.rt.Plugins() {
		if p.Name == "count" && p.Version != "2" {
			t.Errorf("version %s is live, want the newest", p.Version)
		}
	}
}

// TestACompileThatFails is the reason of a refusal, and the engine's list has it.
func TestACompileThatFails(t *testing.T) {
	s := newScene(t)
	slow := &slowly{Runtime: s.rt, begun: make(chan struct{}, 9), let: make(chan struct{}), fault: errors.New("it is too big")}
	close(slow.let)
	s.beginWith(foldersync.Options{Plugins: slow})
	s.writePlugin("count.wasm", other(t))
	s.invalid("plugins/count.wasm", "it is too big")
	if list := s.rt.Plugins(); list[len(list)-1].State != plugin.Refused || !strings.Contains(list[len(list)-1].Problem, "too big") {
		t.Errorf("the engine says %+v", list)
	}
}

// TestStartWaitsNotForEver: what is still being compiled after StartWait does not hold
// up the start, and is live later, with the definitions that need it.
func TestStartWaitsNotForEver(t *testing.T) {
	s := newScene(t)
	slow := &slowly{Runtime: s.rt, begun: make(chan struct{}, 9), let: make(chan struct{})}
	s.write("sentinels/a.json", `{"id":"a","name":"a","steps":[{"type":"echo"}]}`)
	s.write("sentinels/b.json", `{"id":"b","name":"b","steps":[{"type":"count"}]}`)
	s.writePlugin("count.wasm", other(t))
	s.beginWith(foldersync.Options{Plugins: slow, StartWait: time.Millisecond})
	s.live("sentinels/a.json", "a", 1)
	s.invalid("sentinels/b.json", `"count"`)
	if i := s.info("plugins/count.wasm"); i.State != foldersync.Compiling {
		t.Errorf("the plugin is %+v", i)
	}
	close(slow.let)
	s.live("sentinels/b.json", "b", 1)
}

// TestPreparedSideBySide: plugins are prepared at the same time, and loaded in the
// order of their names.
func TestPreparedSideBySide(t *testing.T) {
	s := newScene(t)
	slow := &slowly{Runtime: s.rt, begun: make(chan struct{}, 9), let: make(chan struct{})}
	s.writePlugin("b.wasm", other(t))
	s.writePlugin("a.wasm", []byte(strings.Replace(string(other(t)), `"version":"1"`, `"version":"2"`, 1)))
	go func() {
		<-slow.begun
		<-slow.begun // while the first has not ended
		close(slow.let)
	}()
	s.beginWith(foldersync.Options{Plugins: slow})
	s.invalid("plugins/b.wasm", "already provided")
	if i := s.info("plugins/a.wasm"); i.State != foldersync.Live {
		t.Errorf("the first by name is %+v", i)
	}
}
