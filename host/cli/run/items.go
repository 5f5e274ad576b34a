package run

import (
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// Of a loop with more than manyItems items the lines say how many have ended, at each tenth of them, instead of what
// each step of each item did. The first maxFailedLines steps that fail are shown.
const (
	manyItems      = 20
	maxFailedLines = 3
)

// itemLines is what was shown of a loop with many items.
type itemLines struct {
	tenths int64 // of the items, in the newest line
	failed int   // steps that failed
}

// countItems keeps how many items the loops under way have.
func (l *lines) countItems(p runtime.Progress) {
	switch {
	case p.Event == runtime.OnItems && p.Items != nil:
		if l.totals == nil {
			l.totals = map[string]int64{}
		}
		l.totals[itemsKey(p, p.Path)] = p.Items.Total
	case p.Event == runtime.OnStepEnd && len(l.totals) > 0:
		delete(l.totals, itemsKey(p, p.Path))
	}
}

// itemOf is the number of the item that a step is executed for, the outermost loop first; "" outside of loops that
// collect results. Items side by side have the same steps, whose lines differ only in it.
func (l *lines) itemOf(p runtime.Progress) (text termtext.Text) {
	if len(l.totals) == 0 {
		return ""
	}
	for at, c := range p.Path {
		if c != '#' {
			continue
		}
		digits, _, _ := strings.Cut(p.Path[at+1:], ".")
		n, err := strconv.ParseInt(digits, 10, 64)
		total := l.totals[itemsKey(p, p.Path[:at])]
		if err != nil || n >= total { // its onFailure and finally are numbered behind the items
			continue
		}
		if text != "" {
			text += ", "
		}
		text += termtext.Sprintf("item %d of %d", n+1, total)
	}
	return text
}

func itemsKey(p runtime.Progress, path string) string { return string(p.Run) + " " + path }

// itemsOf returns the line for the number of items that have ended, if it is due.
func (l *lines) itemsOf(who termtext.Text, p runtime.Progress) []termtext.Text {
	if p.Items == nil || p.Items.Total <= manyItems || l.app.Flags.Verbose || l.around(p) != nil {
		return nil
	}
	key := itemsKey(p, p.Path)
	if l.items == nil {
		l.items = map[string]*itemLines{}
	}
	shown := l.items[key]
	if shown == nil || p.Items.Ended == 0 { // a further attempt or iteration begins again
		shown = &itemLines{}
		l.items[key] = shown
	}
	tenths := p.Items.Ended * 10 / p.Items.Total
	if tenths == shown.tenths {
		return nil
	}
	shown.tenths = tenths
	return []termtext.Text{who + l.stepName(p) + "  " + l.paint.Dim(itemsText(p))}
}

// withinItems reports whether p is of a step within a loop with many items, and is not shown.
func (l *lines) withinItems(p runtime.Progress) bool {
	if len(l.items) == 0 {
		return false
	}
	if p.Event == runtime.OnStepEnd {
		defer delete(l.items, itemsKey(p, p.Path)) // the loop itself has ended
	}
	if p.Event != runtime.OnStepEnd && p.Event != runtime.OnRetry {
		return false
	}
	shown := l.around(p)
	switch {
	case shown == nil:
		return false
	case p.Error == nil, p.Event == runtime.OnRetry:
		return true
	}
	shown.failed++
	return shown.failed > maxFailedLines
}

// around returns the loop with many items around a step, nil if there is none.
func (l *lines) around(p runtime.Progress) *itemLines {
	for path := p.Path; ; {
		at := strings.LastIndexByte(path, '#')
		if at < 0 {
			return nil
		}
		path = path[:at]
		if shown := l.items[itemsKey(p, path)]; shown != nil {
			return shown
		}
	}
}

// itemsText is the newest number of items for the status line.
func itemsText(p runtime.Progress) termtext.Text {
	if p.Items == nil {
		return ""
	}
	return termtext.Sprintf("items %d of %d", p.Items.Ended, p.Items.Total)
}
