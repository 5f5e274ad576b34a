package cond

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// ServeChild evaluates conditions for a parent process until that is gone, if
// this process was started to do so; handled says whether it was. It must come
// before anything else of a program: a child has no environment, and its stdin
// and stdout belong to the parent.
func ServeChild() (handled bool) {
	if subprocess.Kind() != markerValue {
		return false
	}
	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr // a stray print must not look like an answer

	requests := make(chan []string)
	go func() {
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			parts, err := readFrame(r)
			if err != nil {
				os.Exit(0) // the parent is gone, whatever is being evaluated
			}
			requests <- parts
		}
	}()
	s := &server{programs: newLRU[string, *program](childSources)}
	for {
		frame := appendFrame(nil, s.answer(<-requests)...)
		if _, err := out.Write(frame); err != nil {
			return true
		}
		s.prepare()
	}
}

// server is the child's side of the conversation.
type server struct {
	programs *lru[string, *program] // by source and unset names
	next     *machine               // fresh, made while nobody waits
	base     uint64                 // bytes mapped before the first evaluation
	grown    uint64                 // bytes above base that make the child worn, 0 for never
}

func (s *server) answer(parts []string) []string {
	op := ""
	if len(parts) > 0 {
		op = parts[0]
	}
	switch {
	case op == "limits" && len(parts) == 2:
		memory, err := strconv.ParseInt(parts[1], 10, 64)
		if err == nil {
			err = subprocess.Limits{Memory: memory}.Apply()
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "limit memory: %v\n", err)
			os.Exit(2)
		}
		// The first machine initialises what goja shares, before base is taken.
		s.prepare()
		s.base, s.grown = subprocess.Mapped(), uint64(memory)/4
		return []string{"ready", protocol}
	case op == "check" && len(parts) == 2:
		t, err := analyse(parts[1])
		if err == nil {
			_, err = t.compile(nil)
		}
		if err != nil {
			return s.failed(err)
		}
		return []string{"value", "1", "", s.worn()}
	case op == "eval" && len(parts) >= 3 && len(parts)%2 == 1:
		v, err := s.eval(parts[1], parts[2], parts[3:])
		if err != nil {
			return s.failed(err)
		}
		truthy := "0"
		if v.Truthy {
			truthy = "1"
		}
		return []string{"value", truthy, string(v.JSON), s.worn()}
	}
	return s.failed(errf(abi.Internal, "child: unknown request %q", op))
}

// eval evaluates one source on a machine of its own.
func (s *server) eval(src, unset string, pairs []string) (Value, *abi.Error) {
	key := unset + "\n" + src
	p, ok := s.programs.get(key)
	if !ok {
		t, err := analyse(src)
		if err != nil {
			return Value{}, err
		}
		if p, err = t.compile(strings.Split(unset, ",")); err != nil {
			return Value{}, err
		}
		p = s.programs.add(key, p)
	}
	vars := make(map[string]json.RawMessage, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		vars[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	for _, name := range p.params {
		if _, ok := vars[name]; !ok {
			// The parent looks for "$name" in the text, an escape hides it.
			return Value{}, badPos(position{1, 1}, "$%s is written with an escape", name)
		}
	}
	m := s.next
	s.next = nil
	if m == nil {
		m = newMachine()
	}
	return m.run(p, func(name string) json.RawMessage { return vars[name] }, maxUnits)
}

// prepare makes the next machine.
func (s *server) prepare() {
	if s.next == nil {
		s.next = newMachine()
	}
}

func (s *server) failed(err *abi.Error) []string {
	text, jerr := json.Marshal(err)
	if jerr != nil {
		text = []byte(`{"code":"internal","message":"condition: child: error cannot be told"}`)
	}
	return []string{"error", string(text), s.worn()}
}

// worn says that an evaluation left the process large, which would count
// against those that follow.
func (s *server) worn() string {
	if s.grown > 0 && subprocess.Mapped() > s.base+s.grown {
		return "1"
	}
	return "0"
}
