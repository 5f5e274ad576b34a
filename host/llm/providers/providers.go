// Package providers is a table of how the servers of model providers differ: what their errors
// and finish reasons mean, what they want back and what they refuse. It is data: providers.json,
// with the day on which it was read and a source for each rule.
//
// A server is recognized by its host or by the name of the model. Of a server that is not, such
// as a gateway, the rules of all rows count, in their order, because it passes on what the servers
// behind it say.
package providers

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// A Class is what an error or a finish reason means.
type Class string

// The classes of errors. Those that begin with No and the two limits say which part of a
// request to change.
const (
	TooLong        Class = "too_long"         // larger than the window of the model
	RateLimit      Class = "rate_limit"       // worth another attempt later
	Overloaded     Class = "overloaded"       // likewise
	NoCredit       Class = "no_credit"        // the account is empty
	Refused        Class = "refused"          // by a content policy
	BrokenCall     Class = "broken_call"      // the model wrote a tool call that makes no sense; another attempt may not
	OutputLimit    Class = "output_limit"     // max_tokens is too large
	NoTools        Class = "no_tools"         // the model has no native tool calls
	NoSchema       Class = "no_schema"        // no JSON Schema of the reply
	NoTemperature  Class = "no_temperature"   // no parameter temperature
	NoStreamUsage  Class = "no_stream_usage"  // no parameter stream_options
	NoEncrypted    Class = "no_encrypted"     // no encrypted reasoning
	OtherLimitName Class = "other_limit_name" // max_completion_tokens for max_tokens, or the reverse
	NeedsMember    Class = "needs_member"     // each message of a model must have a member, also one of another model
	NoMember       Class = "no_member"        // a member of a message of the model does not go back
	CallIDs        Class = "call_ids"         // ids of tool calls must have a number of letters and digits, and nothing else
)

// The classes of finish reasons, beside TooLong, Refused and BrokenCall.
const (
	Stop   Class = "stop"
	Length Class = "length" // cut at the limit of the reply
	Failed Class = "failed" // the rest of the reply is missing
)

// A Row is one provider. The tags doc and check are in the schema of the configuration, which can
// add rows and change those of the table, see [Prepare].
type Row struct {
	Name   string   `json:"name" check:"required" doc:"name of the row; with that of a built-in one, such as openai or vllm, it changes that"`
	Hosts  []string `json:"hosts,omitempty" doc:"ends of the names of its hosts"`
	Models []string `json:"models,omitempty" doc:"beginnings of the names of its models, for gateways"`
	Rules  []Rule   `json:"rules,omitempty" doc:"what its errors mean, before the built-in rules; the first that fits counts"`
	// Finish has what its finish reasons mean, in small letters.
	Finish map[string]Class `json:"finish,omitempty" doc:"what its finish reasons mean, in small letters: stop, length, failed, refused, broken_call or too_long"`
	Source string           `json:"source,omitempty" doc:"where the rest is from"`
	// Omit are members of messages that it refuses.
	Omit []string `json:"omit,omitempty" doc:"members of its own messages that it refuses when they go back"`
	// Call are members that each tool call must have, also one that another provider made.
	Call json.RawMessage `json:"call,omitempty" doc:"an object: members that each tool call must have"`
	// Protocol is the one of its hosts, "" for chat completions.
	Protocol string `json:"protocol,omitempty" check:"chat|responses" doc:"protocol of the kind openai. Default: chat"`
	// CompletionTokens says that the limit of a reply is max_completion_tokens.
	CompletionTokens bool `json:"completionTokens,omitempty" doc:"the limit of a reply is max_completion_tokens, not max_tokens"`

	own []Row // of the configuration
}

// A Rule says what an error means. It holds for any status if it names none. Groups of Words
// whose names begin with window, most and member are parts of a [Verdict].
type Rule struct {
	Class  Class  `json:"class" check:"required" doc:"too_long, rate_limit, overloaded, no_credit, refused, broken_call, output_limit, no_tools, no_schema, no_temperature, no_stream_usage, no_encrypted, other_limit_name, needs_member, no_member or call_ids"`
	Status []int  `json:"status,omitempty" doc:"statuses for which it holds. Default: all"`
	Words  string `json:"words,omitempty" doc:"regular expression over type, code and message of the error. Default: any"`
	Own    bool   `json:"own,omitempty" doc:"only for this provider: elsewhere the words mean something else. Default: false"`
	Source string `json:"source,omitempty" doc:"where that is from"`

	words *regexp.Regexp
}

// classes are those of rules.
var classes = []Class{
	TooLong, RateLimit, Overloaded, NoCredit, Refused, BrokenCall, OutputLimit, NoTools, NoSchema, NoTemperature, NoStreamUsage, NoEncrypted, OtherLimitName,
	NeedsMember, NoMember, CallIDs,
}

