package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/internal/boundedregexp"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// The types of checks.
const (
	HTTPRequest = "http_request"
	FileExists  = "file_exists"
	CodePattern = "code_pattern"
	TestPass    = "test_pass"
	Manual      = "manual"
)

// short are other names of the types.
var short = map[string]string{"http": HTTPRequest, "file": FileExists, "pattern": CodePattern, "test": TestPass}

// Types are the types of checks without those of plugins.
func Types() []string { return []string{HTTPRequest, FileExists, CodePattern, TestPass, Manual} }

// Limits of one check.
const (
	maxCommand  = 16 << 10
	maxPattern  = 4 << 10
	maxContains = 100
	maxTimeout  = time.Hour
)

// A check is a criterion that has been read.
type check struct {
	ticket.Check
	kind    string // long name of the type
	do      executor
	timeout time.Duration // 0 is the verifier's
}

// An executor executes one check.
type executor interface {
	// commands returns what of an agent's check needs the approval of a person: the shell lines
	// that it executes, and the request that may change something.
	commands() []string
}

type httpCheck struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Body    json.RawMessage   `json:"body"`
	Headers map[string]string `json:"headers"`
	Status  int               `json:"expect_status"`
	Expect  json.RawMessage   `json:"expect_body"`
	Service *Service          `json:"service"`
}

// A Service is a program that answers the requests of a check. It is started before
// the first check that has it, and ended with all its processes after the last.
type Service struct {
	Command   string `json:"command"`
	ReadyPath string `json:"readyPath,omitempty"` // answered with less than 500 when it is ready; default: it accepts connections
	Port      int    `json:"port,omitempty"`      // default: a free one, in the variable PORT
	TimeoutMs int64  `json:"timeoutMs,omitempty"` // until it is ready; default 30,000
	Network   string `json:"network,omitempty"`   // as that of a test_pass check
}

// networkClosed is the network of commands that reach their own processes only. Whether it is
// open otherwise is for the verifier to say: a check can close it, and not open it.
const networkClosed = "closed"

func checkNetwork(field, network string) error {
	if network == "" || network == networkClosed {
		return nil
	}
	return wrong(field, "%.40q: want %q, or nothing for the setting verify.network", network, networkClosed)
}

type fileCheck struct {
	Path     string   `json:"path"`
	Contains []string `json:"contains"`
}

type patternCheck struct {
	File        string `json:"file"`
	Pattern     string `json:"pattern"`
	ShouldMatch *bool  `json:"should_match"`
	expr        *boundedregexp.Regexp
}

type testCheck struct {
	Command string `json:"command"`
	Code    int    `json:"expect_exit_code"`
	Network string `json:"network"` // "closed", or empty for what the verifier has
}

type manualCheck struct{}

// unknownCheck is one of a type that a plugin has, or none: then it fails.
type unknownCheck struct{}

func (c *httpCheck) commands() []string {
	switch {
	case c.Service != nil: // the request goes there and nowhere else
		return []string{c.Service.Command}
	case c.onlyReads():
		return nil
	}
	line := fmt.Sprintf("%s %s at verify.url", c.Method, c.Path)
	if len(c.Headers) > 0 {
		text, _ := json.Marshal(c.Headers) // a map of texts has one
		line += " with the headers " + string(text)
	}
	if c.hasBody() {
		line += " with the body " + string(c.Body)
	}
	return []string{line}
}

// readingHeaders are the headers that neither prove who asks nor change what a request does.
var readingHeaders = []string{"accept", "accept-encoding", "accept-language", "cache-control", "content-type", "if-modified-since", "if-none-match", "range", "user-agent"}

// onlyReads reports whether the request can change nothing, as far as its service follows the
// standard, and carries no credentials.
func (c *httpCheck) onlyReads() bool {
	if !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, c.Method) || c.hasBody() || placeholder.MatchString(c.Path) {
		return false
	}
	for name, value := range c.Headers {
		if !slices.Contains(readingHeaders, strings.ToLower(name)) || placeholder.MatchString(value) {
			return false
		}
	}
	return true
}

// hasBody reports whether the request has a body.
func (c *httpCheck) hasBody() bool {
	text := strings.TrimSpace(string(c.Body))
	return text != "" && text != "null"
}
func (*fileCheck) commands() []string    { return nil }
func (*patternCheck) commands() []string { return nil }
func (c *testCheck) commands() []string  { return []string{c.Command} }
func (manualCheck) commands() []string   { return nil }
func (unknownCheck) commands() []string  { return nil }

// Check is the first problem of criteria, nil if they can be verified. It completes
// them: checks without an id get one, and types their long names.
func Check(c *ticket.Criteria) error { return CheckWith(nil)(c) }

// CheckWith is [Check] with the types of plugins.
func CheckWith(plugins Plugins) func(c *ticket.Criteria) error {
	return func(c *ticket.Criteria) error { return completed(c, plugins) }
}

