package files

import (
	"sync"

	"github.com/fsnotify/fsnotify"
)

// A Source sends hints of paths that may have changed. Hints may be superfluous,
// missing or duplicate: the watcher checks each path itself.
type Source interface {
	// Watch starts to send hints for a folder and its direct entries.
	Watch(dir string) error
	// Unwatch ends Watch. It ignores a folder that is not watched.
	Unwatch(dir string)
	// Hints returns the channel of hints, which Close closes.
	Hints() <-chan Hint
	// Close ends the source.
	Close() error
}

// A Hint is an absolute path to check. An empty path means that hints were lost
// and that any path may have changed.
type Hint struct{ Path string }

// notifier is the Source of the system's notifications.
type notifier struct {
	watcher *fsnotify.Watcher
	hints   chan Hint
	done    chan struct{}
	once    sync.Once
}

// openNotifier opens the default source. It fails where the system has no
// notifications, or has reached its limit of watchers.
func openNotifier() (Source, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	// Unbuffered: Watcher.collect takes the hints at once and merges them.
	n := &notifier{watcher: w, hints: make(chan Hint), done: make(chan struct{})}
	go n.forward()
	return n, nil
}

// forward converts events to hints until the source is closed. Close waits for
// it.
func (n *notifier) forward() {
	defer close(n.hints)
	send := func(h Hint) bool {
		select {
		case n.hints <- h:
			return true
		case <-n.done:
			return false
		}
	}
	for {
		select {
		// The kind of an event is ignored: each one is a hint to check the path.
		case e, ok := <-n.watcher.Events:
			if !ok || !send(Hint{e.Name}) {
				return
			}
		case _, ok := <-n.watcher.Errors:
			// An overflow, or another error that may have lost notifications.
			if !ok || !send(Hint{}) {
				return
			}
		case <-n.done:
			return
		}
	}
}

func (n *notifier) Watch(dir string) error { return n.watcher.Add(dir) }

func (n *notifier) Unwatch(dir string) {
	// It fails only if dir is not watched or the watcher is closed.
	_ = n.watcher.Remove(dir)
}

func (n *notifier) Hints() <-chan Hint { return n.hints }

func (n *notifier) Close() error {
	var err error
	n.once.Do(func() {
		close(n.done)
		err = n.watcher.Close()
		for range n.hints {
			continue // forward closes the channel when it ends
		}
	})
	return err
}
