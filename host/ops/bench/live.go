package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/livefeed"
)

// waiting is a sentinel whose content differs with n.
func waiting(n int) string {
	return fmt.Sprintf(`{"id":"live","name":"live","steps":[{"type":"wait","durationMs":%d}],"loop":{"type":"once"}}`, n+1)
}

// liveFile saves a definition as a file and waits until its revision is what the
// next iteration of a run would use.
func liveFile(b *bench) (figure, error) {
	return b.live(func(s *served, n int) error { return put(s.root, "live", waiting(n)) }, isSaved)
}

// liveAPI saves a definition over the API and waits until every client is notified.
func liveAPI(b *bench) (figure, error) {
	return b.live(func(s *served, n int) error {
		if n == 0 {
			_, err := s.Create(b.ctx, json.RawMessage(waiting(n)))
			return err
		}
		_, err := s.Update(b.ctx, "live", 0, json.RawMessage(waiting(n)))
		return err
	}, isSaved)
}

// livePlugin drops a plugin of 1 KB, each time with other bytes, and waits until
// its step types are live.
func livePlugin(b *bench) (figure, error) {
	return b.live(func(s *served, n int) error {
		dir := filepath.Join(s.root, host.DirName, "plugins")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		file := filepath.Join(dir, "echo.wasm")
		if err := os.WriteFile(file+".new", numbered(echo, n), 0o600); err != nil {
			return err
		}
		return os.Rename(file+".new", file)
	}, isLoaded)
}

// isLoaded says that a message tells of the plugin with the n-th content.
func isLoaded(m client.Message, n int) (bool, error) {
	var file struct{ Kind, State, Digest string }
	if err := json.Unmarshal(m.Event, &file); err != nil || m.Kind != "file" || file.Kind != "plugin" {
		return false, err
	}
	switch file.State {
	case "live":
	case "compiling":
		return false, nil
	default:
		return false, fmt.Errorf("the plugin is not live: %s", m.Event)
	}
	sum := sha256.Sum256(numbered(echo, n))
	return file.Digest == hex.EncodeToString(sum[:]), nil
}

// numbered is a module with a custom section that makes its bytes others.
func numbered(module []byte, n int) []byte {
	section := []byte{0, 7, 2, 'n', 'o'}                                                                     // custom, 7 bytes: a name of 2, and the number
	return binary.LittleEndian.AppendUint32(append(module[:len(module):len(module)], section...), uint32(n)) //nolint:gosec // a count
}

// isSaved says that a message tells of the n-th revision, the first being 1.
func isSaved(m client.Message, n int) (bool, error) {
	if m.Kind != "saved" {
		return false, nil
	}
	var change struct {
		ID       string
		Revision int
	}
	err := json.Unmarshal(m.Event, &change)
	return change.ID == "live" && change.Revision == n+1, err
}

// live changes something again and again and measures the time until the live
// feed tells that it is done.
func (b *bench) live(change func(s *served, n int) error, isDone func(m client.Message, n int) (bool, error)) (f figure, err error) {
	if b.binary() == "" {
		return skip(noBinary)
	}
	s, err := b.serveEmpty()
	if err != nil {
		return f, err
	}
	defer s.kill()
	ctx, cancel := context.WithCancelCause(b.ctx)
	told, over := make(chan client.Message, 64), make(chan struct{})
	go func() {
		defer close(over)
		cancel(s.Watch(ctx, client.WatchOptions{Topics: []string{livefeed.TopicSentinels, livefeed.TopicPlugins}}, func(m client.Message) error {
			select {
			case told <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	}()
	defer func() { cancel(nil); <-over }()
	if err := until(ctx, "a watcher", 10*time.Millisecond, func() (bool, error) {
		figures, err := s.figures(ctx)
		return figures["sentinel_feed_subscribers"] > 0, err
	}); err != nil {
		return f, err
	}
	// The first one may find a folder that is not watched yet, or code that is cold.
	for n := range b.count(20) + 1 {
		began := time.Now()
		if err := change(s, n); err != nil {
			return f, err
		}
		if err := await(ctx, told, func(m client.Message) (bool, error) { return isDone(m, n) }); err != nil {
			return f, fmt.Errorf("change %d: %w; the process said: %s", n, err, s.said)
		}
		if n > 0 {
			f.samples = append(f.samples, float64(time.Since(began))/float64(time.Millisecond))
		}
		if err := b.pause(100 * time.Millisecond); err != nil { // as people do: one save after the other
			return f, err
		}
	}
	return f, nil
}

// await takes messages until one is it.
func await(ctx context.Context, told <-chan client.Message, is func(client.Message) (bool, error)) error {
	for late := time.After(patience); ; {
		select {
		case m := <-told:
			if yes, err := is(m); yes || err != nil {
				return err
			}
		case <-late:
			return errors.New("no client was notified")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
