package sign

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"aead.dev/minisign"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Suffix is what the file of a signature has behind the name of the module's.
const Suffix = ".minisig"

// MaxSignature bounds the text of a signature in bytes.
const MaxSignature = 8 << 10

// Sign returns the text of a signature of a module. The statement's digest is put
// in here.
func Sign(key SecretKey, module []byte, s Statement) []byte {
	s.Digest = digest(module)
	return hashed(module).SignWithComments(key.key, s.text(), "signature of sentinel plugin, key "+key.Public().ID())
}

// hashed is how minisign has signed by default since 2019: the hash of a file and
// not the file.
func hashed(module []byte) *minisign.Reader {
	r := minisign.NewReader(bytes.NewReader(module))
	_, _ = io.Copy(io.Discard, r) // reads memory
	return r
}

// A Signer is who signed, with the signed comment.
type Signer struct {
	Key       PublicKey
	Statement Statement
}

// Verify checks that a signature is of a module and was made with one of keys.
// file names the module in messages. Every error has code denied and names which
// of the ways in which a signature can be wrong it is.
func Verify(file string, module, signature []byte, keys []PublicKey) (Signer, error) {
	var s minisign.Signature
	if len(signature) > MaxSignature || !utf8.Valid(signature) || s.UnmarshalText(signature) != nil {
		return Signer{}, denied("take the signature again from where the plugin comes from", "verify %q: not a minisign signature", file)
	}
	id := keyID(s.KeyID)
	var known []string
	var candidates []PublicKey // ids are not protected, so two keys may share one
	for _, k := range keys {
		if known = append(known, k.ID()); k.key.ID() == s.KeyID {
			candidates = append(candidates, k)
		}
	}
	if len(candidates) == 0 {
		hint := "no key is trusted yet; if you know whose it is: sentinel plugin trust PUBKEY"
		if len(known) > 0 {
			slices.Sort(known)
			hint = "trusted are " + strings.Join(slices.Compact(known), ", ") + "; if you know whose the other is: sentinel plugin trust PUBKEY"
		}
		return Signer{}, denied(hint, "verify %q: it is signed with key %s, which is not trusted", file, id)
	}
	statement := parseStatement(s.TrustedComment)
	authentic := false // the comment and the signature in it belong together and are a key's
	for _, k := range candidates {
		if ed25519.Verify(k.raw(), slices.Concat(s.Signature[:], []byte(s.TrustedComment)), s.CommentSignature[:]) {
			authentic = true
			if holds(k, module, signature, s.Algorithm) {
				return vouch(k, file, module, statement)
			}
		}
	}
	if !authentic {
		return Signer{}, denied("take plugin and signature again from where they come from",
			"verify %q: its signature was not made with key %s, or was changed since", file, id)
	}
	return Signer{}, blame(file, module, statement, id)
}

// holds reports whether a signature is of a module. Old ones are of the file
// itself rather than of its hash.
func holds(k PublicKey, module, signature []byte, algorithm uint16) bool {
	if algorithm == minisign.EdDSA {
		return minisign.Verify(k.key, module, signature)
	}
	return hashed(module).Verify(k.key, signature)
}

// vouch accepts a valid signature, unless its comment says that it is of
// something else.
func vouch(k PublicKey, file string, module []byte, s Statement) (Signer, error) {
	if s.Digest != "" && s.Digest != digest(module) {
		return Signer{}, denied("tell the owner of the key", "verify %q: key %s signed it with the comment that it is %s, and it is %s", file, k.ID(), s.Digest, digest(module))
	}
	return Signer{k, s}, nil
}

// blame describes what is wrong with a module whose signature is a trusted key's, but
// not of these bytes.
func blame(file string, module []byte, s Statement, id string) error {
	const again = "take plugin and signature again from where they come from"
	base := filepath.Base(file)
	switch {
	case s.Digest == "":
		return denied(again, "verify %q: it is not the file that key %s signed, or was changed since", file, id)
	case s.Digest == digest(module):
		return denied(again, "verify %q: its signature is not of this file, though its comment says so", file)
	case s.File == Word(base):
		return denied(again, "verify %q: it was changed after it was signed: key %s signed %s, this is %s", file, id, s.Digest, digest(module))
	}
	return denied(again, "verify %q: the signature is of another file: %s %s, %s; this is %s", file, s.File, s.Version, s.Digest, digest(module))
}

func denied(hint, format string, args ...any) error {
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf(format, args...), Hint: hint}
}

func digest(module []byte) string {
	sum := sha256.Sum256(module)
	return "sha256:" + hex.EncodeToString(sum[:])
}
