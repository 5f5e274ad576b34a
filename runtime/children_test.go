package runtime_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// waitingKid starts a child run that waits for an event, and waits for its end.
const waitingKid = `{"type":"child","definition":{"name":"kid","steps":[{"type":"pause","event":"go"}],"loop":{"type":"once"}}}`

// manyKids is a definition that starts n child runs in branches.
func manyKids(n int) string {
	branches := strings.TrimSuffix(strings.Repeat("["+waitingKid+"],", n), ",")
	return `{"name":"root","steps":[{"type":"both","branches":[` + branches + `]}],"loop":{"type":"once"}}`
}

// A kidCounter counts the child runs that have begun and those that execute, as the progress
// of the runs says.
type kidCounter struct {
	mu         sync.Mutex
	executing  map[sentinels.RunID]bool
	begun      map[sentinels.RunID]int
	most, done int
}

// await waits until so many children have ended for the observer, which a run that waits for them may do before.
func (c *kidCounter) await(t *testing.T, n int) {
	t.Helper()
	until(t, fmt.Sprintf("%d ends of children", n), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.done >= n
	})
}

func (c *kidCounter) observe(p runtime.Progress) {
	if p.Sentinel == "root" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.executing == nil {
		c.executing, c.begun = map[sentinels.RunID]bool{}, map[sentinels.RunID]int{}
	}
	switch p.Event {
	case runtime.OnIterationStart:
		c.executing[p.Run] = true
		c.begun[p.Run]++
		c.most = max(c.most, len(c.executing))
	case runtime.OnRunEnd:
		delete(c.executing, p.Run)
		c.done++
	}
}

// Ten times as many children as a run may have at once are all executed, at most as many as
// the limit at the same time. Those that wait say why, and their traces say how long.
func TestChildrenQueue(t *testing.T) {
	const limit = 3
	var count kidCounter
	opt := runtime.Options{Limits: runtime.Limits{Children: limit}}
	opt.Observer.Progress = count.observe
	rt := open(t, newFakeHost(), store.NewMemory(), opt)
	id := start(t, rt, manyKids(10*limit), runtime.StartOptions{})
	until(t, "all to be started, and all but three to say that they wait", func() bool {
		queued := 0
		for _, kid := range kids(t, rt) {
			if info := status(t, rt, kid.ID); len(info.Queued) == 1 && strings.Contains(info.Queued[0].Reason, "has 3 active child runs") {
				queued++
			}
		}
		return len(kids(t, rt)) == 10*limit && runtime.Subscribers(rt) == limit && queued == 9*limit
	})
	emit(t, rt, "go", "1")
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
		t.Fatalf("run ended %s: %v", res.Status, res.Error)
	}
	count.await(t, 10*limit)
	if count.most != limit {
		t.Errorf("at most %d children at once", count.most)
	}
	waited := 0
	for _, kid := range kids(t, rt) {
		trace, err := rt.Trace(kid.ID)
		if err != nil {
			t.Fatal(err)
		}
		if trace.Iterations[0].Queued > 0 {
			waited++
		}
	}
	if waited != 9*limit {
		t.Errorf("the traces of %d children say that they waited, want %d", waited, 9*limit)
	}
}