// Plugins are the types of checks that plugins have.
type Plugins interface {
	// CheckType returns the first problem of the fields of a check. ok is false if no
	// plugin has the type.
	CheckType(kind string, fields json.RawMessage) (problem error, ok bool)
	// ExecuteCheck executes a check in a folder. The error is one of the check, with a
	// code that says whether it could be executed.
	ExecuteCheck(ctx context.Context, kind string, fields json.RawMessage, timeout time.Duration, dir string) (PluginResult, error)
}

// A PluginResult is the output of a check of a plugin.
type PluginResult struct {
	Passed  bool   `json:"passed"`
	Message string `json:"message"`
	Output  string `json:"output"`
}

func completed(c *ticket.Criteria, plugins Plugins) error {
	ids := map[string]bool{}
	for i := range c.Checks {
		own := &c.Checks[i]
		if own.ID == "" {
			own.ID = fmt.Sprintf("ac-%d", i+1)
		}
		place := fmt.Sprintf("acceptance_criteria.checks[%d]", i)
		if ids[own.ID] {
			return problem(place+".id", "%.80q: another check has this id", own.ID)
		}
		if len(own.ID) > 100 || strings.ContainsFunc(own.ID, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return problem(place+".id", "%.80q: want at most 100 bytes without control characters", own.ID)
		}
		ids[own.ID] = true
		if long, ok := short[own.Type]; ok {
			own.Type = long
		}
		read, err := parse(*own)
		if err != nil {
			return at(place, err)
		}
		if _, unknown := read.do.(unknownCheck); unknown {
			if plugins != nil {
				if err, ok := plugins.CheckType(read.kind, own.Verify); ok && err != nil {
					return problem(place+".verify", "%v", err)
				} else if ok {
					continue
				}
			}
			return problem(place+".type", "%.80q: no such type of check; known are %s", own.Type, strings.Join(Types(), ", "))
		}
	}
	return nil
}

// A fieldError is a problem of one field of a check.
type fieldError struct{ field, problem string }

func (e *fieldError) Error() string { return e.field + ": " + e.problem }

func wrong(field, format string, args ...any) error {
	return &fieldError{field, fmt.Sprintf(format, args...)}
}

func problem(place, format string, args ...any) error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: place, Message: place + ": " + fmt.Sprintf(format, args...)}
}

// at puts the place of a check before a problem of one of its fields.
func at(place string, err error) error {
	var field *fieldError
	if errors.As(err, &field) {
		return problem(place+"."+field.field, "%s", field.problem)
	}
	return problem(place, "%v", err)
}

// parse reads a check. One of an unknown type is not reported here: it fails when it is
// executed, so that criteria which were stored before a plugin went away do not pass.
func parse(c ticket.Check) (check, error) {
	out := check{Check: c, kind: c.Type}
	if long, ok := short[c.Type]; ok {
		out.kind = long
	}
	var common struct {
		TimeoutMs int64 `json:"timeoutMs"`
	}
	fields := c.Verify
	if len(bytes.TrimSpace(fields)) == 0 || string(bytes.TrimSpace(fields)) == "null" {
		fields = json.RawMessage("{}")
	}
	if err := strictjson.DecodeOpen(fields, &common, strictjson.Unlimited()); err != nil {
		return out, wrong("verify", "want an object")
	}
	if out.timeout = time.Duration(common.TimeoutMs) * time.Millisecond; out.timeout < 0 || out.timeout > maxTimeout {
		return out, wrong("verify.timeoutMs", "%d: want 1 to %d", common.TimeoutMs, maxTimeout.Milliseconds())
	}
	var err error
	switch out.kind {
	case HTTPRequest:
		out.do, err = parseHTTP(fields)
	case FileExists:
		out.do, err = parseFile(fields)
	case CodePattern:
		out.do, err = parsePattern(fields)
	case TestPass:
		out.do, err = parseTest(fields)
	case Manual:
		out.do = manualCheck{}
	default:
		out.do = unknownCheck{}
	}
	return out, err
}

// decode reads the fields of a check and refuses those that it does not know, since a
// misspelt expectation would pass.
func decode(text json.RawMessage, into any) error {
	var own map[string]json.RawMessage
	if err := json.Unmarshal(text, &own); err != nil {
		return wrong("verify", "want an object")
	}
	delete(own, "timeoutMs")
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	bad := (*strictjson.Error)(nil)
	if err = strictjson.Decode(text, into, strictjson.Unlimited()); errors.As(err, &bad) {
		if bad.Kind == strictjson.Unknown {
			bad.Reason += "; known: " + strings.Join(keys(into, bad.Path), ", ")
		}
		return wrong(strings.TrimSuffix("verify."+bad.Path, "."), "%s", bad.Reason)
	}
	return err
}

