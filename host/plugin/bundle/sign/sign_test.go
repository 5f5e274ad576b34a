package sign_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/sign"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func generate(t testing.TB) (sign.PublicKey, sign.SecretKey) {
	t.Helper()
	public, secret, err := sign.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return public, secret
}

var statement = sign.Statement{Name: "slack", Version: "1.2.0", File: "slack.wasm", At: time.Unix(1_700_000_000, 0)}

// TestVerify: what is wrong is said, each in its own words, and always denied.
func TestVerify(t *testing.T) {
	public, secret := generate(t)
	stranger, theirs := generate(t)
	module := []byte("\x00asm what it does")
	other := []byte("\x00asm something else")
	good := sign.Sign(secret, module, statement)
	lines := func(change func(lines []string)) []byte {
		l := strings.Split(string(good), "\n")
		change(l)
		return []byte(strings.Join(l, "\n"))
	}
	keys := []sign.PublicKey{stranger, public}
	tests := []struct {
		name      string
		file      string
		module    []byte
		signature []byte
		keys      []sign.PublicKey
		want      string // "" is good
	}{
		{"good", "slack.wasm", module, good, keys, ""},
		{"renamed", "other.wasm", module, good, keys, ""},
		{"changed byte", "slack.wasm", other, good, keys, "it was changed after it was signed: key " + public.ID()},
		{"swapped file", "mail.wasm", other, good, keys, "the signature is of another file: slack.wasm 1.2.0"},
		{"stranger's key", "slack.wasm", module, sign.Sign(theirs, module, statement), keys[1:], "signed with key " + stranger.ID() + ", which is not trusted"},
		{"no key", "slack.wasm", module, good, nil, "which is not trusted"},
		{"no signature", "slack.wasm", module, []byte("nonsense"), keys, "not a minisign signature"},
		{"empty", "slack.wasm", module, nil, keys, "not a minisign signature"},
		{"huge", "slack.wasm", module, append(good, make([]byte, sign.MaxSignature)...), keys, "not a minisign signature"},
		{"comment changed", "slack.wasm", module, lines(func(l []string) { l[2] = strings.Replace(l[2], "1.2.0", "9.9.9", 1) }), keys, "or was changed since"},
		{"another's comment", "slack.wasm", module, lines(func(l []string) {
			l[3] = strings.Split(string(sign.Sign(theirs, module, statement)), "\n")[3]
		}), keys, "or was changed since"},
	}
	for _, tt := range tests {
		signer, err := sign.Verify(tt.file, tt.module, tt.signature, tt.keys)
		switch {
		case tt.want == "" && (err != nil || signer.Key.ID() != public.ID() || signer.Statement.Version != "1.2.0"):
			t.Errorf("%s: signer %+v, error %v", tt.name, signer, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || abi.CodeOf(err) != abi.Denied):
			t.Errorf("%s: error %v (%s), want one with %q", tt.name, err, abi.CodeOf(err), tt.want)
		}
	}
}

// TestEveryByteCounts: no byte of module or signature can change unseen, but for
// those of the untrusted comment and the spelling of base64.
func TestEveryByteCounts(t *testing.T) {
	public, secret := generate(t)
	module := []byte("\x00asm short")
	good := sign.Sign(secret, module, statement)
	keys := []sign.PublicKey{public}
	for i := range module {
		bad := append([]byte{}, module...)
		bad[i] ^= 1
		if _, err := sign.Verify("slack.wasm", bad, good, keys); err == nil {
			t.Errorf("byte %d of the module does not count", i)
		}
	}
	begin := strings.IndexByte(string(good), '\n')
	for i := begin; i < len(good)-1; i++ {
		bad := append([]byte{}, good...)
		bad[i] ^= 2
		if _, err := sign.Verify("slack.wasm", module, bad, keys); err == nil && good[i+1] != '=' && good[i] != '=' {
			t.Errorf("byte %d of the signature, %q, does not count", i, good[i])
		}
	}
}

