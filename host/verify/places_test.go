package verify_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/verify"
)

// TestAPersonNeedNotWaitForAgents: verifications of agents that take all places leave one for a person.
func TestAPersonNeedNotWaitForAgents(t *testing.T) {
	dir := repo(t, map[string]string{"a": "1"})
	begun := make(chan struct{})
	var once sync.Once
	v := verifier(t, func(o *verify.Options) {
		o.Parallel = 1
		o.Now = func() time.Time {
			once.Do(func() { close(begun) })
			return time.Now()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var agents sync.WaitGroup
	for range 2 {
		agents.Go(func() {
			_, _ = v.Run(ctx, verify.Job{Criteria: criteria(t, `[{"type":"test","verify":{"command":"sleep 600"}}]`), RepoURL: dir, Branch: "work", Approved: true})
		})
	}
	<-begun
	job := verify.Job{Criteria: criteria(t, `[{"type":"file_exists","verify":{"path":"a"}}]`), RepoURL: dir, Branch: "work", Approved: true, ForPerson: true}
	if r := run(t, v, job); r.Status != verify.Passing {
		t.Errorf("%+v", r)
	}
	cancel()
	agents.Wait()
}

// TestAnAgentHasHalfOfThePlaces: verifications of one agent leave places for another one and
// for steps.
func TestAnAgentHasHalfOfThePlaces(t *testing.T) {
	dir := repo(t, map[string]string{"a": "1"})
	begun := make(chan struct{}, 10)
	v := verifier(t, func(o *verify.Options) {
		o.Parallel = 2
		o.Now = func() time.Time {
			select {
			case begun <- struct{}{}:
			default:
			}
			return time.Now()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var long sync.WaitGroup
	for range 4 {
		long.Go(func() {
			_, _ = v.Run(ctx, verify.Job{Criteria: criteria(t, `[{"type":"test","verify":{"command":"sleep 600"}}]`), RepoURL: dir, Branch: "work", Approved: true, Caller: "one"})
		})
	}
	<-begun
	for _, agent := range []string{"two", ""} {
		job := verify.Job{Criteria: criteria(t, `[{"type":"file_exists","verify":{"path":"a"}}]`), RepoURL: dir, Branch: "work", Approved: true, Caller: agent}
		if r := run(t, v, job); r.Status != verify.Passing {
			t.Errorf("%q: %+v", agent, r)
		}
	}
	cancel()
	long.Wait()
}
