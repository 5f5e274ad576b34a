package foldersync

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// compiles are the modules that are compiled in the background, by digest. That
// may take minutes, in which definitions and other plugins can be loaded and saved.
type compiles struct {
	work sync.WaitGroup // Run waits for it

	mu   sync.Mutex
	ends map[string]*compileEnd
}

// compileEnd is the result of preparing a module: the module or a fault.
type compileEnd struct {
	done   bool
	module plugin.Prepared
	fault  error
}

// free frees the module, if there is one that was not loaded.
func (e *compileEnd) free() {
	if e.module != nil {
		e.module.Close()
	}
}

// prepared returns the result of preparing a file's module. It returns nil while
// the module is being prepared; loadCompiled loads the file afterwards.
func (r *Syncer) prepared(ctx context.Context, f *file, code []byte) *compileEnd {
	c := &r.compiles
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.ends[f.digest]; end != nil {
		if !end.done {
			return nil
		}
		delete(c.ends, f.digest)
		return end
	}
	if c.ends == nil {
		c.ends = map[string]*compileEnd{}
	}
	end := &compileEnd{}
	c.ends[f.digest] = end
	c.work.Go(func() {
		module, fault := r.opt.Plugins.PreparePlugin(ctx, code)
		c.mu.Lock()
		end.done, end.module, end.fault = true, module, fault
		c.mu.Unlock()
		r.rouse()
	})
	return nil
}

// close waits for compilations and frees modules that were not loaded.
func (c *compiles) close() {
	c.work.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for digest, end := range c.ends {
		end.free()
		delete(c.ends, digest)
	}
}

// loadCompiled loads the files whose modules are prepared.
func (r *Syncer) loadCompiled(ctx context.Context) {
	if r.acquire(ctx) != nil {
		return
	}
	defer r.release()
	list := r.compiled()
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

// compiled returns the files whose modules are prepared, and frees modules whose
// file was changed or deleted meanwhile.
func (r *Syncer) compiled() (list []*file) {
	c := &r.compiles
	c.mu.Lock()
	defer c.mu.Unlock()
	for digest, end := range c.ends {
		if !end.done {
			continue
		}
		before := len(list)
		for _, f := range r.files {
			if f.state == Compiling && f.digest == digest {
				list = append(list, f)
			}
		}
		if len(list) == before {
			end.free()
			delete(c.ends, digest)
		}
	}
	return list
}

// compileAll waits for the plugins that are compiled at the start, at most
// Options.StartWait, because definitions are checked against their step types.
func (r *Syncer) compileAll(ctx context.Context, list []*file) {
	ended := make(chan struct{})
	go func() { // ends with the work, which Run waits for
		r.compiles.work.Wait()
		close(ended)
	}()
	timer := time.NewTimer(r.opt.StartWait)
	defer timer.Stop()
	late := false
	select {
	case <-ended:
	case <-ctx.Done():
		return
	case <-timer.C:
		late = true
	}
	list = slices.DeleteFunc(slices.Clone(list), func(f *file) bool { return f.state != Compiling })
	if late {
		ready := r.compiled()
		list = slices.DeleteFunc(list, func(f *file) bool { return !slices.Contains(ready, f) })
		r.opt.Logger.Warn("plugins are still being compiled; the start goes on without them", "waited", r.opt.StartWait)
	}
	if len(list) == 0 {
		return
	}
	r.loadPlugins(ctx, list)
	if !late {
		r.compileAll(ctx, list) // two files with one module: the second is prepared again
	}
}

// rouse makes Run check what is due.
func (r *Syncer) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
