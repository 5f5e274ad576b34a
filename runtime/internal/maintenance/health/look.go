package health

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
)

// Look looks at store and disk and acts on what it finds. It may take as long as
// the disk takes to answer.
func (m *Monitor) Look() {
	m.looking.Lock()
	defer m.looking.Unlock()
	disk := store.Disk{Free: -1, Total: -1, FreeFiles: -1}
	low := int64(0)
	if m.opt.Dir != "" && m.opt.MinFree >= 0 {
		if d, err := m.opt.Disk(m.opt.Dir); err == nil {
			disk, low = d, statefolder.LowWater(d, m.opt.MinFree)
		}
	}
	// Not under mu: the disk may take long to answer, and everything that starts
	// takes mu.
	failing := m.failing()

	m.mu.Lock()
	if bad := m.damaged(); bad != nil && m.unsound == nil {
		m.unsound = bad
	}
	was := m.now
	next := m.assess(disk, low, failing)
	changed := next.OK != was.OK || next.ReadOnly != was.ReadOnly
	if changed {
		next.Since = time.Now()
	}
	// Callers that wait for a commit return once each time that commits fail.
	if failing != nil && !m.isClosed {
		close(m.stalled)
		m.isClosed = true
	} else if failing == nil && m.isClosed {
		m.stalled, m.isClosed = make(chan struct{}), false
	}
	m.now = next
	m.mu.Unlock()

	m.opt.Hold(next.ReadOnly)
	m.block(next.ReadOnly)
	m.tendBallast(next, disk, failing)
	if next.OK {
		m.opt.Well()
	}
	if changed {
		m.report(next)
	}
}

// assess returns the health that follows from what was found. The caller holds mu.
func (m *Monitor) assess(disk store.Disk, low int64, failing error) maintenance.Health {
	next := maintenance.Health{Since: m.now.Since, FreeBytes: disk.Free, LowBytes: low}
	enough := low
	if m.now.ReadOnly {
		enough += low / 4 // otherwise the state would alternate at the mark
	}
	// The first that holds is the reason: a failing store is why people look here,
	// and the free space only explains it.
	switch {
	case failing != nil:
		next.ReadOnly, next.Reason, next.Hint = true, reasonOf(failing), hintOf(failing)
	case m.blob != nil:
		next.ReadOnly, next.Reason, next.Hint = true, fmt.Sprintf("a large value cannot be written: %v", m.blob), statefolder.HintSpace
	case low > 0 && disk.Free < enough:
		next.ReadOnly, next.Hint = true, statefolder.HintSpace
		next.Reason = fmt.Sprintf("the disk of %s is nearly full: %s free, %s are kept for what is under way", m.opt.Dir, statefolder.FormatBytes(disk.Free), statefolder.FormatBytes(enough))
	case disk.FreeFiles >= 0 && disk.FreeFiles < minFreeFiles:
		next.ReadOnly, next.Hint = true, hintFiles
		next.Reason = fmt.Sprintf("the disk of %s has room for %d more files only", m.opt.Dir, disk.FreeFiles)
	case m.unsound != nil:
		next.Reason, next.Hint = m.unsound.Message, m.unsound.Hint
	}
	next.OK = next.Reason == ""
	return next
}

// tendBallast deletes the ballast when something is held that cannot be written,
// and writes it when there is space again. Below the mark alone it stays: there is
// space left for what is under way.
func (m *Monitor) tendBallast(now maintenance.Health, disk store.Disk, failing error) {
	if m.opt.Dir == "" || disk.Total <= 0 {
		return
	}
	size := ballastSize(disk.Total)
	m.mu.Lock()
	starved, settled := failing != nil || m.blob != nil, m.settled
	m.mu.Unlock()
	switch {
	case starved && disk.Free < size:
		if dropped, err := store.DropBallast(m.opt.Dir); err != nil || dropped {
			m.opt.Log.Warn("ballast is deleted to write what is held", "dropped", dropped, "error", err)
		}
	case now.OK && settled && disk.Free > now.LowBytes+2*size:
		if err := store.MakeBallast(m.opt.Dir, size); err != nil {
			m.opt.Log.Warn("no ballast", "error", err)
		}
	}
}

// ballastSize returns how many bytes are kept for the last results: 8 MiB, less on
// a small disk. It is no setting: [Options.MinFree] is the space that an operator
// reserves, and this is for the last results when that is used up.
func ballastSize(total int64) int64 { return min(8<<20, total/64) }

// report reports a change to the log and to the observer. The caller holds looking,
// so changes are reported in their order.
func (m *Monitor) report(now maintenance.Health) {
	if now.OK {
		m.opt.Log.Info("the engine can write again")
	} else {
		m.opt.Log.Error("the engine is not well", "readOnly", now.ReadOnly, "reason", now.Reason, "hint", now.Hint)
	}
	if m.opt.Changed != nil {
		m.opt.Changed(now)
	}
}

// watch looks at store and disk until ctx ends.
func (m *Monitor) watch(ctx context.Context) {
	begin := time.Now()
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		m.mu.Lock()
		m.settled = time.Since(begin) >= ballastDelay
		m.mu.Unlock()
		m.Look()
		next := interval
		if m.Blocked() {
			next = intervalHeld
		}
		timer.Reset(next)
	}
}
