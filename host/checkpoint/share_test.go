package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestCheckpointsOfPersonsStay: the checkpoints of an agent, however many and large, in one run or in
// many workspaces, remove none of a person.
func TestCheckpointsOfPersonsStay(t *testing.T) {
	const agent = "agent:ci"
	dir := t.TempDir()
	f := newFolder(t, checkpoint.Options{Dir: dir, Keep: 8, Most: 4, Bytes: 2 << 20, FileBytes: 10 << 20})
	create := func(workspace, of, label string) error {
		_, err := f.s.Create(t.Context(), checkpoint.Request{Workspace: workspace, Of: of, Label: label, By: agent})
		return err
	}
	count := func() (persons, agents int) {
		t.Helper()
		list, err := f.s.List(t.Context(), "", f.dir, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.By == "" {
				persons++
			} else {
				agents++
			}
		}
		return persons, agents
	}
	f.put("mine", "before")
	f.put("kept", random(50, 900<<10))
	f.create("r1", checkpoint.Begin)
	f.put("mine", "broken")
	f.create("r1", checkpoint.End)
	for i := range 7 {
		if err := create(f.dir, "", ""); err != nil {
			t.Fatal(err)
		}
		if err := create(f.dir, "r2", []string{checkpoint.Begin, checkpoint.End, ""}[i%3]); err != nil {
			t.Fatal(err)
		}
	}
	if persons, agents := count(); persons != 2 || persons+agents > 8 || agents == 0 {
		t.Errorf("after many: %d of the person, %d of the agent", persons, agents)
	}
	for i := range 6 {
		f.put("large", random(i, 900<<10))
		if err := create(f.dir, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if persons, _ := count(); persons != 2 {
		t.Errorf("after large ones: %d of the person", persons)
	}
	f.remove("kept", "large")
	f.put("huge", random(99, 1500<<10))
	if err := create(f.dir, "", ""); abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), "beside the checkpoints of persons") {
		t.Errorf("one that does not fit: %v", err)
	}
	f.remove("huge")
	for i := range 6 {
		other := f.path(fmt.Sprint("sub", i))
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := create(other, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 4 {
		t.Errorf("%d repositories, %v", len(entries), err)
	}
	r := f.restore("r1", true)
	if text, err := os.ReadFile(f.path("mine")); !r.Success || err != nil || string(text) != "before" {
		t.Errorf("the restore: %+v, %q %v", r, text, err)
	}
	// With more than half, persons lose their oldest.
	for range 9 {
		f.create("", "")
	}
	if persons, _ := count(); persons > 8 {
		t.Errorf("after many of the person: %d", persons)
	}
}

// TestPersonsDoNotWaitForAllOfAnAgent: a checkpoint of a person waits for the one that is being made and
// at most one more, however many an agent asks for, and a call that is cancelled leaves the queue.
func TestPersonsDoNotWaitForAllOfAnAgent(t *testing.T) {
	const calls = 20
	var f *folder
	begun, goOn := make(chan struct{}, 2*calls), make(chan struct{})
	f = newFolder(t, checkpoint.Options{At: func(state string) {
		if state == "referenced" {
			begun <- struct{}{}
			<-goOn
		}
	}})
	f.put("file", "text")
	var made atomic.Int64
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			if _, err := f.s.Create(t.Context(), checkpoint.Request{Workspace: f.dir, Key: fmt.Sprint(i), By: "agent:ci"}); err != nil {
				t.Error(err)
			}
			made.Add(1)
		})
	}
	<-begun
	for f.s.Waiting(f.dir, "agent:ci") < calls-1 {
		runtime.Gosched()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := f.s.List(ctx, "agent:ci", f.dir, "")
		ended <- err
	}()
	for f.s.Waiting(f.dir, "agent:ci") < calls {
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is cancelled in the queue: %v", err)
	}
	all.Go(func() {
		if _, err := f.s.Create(t.Context(), checkpoint.Request{Workspace: f.dir, Key: "mine"}); err != nil {
			t.Error(err)
		}
		if n := made.Load(); n > 2 {
			t.Errorf("the person waited for %d checkpoints of the agent", n)
		}
	})
	for f.s.Waiting(f.dir, "") < 1 {
		runtime.Gosched()
	}
	close(goOn)
	all.Wait()
}