// TestKeys come back as they were written.
func TestKeys(t *testing.T) {
	public, secret := generate(t)
	for _, text := range []string{public.Text(), public.String(), "\n" + public.String() + "\n"} {
		if got, err := sign.ParsePublic(text); err != nil || got.ID() != public.ID() || got.String() != public.String() {
			t.Errorf("public key from %q: %v, %v", text, got, err)
		}
	}
	passwords := []string{""}
	if !testing.Short() {
		passwords = append(passwords, "open sesame") // takes 1 GiB
	}
	for _, password := range passwords {
		text, err := secret.Text(password)
		if err != nil {
			t.Fatal(err)
		}
		if sign.Protected(text) != (password != "") {
			t.Errorf("protected with %q: %v", password, sign.Protected(text))
		}
		got, err := sign.ParseSecret(text, password)
		if err != nil || got.Public().String() != public.String() {
			t.Errorf("secret key with %q: %v", password, err)
		}
		if password == "" {
			continue
		}
		if _, err := sign.ParseSecret(text, "wrong"); abi.CodeOf(err) != abi.Denied {
			t.Errorf("with a wrong password: %v", err)
		}
	}
	for _, text := range []string{"", "x", "RW", public.String()[:20]} {
		if _, err := sign.ParsePublic(text); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("public key from %q: %v", text, err)
		}
		if _, err := sign.ParseSecret([]byte(text), ""); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("secret key from %q: %v", text, err)
		}
	}
}

// TestMinisign: what we write the minisign tool reads, and the other way round.
func TestMinisign(t *testing.T) {
	tool, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("there is no minisign; have it with: apt-get install minisign")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, text []byte) {
		if err := os.WriteFile(at(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	public, secret := generate(t)
	module := []byte("\x00asm what it does")
	text, err := secret.Text("")
	if err != nil {
		t.Fatal(err)
	}
	write("key.pub", []byte(public.Text()))
	write("key", text)
	write("slack.wasm", module)
	write("slack.wasm.minisig", sign.Sign(secret, module, statement))
	out, err := exec.Command(tool, "-V", "-p", at("key.pub"), "-m", at("slack.wasm")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "sentinel plugin slack version:1.2.0") {
		t.Errorf("minisign on our signature: %v\n%s", err, out)
	}
	// A key that the tool made, without a password, and signatures of both kinds.
	if out, err = exec.Command(tool, "-G", "-W", "-p", at("tool.pub"), "-s", at("tool")).CombinedOutput(); err != nil {
		t.Fatalf("minisign -G: %v\n%s", err, out)
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	made, err := sign.ParsePublic(string(read("tool.pub")))
	if err != nil {
		t.Fatal(err)
	}
	key, err := sign.ParseSecret(read("tool"), "")
	if err != nil || key.Public().ID() != made.ID() {
		t.Errorf("the tool's secret key: %v", err)
	}
	for _, args := range [][]string{{"-S"}, {"-S", "-l"}} {
		if out, err = exec.Command(tool, append(args, "-s", at("tool"), "-m", at("slack.wasm"), "-t", "by hand")...).CombinedOutput(); err != nil {
			t.Fatalf("minisign %v: %v\n%s", args, err, out)
		}
		signer, err := sign.Verify("slack.wasm", module, read("slack.wasm.minisig"), []sign.PublicKey{made})
		if err != nil || signer.Statement.Comment != "by hand" || signer.Statement.Name != "" {
			t.Errorf("minisign %v: %+v, %v", args, signer, err)
		}
		if _, err = sign.Verify("slack.wasm", append(module, 1), read("slack.wasm.minisig"), []sign.PublicKey{made}); err == nil || !strings.Contains(err.Error(), "is not the file that key") {
			t.Errorf("minisign %v, changed: %v", args, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	public, secret := generate(f)
	module := []byte("\x00asm")
	f.Add(sign.Sign(secret, module, statement))
	f.Add([]byte("untrusted comment: \n\ntrusted comment: \n\n"))
	f.Fuzz(func(t *testing.T, signature []byte) {
		signer, err := sign.Verify("x.wasm", module, signature, []sign.PublicKey{public})
		if err != nil && abi.CodeOf(err) != abi.Denied {
			t.Fatalf("error %v has code %s", err, abi.CodeOf(err))
		}
		if err == nil && !strings.HasPrefix(signer.Statement.Comment, "sentinel plugin slack version:1.2.0 ") {
			t.Fatalf("accepted with the comment %q", signer.Statement.Comment)
		}
	})
}
