package files

import (
	"errors"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// A Source tells where something may have changed. It may tell too much, too
// little, or twice: the watcher believes only what it finds.
type Source interface {
	// Watch begins to tell of a folder itself and of what is directly in it.
	Watch(dir string) error
	// Unwatch ends that. A folder that is not watched is no error.
	Unwatch(dir string)
	// Hints is where it tells; it is closed with the source.
	Hints() <-chan Hint
	// Close ends the source.
	Close() error
}

// A Hint is a path to look at, absolute; empty means that hints were lost and
// that anything may have changed.
type Hint struct{ Path string }

// notifier is the system's notifications.
type notifier struct {
	watcher *fsnotify.Watcher
	hints   chan Hint
	done    chan struct{}
	once    sync.Once
}

// openNotifier is the source that is used if no other is given. It fails where
// the system has no notifications, or no more of them.
func openNotifier() (Source, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	// Unbuffered: the watcher's collector is the buffer, and it merges.
	n := &notifier{watcher: w, hints: make(chan Hint), done: make(chan struct{})}
	go n.forward()
	return n, nil
}

// forward ends when the watcher is closed, which Close waits for.
func (n *notifier) forward() {
	defer close(n.hints)
	tell := func(h Hint) bool {
		select {
		case n.hints <- h:
			return true
		case <-n.done:
			return false
		}
	}
	for {
		select {
		// The kind of an event is not looked at: every one means "look there".
		case e, ok := <-n.watcher.Events:
			if !ok || !tell(Hint{e.Name}) {
				return
			}
		case _, ok := <-n.watcher.Errors:
			// An overflow, or an error that may have cost notifications.
			if !ok || !tell(Hint{}) {
				return
			}
		case <-n.done:
			return
		}
	}
}

func (n *notifier) Watch(dir string) error { return n.watcher.Add(dir) }

func (n *notifier) Unwatch(dir string) {
	// The only errors are that it is not watched and that all is closed.
	_ = n.watcher.Remove(dir)
}

func (n *notifier) Hints() <-chan Hint { return n.hints }

func (n *notifier) Close() error {
	var err error
	n.once.Do(func() {
		close(n.done)
		err = n.watcher.Close()
		for range n.hints {
			continue // until forward has ended
		}
	})
	return err
}

// errNoSource makes a watcher that polls.
var errNoSource = errors.New("notifications are turned off")

// NoSource is an [Options.Source] for file systems that tell nothing, such as
// network folders: the watcher polls.
func NoSource() (Source, error) { return nil, errNoSource }
