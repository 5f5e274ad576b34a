package store

import "sync"

// A callbackQueue runs callbacks one after the other. Its goroutine exists only
// while there are callbacks to run. The owner waits for it with drain.
type callbackQueue struct {
	mu      sync.Mutex
	idle    sync.Cond // on mu: signalled when the goroutine ends
	pending []callback
	busy    bool
}

type callback struct {
	fn  func(error)
	err error
}

func newCallbackQueue() *callbackQueue {
	q := &callbackQueue{}
	q.idle.L = &q.mu
	return q
}

// push queues a callback. It does not wait for one that is running.
func (q *callbackQueue) push(fn func(error), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = append(q.pending, callback{fn, err})
	if !q.busy {
		q.busy = true
		go q.run()
	}
}

func (q *callbackQueue) run() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.pending) > 0 {
		batch := q.pending
		q.pending = nil
		q.mu.Unlock()
		for _, c := range batch {
			c.fn(c.err)
		}
		q.mu.Lock()
	}
	q.busy = false
	q.idle.Broadcast()
}

// drain returns when the queue is empty and the goroutine has ended.
func (q *callbackQueue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.busy {
		q.idle.Wait()
	}
}
