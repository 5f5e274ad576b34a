package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestEmptySentinelID: a call that names no sentinel is refused as such.
func TestEmptySentinelID(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	for name, more := range map[string]string{
		"sentinel/revisions": "", "sentinel/revision": `,"revision":1`, "sentinel/diff": "", "sentinel/rollback": `,"to":1`, "sentinel/delete": "",
	} {
		_, err := h.Call(t.Context(), name, json.RawMessage(`{"sentinelId":""`+more+`}`))
		if e := abi.As(err); e == nil || e.Code != abi.BadFields || !strings.HasPrefix(e.Field, "sentinelId") {
			t.Errorf("%s: %+v", name, err)
		}
	}
}
