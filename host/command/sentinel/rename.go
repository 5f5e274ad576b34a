package sentinel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// decodeRename decodes the parameter rename: an object of old ids and new ones, which
// may be in a string, or the new id of the only sentinel, returned with the key "".
func decodeRename(raw json.RawMessage, b bundle) (map[sentinels.ID]sentinels.ID, error) {
	bad := func(format string, args ...any) (map[sentinels.ID]sentinels.ID, error) {
		return nil, &abi.Error{Code: abi.BadFields, Field: "rename", Message: "import sentinels: rename: " + fmt.Sprintf(format, args...)}
	}
	if len(raw) == 0 {
		return nil, nil
	}
	names := map[sentinels.ID]sentinels.ID{}
	var only sentinels.ID
	text := unquoted(raw)
	if json.Unmarshal(raw, &only) == nil && only != "" && !bytes.HasPrefix(text, []byte("{")) {
		if len(b.Sentinels) != 1 {
			return bad("there are %d sentinels: want an object of old ids and new ones", len(b.Sentinels))
		}
		names[""] = only
	} else if err := strictjson.Decode(text, &names, strictjson.Limits{}); err != nil {
		return bad("want an id, or an object of old ids and new ones: %v", err)
	}
	for from, to := range names {
		if to == "" || sentinels.Slug(string(to)) != to {
			return bad("invalid id %q: want an id such as %q", to, sentinels.Slug(string(to)))
		}
		// The id of a definition that is imported without a bundle is known later.
		if from != "" && !slices.ContainsFunc(b.Sentinels, func(s bundledSentinel) bool { return s.SentinelID == from || s.SentinelID == "" }) {
			return bad("sentinel %q is not in the bundle", from)
		}
	}
	return names, nil
}

// rename sets the new id of an incoming sentinel, in its history too, and in its
// references to imported sentinels that are renamed.
func (f family) rename(in runtime.Incoming, names map[sentinels.ID]sentinels.ID) (runtime.Incoming, error) {
	if len(names) == 0 {
		return in, nil
	}
	old := in.Definition.ID
	if only := names[""]; only != "" {
		names = map[sentinels.ID]sentinels.ID{old: only}
	}
	id := names[old]
	if id == "" {
		id = old
	}
	text, err := in.Definition.MarshalJSON()
	if err == nil {
		text, err = renameText(text, id, names)
	}
	if err != nil {
		return in, fmt.Errorf("rename sentinel %q: %w", old, err)
	}
	def, problems := f.rt.Decode(text, string(id))
	if len(problems) > 0 {
		return in, fmt.Errorf("rename sentinel %q: %w", old, problems)
	}
	out := runtime.Incoming{Definition: def, History: slices.Clone(in.History), Within: in.Within}
	for i := range out.History {
		s := &out.History[i]
		if s.Deleted {
			continue
		}
		// The engine compares each revision with its hash. The hash is computed again
		// here, so a revision that does not match has to be rejected before.
		hash, err := hashOf(s.Definition)
		if err == nil && hash != s.Hash {
			err = errors.New("it does not match its hash")
		}
		if err == nil {
			s.Definition, err = renameText(s.Definition, id, names)
		}
		if err == nil {
			s.Hash, err = hashOf(s.Definition)
		}
		if err != nil {
			return in, fmt.Errorf("rename sentinel %q: revision %d: %w", old, s.Revision, err)
		}
	}
	return out, nil
}

// renameText sets the id of a definition and the ids that it refers to.
func renameText(text json.RawMessage, id sentinels.ID, names map[sentinels.ID]sentinels.ID) (json.RawMessage, error) {
	def, err := sentinels.DecodeObject(text)
	if err != nil {
		return nil, err
	}
	for _, value := range def {
		sentinels.VisitObjects(value, func(object map[string]any) {
			if holder, key, from := sentinels.Reference(object); names[from] != "" {
				holder[key] = string(names[from])
			}
		})
	}
	def["id"] = string(id)
	return encodeObject(def)
}

// hashOf returns the hash of a definition whose step types may be unknown here.
func hashOf(text json.RawMessage) (string, error) {
	canonical, err := sentinels.Canonical(bytes.TrimSpace(text))
	if err != nil {
		return "", err
	}
	return digest(canonical), nil
}

// digest returns the SHA-256 in hex, as plugins and definitions have it.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// encodeObject returns compact JSON with < > and & as they are.
func encodeObject(object map[string]any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(object)
	return bytes.TrimSpace(b.Bytes()), err
}
