package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// describeTime bounds the check of a module: a compile and its describe.
const describeTime = 2 * time.Minute

// Describe loads a module as a host would and returns its manifest. The
// module is not trusted, so the limits of untrusted modules apply.
func Describe(ctx context.Context, module []byte) (guest.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	h, err := guest.Open(guest.Options{})
	if err != nil {
		return guest.Manifest{}, err
	}
	defer h.Close()
	m, err := h.Load(ctx, module, guest.LoadOptions{})
	if err != nil {
		return guest.Manifest{}, err
	}
	defer m.Release()
	return m.Manifest(), nil
}

// agrees compares the description in a package with the manifest of the plugin: people
// decide by the former, and the latter is what counts.
func (p *Plugin) agrees(config []byte) error {
	own, err := json.Marshal(p.Manifest)
	if err != nil {
		return fmt.Errorf("open plugin: %w", err)
	}
	// Compared in one spelling: spaces and the order of keys do not matter.
	var said guest.Manifest
	var again []byte
	if strictjson.DecodeOpen(config, &said, strictjson.Limits{}) == nil {
		again, err = json.Marshal(said)
	}
	if err != nil || !bytes.Equal(own, again) {
		return &abi.Error{Code: abi.Denied, Permanent: true, Hint: "it was not packed by sentinel plugin pack, or was changed since",
			Message: fmt.Sprintf("open plugin %q: the package says %q %s, the module in it %q %s, or they ask for different things", p.Source, said.Name, said.Version, p.Manifest.Name, p.Manifest.Version)}
	}
	return nil
}
