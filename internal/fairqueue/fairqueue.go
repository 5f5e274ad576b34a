// Package fairqueue shares a number of places among owners, so that none of them keeps the others
// waiting with many requests at once.
package fairqueue

import (
	"context"
	"slices"
	"sync"
)

// An Owner is a principal that takes places.
type Owner struct {
	Name string
	Held bool // an agent or a model: all of these have half of the places together
}

// Of returns the owner for an agent or a model by its name; "" is a person.
func Of(name string) Owner { return Owner{Name: name, Held: name != ""} }

// A Queue is a semaphore with a queue for each owner. A free place goes to owners that are held and
// to others alternately, among each of these in turn, and to the oldest request of an owner. A Queue may
// be used by several goroutines.
type Queue struct {
	places, held int

	mu        sync.Mutex
	taken     int // by all
	heldTaken int // by owners that are held
	turns     [2]turns
	lastHeld  bool // the last place that was waited for was given to one that is held
}

// turns are the owners of one kind that wait, the next one first.
type turns struct {
	order   []Owner
	waiting map[Owner][]chan struct{} // closed when the request has its place
}

// New returns a queue with a number of places, at least 1.
func New(places int) *Queue {
	q := &Queue{places: max(places, 1), held: max(places/2, 1)}
	for i := range q.turns {
		q.turns[i].waiting = map[Owner][]chan struct{}{}
	}
	return q
}

// Enter waits for a place until ctx ends; the error is the cause of ctx. leave gives the place back.
func (q *Queue) Enter(ctx context.Context, owner Owner) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	leave = func() { q.Leave(owner) }
	mine := make(chan struct{})
	q.mu.Lock()
	q.kind(owner.Held).add(owner, mine)
	q.give()
	q.mu.Unlock()
	select {
	case <-mine:
		return leave, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	gone := q.kind(owner.Held).remove(owner, mine)
	q.mu.Unlock()
	if !gone { // it was given a place
		leave()
	}
	return nil, context.Cause(ctx)
}

// TryEnter takes a place only if one is free for the owner and no request waits.
func (q *Queue) TryEnter(owner Owner) (leave func(), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.free(owner.Held) || len(q.turns[0].order)+len(q.turns[1].order) > 0 {
		return nil, false
	}
	q.take(owner.Held, 1)
	return func() { q.Leave(owner) }, true
}

// Leave gives a place of an owner back, for a caller that does not keep what [Queue.Enter] returned.
func (q *Queue) Leave(owner Owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.take(owner.Held, -1)
	q.give()
}

// EnterAll waits for every place until ctx ends, and has none then. A caller that has all of them knows that
// no owner is at work until it calls leave.
func (q *Queue) EnterAll(ctx context.Context) (leave func(), err error) {
	for taken := range q.places {
		if _, err := q.Enter(ctx, Owner{}); err != nil {
			q.leaveMany(taken)
			return nil, err
		}
	}
	return func() { q.leaveMany(q.places) }, nil
}

func (q *Queue) leaveMany(n int) {
	for range n {
		q.Leave(Owner{})
	}
}

// Taken returns how many places are taken.
func (q *Queue) Taken() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken
}

// Waiting returns how many requests of an owner wait.
func (q *Queue) Waiting(owner Owner) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.kind(owner.Held).waiting[owner])
}

// kind returns the owners that are held, or the others. q.mu is held.
func (q *Queue) kind(held bool) *turns {
	if held {
		return &q.turns[1]
	}
	return &q.turns[0]
}

// free reports whether a place is free for an owner. q.mu is held.
func (q *Queue) free(held bool) bool {
	return q.taken < q.places && (!held || q.heldTaken < q.held)
}

// take counts places. q.mu is held.
func (q *Queue) take(held bool, n int) {
	if q.taken += n; held {
		q.heldTaken += n
	}
}

// give gives the free places to those that wait. q.mu is held.
func (q *Queue) give() {
	for {
		held := !q.lastHeld
		if !q.free(held) || len(q.kind(held).order) == 0 {
			held = !held
		}
		if !q.free(held) || len(q.kind(held).order) == 0 {
			return
		}
		close(q.kind(held).next())
		q.take(held, 1)
		q.lastHeld = held
	}
}

func (t *turns) add(owner Owner, request chan struct{}) {
	if len(t.waiting[owner]) == 0 {
		t.order = append(t.order, owner)
	}
	t.waiting[owner] = append(t.waiting[owner], request)
}

// next removes the oldest request of the owner whose turn it is, and puts that owner behind the others.
func (t *turns) next() chan struct{} {
	owner := t.order[0]
	request := t.waiting[owner][0]
	t.remove(owner, request)
	if len(t.waiting[owner]) > 0 {
		t.order = append(t.order[1:], owner)
	}
	return request
}

// remove removes a request, and reports whether it was waiting.
func (t *turns) remove(owner Owner, request chan struct{}) bool {
	list := t.waiting[owner]
	i := slices.Index(list, request)
	if i < 0 {
		return false
	}
	if list = slices.Delete(list, i, i+1); len(list) > 0 {
		t.waiting[owner] = list
		return true
	}
	delete(t.waiting, owner)
	t.order = slices.DeleteFunc(t.order, func(o Owner) bool { return o == owner })
	return true
}
