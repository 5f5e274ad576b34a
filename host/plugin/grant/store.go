package grant

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options configure a [Store]. File is needed.
type Options struct {
	// File is grants.json in the folder of plugins. It need not be there.
	File string
	// Key is the file with the key of the seals; it is made when the first entry
	// is. Default none: nothing can be sealed, and no seal is good.
	Key string
	// TrustUnsealed counts entries without a good seal too, for containers whose
	// image was made elsewhere. Default false.
	TrustUnsealed bool
	// Trust decides whether the files are obeyed. Default: they and the folders above
	// have to be the user's or root's alone.
	Trust *trust.Policy
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger receives grants that were carried over to changed files. Default discards.
	Logger *slog.Logger
}

// A Store is the grants of one folder of plugins.
//
// # Concurrency
//
// Safe for concurrent use, by several processes too: who changes the file has a
// lock on its folder, reads it again, and replaces it. Readers
// see the file before or after.
type Store struct {
	opt Options
	mu  sync.Mutex // of changes by this process, since a lock on a folder is the process's
}

var _ plugin.Grants = (*Store)(nil)

// New returns the grants in a file. It reads nothing yet.
func New(opt Options) *Store {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{opt: opt}
}

// File returns the path of the file.
func (s *Store) File() string { return s.opt.File }

// Grant returns what a version of a plugin may do, see [plugin.Grants]. A changed
// file of a plugin that was allowed keeps the grant if it asks for no more and
// the operator did not hold the grant to the bytes; that is noted in the file.
func (s *Store) Grant(ctx context.Context, p plugin.Info) (plugin.Grant, error) {
	e, seal, err := s.Entry(p.Name)
	switch {
	case err != nil && len(p.Permissions) == 0:
		s.opt.Logger.Warn("grants cannot be read", "file", s.opt.File, "error", err)
		return plugin.Grant{}, nil // it needs none
	case err != nil:
		return plugin.Grant{}, err
	case seal != None && e.Denied:
		e := denied("plugin %q was denied%s", p.Name, byWhom(e))
		e.Permanent = true // a decision exists and need not be requested again
		return plugin.Grant{}, e
	case seal == Good || seal == Bad && s.opt.TrustUnsealed:
	case len(p.Permissions) == 0:
		return plugin.Grant{}, nil
	case seal == Bad:
		return plugin.Grant{}, denied("plugin %q was granted elsewhere, or its entry in %s was edited or is an earlier one: run `sentinel plugin allow %s` again", p.Name, filepath.Base(s.opt.File), p.Name)
	default:
		return plugin.Grant{}, denied("plugin %q waits for approval: it asks for %s", p.Name, uses(p.Permissions))
	}
	if g, ok := e.grantOf(p.Digest); ok {
		return g, nil
	}
	var why string
	missing := e.Grant.Missing(p.Permissions)
	switch {
	case len(p.Permissions) == 0:
		return plugin.Grant{}, nil // what was allowed another version of it is of no use to this one
	case len(missing) > 0:
		why = "it asks for more than was allowed: " + uses(missing)
	case e.Pin:
		why = "its grant holds for the very bytes that were allowed"
	case p.Source == "":
		why = "this version was not allowed"
	case p.Source != e.File:
		why = fmt.Sprintf("the grant is for the file %q", e.File)
	default:
		return s.carry(ctx, p, e)
	}
	return plugin.Grant{}, denied("plugin %q has changed and waits for approval: %s", p.Name, why)
}

// denied is the error of a plugin that has to wait.
func denied(format string, args ...any) *abi.Error {
	return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf(format, args...), Hint: "sentinel plugin list shows what it asks for"}
}

func byWhom(e Entry) string {
	who := ""
	if e.By != "" {
		who = " by " + e.By
	}
	if !e.At.IsZero() {
		who += e.At.Format(" on 2006-01-02")
	}
	return who
}

