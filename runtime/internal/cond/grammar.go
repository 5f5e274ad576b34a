package cond

import (
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// judgement is what the fast lane's grammar says of a source.
type judgement uint8

const (
	fast   judgement = iota // the fast lane takes it
	beyond                  // more JavaScript than the fast lane knows, perhaps right
	wrong                   // no condition in any lane
)

// shape is what is known of a source before anything of it runs.
type shape struct {
	judgement judgement
	err       *abi.Error // with wrong
	reason    string     // with beyond: what the fast lane does not take
	at        int        // its byte offset

	names []string       // variables, in order of first use; complete with fast only
	uses  map[string]int // how often each is mentioned
	joins bool           // has a binary "+", which can make text longer
}

// examine judges a source of at most fastSource bytes.
func examine(src string) *shape {
	p := &reader{
		lexer: lexer{src: src},
		shape: &shape{uses: map[string]int{}},
		// Only these can declare a name, so without them a bare word is a mistake.
		declares: strings.Contains(src, "=>") || strings.Contains(src, "{"),
	}
	if !utf8.ValidString(src) {
		p.fail(wrong, 0, "", "not UTF-8")
		return p.shape
	}
	p.step()
	if p.tok.kind == tokEnd {
		p.fail(wrong, 0, "", "empty")
		return p.shape
	}
	p.ternary()
	p.afterAll()
	return p.shape
}

// reader is a recursive descent over the fast lane's grammar. It builds no
// tree: goja parses what was accepted once more. After a failure every token is
// the end, so all loops stop.
type reader struct {
	lexer
	*shape
	tok      token
	depth    int
	failed   bool
	declares bool
}

func (p *reader) step() {
	if !p.failed {
		p.tok = p.lexer.next()
	}
}

// fail keeps the first failure.
func (p *reader) fail(j judgement, at int, hint, reason string) {
	if p.failed {
		return
	}
	p.failed = true
	p.judgement, p.at, p.reason = j, at, reason
	if j == wrong {
		p.err = withHint(badAt(p.src, at, "%s", reason), hint)
	}
	p.tok = token{kind: tokEnd, at: len(p.src)}
}

func (p *reader) is(mark string) bool { return p.tok.kind == tokMark && p.tok.text == mark }

func (p *reader) enter() bool {
	p.depth++
	if p.depth > fastDepth {
		p.fail(beyond, p.tok.at, "", "deep nesting")
	}
	return !p.failed
}

func (p *reader) ternary() {
	if !p.enter() {
		return
	}
	p.binary(1)
	if p.is("?") {
		p.step()
		p.ternary()
		p.close(":")
		p.ternary()
	}
	p.depth--
}

// levels are the binary operators by how tightly they bind. That "??" does not
// mix with its neighbours is left to goja, which says so.
var levels = map[string]int{
	"||": 1, "??": 1, "&&": 2, "===": 3, "!==": 3, "==": 3, "!=": 3,
	"<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}

func (p *reader) binary(least int) {
	p.unary()
	for p.tok.kind == tokMark {
		level := levels[p.tok.text]
		if level < least || level == 0 {
			return
		}
		p.joins = p.joins || p.tok.text == "+"
		p.step()
		if !p.enter() {
			return
		}
		p.binary(level + 1)
		p.depth--
	}
}

func (p *reader) unary() {
	if !p.enter() {
		return
	}
	defer func() { p.depth-- }()
	if p.is("!") || p.is("-") || p.is("+") || p.tok.kind == tokWord && p.tok.text == "typeof" {
		p.step()
		p.unary()
		return
	}
	p.primary()
}

// primary takes an operand and what follows it: members and calls.
func (p *reader) primary() {
	switch t := p.tok; {
	case t.kind == tokNumber:
		p.step()
		if p.is(".") {
			p.fail(beyond, p.tok.at, "", "a member of a number")
		}
	case t.kind == tokString:
		p.step()
	case t.kind == tokWord && t.text[0] == '$':
		p.variable()
	case t.kind == tokWord:
		p.word()
	case p.is("("):
		p.step()
		if p.is(")") {
			p.fail(beyond, t.at, "", "a function")
		}
		p.ternary()
		p.close(")")
	default:
		p.noOperand()
	}
	for !p.failed && (p.is(".") || p.is("?.") || p.is("[")) {
		p.member()
	}
	if p.is("(") {
		p.fail(beyond, p.tok.at, "", "a call of a function")
	}
}

func (p *reader) variable() {
	t := p.tok
	name := t.text[1:]
	if !isName(name) {
		p.fail(wrong, t.at, "a variable is $ and letters, digits or _", "no variable is called "+quote(t.text))
		return
	}
	if p.uses[name] == 0 {
		p.names = append(p.names, name)
	}
	p.uses[name]++
	p.step()
}

func (p *reader) word() {
	switch t := p.tok; {
	case t.text == "true", t.text == "false", t.text == "null", t.text == "undefined":
		p.step()
	case p.declares || keywords[t.text] || globals[t.text]:
		p.fail(beyond, t.at, "", "the word "+quote(t.text))
	default:
		p.fail(wrong, t.at, hintFor(t.text), "unknown name "+quote(t.text))
	}
}

// member takes .name, ?.name, [index], ?.[index] and calls of fastMethods.
func (p *reader) member() {
	optional := p.is("?.")
	dot := optional || p.is(".")
	if dot {
		p.step()
	}
	switch {
	case optional && p.is("("):
		p.fail(beyond, p.tok.at, "", "an optional call")
	case p.is("[") && (optional || !dot):
		p.step()
		p.ternary()
		p.close("]")
		if p.is("(") {
			p.fail(beyond, p.tok.at, "", "a call by index")
		}
	case dot && p.tok.kind == tokWord:
		method := p.tok
		p.step()
		if !p.is("(") {
			return
		}
		if !fastMethods[method.text] {
			p.fail(beyond, method.at, "", "the method "+quote(method.text))
			return
		}
		p.arguments()
	default:
		p.noName()
	}
}

func (p *reader) arguments() {
	p.step()
	for !p.failed && !p.is(")") {
		p.ternary()
		if !p.is(",") {
			break
		}
		p.step()
	}
	p.close(")")
}