// A Verdict is what an error means.
type Verdict struct {
	Class  Class
	Row    string // provider whose rule it is
	Most   int64  // of OutputLimit: the largest limit of a reply, 0 if the error does not say; of CallIDs: the length
	Window int64  // of TooLong: the size of the window in tokens, 0 if the error does not say
	Member string // of NoMember and NeedsMember
}

type table struct {
	Date      string           `json:"date"`
	Finish    map[string]Class `json:"finish"`
	Providers []Row            `json:"providers"`
	Window    string           `json:"window"`
	Wait      string           `json:"wait"`
	Resets    [][2]string      `json:"resets"`

	window, wait *regexp.Regexp
}

//go:embed providers.json
var providersJSON []byte

var builtin = sync.OnceValue(func() *table {
	t, err := read(providersJSON)
	if err != nil {
		panic(fmt.Sprintf("providers.json: %v", err)) // it is part of the program, and a test reads it
	}
	return t
})

func read(text []byte) (*table, error) {
	var t table
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, err
	}
	var err error
	if t.window, err = compile(t.Window); err != nil {
		return nil, err
	}
	if t.wait, err = compile(t.Wait); err != nil {
		return nil, err
	}
	rows, wrong := Prepare(t.Providers)
	if wrong != nil {
		return nil, wrong
	}
	t.Providers = rows
	return &t, nil
}

func compile(words string) (*regexp.Regexp, error) { return regexp.Compile("(?is)" + words) }

// A Mistake is a row that [Prepare] refuses.
type Mistake struct {
	Path string // such as [0].rules[1].words
	Text string
}

// Error returns the text.
func (m *Mistake) Error() string { return m.Text }

// Prepare checks rows and returns them in the form for [Of].
func Prepare(rows []Row) ([]Row, *Mistake) {
	rows = slices.Clone(rows)
	for i, row := range rows {
		wrong := func(path, format string, args ...any) ([]Row, *Mistake) {
			return nil, &Mistake{Path: fmt.Sprintf("[%d]", i) + path, Text: fmt.Sprintf("row %q: ", row.Name) + fmt.Sprintf(format, args...)}
		}
		if row.Name == "" {
			return wrong(".name", "a name is missing")
		}
		if row.Protocol != "" && row.Protocol != "chat" && row.Protocol != "responses" {
			return wrong(".protocol", "invalid protocol %q: want chat or responses", row.Protocol)
		}
		for reason, class := range row.Finish {
			if !slices.Contains([]Class{Stop, Length, Failed, Refused, BrokenCall, TooLong}, class) {
				return wrong(".finish."+reason, "unknown class %q of a finish reason", class)
			}
		}
		rows[i].Rules = slices.Clone(row.Rules)
		for j := range row.Rules {
			rule := &rows[i].Rules[j]
			at := fmt.Sprintf(".rules[%d]", j)
			if !slices.Contains(classes, rule.Class) {
				return wrong(at+".class", "unknown class %q", rule.Class)
			}
			var err error
			if rule.words, err = compile(rule.Words); err != nil {
				return wrong(at+".words", "%v", err)
			}
		}
	}
	return rows, nil
}

// Date is the day on which the table was read.
func Date() string { return builtin().Date }

// Rows returns all rows.
func Rows() []Row { return slices.Clone(builtin().Providers) }

// Of returns the row of a server, by the host of its address, else by the name of the model,
// which may have that of its maker in front. Rows of own, which were given to [Prepare], come first;
// what they leave out is that of the built-in row. The row has no name if there is none.
func Of(base, model string, own ...Row) Row {
	row, _ := find(builtin().Providers, base, model)
	mine, ok := find(own, base, model)
	if !ok && row.Name != "" {
		if i := slices.IndexFunc(own, func(o Row) bool { return o.Name == row.Name }); i >= 0 {
			mine = own[i]
		}
	}
	if ok && mine.Name != row.Name { // another provider than the table takes it for
		i := slices.IndexFunc(builtin().Providers, func(o Row) bool { return o.Name == mine.Name })
		if row = (Row{}); i >= 0 {
			row = builtin().Providers[i]
		}
	}
	row.own = own
	if mine.Name == "" {
		return row
	}
	row.Name, row.Rules = mine.Name, slices.Concat(mine.Rules, row.Rules)
	row.Finish = mine.Finish
	if mine.Omit != nil {
		row.Omit = mine.Omit
	}
	if mine.Call != nil {
		row.Call = mine.Call
	}
	row.Protocol = cmp.Or(mine.Protocol, row.Protocol)
	row.CompletionTokens = row.CompletionTokens || mine.CompletionTokens
	return row
}

