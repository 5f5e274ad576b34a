package cond

import "strconv"

// A source is invalid only if no JavaScript could continue there: all tokens so
// far have the same meaning in the whole language. In doubt it needs a child.

func quote(s string) string { return strconv.Quote(s) }

// failOperand fails at a token that cannot begin an operand here.
func (p *fastParser) failOperand() {
	t := p.tok
	switch {
	case t.kind == tokEnd:
		p.fail(invalid, t.at, "", "unexpected end")
	case t.kind == tokOperator && (t.text == "[" || t.text == "/"):
		p.fail(needsChild, t.at, "", map[string]string{"[": "a list", "/": "a regular expression"}[t.text])
	case t.kind == tokOperator:
		p.fail(invalid, t.at, "", "unexpected "+quote(t.text))
	default:
		p.fail(needsChild, t.at, "", quote(t.text))
	}
}

// failName fails at a token after "." that is not a name.
func (p *fastParser) failName() {
	switch t := p.tok; {
	case t.kind == tokEnd:
		p.fail(invalid, t.at, "", "unexpected end")
	case t.kind == tokOperator || t.kind == tokNumber || t.kind == tokString:
		p.fail(invalid, t.at, "", "unexpected "+quote(t.text)+", want a name after the dot")
	default:
		p.fail(needsChild, t.at, "", quote(t.text))
	}
}

// expect parses the given closing operator.
func (p *fastParser) expect(mark string) {
	switch t := p.tok; {
	case p.failed:
	case p.is(mark):
		p.advance()
	case t.kind == tokEnd:
		p.fail(invalid, t.at, "", "unexpected end, want "+quote(mark))
	case p.is(",") && mark == ")", t.text == "=" || t.text == "=>":
		p.fail(needsChild, t.at, "", quote(t.text)) // possibly a parameter list
	default:
		p.failAfterOperand(mark)
	}
}

// expectEnd checks that nothing follows the expression.
func (p *fastParser) expectEnd() {
	switch t := p.tok; {
	case p.failed || t.kind == tokEnd:
	case t.text == "=":
		p.fail(invalid, t.at, "write === to compare", "an expression cannot assign")
	case t.text == "," || t.text == ";":
		p.fail(invalid, t.at, "", "unexpected "+quote(t.text)+": want one expression")
	default:
		p.failAfterOperand("")
	}
}

// failAfterOperand fails at a token that follows an operand and is not an
// operator of the fast path. mark is the expected operator, if any.
func (p *fastParser) failAfterOperand(mark string) {
	t := p.tok
	switch {
	case t.kind == tokWord && !keywords[t.text], t.kind == tokNumber, t.kind == tokString:
		p.fail(invalid, t.at, wordHints[t.text], "unexpected "+quote(t.text)+" after an operand")
	case t.kind == tokOperator && mark == "":
		p.fail(invalid, t.at, "", "unexpected "+quote(t.text))
	case t.kind == tokOperator:
		p.fail(invalid, t.at, "", "unexpected "+quote(t.text)+", want "+quote(mark))
	default:
		p.fail(needsChild, t.at, "", quote(t.text))
	}
}
