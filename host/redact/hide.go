package redact

import "encoding/json"

// Hide returns text from elsewhere without the registered secrets: mark
// stands where one was. JSON is read as [Redactor.JSON] does and stays valid.
//
// More says that data is only the beginning of what was sent. Then a secret may
// have been cut in two, so an end that could be the beginning of one goes too:
// who may choose where it is cut could else take it out piece by piece.
func (r *Redactor) Hide(data []byte, mark string, more bool) []byte {
	if !r.Active() {
		return data
	}
	if !more {
		if !json.Valid(data) {
			return r.replace(data, mark)
		}
		return r.json(data, mark)
	}
	t := r.table.Load()
	spans := t.find(data)
	// The whole secret at the end may also be the beginning of another.
	if from := t.begun(data); from < len(data) {
		if n := len(spans); n > 0 && from < spans[n-1].to {
			spans[n-1].to = len(data)
		} else {
			spans = append(spans, span{from, len(data)})
		}
	}
	return without(data, spans, mark)
}

// Begin takes the secrets out of the beginning of a text that goes on elsewhere. rest is an
// end that may belong to a secret which goes on there: it is not in clean, and stands before
// what follows. It is empty if it would be the whole text.
func (r *Redactor) Begin(text string) (clean, rest string) {
	if clean, rest = r.begin(text); clean == "" {
		return r.String(text), ""
	}
	return clean, rest
}

// maxRest is how many bytes of a text [Redactor.Split] keeps for what follows.
const maxRest = 1 << 20

// Split is [Redactor.Begin] for a reader of all of a text in parts: rest may be the whole text, up to
// 1 MiB, so that no secret is missed which comes in small parts.
func (r *Redactor) Split(text string) (clean, rest string) {
	if clean, rest = r.begin(text); len(rest) > maxRest {
		return r.String(text), ""
	}
	return clean, rest
}

// begin is Begin with a rest that may be the whole text.
func (r *Redactor) begin(text string) (clean, rest string) {
	if !r.Active() {
		return text, ""
	}
	t, data := r.table.Load(), []byte(text)
	spans := t.find(data)
	cut := t.begun(data)
	// The whole secret before it may be the beginning of another.
	for n := len(spans); n > 0 && spans[n-1].to > cut; n-- {
		cut = min(cut, spans[n-1].from)
		spans = spans[:n-1]
	}
	return string(without(data[:cut], spans, Mark)), text[cut:]
}

// begunExactly is begun for forms as they are.
func (t *table) begunExactly(data []byte) int {
	for i := max(0, len(data)-t.longest+1); i < len(data); i++ {
		if !t.first[data[i]] {
			continue
		}
		// Of fewer bytes than the index has, any form with this first byte may be it.
		if rest := data[i:]; len(rest) < indexLength {
			for key := range t.forms {
				if string(key[:len(rest)]) == string(rest) {
					return i
				}
			}
		} else {
			for _, form := range t.forms[[indexLength]byte(rest[:indexLength])] {
				if len(form) > len(rest) && form[:len(rest)] == string(rest) {
					return i
				}
			}
		}
	}
	return len(data)
}
