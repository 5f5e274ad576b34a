package runtime

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
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// RepairOptions say how a store is repaired.
type RepairOptions struct {
	// Dir is the state folder. Required.
	Dir string
	// From is a snapshot to go back to, whatever the store still holds. Default:
	// the store is salvaged, and the newest sound snapshot fills in what is lost.
	From string
	// DryRun does everything but replace the store. Default false.
	DryRun bool
	// Child is used for a second look at the result. Default: as [Options.Child].
	Child Child
}

// A RepairReport says what a repair did, what came from where, and what is
// missing.
type RepairReport struct {
	Sound  bool   `json:"sound,omitempty"`  // the store is not damaged, and nothing was done
	DryRun bool   `json:"dryRun,omitempty"` // the store was not replaced
	Store  string `json:"store"`
	Kept   string `json:"kept,omitempty"` // where the store is that was replaced

	Damaged  int       `json:"damaged"`            // places
	Places   []string  `json:"places,omitempty"`   // the first of them
	Snapshot *Snapshot `json:"snapshot,omitempty"` // what filled in
	Unusable []string  `json:"unusable,omitempty"` // snapshots that are damaged too, each with why

	Buckets []RepairedBucket `json:"buckets"`
	Runs    RepairedRuns     `json:"runs"`
	// Revisions of definitions that are in neither, as "id/number".
	Revisions []string `json:"revisionsMissing,omitempty"`
	// Events is how many places between the oldest and the newest event of the
	// log are empty.
	Events int `json:"eventsMissing,omitempty"`
	// Blobs are digests of large values that something names and that are not
	// there.
	Blobs []string      `json:"blobsMissing,omitempty"`
	Took  time.Duration `json:"took"`
}

// RepairedBucket says where the pairs of a bucket came from.
type RepairedBucket struct {
	Name         string `json:"name"`
	Salvaged     int    `json:"salvaged"`
	FromSnapshot int    `json:"fromSnapshot,omitempty"` // as they were when it was taken; some may have been changed or deleted since
	Unreadable   int    `json:"unreadable,omitempty"`   // values whose checksum does not match
	Whole        bool   `json:"whole"`                  // nothing of it was lost
}

// RepairedRuns names the runs that are not what they were. All others are whole.
type RepairedRuns struct {
	Whole        int               `json:"whole"`
	FromSnapshot []sentinels.RunID `json:"fromSnapshot,omitempty"` // journal as the snapshot had it
	Cut          []sentinels.RunID `json:"cut,omitempty"`          // journal that ends early
	Rebuilt      []sentinels.RunID `json:"rebuilt,omitempty"`      // summary made again from the journal
	Lost         []sentinels.RunID `json:"lost,omitempty"`         // summary without a journal that could go on: failed
	Paused       []sentinels.RunID `json:"paused,omitempty"`       // records may be missing, so a person has to resume it
}

