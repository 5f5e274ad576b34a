package cond

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/internal/openfiles"
	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// child is the parent's side of one child process. It must be used by one
// goroutine at a time, except for Kill.
type child struct {
	*subprocess.Process

	uses   int         // owned by the goroutine that uses the child
	expiry *time.Timer // set while the child is idle
}

// startChild starts a process and waits until it has applied its limits. While
// no file can be opened it retries, until ctx ends.
func startChild(ctx context.Context, opt Options) (*child, *abi.Error) {
	var p *subprocess.Process
	err := openfiles.Retry(ctx, opt.OnFileShortage, func() (err error) {
		p, err = subprocess.Start(opt.Child, childKind)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, contextError(ctx)
	case err != nil:
		return nil, errf(abi.Unavailable, "start child: %v", err)
	}
	c := &child{Process: p}
	answer, e := c.roundTrip(ctx, startTimeout, "start child", appendFrame(nil, "limits", strconv.FormatInt(opt.ChildMemory, 10)))
	if e == nil && (len(answer) != 2 || answer[0] != "ready" || answer[1] != protocol) {
		e = errf(abi.Unavailable, "start child: unexpected answer %.40q, want protocol version %s", answer, protocol)
	}
	if e != nil {
		c.Stop()
		if e.Code == abi.Internal || e.Code == abi.Memory || e.Code == abi.Unavailable {
			e.Code, e.Hint = abi.Unavailable, noChildHint
		}
		return nil, e
	}
	return c, nil
}

// roundTrip sends a request and reads the answer. After an error the child has
// ended or has been killed, and must be stopped.
func (c *child) roundTrip(ctx context.Context, limit time.Duration, verb string, frame []byte) ([]string, *abi.Error) {
	stop := c.Watch(ctx, subprocess.TimeLimit{CPU: limit, Wall: waitFactor * limit, NoClock: limit})
	_, err := c.In.Write(frame)
	var answer []string
	if err == nil {
		answer, err = readFrame(c.Out)
	}
	switch killed := stop(); {
	case errors.Is(killed, subprocess.ErrCPUTime), errors.Is(killed, subprocess.ErrWallTime):
		return nil, errf(abi.Timeout, "%s: timed out after %s", verb, limit)
	case killed != nil:
		return nil, contextError(ctx)
	case err == nil:
		return answer, nil
	}
	c.Stop() // so that its stderr is complete
	if c.OutOfMemory() {
		return nil, errf(abi.Memory, "%s: memory limit exceeded", verb)
	}
	stderr := c.Stderr()
	if stderr == "" {
		// A Go program writes to stderr before it crashes, so this one was
		// killed.
		return nil, errf(abi.Unavailable, "%s: the child was killed from outside", verb)
	}
	return nil, errf(abi.Internal, "%s: the child ended: %s", verb, textcut.Mark(firstLine(stderr), maxMessage))
}

// clock returns a function for the processor time that the child has used since. Where the system has no clock for a
// process, that returns the time on the wall.
func (c *child) clock() func() time.Duration {
	begin := time.Now()
	before, known := c.CPUTimeNow()
	return func() time.Duration {
		now, ok := c.CPUTimeNow()
		if stopped := c.CPUTime(); stopped > 0 {
			now, ok = stopped, true
		}
		if !known || !ok {
			return time.Since(begin)
		}
		return max(now-before, 0)
	}
}

// evaluate makes one request. healthy reports whether the child can be used
// again.
func (c *child) evaluate(ctx context.Context, limit time.Duration, frame []byte) (v Value, healthy bool, err *abi.Error) {
	c.uses++
	answer, err := c.roundTrip(ctx, limit, "evaluate", frame)
	if err != nil {
		return Value{}, false, err
	}
	switch {
	case len(answer) == 4 && answer[0] == "value":
		v.Truthy = answer[1] == "1"
		if answer[2] != "" {
			v.JSON = json.RawMessage(answer[2])
		}
		if v.NotFinite = answer[2] == string(notFinite); v.NotFinite {
			v.JSON = jsonNull
		}
		return v, answer[3] == "0" && c.uses < maxChildUses, nil
	case len(answer) == 3 && answer[0] == "error":
		e := new(abi.Error)
		if json.Unmarshal([]byte(answer[1]), e) == nil && e.Code != "" {
			// A mistake in the source is found before anything is executed.
			return Value{}, answer[2] == "0" && e.Code == abi.BadFields && c.uses < maxChildUses, e
		}
	}
	return Value{}, false, errf(abi.Internal, "evaluate: child: %v", errFrame)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
