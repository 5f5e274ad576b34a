package sign

import (
	"encoding/base64"
	"fmt"
	"strings"

	"aead.dev/minisign"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A PublicKey checks signatures. The zero value checks none.
type PublicKey struct {
	key     minisign.PublicKey
	Comment string // whose it is, in the words of who trusts it
}

// ParsePublic reads a public key: the text of a minisign key file, or its second
// line alone, as it is put into messages.
func ParsePublic(text string) (PublicKey, error) {
	var k PublicKey
	if err := k.key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return k, &abi.Error{Code: abi.BadFields, Message: "read public key: not a minisign key", Hint: "it is the line that begins with RW in the .pub file"}
	}
	return k, nil
}

// ID is the key's own, 16 hexadecimal digits. It names a key and proves nothing.
func (k PublicKey) ID() string { return keyID(k.key.ID()) }

// String is the key in one line, as [ParsePublic] reads it.
func (k PublicKey) String() string { return k.key.String() }

// Text is the key as the minisign tool keeps it in a file.
func (k PublicKey) Text() string {
	return "untrusted comment: minisign public key " + k.ID() + "\n" + k.String() + "\n"
}

// raw is the key as the signature scheme has it.
func (k PublicKey) raw() []byte {
	b, err := base64.StdEncoding.DecodeString(k.key.String())
	if err != nil {
		panic(err) // the library wrote it
	}
	return b[10:] // behind the algorithm and the id
}

func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }

// A SecretKey makes signatures.
type SecretKey struct{ key minisign.PrivateKey }

// Generate makes a pair of keys.
func Generate() (PublicKey, SecretKey, error) {
	public, secret, err := minisign.GenerateKey(nil)
	if err != nil {
		return PublicKey{}, SecretKey{}, fmt.Errorf("generate key: %w", err)
	}
	return PublicKey{key: public}, SecretKey{secret}, nil
}

// Public is the other half.
func (k SecretKey) Public() PublicKey {
	public, _ := k.key.Public().(minisign.PublicKey) // the library gives nothing else
	return PublicKey{key: public}
}

// Text is the key as the minisign tool keeps it in a file, under a password or,
// if that is empty, open. A password costs a second and 1 GiB of memory, here and
// whenever the key is read: that is what guessing it costs too.
func (k SecretKey) Text(password string) ([]byte, error) {
	var text []byte
	var err error
	if password == "" {
		text, err = k.key.MarshalText()
	} else {
		text, err = minisign.EncryptKey(password, k.key)
	}
	if err != nil {
		return nil, fmt.Errorf("write secret key: %w", err)
	}
	return append(text, '\n'), nil
}

// Protected reports whether a secret key's text needs a password.
func Protected(text []byte) bool { return minisign.IsEncrypted(text) }

// ParseSecret reads a secret key's text.
func ParseSecret(text []byte, password string) (SecretKey, error) {
	if !Protected(text) {
		var k SecretKey
		if err := k.key.UnmarshalText(text); err != nil {
			return k, &abi.Error{Code: abi.BadFields, Message: "read secret key: not a minisign key", Hint: "make one with: sentinel plugin keygen"}
		}
		return k, nil
	}
	key, err := minisign.DecryptKey(password, text)
	if err != nil {
		return SecretKey{}, abi.New(abi.Denied, "read secret key: the password is wrong, or the file is damaged")
	}
	return SecretKey{key}, nil
}
