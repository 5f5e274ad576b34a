package cond

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// outOfMemory is what a child says that ended itself over memory.
const outOfMemory = "out of memory"

// starved are the ways in which Go dies for want of memory. SIGSEGV is one:
// the collector does not check all it asks for, and nothing in a child is
// otherwise unsafe.
var starved = []string{
	outOfMemory, "cannot allocate", "failed to allocate", "cannot map", "goroutine stack exceeds", "SIGSEGV", "new OS thread",
}

// child is the parent's side of one process. One goroutine at a time talks to
// it; kill may come from any.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said tail // stderr: why it ended

	uses   int         // owned by whoever talks to it
	expiry *time.Timer // while idle

	mu   sync.Mutex
	gone bool // waited for: its process id may be another's
}

// startChild starts a process and waits until it has limited itself.
func startChild(ctx context.Context, opt Options) (*child, *abi.Error) {
	cmd := exec.Command(opt.Child.Path, opt.Child.Args...)
	cmd.Env = append(append([]string{}, opt.Child.Env...), Marker+"="+markerValue)
	cmd.WaitDelay = time.Second // a grandchild that holds stderr does not hold us
	ownGroup(cmd)
	c := &child{cmd: cmd}
	cmd.Stderr = &c.said
	in, err := cmd.StdinPipe()
	if err == nil {
		c.in = in
		var out io.ReadCloser
		if out, err = cmd.StdoutPipe(); err == nil {
			c.out = bufio.NewReaderSize(out, 64<<10)
			err = cmd.Start()
		}
	}
	if err != nil {
		return nil, errf(abi.Unavailable, "start child: %v", err)
	}
	answer, e := c.talk(ctx, startTimeout, "start child", appendFrame(nil, "limits", strconv.FormatInt(opt.ChildMemory, 10)))
	if e == nil && (len(answer) != 2 || answer[0] != "ready" || answer[1] != protocol) {
		e = errf(abi.Unavailable, "start child: it speaks %.40q, not version %s", answer, protocol)
	}
	if e != nil {
		c.stop()
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
	timer := time.AfterFunc(limit, c.kill)
	stop := context.AfterFunc(ctx, c.kill)
	_, err := c.in.Write(frame)
	var answer []string
	if err == nil {
		answer, err = readFrame(c.out)
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
	c.stop() // so that all it said is here
	said := c.said.String()
	for _, words := range starved {
		if strings.Contains(said, words) {
			return nil, errf(abi.Memory, "%s: more memory than its limit", verb)
		}
	}
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

func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		killGroup(c.cmd)
	}
}

// stop ends the process and returns when it is gone. It may be called again.
func (c *child) stop() {
	c.kill()
	c.mu.Lock()
	gone := c.gone
	c.gone = true
	c.mu.Unlock()
	if gone {
		return
	}
	_ = c.in.Close()
	_ = c.cmd.Wait() // it was killed; how it ended is in what it said
}

// tail keeps the beginning of what a child writes to stderr, where Go says why
// it gives up.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), 4096-len(t.text))]...)
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
