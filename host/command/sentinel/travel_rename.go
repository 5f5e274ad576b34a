package sentinel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// renames reads the two forms of the parameter: a new id for the only sentinel,
// or an object.
func renames(raw json.RawMessage, b bundle) (map[sentinels.ID]sentinels.ID, error) {
	bad := func(format string, args ...any) (map[sentinels.ID]sentinels.ID, error) {
		return nil, &abi.Error{Code: abi.BadFields, Field: "rename", Message: "import sentinels: rename: " + fmt.Sprintf(format, args...)}
	}
	// A shell or a model may hand over the object as a string, so a string that
	// begins like an object is read as one.
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return nil, nil
	}
	var one sentinels.ID
	names := map[sentinels.ID]sentinels.ID{}
	if json.Unmarshal(raw, &one) == nil && one != "" && one[0] != '{' {
		if len(b.Sentinels) != 1 {
			return bad("there are %d sentinels: give an object of old ids and new ones", len(b.Sentinels))
		}
		names[""] = one // whatever its id is
	} else if err := strictjson.Decode(unquoted(raw), &names, strictjson.Limits{}); err != nil {
		return bad("want an id, or an object of old ids and new ones: %v", err)
	}
	// An id that no sentinel has is most likely misspelt. A definition alone has
	// no id beside it, so whether it is meant shows later.
	for from, to := range names {
		if to == "" || sentinels.Slug(string(to)) != to {
			return bad("%q is no id; %q would be", to, sentinels.Slug(string(to)))
		}
		known := func(t traveller) bool { return t.SentinelID == from || t.SentinelID == "" }
		if from != "" && !slices.ContainsFunc(b.Sentinels, known) {
			return bad("no sentinel %q comes in", from)
		}
	}
	return names, nil
}

// renamed gives an incoming sentinel its new id, in its history too, and has
// its references to others that get one follow.
func (f family) renamed(in runtime.Incoming, names map[sentinels.ID]sentinels.ID) (runtime.Incoming, error) {
	if len(names) == 0 {
		return in, nil
	}
	old := in.Definition.ID
	// Now it is known which id the single new one is for.
	if only := names[""]; only != "" {
		names = map[sentinels.ID]sentinels.ID{old: only}
	}
	id := names[old]
	if id == "" {
		id = old
	}
	// Through the text, because only that has the definitions within steps in a
	// form that can be changed.
	text, err := in.Definition.MarshalJSON()
	if err == nil {
		text, err = renameText(text, id, names)
	}
	if err != nil {
		return in, fmt.Errorf("rename sentinel %q: %w", old, err)
	}
	// Renaming cannot make a valid definition invalid, but only Decode makes one
	// that the engine takes.
	def, problems := f.rt.Decode(text, string(id))
	if len(problems) > 0 {
		return in, fmt.Errorf("rename sentinel %q: %w", old, problems)
	}
	out := runtime.Incoming{Definition: def}
	for _, s := range in.History {
		if s.Deleted {
			out.History = append(out.History, s)
			continue
		}
		// A hash that was wrong before would be right afterwards.
		hash, err := hashOf(s.Definition)
		// The engine holds every revision to its hash; here hashes are made anew, so
		// the old ones are looked at first.
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
		out.History = append(out.History, s)
	}
	return out, nil
}

// hashOf is the hash of a definition by its text, for revisions whose step types
// may be unknown here.
func hashOf(text json.RawMessage) (string, error) {
	canonical, err := sentinels.Canonical(text)
	if err != nil {
		return "", err
	}
	return sum(canonical), nil
}

// renameText changes the id of a definition and its references to others. All
// else stays as it was written.
func renameText(text json.RawMessage, id sentinels.ID, names map[sentinels.ID]sentinels.ID) (json.RawMessage, error) {
	return rewriteObject(text, func(key string, value json.RawMessage) (json.RawMessage, error) {
		if key == "id" {
			return marshal(id)
		}
		return renameRefs(value, names)
	})
}

// renameRefs changes every {"$ref": id} within a value. Such an object with
// nothing else in it and the id of a sentinel that comes in means that sentinel
// wherever it stands.
// Strings that merely hold an id stay: in a prompt or a shell line nobody can tell
// what they mean.
func renameRefs(value json.RawMessage, names map[sentinels.ID]sentinels.ID) (json.RawMessage, error) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || value[0] != '{' && value[0] != '[' || !bytes.Contains(value, []byte(`$ref`)) {
		return value, nil
	}
	// Most values hold no reference and were handed back above, untouched.
	if value[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, err
		}
		for i := range list {
			var err error
			if list[i], err = renameRefs(list[i], names); err != nil {
				return nil, err
			}
		}
		return marshal(list)
	}
	// Keys of names are never empty by now, and refIn is for what is no reference.
	if to := names[refIn(value)]; to != "" {
		return marshal(map[string]sentinels.ID{"$ref": to})
	}
	return rewriteObject(value, func(_ string, v json.RawMessage) (json.RawMessage, error) { return renameRefs(v, names) })
}

// refIn returns the id of a value that is {"$ref": id}, else "".
func refIn(value json.RawMessage) sentinels.ID {
	var ref map[string]json.RawMessage
	var id sentinels.ID
	// With anything beside it, it is an object that somebody made up.
	if json.Unmarshal(value, &ref) != nil || len(ref) != 1 || json.Unmarshal(ref["$ref"], &id) != nil {
		return ""
	}
	return id
}

// rewriteObject replaces the values of an object and keeps the order of its
// keys, in which people read a definition.
func rewriteObject(object json.RawMessage, fn func(key string, value json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("an object is wanted")
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for first := true; d.More(); first = false {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, errors.New("a key is wanted")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		if value, err = fn(key, value); err != nil {
			return nil, err
		}
		name, err := marshal(key)
		if err != nil {
			return nil, err
		}
		if !first {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal is json.Marshal without the escapes of HTML, which definitions are
// stored without.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
