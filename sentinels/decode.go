package sentinels

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DecodeOptions say what a definition may contain. The zero value accepts
// every step type and leaves their fields unchecked.
type DecodeOptions struct {
	File  string   // for the places of problems
	Types *TypeSet // known step types; nil: every type is accepted with unchecked fields, and one that is missing stays so
	// Absent says why a step type that Types does not have is not there, and what
	// to do about it; nil, or an empty message, leaves it at "unknown".
	Absent   func(t StepType) (message, hint string)
	Triggers []string // known trigger kinds; default: immediate manual schedule event file webhook

	// The checks report what is wrong with a text in another language; nil
	// skips the check. The error's text becomes the problem's message.
	CheckCron       func(expression string) error
	CheckExpression func(source string) error
	CheckTrigger    func(t Trigger) error // the options of a trigger of a known kind
}

// triggerKinds are those of DecodeOptions.Triggers by default.
var triggerKinds = []string{"immediate", "manual", "schedule", "event", "file", "webhook"}

// maxDefinitions is how deep definitions may stand within each other.
const maxDefinitions = 8

// Decode reads the text of a definition or of a recipe: JSON, with comments and
// trailing commas. It reports all problems, and returns a definition only if
// there are none.
func Decode(src []byte, opt DecodeOptions) (*Definition, Problems) {
	d, root := begin(src, opt)
	var def Definition
	if root != nil {
		def = d.definition(root)
	}
	if problems := d.end(); len(problems) > 0 {
		return nil, problems
	}
	return &def, nil
}

// DecodeStep reads a single step, as step/add takes one. What only the whole
// definition shows, such as an id used twice, is found when the definition is
// encoded and decoded again.
func DecodeStep(src []byte, opt DecodeOptions) (*Step, Problems) {
	d, root := begin(src, opt)
	var step Step
	if root != nil {
		step = d.step(root)
	}
	if problems := d.end(); len(problems) > 0 {
		return nil, problems
	}
	return &step, nil
}

// A decoder reads one definition; nested ones get their own and share the
// session.
type decoder struct {
	*session
	label   string            // for definitions without a name of their own
	depth   int               // definitions around this one
	ids     map[string]int    // step ids and the offsets of their values
	outputs []output          // every outputTo so far
	recipe  bool              // written in the recipe dialect
	seen    map[string]member // keys of the definition, by stored name
}

// output is one outputTo with its place.
type output struct {
	name string
	at   *node
}

// session is what is shared by a text's definitions.
type session struct {
	opt      DecodeOptions
	src      *source
	problems Problems
}

// begin parses text for a decoder; the node is nil if there is nothing to decode.
func begin(text []byte, opt DecodeOptions) (*decoder, *node) {
	if len(opt.Triggers) == 0 {
		opt.Triggers = triggerKinds
	}
	src, root, problems := parse(opt.File, text)
	return &decoder{session: &session{opt: opt, src: src, problems: problems}, ids: make(map[string]int)}, root
}

// end returns the problems in the order of their places; nested definitions and the
// schema checks found theirs out of order.
func (s *session) end() Problems {
	s.problems.sort()
	return s.problems
}

// addAt reports a problem at a place that is no value of its own, such as a key.
func (s *session) addAt(offset int, path string, kind Kind, hint, message string) {
	s.problems = append(s.problems, s.src.problem(offset, path, kind, hint, message))
}

// add reports a problem at a value.
func (s *session) add(n *node, kind Kind, hint, format string, args ...any) {
	s.addAt(n.start, n.path, kind, hint, fmt.Sprintf(format, args...))
}

// wrongType says why, for the case that a person meets most often: a reference in a
// field that is needed before there are variables.
func (s *session) wrongType(n *node, want string) {
	hint := ""
	if n.kind == '"' && hasReference(n.text) {
		hint = "a $reference is not resolved here"
	}
	s.add(n, KindType, hint, "is %s, want %s", n.what(), want)
}

// want reports a node of another type than kind.
func (s *session) want(n *node, kind byte, name string) bool {
	if n.kind != kind {
		s.wrongType(n, name)
	}
	return n.kind == kind
}

// text may be empty, which most fields take for missing.
func (s *session) text(n *node) (string, bool) {
	return n.text, s.want(n, '"', "a string")
}

// mustText is text that is not empty.
func (s *session) mustText(n *node) (string, bool) {
	text, ok := s.text(n)
	if ok && strings.TrimSpace(text) == "" {
		s.add(n, KindValue, "", "is empty")
		return "", false
	}
	return text, ok
}

// maxInteger keeps milliseconds within what a time.Duration can hold.
const maxInteger = 1_000_000_000_000

// integer takes plain digits alone: 1e3 and 5.0 are more often a slip than a wish,
// and every reader of the stored form would have to agree on them.
func (s *session) integer(n *node, least int64) (int64, bool) {
	if !s.want(n, '0', "a whole number") {
		return 0, false
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	switch {
	case err != nil && strings.ContainsAny(n.text, ".eE"):
		s.add(n, KindType, "", "is %s, want a whole number", n.text)
	case err != nil || i > maxInteger:
		s.add(n, KindValue, "", "is %s, more than %d", n.text, int64(maxInteger))
	case i < least:
		s.add(n, KindValue, "", "is %d, want at least %d", i, least)
	default:
		return i, true
	}
	return 0, false
}

// choice reads one of a few words, whatever their case.
func (s *session) choice(n *node, choices []string) (string, bool) {
	text, ok := s.text(n)
	if !ok {
		return "", false
	}
	if c, ok := equalFold(text, choices); ok {
		return c, true
	}
	s.add(n, KindUnknown, didYouMean(text, choices), "%q is none of its values", text)
	return "", false
}

// maxHinted is how many problems get a "did you mean" of an unknown key: looking
// for near names costs more than all the rest.
const maxHinted = 200

func (s *session) unknownKey(m member, known []string, quiet ...string) {
	hint := ""
	if len(s.problems) < maxHinted {
		hint = didYouMean(m.name, known, quiet...)
	}
	s.addAt(m.start, m.value.path, KindUnknown, hint, fmt.Sprintf("unknown key %q", m.name))
}

// first notes that a key was given and reports one given under two names.
func (s *session) first(seen map[string]member, name string, m member) bool {
	if before, double := seen[name]; double {
		s.addAt(m.start, m.value.path, KindDuplicate, "remove one of them",
			fmt.Sprintf("%q and %q are the same field", before.name, m.name))
		return false
	}
	seen[name] = m
	return true
}

// expression reads a condition. In a recipe the variables of its steps may be
// written without "$".
func (d *decoder) expression(n *node) (string, bool) {
	text, ok := d.mustText(n)
	if !ok {
		return "", false
	}
	if d.recipe {
		names := make([]string, 0, len(d.outputs))
		for _, o := range d.outputs {
			names = append(names, o.name)
		}
		text = markVariables(text, func(name string) bool {
			return slices.Contains(names, name) || slices.Contains(Reserved, name)
		})
		n.text = text
	}
	if d.opt.CheckExpression != nil {
		if err := d.opt.CheckExpression(text); err != nil {
			d.add(n, KindExpression, "", "%s", err)
			return "", false
		}
	}
	return text, true
}
