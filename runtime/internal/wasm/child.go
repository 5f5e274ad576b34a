package wasm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A module that is not trusted is compiled apart, in a child of this program:
// the compiler takes no deadline, its memory has no bound, and what it dies of,
// the process dies of. The child leaves machine code in the cache, from where
// this process loads it like any other. The schemas of its manifest are tried in
// such a child too; see schemas.go. A child reads
//
//	an order, as a line of JSON, then the bytes that it is about
//
// and answers on two lines, "ready" once it has limited itself, then a result. It
// ends when its stdin does, so it never outlives its parent.

// apartKind is the kind of child that compiles a module.
const apartKind = "compile"

// noChildHint is what to do about a program that cannot have children.
const noChildHint = "begin main and TestMain with runtime.ServeChild(), or set Options.Child"

// wallFactor is how much longer than its processor time a child may take, on a
// machine that has other things to do.
const wallFactor = 4

// An order says what a child works on, and within which bounds.
type order struct {
	Dir       string        `json:"dir,omitempty"`
	Size      int           `json:"size"` // of what follows, bytes
	Memory    int64         `json:"memory"`
	CPU       time.Duration `json:"cpu"`
	MaxMemory int64         `json:"maxMemory,omitempty"`
}

// apartResult has no error if the work is done.
type apartResult struct {
	Error *abi.Error `json:"error,omitempty"`
}

const apartReady = "ready\n"

// ServeChild works for a parent process, if this process was started to do so;
// handled says whether it was. It must come before anything else of a program.
func ServeChild() (handled bool) {
	work := map[string]func(order, []byte) error{apartKind: compileModule, schemaKind: compileSchemas}[subprocess.Kind()]
	if work == nil {
		return false
	}
	in, out := bufio.NewReader(os.Stdin), os.Stdout
	os.Stdout = os.Stderr // a stray print must not look like an answer
	if err := serveApart(in, out, work); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", subprocess.Kind(), err)
		os.Exit(2)
	}
	return true
}

func serveApart(in *bufio.Reader, out io.Writer, work func(order, []byte) error) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	if o.Size < 0 || o.Size > maxRewritten {
		return fmt.Errorf("an order of %d bytes", o.Size)
	}
	// What it writes is bounded too: code is some four times the module's size.
	limits := subprocess.Limits{Memory: o.Memory, CPU: o.CPU, File: o.Memory, Background: true}
	if err := limits.Apply(); err != nil {
		return err
	}
	if _, err := io.WriteString(out, apartReady); err != nil {
		return err
	}
	content := make([]byte, o.Size)
	if _, err := io.ReadFull(in, content); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(0) // the parent is gone, whatever is being done
	}()
	var result apartResult
	if err := work(o, content); err != nil {
		if result.Error = abi.As(err); result.Error == nil {
			result.Error = abi.New(abi.Internal, err.Error())
		}
	}
	return json.NewEncoder(out).Encode(result)
}

// compileModule compiles a rewritten module into the order's folder.
func compileModule(o order, module []byte) error {
	c, err := compileOnce(context.Background(), module, compileConfig{dir: o.Dir, interruptible: true, maxMemory: o.MaxMemory})
	if err == nil {
		c.close()
	}
	return err
}

// compileApart compiles a module in a child, into dir.
func (h *Host) compileApart(ctx context.Context, module []byte, dir string) error {
	return h.inChild(ctx, childTask{
		kind: apartKind, what: "compile module", hint: "smaller functions with fewer branches compile faster",
		order: order{Dir: dir, Memory: h.compileMemory, CPU: h.compileTime, MaxMemory: h.maxMemory},
	}, module)
}

// A childTask is something that a child does, with the words for its errors.
type childTask struct {
	kind, what, hint string
	order            order
}

