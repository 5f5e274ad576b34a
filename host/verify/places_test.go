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
