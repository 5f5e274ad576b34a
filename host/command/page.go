package command

import "encoding/json"

// A Page bounds the bytes of a list in an answer: a list that grows with use has one, and its
// command says where the next page begins. The zero value has no bound of its caller; see
// [Call.Page].
type Page struct {
	call  *Call
	bytes int64
	items int
}

// Page returns an empty page of the answer to a call.
func (c *Call) Page() *Page { return &Page{call: c} }

// Fits adds an item and reports whether the page has place for it; the first item has. The
// error is that of [Call.Charge].
func (p *Page) Fits(item any) (bool, error) {
	text, err := json.Marshal(item)
	if err != nil {
		return false, err
	}
	return p.FitsBytes(int64(len(text)))
}

// FitsBytes is Fits for an item of which this many bytes are read or answered.
func (p *Page) FitsBytes(size int64) (bool, error) {
	if p.items > 0 && p.bytes+size > HeldBytes {
		return false, nil
	}
	p.items++
	p.bytes += size
	return true, p.call.Count(size)
}

// Count counts bytes with [Call.Charge], if the caller has it.
func (c *Call) Count(bytes int64) error {
	if c.Charge == nil {
		return nil
	}
	return c.Charge(bytes)
}

// A Peak counts what a call holds at one time, such as one file after the other: its most, and
// not the sum. Nil counts nothing.
type Peak struct {
	call *Call
	most int64
}

// Peak returns a count of what the call holds at one time. Nothing is held yet.
func (c *Call) Peak() *Peak { return &Peak{call: c} }

// Hold says that so many bytes are held from now on. The error is that of [Call.Charge].
func (p *Peak) Hold(bytes int64) error {
	if p == nil || bytes <= p.most {
		return nil
	}
	more := bytes - p.most
	p.most = bytes
	return p.call.Count(more)
}
