package logfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// A Place is where a server logs. The zero value is a place that can be read by no other process, such as
// a terminal.
type Place struct {
	File string `json:"file,omitempty"` // absolute path
	Unit string `json:"unit,omitempty"` // of systemd, whose journal has the log
	User bool   `json:"user,omitempty"` // the unit is one of the user's own manager
}

// placeName is the file in the state folder with the place of the last server. It stays after the
// server has ended, since its log then says why.
const placeName = "server-log.json"

// Record stores the place of the log of the server that has the state folder.
func (p Place) Record(state string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(state, placeName), append(text, '\n'), 0o600)
}

// Recorded returns where the last server of a state folder logs or has logged. ok is false if no server
// has recorded it.
func Recorded(state string) (p Place, ok bool, err error) {
	name := filepath.Join(state, placeName)
	text, err := regularfile.Read(name, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, false, fmt.Errorf("read %q: %w", name, err)
	}
	return p, true, nil
}
