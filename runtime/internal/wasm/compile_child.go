package wasm

import (
	"context"
	"os"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/compilecache"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// An untrusted module is compiled in a child process: the compiler takes no deadline,
// its memory is not bounded, and a crash of it ends the process. The child writes
// machine code to the cache, from where this process loads it.

// compileKind is the kind of child that compiles a module.
const compileKind = "compile"

// compileModule is the child's side of compileInChild. It compiles a rewritten module
// into the folder of the request.
func compileModule(req childRequest, module []byte) error {
	c, err := compileOnce(context.Background(), module, compileConfig{dir: req.Dir, interruptible: true, maxMemory: req.MaxMemory})
	if err == nil {
		c.close()
	}
	return err
}

// compileInChild compiles a module in a child process, into dir.
func (h *Host) compileInChild(ctx context.Context, module []byte, dir string) error {
	return h.runChild(ctx, childTask{
		kind: compileKind, op: "compile module", hint: "smaller functions with fewer branches compile faster",
		request: childRequest{Dir: dir, Memory: h.compileMemory, CPU: h.compileTime, MaxMemory: h.maxMemory},
	}, module)
}

// inFlight has a channel for each module that is being compiled in a child, by
// digest, so that concurrent loads of a module compile it once. The channel is closed
// when the compile ends.
type inFlight map[string]chan struct{}

// ensureCompiled ensures that a module's code is in the cache. It compiles the
// module in a child if the cache does not have the code, and holds no lock
// meanwhile.
func (h *Host) ensureCompiled(ctx context.Context, c *compilecache.Cache, digest, seal string, code []byte) error {
	for {
		h.mu.Lock()
		other := h.inFlight[digest]
		if other == nil {
			h.inFlight[digest] = make(chan struct{})
			h.mu.Unlock()
			break
		}
		h.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return abi.New(abi.Cancelled, "load plugin: "+context.Cause(ctx).Error())
		}
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		close(h.inFlight[digest])
		delete(h.inFlight, digest)
	}()
	ok, damage := c.Verify(digest, seal)
	if ok {
		return nil
	}
	if damage != nil {
		h.logger.Warn("compiled plugin code was damaged and is compiled again", "digest", digest, "error", damage)
	}
	limits := compilecache.Refusal{Time: h.compileTime, Memory: h.compileMemory}
	if err := c.CheckRefusal(digest, compilecache.CompileRefusal(seal), limits); err != nil {
		return err
	}
	done, err := acquire(ctx, h.children)
	if err != nil {
		return err
	}
	defer done()
	dir, err := c.TempDir()
	if err != nil {
		return err
	}
	err = h.compileInChild(ctx, code, dir)
	if err == nil {
		err = c.Install(dir, digest, seal)
	} else {
		c.RecordRefusal(digest, compilecache.CompileRefusal(seal), limits, err)
	}
	if removeErr := os.RemoveAll(dir); removeErr != nil {
		h.logger.Warn("cannot delete a temporary folder of compiled code", "folder", dir, "error", removeErr)
	}
	return err
}
