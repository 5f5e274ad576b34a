package cond

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// child is the parent's side of one process. One goroutine at a time talks to
// it; Kill may come from any.
type child struct {
	*subprocess.Process

	uses   int         // owned by whoever talks to it
	expiry *time.Timer // while idle
}

// startChild starts a process and waits until it has limited itself.
func startChild(ctx context.Context, opt Options) (*child, *abi.Error) {
	p, err := subprocess.Start(opt.Child, markerValue)
	if err != nil {
		return nil, errf(abi.Unavailable, "start child: %v", err)
	}
	c := &child{Process: p}
	answer, e := c.talk(ctx, startTimeout, "start child", appendFrame(nil, "limits", strconv.FormatInt(opt.ChildMemory, 10)))
	if e == nil && (len(answer) != 2 || answer[0] != "ready" || answer[1] != protocol) {
		e = errf(abi.Unavailable, "start child: it speaks %.40q, not version %s", answer, protocol)
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

// talk sends a request and reads the answer. After an error the child is dead
// or about to be, and must be stopped.
func (c *child) talk(ctx context.Context, limit time.Duration, verb string, frame []byte) ([]string, *abi.Error) {
	timer := time.AfterFunc(limit, c.Kill)
	stop := context.AfterFunc(ctx, c.Kill)
	_, err := c.In.Write(frame)
	var answer []string
	if err == nil {
		answer, err = readFrame(c.Out)
	}
	inTime, wanted := timer.Stop(), stop()
	switch {
	case err == nil && inTime && wanted:
		return answer, nil
	case !wanted:
		return nil, asContext(ctx)
	case !inTime:
		return nil, errf(abi.Timeout, "%s: no result in %s", verb, limit)
	}
	c.Stop() // so that all it said is here
	if c.Starved() {
		return nil, errf(abi.Memory, "%s: more memory than its limit", verb)
	}
	said := c.Said()
	if said == "" {
		// Go never dies without a word: somebody else ended it.
		return nil, errf(abi.Unavailable, "%s: the child was killed from outside", verb)
	}
	return nil, errf(abi.Internal, "%s: the child ended: %s", verb, clip(firstLine(said)))
}

// ask carries out one request. healthy says that the child can be used again.
func (c *child) ask(ctx context.Context, limit time.Duration, frame []byte) (v Value, healthy bool, err *abi.Error) {
	c.uses++
	answer, err := c.talk(ctx, limit, "evaluate", frame)
	if err != nil {
		return Value{}, false, err
	}
	switch {
	case len(answer) == 4 && answer[0] == "value":
		v.Truthy = answer[1] == "1"
		if answer[2] != "" {
			v.JSON = json.RawMessage(answer[2])
		}
		return v, answer[3] == "0" && c.uses < childUses, nil
	case len(answer) == 3 && answer[0] == "error":
		e := new(abi.Error)
		if json.Unmarshal([]byte(answer[1]), e) == nil && e.Code != "" {
			// A mistake in the source is found before anything runs.
			return Value{}, answer[2] == "0" && e.Code == abi.BadFields && c.uses < childUses, e
		}
	}
	return Value{}, false, errf(abi.Internal, "evaluate: child: %v", errFrame)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
