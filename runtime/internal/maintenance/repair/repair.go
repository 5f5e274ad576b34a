package repair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options configure a repair.
type Options struct {
	// Dir is the state folder. Required.
	Dir string
	// From is the path or the name of a snapshot to return to, even if the store
	// is not damaged. Default: the store is salvaged, and the newest sound
	// snapshot replaces what is lost.
	From string
	// DryRun does everything but replace the store. Default false.
	DryRun bool
	// KeepRevisions is how many revisions of a definition an engine keeps; the
	// report lists those of them that are missing. Required.
	KeepRevisions int
	// Check reads the whole store in a folder that no process has open. Required.
	Check func(dir string) error
	// Layout describes the tables of the engine. Required.
	Layout Layout
}

// A Layout names the buckets of the engine that a repair reads or writes.
type Layout struct {
	Runs        string // run id -> summary
	Results     string // run id -> result
	RunIndex    string // left out: the engine builds it again
	Definitions string // id -> head with id and revision, RevisionKey -> revision
	Events      string // offset, 8 bytes big-endian -> event

	RevisionKey func(id sentinels.ID, revision int) []byte
	// Marker returns an event at an offset of the event log, which marks the
	// repair.
	Marker func(offset uint64) (store.Put, error)
}

// Run repairs the store of a state folder, see the package's rules. A store that a
// process has open is an error that matches [statefolder.ErrHeld]. If there is
// neither a store nor a sound snapshot, the error has the code not_found.
func Run(ctx context.Context, opt Options) (report maintenance.RepairReport, err error) {
	began := time.Now()
	defer func() { report.Took = time.Since(began) }()
	report.DryRun = opt.DryRun
	hold, err := store.HoldStore(opt.Dir)
	if err != nil {
		return report, statefolder.Error(opt.Dir, err)
	}
	defer hold.Close()
	report.Store = filepath.Join(opt.Dir, "store.db")
	// Under the lock: a process that starts now would change the file between the
	// inspection and the repair.
	found, err := hold.Inspect()
	if err != nil {
		return report, statefolder.Error(opt.Dir, err)
	}
	if err := found.Err(report.Store); errors.Is(err, store.ErrFormat) {
		return report, statefolder.Error(opt.Dir, err)
	}
	report.Damaged, report.Places = found.Damaged, found.Places
	if found.Damaged == 0 && opt.From == "" && found.Bytes > 0 {
		report.Sound = true
		return report, nil
	}
	base, err := chooseSnapshot(opt, found, &report)
	if err != nil {
		return report, err
	}
	if found.Bytes == 0 && base == "" {
		return report, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("repair %q: there is neither a store nor a sound snapshot", opt.Dir),
			Hint: "put store.db back from a copy of yours; or move the state folder away, and the next start makes a new store"}
	}
	err = replace(ctx, opt, hold, found, base, &report)
	return report, err
}

// replace builds the new store, checks it, and replaces the old one.
func replace(ctx context.Context, opt Options, hold *store.Hold, found store.Inspection, base string, report *maintenance.RepairReport) error {
	// The folder is in the state folder and not among temporary files, because the
	// result is renamed, which works within a file system only.
	work := filepath.Join(opt.Dir, "repairing")
	if err := os.RemoveAll(work); err != nil { // left by a crash
		return fmt.Errorf("repair %q: %w", opt.Dir, err)
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return fmt.Errorf("repair %q: %w", opt.Dir, err)
	}
	defer os.RemoveAll(work)
	if err := checkSpace(opt.Dir, found.Used, base); err != nil {
		return err
	}
	r := newRepair(opt, report)
	r.format = found.Format
	if err := r.build(ctx, work, hold.File(), base); err != nil {
		return fmt.Errorf("repair %q: %w", opt.Dir, err)
	}
	// A damaged result must not replace the store.
	if err := opt.Check(work); err != nil {
		return fmt.Errorf("repair %q: the result: %w", opt.Dir, err)
	}
	if opt.DryRun {
		return nil
	}
	// The file name has the reason why the file is kept.
	why := "replaced"
	if found.Damaged > 0 {
		why = "damaged"
	}
	var err error
	report.Kept, err = hold.Replace(filepath.Join(work, "store.db"), why)
	return err
}

// checkSpace refuses a repair whose result does not fit on the disk.
func checkSpace(dir string, used int64, base string) error {
	if info, err := os.Stat(base); err == nil {
		used = max(used, info.Size())
	}
	d, err := store.DiskOf(dir)
	if err != nil || d.Free >= used+used/4 {
		return nil // if the free space is unknown, the write fails
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("repair %q: it takes about %s, %s are free", dir, statefolder.FormatBytes(used+used/4), statefolder.FormatBytes(d.Free)), Hint: "free space on the disk of the state folder"}
}

// chooseSnapshot returns the file that replaces what is lost: the snapshot that
// the options name, or the newest sound snapshot of the same store and format; of any
// store if that of lost is unknown. It returns "" if there is none.
func chooseSnapshot(opt Options, lost store.Inspection, report *maintenance.RepairReport) (string, error) {
	list, err := store.Snapshots(opt.Dir)
	if err != nil {
		return "", err
	}
	if opt.From != "" {
		i := slices.IndexFunc(list, func(s store.Snapshot) bool { return s.Path == opt.From || filepath.Base(s.Path) == opt.From })
		s := store.Snapshot{Path: opt.From}
		if i >= 0 {
			s = list[i]
		}
		list = []store.Snapshot{s}
	}
	// Newest first: the older a snapshot is, the more of it is out of date.
	for _, s := range list {
		err := checkSnapshot(s.Path, lost, opt.From != "")
		switch {
		case err == nil:
			used := maintenance.Snapshot(withTime(s))
			report.Snapshot = &used
			return s.Path, nil
		case opt.From != "" && errors.Is(err, os.ErrNotExist):
			return "", &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("repair %q: there is no snapshot %q", opt.Dir, opt.From), Hint: "its name is that of a file in " + filepath.Join(opt.Dir, "snapshots")}
		case opt.From != "":
			return "", &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("repair %q: the snapshot %q cannot be used: %v", opt.Dir, opt.From, err)}
		}
		report.Unusable = append(report.Unusable, fmt.Sprintf("%s: %v", filepath.Base(s.Path), err))
	}
	return "", nil
}

// checkSnapshot returns why a snapshot cannot be used for a store.
func checkSnapshot(path string, lost store.Inspection, named bool) error {
	found, err := store.InspectFile(path)
	if err != nil {
		return err
	}
	if found.Bytes == 0 {
		return errors.New("it is empty")
	}
	if err := found.Err(path); err != nil {
		return err
	}
	switch {
	case named: // it replaces the whole store
	case lost.Store != "" && found.Store != lost.Store:
		return errors.New("it is of another store that was here")
	case lost.Store != "" && found.Format != lost.Format: // what has lost its id has lost its format
		return fmt.Errorf("it has format %d, the store has %d", found.Format, lost.Format)
	}
	return nil
}

// withTime adds what the name of a file from another folder does not have.
func withTime(s store.Snapshot) store.Snapshot {
	if info, err := os.Stat(s.Path); err == nil && s.Taken.IsZero() {
		s.Taken, s.Bytes = info.ModTime(), info.Size()
	}
	return s
}
