package cond

import (
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// class is the class of a source, according to the grammar of the fast path.
type class uint8

const (
	fast       class = iota // the fast path accepts it
	needsChild              // unknown to the fast path, possibly valid JavaScript
	invalid                 // not a condition
)

// analysis is what is known of a source before it is executed.
type analysis struct {
	class  class
	err    *abi.Error // set if invalid
	reason string     // set if a child is needed: what the fast path does not accept
	at     int        // byte offset of that

	names []string       // variables, in order of first use; complete for the fast path only
	uses  map[string]int // number of uses of each variable
	joins bool           // has a binary "+", which can make text longer
}

// analyzeFast classifies a source of at most fastSource bytes.
func analyzeFast(src string) *analysis {
	p := &fastParser{
		lexer:    lexer{src: src},
		analysis: &analysis{uses: map[string]int{}},
		// Without these a source cannot declare names, so an unknown name is a
		// mistake.
		declares: strings.Contains(src, "=>") || strings.Contains(src, "{"),
	}
	if !utf8.ValidString(src) {
		p.fail(invalid, 0, "", "not UTF-8")
		return p.analysis
	}
	p.advance()
	if p.tok.kind == tokEnd {
		p.fail(invalid, 0, "", "empty")
		return p.analysis
	}
	p.ternary()
	p.expectEnd()
	return p.analysis
}

// fastParser is a recursive-descent parser of the fast path's grammar. It
// builds no tree: goja parses an accepted source again. After a failure every
// token is the end, so all loops stop.
type fastParser struct {
	lexer
	*analysis
	tok      token
	depth    int
	failed   bool
	declares bool
}

func (p *fastParser) advance() {
	if !p.failed {
		p.tok = p.lexer.next()
	}
}

// fail records a failure, unless there was one before.
func (p *fastParser) fail(c class, at int, hint, reason string) {
	if p.failed {
		return
	}
	p.failed = true
	p.class, p.at, p.reason = c, at, reason
	if c == invalid {
		p.err = withHint(errAt(p.src, at, "%s", reason), hint)
	}
	p.tok = token{kind: tokEnd, at: len(p.src)}
}

func (p *fastParser) is(mark string) bool { return p.tok.kind == tokOperator && p.tok.text == mark }

func (p *fastParser) enter() bool {
	p.depth++
	if p.depth > fastDepth {
		p.fail(needsChild, p.tok.at, "", "deep nesting")
	}
	return !p.failed
}

func (p *fastParser) ternary() {
	if !p.enter() {
		return
	}
	p.binary(1)
	if p.is("?") {
		p.advance()
		p.ternary()
		p.expect(":")
		p.ternary()
	}
	p.depth--
}

// precedence has the binary operators. A higher number binds more tightly. goja
// reports "??" mixed with "||" or "&&".
var precedence = map[string]int{
	"||": 1, "??": 1, "&&": 2, "===": 3, "!==": 3, "==": 3, "!=": 3,
	"<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}

func (p *fastParser) binary(least int) {
	p.unary()
	for p.tok.kind == tokOperator {
		level := precedence[p.tok.text]
		if level < least || level == 0 {
			return
		}
		p.joins = p.joins || p.tok.text == "+"
		p.advance()
		if !p.enter() {
			return
		}
		p.binary(level + 1)
		p.depth--
	}
}

func (p *fastParser) unary() {
	if !p.enter() {
		return
	}
	defer func() { p.depth-- }()
	if p.is("!") || p.is("-") || p.is("+") || p.tok.kind == tokWord && p.tok.text == "typeof" {
		p.advance()
		p.unary()
		return
	}
	p.primary()
}

// primary parses an operand with its members and calls.
func (p *fastParser) primary() {
	switch t := p.tok; {
	case t.kind == tokNumber:
		p.advance()
		if p.is(".") {
			p.fail(needsChild, p.tok.at, "", "a member of a number")
		}
	case t.kind == tokString:
		p.advance()
	case t.kind == tokWord && t.text[0] == '$':
		p.variable()
	case t.kind == tokWord:
		p.word()
	case p.is("("):
		p.advance()
		if p.is(")") {
			p.fail(needsChild, t.at, "", "a function")
		}
		p.ternary()
		p.expect(")")
	default:
		p.failOperand()
	}
	for !p.failed && (p.is(".") || p.is("?.") || p.is("[")) {
		p.member()
	}
	if p.is("(") {
		p.fail(needsChild, p.tok.at, "", "a call of a function")
	}
}

func (p *fastParser) variable() {
	t := p.tok
	name := t.text[1:]
	if !isName(name) {
		p.fail(invalid, t.at, "a variable is $ and letters, digits or _", "invalid variable name "+quote(t.text))
		return
	}
	if p.uses[name] == 0 {
		p.names = append(p.names, name)
	}
	p.uses[name]++
	p.advance()
}

func (p *fastParser) word() {
	switch t := p.tok; {
	case t.text == "true", t.text == "false", t.text == "null", t.text == "undefined":
		p.advance()
	case p.declares || keywords[t.text] || globals[t.text]:
		p.fail(needsChild, t.at, "", "the word "+quote(t.text))
	default:
		message, hint := unknownName(t.text)
		p.fail(invalid, t.at, hint, message)
	}
}

// member parses .name, ?.name, [index], ?.[index] and calls of fastMethods.
func (p *fastParser) member() {
	optional := p.is("?.")
	dot := optional || p.is(".")
	if dot {
		p.advance()
	}
	switch {
	case optional && p.is("("):
		p.fail(needsChild, p.tok.at, "", "an optional call")
	case p.is("[") && (optional || !dot):
		p.advance()
		p.ternary()
		p.expect("]")
		if p.is("(") {
			p.fail(needsChild, p.tok.at, "", "a call by index")
		}
	case dot && p.tok.kind == tokWord:
		method := p.tok
		p.advance()
		if !p.is("(") {
			return
		}
		if !fastMethods[method.text] {
			p.fail(needsChild, method.at, "", "the method "+quote(method.text))
			return
		}
		p.arguments()
	default:
		p.failName()
	}
}

func (p *fastParser) arguments() {
	p.advance()
	for !p.failed && !p.is(")") {
		p.ternary()
		if !p.is(",") {
			break
		}
		p.advance()
	}
	p.expect(")")
}
