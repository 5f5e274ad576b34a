package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Hashes replaces hashes of definitions and criteria in what callers read who see no secrets. A hash is of the content
// with its secrets: beside the content without them, it would confirm each guess of a secret that a machine can
// compute. What replaces it is the same for the same hash until the process ends. It is safe for concurrent use.
type Hashes struct{ key []byte }

// NewHashes returns Hashes with a key of its own.
func NewHashes() *Hashes {
	h := &Hashes{make([]byte, sha256.Size)}
	_, _ = rand.Read(h.key) // it never fails
	return h
}

// plain is the length of a hash as it is stored. What replaces one is shorter, and is not replaced again.
const plain = 2 * sha256.Size

// Of returns what replaces a hash.
func (h *Hashes) Of(hash string) string {
	mac := hmac.New(sha256.New, h.key)
	mac.Write([]byte(hash))
	return hex.EncodeToString(mac.Sum(nil))[:plain-4]
}

// about are the names beside which a hash is one of a definition, as in lists of runs and revisions, and not of a file.
var about = []string{"revision", "sentinelId", "sentinel", "run", "iteration", "number"}

// JSON returns a JSON text with the hashes replaced. It leaves definitions as they are, and what is not JSON.
func (h *Hashes) JSON(text json.RawMessage) json.RawMessage {
	if !bytes.Contains(text, []byte(`"hash"`)) && !bytes.Contains(text, []byte(`"criteria_digest"`)) {
		return text
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var found []int // where the hashes end
	if scanHashes(decoder, &found) != nil || len(found) == 0 {
		return text
	}
	slices.Sort(found)
	out, from := make([]byte, 0, len(text)), 0
	for _, end := range found {
		out = append(out, text[from:end-plain]...)
		out = append(out, h.Of(string(text[end-plain:end]))...)
		from = end
	}
	return append(out, text[from:]...)
}

// scanHashes reads the next value, and adds the positions behind its hashes to found.
func scanHashes(decoder *json.Decoder, found *[]int) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		for decoder.More() {
			if err := scanHashes(decoder, found); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		hash, isAbout := 0, false
		for decoder.More() {
			name, err := decoder.Token()
			if err != nil {
				return err
			}
			isAbout = isAbout || slices.Contains(about, name.(string))
			switch name {
			case "hash", "criteria_digest":
				var value json.RawMessage
				if err := decoder.Decode(&value); err != nil {
					return err
				}
				if !isHash(value) {
					continue
				}
				if end := int(decoder.InputOffset()) - 1; name == "hash" {
					hash = end
				} else {
					*found = append(*found, end)
				}
			case "definition":
				err = decoder.Decode(new(json.RawMessage))
			default:
				err = scanHashes(decoder, found)
			}
			if err != nil {
				return err
			}
		}
		if hash > 0 && isAbout {
			*found = append(*found, hash)
		}
	default:
		return nil
	}
	_, err = decoder.Token() // the end of the list or object
	return err
}

// isHash reports whether a JSON value is the text of a SHA-256.
func isHash(value json.RawMessage) bool {
	if len(value) != plain+2 || value[0] != '"' {
		return false
	}
	_, err := hex.DecodeString(string(value[1 : plain+1]))
	return err == nil
}