// Repair rebuilds the store of a state folder that no process has open, else it
// is [ErrHeld] with the holder's id. The rules:
//
//   - What can be read of the damaged store counts. Where something is lost, the
//     newest sound snapshot fills in, as it was when it was taken.
//   - A run's journal is entirely of one of the two, the one that reaches further,
//     from its first record on without a hole.
//   - A run that is not over and may have lost records is paused: it would repeat
//     what it does not remember having done. A person decides to resume it.
//   - A snapshot of another store that was in the folder is used only if
//     [RepairOptions.From] names it, or if nothing says which store was there.
//   - The result is read whole before it takes the place of the damaged file,
//     which is kept beside it.
func Repair(ctx context.Context, opt RepairOptions) (report RepairReport, err error) {
	began := time.Now()
	defer func() { report.Took = time.Since(began) }()
	report.DryRun = opt.DryRun
	hold, err := store.HoldStore(opt.Dir)
	if err != nil {
		return report, statefolder.Error(opt.Dir, err)
	}
	defer hold.Close()
	report.Store = filepath.Join(opt.Dir, "store.db")
	// Under the lock: a process that is just starting would change the file
	// between what is found and what is done about it.
	found, err := hold.Inspect()
	if err != nil {
		return report, statefolder.Error(opt.Dir, err)
	}
	report.Damaged, report.Places = found.Damaged, found.Places
	if found.Damaged == 0 && opt.From == "" && found.Bytes > 0 {
		report.Sound = true
		return report, nil
	}
	base, err := chooseSnapshot(opt, found.Store, &report)
	if err != nil {
		return report, err
	}
	if found.Bytes == 0 && base == "" {
		return report, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("repair %q: there is neither a store nor a sound snapshot", opt.Dir),
			Hint: "put store.db back from a copy of yours; or move the state folder away, and the next start makes a new store"}
	}
	// In the state folder and not in that for temporary files: the result is
	// renamed into place, which works within a file system only.
	work := filepath.Join(opt.Dir, "repairing")
	if err := os.RemoveAll(work); err != nil { // left by a crash
		return report, fmt.Errorf("repair %q: %w", opt.Dir, err)
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return report, fmt.Errorf("repair %q: %w", opt.Dir, err)
	}
	defer os.RemoveAll(work)
	if err := enoughRoom(opt.Dir, found.Used, base); err != nil {
		return report, err
	}
	j := &repairs{report: &report, blobs: filepath.Join(opt.Dir, "blobs"), origin: map[sentinels.RunID]*journalOrigin{}}
	if err := j.make(ctx, work, hold.File(), base, opt.From != ""); err != nil {
		return report, fmt.Errorf("repair %q: %w", opt.Dir, err)
	}
	// A repair that made things worse must not be what replaces the store.
	if err := CheckStore(ctx, work, opt.Child); err != nil {
		return report, fmt.Errorf("repair %q: the result: %w", opt.Dir, err)
	}
	if opt.DryRun {
		return report, nil
	}
	// The name says why the file is kept.
	why := "damaged"
	if found.Damaged == 0 {
		why = "replaced"
	}
	report.Kept, err = hold.Replace(filepath.Join(work, "store.db"), why)
	return report, err
}

// enoughRoom refuses to begin what the disk cannot hold.
func enoughRoom(dir string, used int64, base string) error {
	if info, err := os.Stat(base); err == nil {
		used = max(used, info.Size())
	}
	d, err := store.DiskOf(dir)
	if err != nil || d.Free >= used+used/4 {
		return nil // if it is unknown, the write fails
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("repair %q: it takes about %s, %s are free", dir, statefolder.FormatBytes(used+used/4), statefolder.FormatBytes(d.Free)), Hint: "free space on the disk of the state folder"}
}

// chooseSnapshot returns the file that fills in: the one that was asked for, or
// the newest sound snapshot of the store id; of any store where that is not known.
func chooseSnapshot(opt RepairOptions, id string, report *RepairReport) (string, error) {
	list, err := Snapshots(opt.Dir)
	if err != nil {
		return "", err
	}
	if opt.From != "" {
		i := slices.IndexFunc(list, func(s Snapshot) bool { return s.Path == opt.From || filepath.Base(s.Path) == opt.From })
		s := Snapshot{Path: opt.From}
		if i >= 0 {
			s = list[i]
		}
		list = []Snapshot{s}
	}
	// The newest first: the older one is, the more of what fills in is stale.
	for _, s := range list {
		found, err := store.InspectFile(s.Path)
		if errors.Is(err, os.ErrNotExist) && opt.From != "" {
			return "", &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("repair %q: there is no snapshot %q", opt.Dir, opt.From), Hint: "its name is that of a file in " + filepath.Join(opt.Dir, "snapshots")}
		}
		if err == nil && found.Bytes == 0 {
			err = errors.New("it is empty")
		}
		if err == nil {
			err = found.Err(s.Path)
		}
		if err == nil && id != "" && found.Store != id && opt.From == "" {
			err = errors.New("it is of another store that was here")
		}
		if err == nil {
			// A file from elsewhere has no time in its name.
			if s.Taken.IsZero() {
				if info, err := os.Stat(s.Path); err == nil {
					s.Taken, s.Bytes = info.ModTime(), info.Size()
				}
			}
			report.Snapshot = &s
			return s.Path, nil
		}
		if opt.From != "" {
			return "", errf(abi.BadFields, "repair %q: the snapshot %q cannot be used: %v", opt.Dir, opt.From, err)
		}
		report.Unusable = append(report.Unusable, fmt.Sprintf("%s: %v", filepath.Base(s.Path), err))
	}
	return "", nil
}
