package reload

import (
	"context"
	"slices"
	"sync"
)

// compiles are the modules that are compiled ahead of their load, by digest. A
// compile may take half a minute, and so long nobody could save a definition.
type compiles struct {
	work sync.WaitGroup // Run ends it

	mu   sync.Mutex
	ends map[string]*compileEnd
}

// compileEnd says whether a module is through, and then why it cannot be loaded.
type compileEnd struct {
	through bool
	fault   error
}

// prepared reports whether a file's module can be loaded without waiting, or why
// it cannot at all. If not through, it is being compiled, and the file comes back
// to loadPlugins when that has ended.
func (r *Reload) prepared(ctx context.Context, f *file, code []byte) (through bool, fault error) {
	c := &r.compiles
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.ends[f.digest]; end != nil {
		if end.through {
			delete(c.ends, f.digest)
		}
		return end.through, end.fault
	}
	if c.ends == nil {
		c.ends = map[string]*compileEnd{}
	}
	end := &compileEnd{}
	c.ends[f.digest] = end
	c.work.Go(func() {
		fault := r.opt.Plugins.PreparePlugin(ctx, code)
		c.mu.Lock()
		end.through, end.fault = true, fault
		c.mu.Unlock()
		r.rouse()
	})
	return false, nil
}

// loadCompiled takes up the files whose modules are through.
func (r *Reload) loadCompiled(ctx context.Context) {
	if r.acquire(ctx) != nil {
		return
	}
	defer r.release()
	c := &r.compiles
	var list []*file
	c.mu.Lock()
	for digest, end := range c.ends {
		if !end.through {
			continue
		}
		before := len(list)
		for _, f := range r.files {
			if f.state == Compiling && f.digest == digest {
				list = append(list, f)
			}
		}
		if len(list) == before {
			delete(c.ends, digest) // its file has other content by now, or is gone
		}
	}
	c.mu.Unlock()
	if len(list) == 0 {
		return
	}
	var dirty []*file
	if r.loadPlugins(ctx, list) {
		dirty = r.definitionsAnd(nil)
	}
	r.settle(ctx, dirty)
	r.compareSoon()
}

// compileAll compiles what is there at the start and waits for it: definitions
// are checked against the step types.
func (r *Reload) compileAll(ctx context.Context, list []*file) {
	for {
		r.compiles.work.Wait()
		list = slices.DeleteFunc(slices.Clone(list), func(f *file) bool { return f.state != Compiling })
		if len(list) == 0 || ctx.Err() != nil {
			return
		}
		r.loadPlugins(ctx, list)
	}
}

// rouse has Run look again at what is due.
func (r *Reload) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
