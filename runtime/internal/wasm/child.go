package wasm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/rewrite"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Work on untrusted input that may take any time and memory is done in a child
// process, which is this program started again: compiling a module, see
// compile_child.go, and compiling the schemas of a manifest, see
// describe_schemas.go. A child reads from stdin
//
//	a childRequest as one line of JSON, then the bytes to work on
//
// and writes two lines to stdout: "ready" when it has limited itself, then a
// childResult as JSON. It exits when its stdin ends, so it does not outlive its
// parent.

// noChildHint is the hint for a program that cannot start child processes.
const noChildHint = "begin main and TestMain with runtime.ServeChild(), or set Options.Child"

// wallFactor is the limit of a child's real time as a multiple of its processor
// time, for a busy machine.
const wallFactor = 4

// childRequest is the task of a child, with its limits.
type childRequest struct {
	Dir       string        `json:"dir,omitempty"`       // where compiled code is written
	Size      int           `json:"size"`                // bytes that follow the request
	Memory    int64         `json:"memory"`              // limit, in bytes
	CPU       time.Duration `json:"cpu"`                 // limit on processor time
	MaxMemory int64         `json:"maxMemory,omitempty"` // see compileConfig
}

// childResult is the outcome of a task. Error is nil on success.
type childResult struct {
	Error *abi.Error `json:"error,omitempty"`
}

const childReady = "ready\n"

// ServeChild executes the task of a parent process, if this process was started as a
// child. handled reports whether it was. A program must call it before anything
// else.
func ServeChild() (handled bool) {
	work := map[string]func(childRequest, []byte) error{compileKind: compileModule, schemaKind: compileSchemas}[subprocess.Kind()]
	if work == nil {
		return false
	}
	in, out := bufio.NewReader(os.Stdin), os.Stdout
	os.Stdout = os.Stderr // printed text must not be read as a result
	if err := serveTask(in, out, work); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", subprocess.Kind(), err)
		os.Exit(2)
	}
	return true
}

// serveTask reads one request, limits this process, does the work and writes the
// result.
func serveTask(in *bufio.Reader, out io.Writer, work func(childRequest, []byte) error) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var req childRequest
	if err := json.Unmarshal(line, &req); err != nil {
		return err
	}
	if req.Size < 0 || req.Size > rewrite.MaxSize {
		return fmt.Errorf("request of %d bytes, at most %d are allowed", req.Size, rewrite.MaxSize)
	}
	// Compiled code has about four times the size of the module.
	limits := subprocess.Limits{Memory: req.Memory, CPU: req.CPU, File: req.Memory, Background: true}
	if err := limits.Apply(); err != nil {
		return err
	}
	if _, err := io.WriteString(out, childReady); err != nil {
		return err
	}
	content := make([]byte, req.Size)
	if _, err := io.ReadFull(in, content); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(0) // the parent has ended
	}()
	var result childResult
	if err := work(req, content); err != nil {
		if result.Error = abi.As(err); result.Error == nil {
			result.Error = abi.New(abi.Internal, err.Error())
		}
	}
	return json.NewEncoder(out).Encode(result)
}

// childTask is the work of one child. Errors begin with op; hint is the hint of a
// timeout.
type childTask struct {
	kind, op, hint string
	request        childRequest
}

// runChild executes a task in a child process. The process has ended when it
// returns.
func (h *Host) runChild(ctx context.Context, task childTask, content []byte) error {
	req := task.request
	wall := wallFactor * req.CPU
	if h.child.Path == "" {
		return &abi.Error{Code: abi.Unavailable, Permanent: true, Hint: noChildHint,
			Message: task.op + ": an untrusted plugin is compiled in a child process, and none is configured"}
	}
	req.Size = len(content)
	head, err := json.Marshal(req)
	if err != nil {
		return err
	}
	p, err := subprocess.Start(h.child, task.kind)
	if err != nil {
		return &abi.Error{Code: abi.Unavailable, Message: task.op + ": start child: " + err.Error(), Hint: noChildHint}
	}
	stop := p.Watch(ctx, subprocess.TimeLimit{CPU: req.CPU, Wall: wall})
	ready, result, err := exchange(p, append(head, '\n'), content)
	killed := stop()
	late := errors.Is(killed, subprocess.ErrCPUTime) || errors.Is(killed, subprocess.ErrWallTime)
	p.Stop() // after it Stderr is complete
	switch stderr := firstLine(p.Stderr()); {
	case err == nil && result.Error != nil:
		return result.Error
	case err == nil:
		return nil
	case killed != nil && !late:
		return abi.New(abi.Cancelled, task.op+": "+killed.Error())
	case !ready && !late:
		return &abi.Error{Code: abi.Unavailable, Hint: noChildHint, Message: fmt.Sprintf("%s: the child process did not start: %v: %s", task.op, err, clip(stderr, 200))}
	case late || p.CPUTime() >= req.CPU-time.Second/2: // the child also limits itself, in whole seconds
		// The error is permanent if the module is the cause. A machine that was too
		// busy to give the child its processor time is not.
		return &abi.Error{Code: abi.Timeout, Permanent: !errors.Is(killed, subprocess.ErrWallTime), Message: fmt.Sprintf("%s: timed out after %s of processor time or %s", task.op, req.CPU, wall), Hint: task.hint}
	case p.OutOfMemory():
		return &abi.Error{Code: abi.Memory, Permanent: true, Message: fmt.Sprintf("%s: more than %d MB of memory", task.op, req.Memory>>20)}
	case stderr == "":
		return abi.New(abi.Unavailable, task.op+": the child process was killed by another process or by the system, which may be out of memory")
	default:
		return abi.New(abi.BadFields, task.op+": the child process crashed: "+clip(stderr, 200))
	}
}

// exchange sends a request with its content to a child and reads the result. ready
// reports whether the child had limited itself and started to work.
func exchange(p *subprocess.Process, head, content []byte) (ready bool, result childResult, err error) {
	if _, err = p.In.Write(head); err != nil {
		return false, result, err
	}
	line, err := p.Out.ReadSlice('\n')
	if err == nil && string(line) != childReady {
		err = fmt.Errorf("it wrote %.40q, want \"ready\"", line)
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
