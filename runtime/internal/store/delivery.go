package store

import "sync"

// A delivery runs callbacks one after the other. Its goroutine exists only
// while there is something to run; the owner waits for it with drain.
type delivery struct {
	mu   sync.Mutex
	idle sync.Cond // on mu: signalled when the goroutine ends
	due  []call
	busy bool
}

type call struct {
	fn  func(error)
	err error
}

func newDelivery() *delivery {
	d := &delivery{}
	d.idle.L = &d.mu
	return d
}

// push queues a call and never blocks on one that runs.
func (d *delivery) push(fn func(error), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due = append(d.due, call{fn, err})
	if !d.busy {
		d.busy = true
		go d.run()
	}
}

func (d *delivery) run() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.due) > 0 {
		batch := d.due
		d.due = nil
		d.mu.Unlock()
		for _, c := range batch {
			c.fn(c.err)
		}
		d.mu.Lock()
	}
	d.busy = false
	d.idle.Broadcast()
}

// drain returns when nothing is due and the goroutine has ended.
func (d *delivery) drain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.busy {
		d.idle.Wait()
	}
}
