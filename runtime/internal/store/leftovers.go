package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// runLogs matches the run logs, which a host keeps found the store.
const runLogs = "logs/*.jsonl"

// checkNoLeftovers returns a [*DamagedError] if the state folder path has other
// files of a store. A missing or empty database file, as described by what, is
// then a lost one. A new store would hide the loss and delete blobs and store
// snapshots of the old one.
//
// All of these files are created after the tables of a new store are durable,
// so a first start that was interrupted can be repeated.
func checkNoLeftovers(path, what string) error {
	found := leftovers(path)
	if len(found) == 0 {
		return nil
	}
	return &DamagedError{Path: filepath.Join(path, dbFile), Count: 1, Places: []string{
		fmt.Sprintf("%s, but files of a store exist: %s", what, strings.Join(found, ", ")),
	}}
}

// leftovers returns the names of other files of a store.
func leftovers(path string) []string {
	var found []string
	for _, name := range []string{flagFile, blobDir} {
		if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
			found = append(found, name)
		}
	}
	for _, pattern := range []string{snapshotDir + "/*.db", runLogs} {
		if names, err := filepath.Glob(filepath.Join(path, pattern)); err == nil && len(names) > 0 {
			found = append(found, filepath.Dir(pattern))
		}
	}
	return found
}