// inChild has a child do a task. Nothing of the child is left when it returns.
func (h *Host) inChild(ctx context.Context, task childTask, content []byte) error {
	o := task.order
	wall := wallFactor * o.CPU
	if h.child.Path == "" {
		return &abi.Error{Code: abi.Unavailable, Permanent: true, Hint: noChildHint,
			Message: task.what + ": a plugin of others is compiled in a child process, and there is none"}
	}
	o.Size = len(content)
	head, err := json.Marshal(o)
	if err != nil {
		return err
	}
	p, err := subprocess.Start(h.child, task.kind)
	if err != nil {
		return &abi.Error{Code: abi.Unavailable, Message: task.what + ": start child: " + err.Error(), Hint: noChildHint}
	}
	timer := time.AfterFunc(wall, p.Kill)
	stop := context.AfterFunc(ctx, p.Kill)
	ready, result, err := converse(p, append(head, '\n'), content)
	inTime, wanted := timer.Stop(), stop()
	p.Stop() // so that all it said is here
	switch said := firstLine(p.Stderr()); {
	case err == nil && result.Error != nil:
		return result.Error
	case err == nil:
		return nil
	case !wanted:
		return abi.New(abi.Cancelled, task.what+": "+context.Cause(ctx).Error())
	case !ready && inTime:
		return &abi.Error{Code: abi.Unavailable, Hint: noChildHint, Message: fmt.Sprintf("%s: the child did not start: %v: %s", task.what, err, clip(said, 200))}
	case !inTime || p.CPUTime() >= o.CPU-time.Second/2:
		// Permanent is what the module is to blame for: a machine that was too busy
		// to give the child its time is another matter.
		return &abi.Error{Code: abi.Timeout, Permanent: inTime, Message: fmt.Sprintf("%s: timed out after %s of processor time or %s", task.what, o.CPU, wall), Hint: task.hint}
	case p.OutOfMemory():
		return &abi.Error{Code: abi.Memory, Permanent: true, Message: fmt.Sprintf("%s: it takes more than %d MB of memory", task.what, o.Memory>>20)}
	case said == "":
		return abi.New(abi.Unavailable, task.what+": the child was killed from outside, as a system does that is out of memory")
	default:
		return abi.New(abi.BadFields, task.what+": the child ended: "+clip(said, 200))
	}
}

// converse hands an order and its content to a child and reads the result; ready
// says how far the child came.
func converse(p *subprocess.Process, head, content []byte) (ready bool, result apartResult, err error) {
	if _, err = p.In.Write(head); err != nil {
		return false, result, err
	}
	line, err := p.Out.ReadSlice('\n')
	if err == nil && string(line) != apartReady {
		err = fmt.Errorf("it says %.40q", line)
	}
	if err != nil {
		return false, result, err
	}
	if _, err = p.In.Write(content); err != nil {
		return true, result, err
	}
	if line, err = p.Out.ReadSlice('\n'); err != nil {
		return true, result, err
	}
	return true, result, json.Unmarshal(line, &result)
}

// flights are the modules that are being compiled apart, by digest, so that two
// loads of one compile it once.
type flights map[string]chan struct{}

// apart sees to it that a module's code is in the cache, compiled in a child
// unless it was before. It holds no lock that others need while the child works.
func (h *Host) apart(ctx context.Context, c *cache, digest, seal string, code []byte) error {
	for {
		h.mu.Lock()
		other := h.flights[digest]
		if other == nil {
			h.flights[digest] = make(chan struct{})
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
		close(h.flights[digest])
		delete(h.flights, digest)
	}()
	ok, damage := c.whole(digest, seal)
	if ok {
		return nil
	}
	if damage != nil {
		h.logger.Warn("compiled plugin code was damaged and is made anew", "digest", digest, "error", damage)
	}
	bounds := refusal{Time: h.compileTime, Memory: h.compileMemory}
	if why := c.refused(digest, compileRefusal(seal), bounds); why != nil {
		return why
	}
	select {
	case h.children <- struct{}{}:
		defer func() { <-h.children }()
	case <-ctx.Done():
		return abi.New(abi.Cancelled, "load plugin: "+context.Cause(ctx).Error())
	}
	dir, err := c.fill()
	if err != nil {
		return err
	}
	err = h.compileApart(ctx, code, dir)
	if err == nil {
		err = c.adopt(dir, digest, seal)
	} else {
		c.refuse(digest, compileRefusal(seal), bounds, err)
	}
	if gone := os.RemoveAll(dir); gone != nil {
		h.logger.Warn("a folder of compiled code is left", "folder", dir, "error", gone)
	}
	return err
}
