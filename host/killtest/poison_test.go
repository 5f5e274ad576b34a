//go:build linux

package killtest_test

import (
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestPoison has a step that takes its host down each time: the fourth host
// does not try it again.
func TestPoison(t *testing.T) {
	t.Cleanup(func() { noHelpers(t) })
	d := newDoubt(t, `{"name":"poison","steps":[
		{"type":"shell","command":"sh ./act.sh before 0.01 $iteration"},
		{"type":"shell","argv":["sh","./poison.sh","poison","-","$iteration"]}],"safety":{"onInterrupt":"retry"}}`)
	for n := 1; n <= 3; n++ {
		d.order.Life = n
		l := start(t, d.order, d.server)
		l.live(t, plan{after: afterSight, when: func() bool { return false }}, nil)
		if !l.killed {
			t.Fatalf("life %d ended by itself: %s", n, l.tail())
		}
		d.order.Run = look(t, filepath.Join(d.order.Dir, "state")).root
	}
	d.order.Life = 4
	l := start(t, d.order, d.server)
	l.live(t, plan{}, nil)
	if res := l.said[len(l.said)-1].Result; res == nil || res.Status != sentinels.StatusQuarantined {
		t.Errorf("after three crashes: %s", l.tail())
	}
	d.started(t, "before", 1)
	d.started(t, "poison", 3)
}
