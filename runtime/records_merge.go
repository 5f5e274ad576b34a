package runtime

import (
	"sort"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A merge lays writes that are not yet committed over a scan of the committed
// documents, in one order.
type merge struct {
	own     map[string]aheadRecord
	ids     []string // of own, in scan order
	reverse bool
}

func newMerge(own map[string]aheadRecord, reverse bool, after string) *merge {
	m := &merge{own: own, reverse: reverse}
	for id := range own {
		if after != "" && !m.less(after, id) {
			continue
		}
		m.ids = append(m.ids, id)
	}
	sort.Slice(m.ids, func(i, j int) bool { return m.less(m.ids[i], m.ids[j]) })
	return m
}

func (m *merge) less(a, b string) bool {
	if m.reverse {
		return a > b
	}
	return a < b
}

// before returns the uncommitted documents that come before id, once.
func (m *merge) before(id string) []sentinels.Document {
	n := 0
	for n < len(m.ids) && m.less(m.ids[n], id) {
		n++
	}
	return m.take(n)
}

// shadows reports whether an uncommitted write stands for the committed id.
func (m *merge) shadows(id string) bool {
	_, ok := m.own[id]
	return ok
}

func (m *merge) rest() []sentinels.Document { return m.take(len(m.ids)) }

func (m *merge) take(n int) []sentinels.Document {
	var docs []sentinels.Document
	for _, id := range m.ids[:n] {
		if w := m.own[id]; !w.deleted {
			docs = append(docs, w.doc)
		}
	}
	m.ids = m.ids[n:]
	return docs
}