func find(rows []Row, base, model string) (Row, bool) {
	host := ""
	if u, err := url.Parse(base); err == nil {
		host = strings.ToLower(u.Hostname())
	}
	for _, row := range rows {
		for _, end := range row.Hosts {
			if host == end || strings.HasSuffix(host, "."+end) {
				return row, true
			}
		}
	}
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, row := range rows {
		for _, begin := range row.Models {
			if strings.HasPrefix(name, begin) {
				return row, true
			}
		}
	}
	return Row{}, false
}

// Judge returns what an error means: the class of the first rule that fits and for which accept,
// if it is not nil, returns true. Rules of the row come first, then those of all. status is 0 for
// an error within a stream.
func (r Row) Judge(status int, text string, accept func(Class) bool) Verdict {
	t := builtin()
	rows := slices.Concat([]Row{r}, r.own, t.Providers)
	for i, row := range rows {
		for _, rule := range row.Rules {
			if rule.Own && i > 0 {
				continue
			}
			if status != 0 && len(rule.Status) > 0 && !slices.Contains(rule.Status, status) || status == 0 && rule.Words == "" {
				continue
			}
			if accept != nil && !accept(rule.Class) {
				continue
			}
			match := rule.words.FindStringSubmatch(text)
			if match == nil {
				continue
			}
			v := Verdict{Class: rule.Class, Row: row.Name}
			for i, name := range rule.words.SubexpNames() {
				switch {
				case match[i] == "":
				case strings.HasPrefix(name, "window"):
					v.Window = number(match[i])
				case strings.HasPrefix(name, "most"):
					v.Most = number(match[i])
				case strings.HasPrefix(name, "member"):
					v.Member = match[i]
				}
			}
			if v.Class == TooLong && v.Window == 0 {
				v.Window = t.windowOf(text)
			}
			return v
		}
	}
	return Verdict{}
}

// Windows that a server may name in an error. Other numbers are something else.
const (
	minWindow = 512
	maxWindow = 1 << 30
)

// windowOf returns the size of the window that a text names, in tokens, or 0.
func (t *table) windowOf(text string) int64 {
	for _, match := range t.window.FindAllStringSubmatch(text, -1) {
		if n := number(match[1] + match[2]); n >= minWindow && n <= maxWindow {
			return n
		}
	}
	return 0
}

func number(text string) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Finished returns what a finish reason means. One that the table does not have is a stop: servers
// invent names for it, while those of failures are in the table.
func (r Row) Finished(reason string) Class {
	if class, ok := r.Finish[strings.ToLower(reason)]; ok {
		return class
	}
	if class, ok := builtin().Finish[strings.ToLower(reason)]; ok {
		return class
	}
	return Stop
}

// Wait returns how long a server asks to wait, 0 if it does not: what Retry-After says, else the
// text of the error, else the headers of limits of which nothing is left.
func Wait(h http.Header, text string, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return seconds(ms / 1000)
	}
	if d := moment(h.Get("Retry-After"), now); d > 0 {
		return d
	}
	t := builtin()
	if match := t.wait.FindStringSubmatch(text); match != nil {
		if d := duration(match[1]); d > 0 {
			return d
		}
	}
	var longest, shortest time.Duration
	for _, names := range t.Resets {
		d := moment(h.Get(names[1]), now)
		if d <= 0 {
			continue
		}
		if left := h.Get(names[0]); left == "0" || strings.HasPrefix(left, "-") {
			longest = max(longest, d)
		}
		if shortest == 0 || d < shortest {
			shortest = d
		}
	}
	if longest > 0 {
		return longest
	}
	return shortest
}

// moment reads the time until something as servers write it: seconds, a duration such as
// 6m0s, a date, or seconds or milliseconds since 1970.
func moment(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case n > 1e11:
			return time.UnixMilli(int64(min(n, 1e15))).Sub(now)
		case n > 1e9:
			return time.Unix(int64(n), 0).Sub(now)
		}
		return seconds(n)
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now)
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.Sub(now)
	}
	return duration(text)
}

// longest is the most seconds that a duration can have here, a year.
const longest = 365 * 24 * 3600

func seconds(n float64) time.Duration {
	if !(n > 0) { // also not a number
		return 0
	}
	return time.Duration(min(n, longest) * float64(time.Second))
}

var unit = lazyregexp.New(`([\d.]+)\s*(ms|milliseconds?|h|hours?|m|mins?|minutes?|s|secs?|seconds?)`)

// duration reads parts such as 1m30s, 9.5s, 250ms or 2 minutes.
func duration(text string) time.Duration {
	total := 0.0
	for _, match := range unit.FindAllStringSubmatch(strings.ToLower(text), -1) {
		n, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return 0
		}
		switch match[2][0] {
		case 'h':
			n *= 3600
		case 'm':
			if strings.HasPrefix(match[2], "ms") || strings.HasPrefix(match[2], "mil") {
				n /= 1000
			} else {
				n *= 60
			}
		}
		total += n
	}
	return seconds(total)
}
