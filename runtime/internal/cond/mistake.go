package cond

import "strconv"

// The failures below are wrong only where no JavaScript could go on: all tokens
// so far mean the same in the whole language. Everything doubtful is beyond.

func quote(s string) string { return strconv.Quote(s) }

// noOperand fails at a token that cannot begin an operand here.
func (p *reader) noOperand() {
	t := p.tok
	switch {
	case t.kind == tokEnd:
		p.fail(wrong, t.at, "", "unexpected end")
	case t.kind == tokMark && (t.text == "[" || t.text == "/"):
		p.fail(beyond, t.at, "", map[string]string{"[": "a list", "/": "a regular expression"}[t.text])
	case t.kind == tokMark:
		p.fail(wrong, t.at, "", "unexpected "+quote(t.text))
	default:
		p.fail(beyond, t.at, "", quote(t.text))
	}
}

// noName fails at a token after "." that is no name.
func (p *reader) noName() {
	switch t := p.tok; {
	case t.kind == tokEnd:
		p.fail(wrong, t.at, "", "unexpected end")
	case t.kind == tokMark || t.kind == tokNumber || t.kind == tokString:
		p.fail(wrong, t.at, "", "unexpected "+quote(t.text)+" where a name should follow the dot")
	default:
		p.fail(beyond, t.at, "", quote(t.text))
	}
}

// close takes the mark that ends what was begun.
func (p *reader) close(mark string) {
	switch t := p.tok; {
	case p.failed:
	case p.is(mark):
		p.step()
	case t.kind == tokEnd:
		p.fail(wrong, t.at, "", "unexpected end where "+quote(mark)+" should be")
	case p.is(",") && mark == ")", t.text == "=" || t.text == "=>":
		p.fail(beyond, t.at, "", quote(t.text)) // a parameter list, perhaps
	default:
		p.after(mark)
	}
}

// afterAll checks that nothing follows the expression.
func (p *reader) afterAll() {
	switch t := p.tok; {
	case p.failed || t.kind == tokEnd:
	case t.text == "=":
		p.fail(wrong, t.at, "write === to compare", "a condition cannot assign")
	case t.text == "," || t.text == ";":
		p.fail(wrong, t.at, "", "unexpected "+quote(t.text)+": a condition is one expression")
	default:
		p.after("")
	}
}

// after fails at a token that follows an operand and is no operator of the fast
// lane; mark is what would have been right, if anything.
func (p *reader) after(mark string) {
	t := p.tok
	switch {
	case t.kind == tokWord && !keywords[t.text], t.kind == tokNumber, t.kind == tokString:
		p.fail(wrong, t.at, wordHints[t.text], "unexpected "+quote(t.text)+" after an operand")
	case t.kind == tokMark && mark == "":
		p.fail(wrong, t.at, "", "unexpected "+quote(t.text))
	case t.kind == tokMark:
		p.fail(wrong, t.at, "", "unexpected "+quote(t.text)+" where "+quote(mark)+" should be")
	default:
		p.fail(beyond, t.at, "", quote(t.text))
	}
}
