package foldersync_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/foldersync"
)

// A file that is not a definition by its extension is reported, and only once.
func TestUnreadFilesAreReported(t *testing.T) {
	s := newScene(t)
	s.write("sentinels/nightly.yaml", "name: x\n")
	s.write("sentinels/.hidden.yml", "name: x\n")
	s.write("sentinels/a.json", `{"id":"a","name":"a","steps":[{"type":"echo"}]}`)
	s.write("sentinels/b.jsonc", `{"id":"b","name":"b","steps":[{"type":"echo"}]} // b`)
	var log bytes.Buffer
	s.beginWith(foldersync.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.live("sentinels/a.json", "a", 1)
	s.live("sentinels/b.jsonc", "b", 1)
	s.stop()
	if text := log.String(); strings.Count(text, "is not read") != 1 || !strings.Contains(text, "nightly.yaml") || !strings.Contains(text, ".json or .jsonc") {
		t.Errorf("log:\n%s", text)
	}
}