// Children that start children wait in queues of their own, so that none waits for a place
// that a run above it has.
func TestChildrenOfChildrenQueue(t *testing.T) {
	const limit, each = 2, 5
	leaf := `{"type":"child","definition":{"name":"leaf","steps":[{"type":"say","event":"x"}],"loop":{"type":"once"}}}`
	inner := strings.TrimSuffix(strings.Repeat("["+leaf+"],", each), ",")
	middle := `{"type":"child","definition":{"name":"middle","steps":[{"type":"both","branches":[` + inner + `]}],"loop":{"type":"once"}}}`
	leaf = strings.TrimSuffix(strings.Repeat("["+middle+"],", each), ",")
	var count kidCounter
	opt := runtime.Options{Limits: runtime.Limits{Children: limit}}
	opt.Observer.Progress = count.observe
	rt := open(t, newFakeHost(), store.NewMemory(), opt)
	id := start(t, rt, `{"name":"root","steps":[{"type":"both","branches":[`+leaf+`]}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
		t.Fatalf("run ended %s: %v", res.Status, res.Error)
	}
	count.await(t, each+each*each)
}

// A run that is resumed executes the children that had waited for their place, each once.
func TestQueuedChildrenAfterResume(t *testing.T) {
	const limit, children = 2, 7
	db := store.NewMemory()
	opt := runtime.Options{Limits: runtime.Limits{Children: limit}}
	rt := open(t, newFakeHost(), db, opt)
	root := start(t, rt, manyKids(children), runtime.StartOptions{})
	until(t, "all to be started", func() bool { return len(kids(t, rt)) == children && runtime.Subscribers(rt) == limit })
	waiting := func(when string) {
		t.Helper()
		if list, err := rt.Runs(runtime.RunFilter{Parent: root, Status: sentinels.StatusQueued}); err != nil || len(list) != children-limit {
			t.Errorf("%s: %d children are queued, %v, want %d", when, len(list), err, children-limit)
		}
	}
	waiting("at first")
	var snap *store.Memory
	until(t, "all of the queue to be stored", func() bool {
		commit(t, rt)
		snap = db.Snapshot()
		stored := open(t, newFakeHost(), snap.Snapshot(), runtime.Options{})
		defer stored.Close()
		list, err := stored.Runs(runtime.RunFilter{Parent: root, Status: sentinels.StatusQueued})
		return err == nil && len(list) == children-limit
	})
	rt.Close()

	var count kidCounter
	opt.Observer.Progress = count.observe
	rt = open(t, newFakeHost(), snap, opt)
	waiting("in the store")
	if err := rt.Resume(within(t), root, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the first to wait again", func() bool { return runtime.Subscribers(rt) == limit })
	waiting("after the resume")
	emit(t, rt, "go", "1")
	if res := wait(t, rt, root); res.Status != sentinels.StatusCompleted {
		t.Fatalf("run ended %s: %v", res.Status, res.Error)
	}
	count.await(t, children)
	if n := len(kids(t, rt)); n != children || count.done != children || len(count.begun) != children-limit {
		t.Errorf("%d children, %d ended, %d began after the resume", n, count.done, len(count.begun))
	}
}

// A stop reaches children that wait for their place, and a run that ends leaves those that it
// did not wait for behind: they execute.
func TestQueuedChildrenEnd(t *testing.T) {
	opt := runtime.Options{Limits: runtime.Limits{Children: 1}}
	rt := open(t, newFakeHost(), store.NewMemory(), opt)
	id := start(t, rt, manyKids(3), runtime.StartOptions{})
	until(t, "all to be started", func() bool { return len(kids(t, rt)) == 3 })
	if err := rt.Stop(within(t), id); err != nil {
		t.Fatal(err)
	}
	for _, kid := range kids(t, rt) {
		if res := wait(t, rt, kid.ID); res.Status != sentinels.StatusStopped {
			t.Errorf("a child ended %s", res.Status)
		}
	}

	rt = open(t, newFakeHost(), store.NewMemory(), opt)
	leave := strings.Replace(waitingKid, `"definition"`, `"await":false,"definition"`, 1)
	id = start(t, rt, `{"name":"root","steps":[`+leave+`,`+leave+`,`+leave+`],"loop":{"type":"once"}}`, runtime.StartOptions{})
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
		t.Fatalf("run ended %s: %v", res.Status, res.Error)
	}
	until(t, "all to wait", func() bool { return runtime.Subscribers(rt) == 3 })
	emit(t, rt, "go", "1")
	for _, kid := range kids(t, rt) {
		if res := wait(t, rt, kid.ID); res.Status != sentinels.StatusCompleted {
			t.Errorf("a child ended %s", res.Status)
		}
	}
}

// nest returns a step that starts a child with leaf in branches, so many levels deep with so many branches each.
func nest(leaf string, levels, branches int) string {
	for range levels {
		steps := strings.TrimSuffix(strings.Repeat("["+leaf+"],", branches), ",")
		leaf = `{"type":"child","definition":{"name":"inner","steps":[{"type":"both","branches":[` + steps + `]}],"loop":{"type":"once"}}}`
	}
	return leaf
}

// A runCounter counts the runs of trees that exist at the same time, without those of persons.
type runCounter struct {
	mu        sync.Mutex
	active    map[sentinels.RunID]bool
	most, all int
}

func (c *runCounter) observe(p runtime.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active == nil {
		c.active = map[sentinels.RunID]bool{}
	}
	switch {
	case strings.HasPrefix(string(p.Sentinel), "person"):
	case p.Event == runtime.OnRunStart:
		c.active[p.Run] = true
		c.all++
		c.most = max(c.most, len(c.active))
	case p.Event == runtime.OnRunEnd:
		delete(c.active, p.Run)
	}
}

// agentWaits counts the steps that wait because of the share of agent:ci.
func agentWaits(t *testing.T, rt *runtime.Runtime) (n int) {
	for _, r := range kids(t, rt) {
		if r.Status.Final() {
			continue
		}
		for _, w := range status(t, rt, r.ID).Queued {
			if strings.Contains(w.Reason, "agent:ci has") && strings.Contains(w.Reason, "limits.agentRuns") && w.Step != "" {
				n++
			}
		}
	}
	return n
}

const quickKid = `{"type":"child","definition":{"name":"leaf","steps":[{"type":"call","command":"world/act","value":1}],"loop":{"type":"once"}}}`

// treeOf returns a definition of a tree of runs.
func treeOf(name, steps string) string {
	return `{"name":"` + name + `","steps":[` + steps + `],"loop":{"type":"once"}}`
}

// The children of an agent's run begin while it has fewer active runs than its share, and beyond that while less than
// a quarter of it execute: those that wait do not exist yet, and the step says why. A person's run beside them has
// no such limit. All of them end without an error, also after a restart.
func TestChildrenOfAgentsWait(t *testing.T) {
	const limit, levels, branches = 12, 3, 5
	const all, most = 1 + 1 + 5 + 25 + 125, limit + (levels+2)*limit/4
	var count runCounter
	opt := runtime.Options{Limits: runtime.Limits{AgentRuns: limit}}
	opt.Observer.Progress = count.observe
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, opt)
	id := start(t, rt, treeOf("root", nest(waitingKid, levels, branches)), runtime.StartOptions{As: "agent:ci"})
	until(t, "leaves to execute and others to wait", func() bool { return runtime.Subscribers(rt) == limit/4 && agentWaits(t, rt) > branches })
	person := start(t, rt, treeOf("person", nest(quickKid, 2, 4)), runtime.StartOptions{})
	if res := wait(t, rt, person); res.Status != sentinels.StatusCompleted {
		t.Errorf("the run of a person beside it ended %s: %v", res.Status, res.Error)
	}
	commit(t, rt)
	snap := db.Snapshot()
	rt.Close()

	rt = open(t, newFakeHost(), snap, opt)
	if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "leaves to execute and others to wait again", func() bool { return runtime.Subscribers(rt) >= limit/4 && agentWaits(t, rt) > branches })
	for n, over := 2, false; !over; n++ {
		until(t, "a leaf to execute", func() bool {
			over = status(t, rt, id).Status.Final()
			return over || runtime.Subscribers(rt) > 0
		})
		emit(t, rt, "go", fmt.Sprint(n))
	}
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
		t.Fatalf("run ended %s: %v", res.Status, res.Error)
	}
	count.mu.Lock()
	defer count.mu.Unlock()
	if count.all != all || count.most > most {
		t.Errorf("%d runs of the agent, want %d; %d at once, want at most %d", count.all, all, count.most, most)
	}
}

// A tree of an agent's runs that is deeper than its share goes on: a run that waits for its children takes no place
// from them.
func TestDeepTreeOfAgentEnds(t *testing.T) {
	var count runCounter
	opt := runtime.Options{Limits: runtime.Limits{AgentRuns: 2}}
	opt.Observer.Progress = count.observe
	rt := open(t, newFakeHost(), store.NewMemory(), opt)
	id := start(t, rt, treeOf("root", nest(quickKid, 6, 2)), runtime.StartOptions{As: "agent:ci"})
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
		t.Fatalf("run ended %s: %v", res.Status, res.Error)
	}
	count.mu.Lock()
	defer count.mu.Unlock()
	if want := 1 + 1<<7 - 1; count.all != want || count.most > 2+8 {
		t.Errorf("%d runs, want %d; %d at once", count.all, want, count.most)
	}
}

// A stop reaches a run whose step waits to start a child, and the place of an ended run goes to another one.
func TestStopOfWaitingChildStart(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: runtime.Limits{AgentRuns: 4}})
	first := start(t, rt, manyKids(9), runtime.StartOptions{As: "agent:ci"})
	until(t, "three to execute", func() bool { return runtime.Subscribers(rt) == 3 && len(status(t, rt, first).Queued) == 6 })
	if err := rt.Stop(within(t), first); err != nil {
		t.Fatal(err)
	}
	if res := wait(t, rt, first); res.Status != sentinels.StatusStopped {
		t.Errorf("run ended %s", res.Status)
	}
	if n := len(kids(t, rt)); n != 3 {
		t.Errorf("%d children, want the three that executed", n)
	}
	second := start(t, rt, manyKids(3), runtime.StartOptions{As: "agent:ci"})
	until(t, "those of the next run to execute", func() bool { return runtime.Subscribers(rt) == 3 })
	emit(t, rt, "go", "1")
	if res := wait(t, rt, second); res.Status != sentinels.StatusCompleted {
		t.Errorf("run ended %s: %v", res.Status, res.Error)
	}
}

// The branches of an agent's run execute as many at a time as runs of agents may, and all of them in the end; a
// person's run executes meanwhile, and all of its branches at once.
func TestBranchesOfAgentShareSlots(t *testing.T) {
	const slots, branches = 6, 20
	var mu sync.Mutex
	now, most := map[string]int{}, map[string]int{}
	release := make(chan struct{})
	w := newFakeHost()
	w.fail = func(who string, _ int) error {
		mu.Lock()
		now[who]++
		most[who] = max(most[who], now[who])
		mu.Unlock()
		<-release
		mu.Lock()
		now[who]--
		mu.Unlock()
		return nil
	}
	executing := func(who string) int {
		mu.Lock()
		defer mu.Unlock()
		return now[who]
	}
	rt := open(t, w, store.NewMemory(), runtime.Options{Limits: runtime.Limits{Runs: slots}})
	def := func(who string) string {
		branch := `[{"type":"call","command":"world/fail","value":"` + who + `"}],`
		return `{"name":"` + who + `","steps":[{"type":"both","branches":[` + strings.TrimSuffix(strings.Repeat(branch, branches), ",") + `]}],"loop":{"type":"once"}}`
	}
	agents := start(t, rt, def("agent"), runtime.StartOptions{As: "agent:ci"})
	until(t, "the agent's share to execute", func() bool { return executing(`"agent"`) == slots/2 })
	persons := start(t, rt, def("person"), runtime.StartOptions{})
	until(t, "the branches of the person's run to execute", func() bool { return executing(`"person"`) == branches })
	close(release)
	for _, id := range []sentinels.RunID{agents, persons} {
		if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
			t.Errorf("run ended %s: %v", res.Status, res.Error)
		}
	}
	if n := most[`"agent"`]; n != slots/2 {
		t.Errorf("%d branches of the agent's run executed at once, want %d", n, slots/2)
	}
}

// kids returns the runs below others.
func kids(t *testing.T, rt *runtime.Runtime) []runtime.RunInfo {
	t.Helper()
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(runs, func(r runtime.RunInfo) bool { return r.Parent == "" })
}

// commit returns once everything enqueued before is durable.
func commit(t *testing.T, rt *runtime.Runtime) {
	t.Helper()
	emit(t, rt, "committed", "")
}

// Finding 20 of writing sentinels with the binary alone: a $ref to a sentinel that is
// missing made three attempts. It is permanent, also where it was there at the start.
func TestFinding20MissingIsPermanent(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	id := start(t, rt, `{"name":"root","steps":[{"type":"child","definition":{"$ref":"gone"},"onError":{"retry":{"maxRetries":3,"baseDelayMs":1}}}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	res := wait(t, rt, id)
	if res.Status != sentinels.StatusFailed || res.Error == nil || res.Error.Code != abi.NotFound || !res.Error.Permanent || res.Error.Hint == "" {
		t.Fatalf("%s: %+v", res.Status, res.Error)
	}
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(trace.Iterations[0].Steps[0].Attempts); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}

// The approvals that runs of an agent wait for are bounded together, over restarts: a step that asks for one more
// fails. Persons and other agents ask beside it, and one more is asked behind a decision.
func TestQuestionsOfAgentsAreBounded(t *testing.T) {
	const most = 3
	asking := func(name string, branches int) string {
		branch := `[{"type":"pause","decision":{"prompt":"go?"}}],`
		return `{"name":"` + name + `","steps":[{"type":"both","branches":[` + strings.TrimSuffix(strings.Repeat(branch, branches), ",") + `]}],"loop":{"type":"once"}}`
	}
	opt := runtime.Options{Limits: runtime.Limits{AgentQuestions: most}}
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, opt)
	asks := func(id sentinels.RunID, n int) {
		t.Helper()
		until(t, fmt.Sprint(n, " questions"), func() bool { i := status(t, rt, id); return i.Live && len(i.Decisions) == n })
	}
	refused := func() {
		t.Helper()
		more := start(t, rt, `{"name":"more","steps":[{"type":"pause","decision":{"prompt":"go?"}}],"loop":{"type":"once"}}`, runtime.StartOptions{As: "agent:ci"})
		res := wait(t, rt, more)
		if res.Status != sentinels.StatusFailed || res.Error.Code != abi.Limit || !strings.Contains(res.Error.Message, "agent:ci waits for 3 approvals, at most 3 (limits.agentQuestions)") {
			t.Errorf("one more ended %s: %v", res.Status, res.Error)
		}
	}
	first := start(t, rt, asking("first", most), runtime.StartOptions{As: "agent:ci"})
	asks(first, most)
	refused()
	asks(start(t, rt, asking("person", most+1), runtime.StartOptions{}), most+1)
	asks(start(t, rt, asking("other", most), runtime.StartOptions{As: "agent:other"}), most)
	commit(t, rt)
	snap := db.Snapshot()
	rt.Close()

	rt = open(t, newFakeHost(), snap, opt)
	resumeAll(t, rt)
	asks(first, most)
	refused()
	decide(t, rt, first, runtime.Decision{Call: status(t, rt, first).Decisions[0].Call, Verdict: "approve", By: "ann"})
	asks(first, most-1)
	asks(start(t, rt, asking("next", 1), runtime.StartOptions{As: "agent:ci"}), 1)
}