// uses lists the permissions on one line.
func uses(permissions []plugin.Permission) string {
	var list []string
	for _, a := range permissions {
		text := a.Use
		if len(a.Names) > 0 {
			text += " " + strings.Join(a.Names[:min(3, len(a.Names))], " ")
		}
		if len(a.Names) > 3 {
			text += fmt.Sprintf(" and %d more", len(a.Names)-3)
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// carry carries the grant over to a changed file. Where that cannot be noted, such as
// on a disk that is read-only, it holds for this process.
func (s *Store) carry(ctx context.Context, p plugin.Info, e Entry) (plugin.Grant, error) {
	next := e
	next.Digest, next.Version, next.Grant = p.Digest, p.Version, part(e.Grant, p.Permissions)
	next.Carried = &Carried{From: e.Digest, At: s.opt.Now().UTC().Truncate(time.Second)}
	if e.Carried != nil {
		next.Carried.From = e.Carried.From
	}
	s.opt.Logger.Info("plugin has changed, asks for no more, and keeps its grant", "plugin", p.Name, "file", p.Source, "digest", p.Digest, "allowed", next.Carried.From)
	if e.Seal != "" { // an entry that only TrustUnsealed accepts is not rewritten
		err := s.change(ctx, func(d *document, key []byte) error {
			if now, ok := d.Plugins[p.Name]; !ok || now.Seal != e.Seal {
				return errOvertaken
			}
			d.put(next.after(e), key, s.place())
			return nil
		})
		switch {
		case errors.Is(err, errOvertaken): // a decision was made in between
			return s.Grant(ctx, p)
		case err != nil:
			s.opt.Logger.Warn("grant that was carried over cannot be noted", "plugin", p.Name, "error", err)
		}
	}
	return next.Grant, nil
}

// Entry returns the entry of a plugin and what its seal is worth.
func (s *Store) Entry(name string) (Entry, Seal, error) {
	d, err := s.read()
	if err != nil {
		return Entry{}, None, err
	}
	e, ok := d.Plugins[name]
	if !ok {
		return Entry{}, None, nil
	}
	key, err := readKey(s.opt.Key)
	if err != nil && !s.opt.TrustUnsealed {
		return e, Bad, err
	}
	if key == nil || !e.sealedWith(key, s.place()) {
		return e, Bad, nil
	}
	if newest, err := s.isNewest(name, e.Seal); err != nil || !newest {
		return e, Bad, err
	}
	return e, Good, nil
}

// Names returns the plugins that there are entries of.
func (s *Store) Names() ([]string, error) {
	d, err := s.read()
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(d.Plugins))
	for name := range d.Plugins {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Set writes the operator's decision about a plugin to the file, in place of the one
// before, seals it, and returns when it is durable. At is now if it is
// zero.
func (s *Store) Set(ctx context.Context, e Entry) error {
	if e.At.IsZero() {
		e.At = s.opt.Now()
	}
	e.At = e.At.UTC().Truncate(time.Second)
	return s.change(ctx, func(d *document, key []byte) error {
		before, there := d.Plugins[e.Name]
		if !there || !before.sealedWith(key, s.place()) {
			before = Entry{} // what another user allowed does not continue
		}
		if !there && len(d.Plugins) >= maxEntries {
			return &abi.Error{Code: abi.Limit, Message: fmt.Sprintf("write grants: there are %d entries already", maxEntries), Hint: "delete entries of plugins that are gone from " + s.opt.File}
		}
		d.put(e.after(before), key, s.place())
		return nil
	})
}

// put seals an entry and puts it in its place.
func (d *document) put(e Entry, key []byte, place string) {
	e.Seal = e.seal(key, place)
	d.Plugins[e.Name] = e
	d.written = append(d.written, e.Name)
}

// place is the folder that seals are bound to: a copy of the file is worth
// nothing in another one.
func (s *Store) place() string {
	dir := filepath.Dir(s.opt.File)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

// change reads the file, lets edit change it, and puts the new one in its place,
// alone of all processes.
func (s *Store) change(ctx context.Context, edit func(d *document, key []byte) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, err := makeKey(s.opt.Key)
	if err != nil {
		return err
	}
	dir := filepath.Dir(s.opt.File)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write grants: %w", err)
	}
	unlock, err := atomicfile.Lock(ctx, dir)
	if err != nil {
		return fmt.Errorf("write grants: lock %q: %w", dir, err)
	}
	defer unlock()
	d, err := s.read()
	if err != nil {
		return err
	}
	if err := edit(&d, key); err != nil {
		return err
	}
	text, err := encode(d)
	if err != nil {
		return fmt.Errorf("write grants: %w", err)
	}
	if len(text) > maxFile {
		return &abi.Error{Code: abi.Limit, Message: fmt.Sprintf("write grants: the file would have %d bytes, at most %d are read", len(text), maxFile)}
	}
	for _, name := range d.written { // before the file: a crash leaves an entry that has to be allowed again, not one that was taken back
		if err := s.writeNewest(name, d.Plugins[name].Seal); err != nil {
			return err
		}
	}
	if err := atomicfile.Replace(s.opt.File, text, 0o644); err != nil {
		return fmt.Errorf("write grants: %w", err)
	}
	return nil
}

// newestFile is where the seal of the newest entry of a plugin in this folder is kept, beside the key: an earlier entry has
// a good seal too, and a commit can put it back after the operator has denied the plugin or allowed less.
func (s *Store) newestFile(name string) string {
	sum := sha256.Sum256([]byte(s.place() + "\x00" + name))
	return filepath.Join(filepath.Dir(s.opt.Key), "grants", hex.EncodeToString(sum[:16]))
}

func (s *Store) writeNewest(name, seal string) error {
	file := s.newestFile(name)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = atomicfile.Replace(file, []byte(seal), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write grants: note the newest entry of %q: %w", name, err)
	}
	return nil
}

// isNewest reports whether the seal is that of the newest entry of a plugin here. One that was written before such notes
// were made counts.
func (s *Store) isNewest(name, seal string) (bool, error) {
	text, err := regularfile.Read(s.newestFile(name), 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read grants: %w", err)
	}
	return hmac.Equal(text, []byte(seal)), nil
}
