package supervise

import (
	"errors"
	"strconv"
)

// Marker is the variable that makes a process a supervisor.
const Marker = "SENTINEL_SUPERVISE"

// ConnFD is the file descriptor of a supervisor's connection to its host, a stream
// socket.
const ConnFD = 3

// Messages to a supervisor begin with one of these bytes. Orders that come while it
// has no command are ignored.
const (
	OrderStart     = 's' // an encoded [Spec] follows; the files of the command come with this byte
	OrderTerminate = 't' // SIGTERM to the command's process group
	OrderKill      = 'k' // end the whole tree
)

// Reports of a supervisor are lines: a letter, then numbers in decimal.
const (
	ReportStarted = 's' // pid and start time of the command
	ReportFailed  = 'e' // errno: the command could not be started
	ReportExited  = 'x' // wait status of the command
	ReportChanged = 'c' // what later commands would inherit is not what it was; before the end
	ReportEnded   = 'd' // processes ended besides the command, then the pids of those that could not be
)

// A Spec is one command. Its standard input, output and error travel beside it.
type Spec struct {
	// File is there while the tree of the command may have processes. It holds the
	// pid and the start time of the supervisor.
	File string
	Path string // of the program
	Dir  string // in which it runs
	Args []string
	Env  []string
	// Namespaces are the flags of clone(2) for new ones, 0 for none. With a user namespace
	// the user and the group are mapped to themselves. The first process of a new PID
	// namespace ends all others with its own end.
	Namespaces uintptr
	// Capabilities are those that the first process of a new user namespace has. Without
	// them a user other than the superuser loses all by executing a program.
	Capabilities []uintptr
}

// lengthDigits is the size of the length in front of a spec, in decimal digits.
const lengthDigits = 8

// maxSpec is the largest spec, in bytes. The kernel takes less for one program.
const maxSpec = 64 << 20

// errSpec is the error of a message that no host has sent.
var errSpec = errors.New("the description of the command is not whole")

// Encode returns the spec as the supervisor reads it: its length, then texts that
// each end with a zero byte, which none of them can hold.
func (s Spec) Encode() ([]byte, error) {
	body := make([]byte, lengthDigits, 4096)
	add := func(texts ...string) {
		for _, t := range texts {
			body = append(append(body, t...), 0)
		}
	}
	add(s.File, s.Path, s.Dir, strconv.FormatUint(uint64(s.Namespaces), 10), strconv.FormatUint(capabilityBits(s.Capabilities), 10), strconv.Itoa(len(s.Args)))
	add(s.Args...)
	add(s.Env...)
	n := len(body) - lengthDigits
	if n > maxSpec {
		return nil, errSpec
	}
	for i := lengthDigits - 1; i >= 0; i-- {
		body[i] = byte('0' + n%10)
		n /= 10
	}
	return body, nil
}

// decode reverses Encode, without the length.
func decode(body []byte) (s Spec, err error) {
	var texts []string
	for at, i := 0, 0; i < len(body); i++ {
		if body[i] == 0 {
			texts = append(texts, string(body[at:i]))
			at = i + 1
		}
	}
	if len(texts) < 6 {
		return s, errSpec
	}
	flags, err := strconv.ParseUint(texts[3], 10, 64)
	if err != nil {
		return s, errSpec
	}
	bits, err := strconv.ParseUint(texts[4], 10, 64)
	if err != nil {
		return s, errSpec
	}
	n, err := strconv.Atoi(texts[5])
	if err != nil || n < 1 || len(texts) < 6+n {
		return s, errSpec
	}
	s = Spec{File: texts[0], Path: texts[1], Dir: texts[2], Namespaces: uintptr(flags), Args: texts[6 : 6+n], Env: texts[6+n:]}
	for c := range uintptr(64) {
		if bits&(1<<c) != 0 {
			s.Capabilities = append(s.Capabilities, c)
		}
	}
	return s, nil
}

// capabilityBits returns a set of capabilities as a number.
func capabilityBits(list []uintptr) (bits uint64) {
	for _, c := range list {
		bits |= 1 << c
	}
	return bits
}