// keys returns the keys of the object of a check that has the key at path.
func keys(of any, path string) (names []string) {
	if strings.HasPrefix(path, "service.") {
		of = new(Service)
	} else {
		names = append(names, "timeoutMs")
	}
	for field := range reflect.TypeOf(of).Elem().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

func parseHTTP(text json.RawMessage) (*httpCheck, error) {
	c := new(httpCheck)
	if err := decode(text, c); err != nil {
		return nil, err
	}
	if c.Method == "" {
		c.Method = http.MethodGet
	}
	c.Method = strings.ToUpper(c.Method)
	switch {
	case !slices.Contains(methods, c.Method):
		return nil, wrong("verify.method", "%.20q: want %s", c.Method, strings.Join(methods, ", "))
	case !strings.HasPrefix(c.Path, "/") || strings.HasPrefix(c.Path, "//") || strings.ContainsAny(c.Path, "\\\r\n\x00"):
		return nil, wrong("verify.path", "%.80q: want a path that begins with one slash; the host is not the ticket's to choose", c.Path)
	case c.Status != 0 && (c.Status < 100 || c.Status > 599):
		return nil, wrong("verify.expect_status", "%d: want 100 to 599", c.Status)
	}
	for name, value := range c.Headers {
		if strings.ContainsAny(name+value, "\r\n\x00") || name == "" || strings.EqualFold(name, "host") {
			return nil, wrong("verify.headers", "%.40q: want a name other than Host, and a value of one line", name)
		}
	}
	if s := c.Service; s != nil {
		switch {
		case strings.TrimSpace(s.Command) == "" || len(s.Command) > maxCommand:
			return nil, wrong("verify.service.command", "want 1 to %d bytes", maxCommand)
		case s.Port != 0 && (s.Port < 1024 || s.Port > 65535):
			return nil, wrong("verify.service.port", "%d: want 1024 to 65535, or none", s.Port)
		case s.TimeoutMs < 0 || s.TimeoutMs > maxTimeout.Milliseconds():
			return nil, wrong("verify.service.timeoutMs", "%d: want 1 to %d", s.TimeoutMs, maxTimeout.Milliseconds())
		case s.ReadyPath != "" && (!strings.HasPrefix(s.ReadyPath, "/") || strings.HasPrefix(s.ReadyPath, "//")):
			return nil, wrong("verify.service.readyPath", "%.80q: want a path that begins with one slash", s.ReadyPath)
		}
		if err := checkNetwork("verify.service.network", s.Network); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// inside checks a path below the checkout.
func inside(field, p string) error {
	switch {
	case p == "":
		return wrong(field, "is missing")
	case len(p) > 4096 || strings.ContainsAny(p, "\x00"):
		return wrong(field, "is not a path")
	case path.IsAbs(p) || !isLocal(p):
		return wrong(field, "%.100q: want a path inside the checkout, without a leading slash", p)
	}
	return nil
}

// isLocal reports whether p stays below where it begins, whatever exists.
func isLocal(p string) bool {
	depth := 0
	for part := range strings.SplitSeq(p, "/") {
		switch part {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return false
		}
	}
	return true
}

func parseFile(text json.RawMessage) (*fileCheck, error) {
	c := new(fileCheck)
	if err := decode(text, c); err != nil {
		return nil, err
	}
	if len(c.Contains) > maxContains {
		return nil, wrong("verify.contains", "has %d texts, at most %d", len(c.Contains), maxContains)
	}
	return c, inside("verify.path", c.Path)
}

func parsePattern(text json.RawMessage) (*patternCheck, error) {
	c := new(patternCheck)
	if err := decode(text, c); err != nil {
		return nil, err
	}
	if c.Pattern == "" || len(c.Pattern) > maxPattern {
		return nil, wrong("verify.pattern", "want 1 to %d bytes", maxPattern)
	}
	var err error
	// (?m): authors mean the lines of a file by ^ and $.
	if c.expr, err = boundedregexp.Compile("(?m)"+c.Pattern, boundedregexp.MaxInstructions); err != nil {
		if text, isSyntax := strings.CutPrefix(err.Error(), "error parsing regexp: "); isSyntax {
			return nil, wrong("verify.pattern", "%s (the syntax is RE2, which has no lookahead and no back references)", text)
		}
		return nil, wrong("verify.pattern", "%v", err)
	}
	return c, inside("verify.file", c.File)
}

func parseTest(text json.RawMessage) (*testCheck, error) {
	c := new(testCheck)
	if err := decode(text, c); err != nil {
		return nil, err
	}
	switch {
	case strings.TrimSpace(c.Command) == "" || len(c.Command) > maxCommand || strings.Contains(c.Command, "\x00"):
		return nil, wrong("verify.command", "want 1 to %d bytes", maxCommand)
	case c.Code < 0 || c.Code > 255:
		return nil, wrong("verify.expect_exit_code", "%d: want 0 to 255", c.Code)
	}
	return c, checkNetwork("verify.network", c.Network)
}

// Commands returns what of an agent's criteria needs the approval of a person: the shell lines
// that they execute, and the requests that may change something.
func Commands(c *ticket.Criteria) []string {
	var lines []string
	if c == nil {
		return nil
	}
	for _, own := range c.Checks {
		if read, err := parse(own); err == nil {
			lines = append(lines, read.do.commands()...)
		}
	}
	return lines
}

// placeholder matches {{NAME}}.
var placeholder = lazyregexp.New(`\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)
