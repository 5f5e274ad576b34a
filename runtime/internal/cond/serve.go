package cond

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// ServeChild evaluates conditions for the parent process until the parent ends,
// if this process was started as such a child; handled reports whether it was.
// It must be the first call of main: a child has no environment, and its stdin
// and stdout belong to the parent.
func ServeChild() (handled bool) {
	if subprocess.Kind() != childKind {
		return false
	}
	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr // a stray print must not corrupt an answer

	requests := make(chan []string)
	go func() {
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			parts, err := readFrame(r)
			if err != nil {
				os.Exit(0) // the parent has ended, so end during an evaluation too
			}
			requests <- parts
		}
	}()
	s := &server{programs: newLRU[string, *program](maxChildPrograms)}
	for {
		frame := appendFrame(nil, s.answer(<-requests)...)
		if _, err := out.Write(frame); err != nil {
			return true
		}
		s.prepare()
	}
}

// maxKeptGrowth bounds the memory that an idle child keeps, in bytes.
const maxKeptGrowth = 64 << 20

// server is the child's side of the protocol.
type server struct {
	programs  *lru[string, *program] // by source
	next      *jsVM                  // new VM, created while no request waits
	base      uint64                 // bytes mapped before the first evaluation
	maxGrowth uint64                 // bytes above base from which the child reports growth, 0 for never
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
		// The first VM initializes what goja shares. Do that before base is
		// measured.
		s.prepare()
		s.base, s.maxGrowth = subprocess.Mapped(), min(uint64(memory)/4, maxKeptGrowth)
		return []string{"ready", protocol}
	case op == "check" && len(parts) == 2:
		t, err := parseSource(parts[1])
		if err == nil {
			_, err = t.compile()
		}
		if err != nil {
			return s.failed(err)
		}
		return []string{"value", "1", "", s.grownFlag()}
	case op == "eval" && len(parts) >= 3 && len(parts)%2 == 1:
		v, err := s.eval(parts[1], parts[2], parts[3:])
		if err != nil {
			return s.failed(err)
		}
		truthy := "0"
		if v.Truthy {
			truthy = "1"
		}
		if v.NotFinite {
			v.JSON = notFinite
		}
		return []string{"value", truthy, string(v.JSON), s.grownFlag()}
	}
	return s.failed(errf(abi.Internal, "child: unknown request %q", op))
}

// eval evaluates one source on a new VM.
func (s *server) eval(src, unset string, pairs []string) (Value, *abi.Error) {
	p, ok := s.programs.get(src)
	if !ok {
		t, err := parseSource(src)
		if err != nil {
			return Value{}, err
		}
		if p, err = t.compile(); err != nil {
			return Value{}, err
		}
		p = s.programs.add(src, p)
	}
	missing := strings.Split(unset, ",")
	vars := make(map[string]json.RawMessage, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		vars[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	for _, name := range p.params {
		if _, ok := vars[name]; !ok && !slices.Contains(missing, name) {
			// The parent searches the text for "$name", which an escape
			// sequence hides.
			return Value{}, errAtPosition(position{1, 1}, "$%s must not be written with an escape sequence", name)
		}
	}
	m := s.next
	s.next = nil
	if m == nil {
		m = newVM()
	}
	return m.run(p, func(name string) json.RawMessage { return vars[name] }, maxDataDepth)
}

// prepare creates the next VM.
func (s *server) prepare() {
	if s.next == nil {
		s.next = newVM()
	}
}

func (s *server) failed(err *abi.Error) []string {
	text, jerr := json.Marshal(err)
	if jerr != nil {
		text = []byte(`{"code":"internal","message":"expression: child: error cannot be encoded"}`)
	}
	return []string{"error", string(text), s.grownFlag()}
}

// grownFlag returns "1" if an evaluation has left the process large. That would
// count against the evaluations that follow.
func (s *server) grownFlag() string {
	if s.maxGrowth > 0 && subprocess.Mapped() > s.base+s.maxGrowth {
		return "1"
	}
	return "0"
}
