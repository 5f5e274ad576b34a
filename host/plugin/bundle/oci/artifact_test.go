package oci_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func pack(t testing.TB, signature []byte) *oci.Artifact {
	t.Helper()
	a, err := oci.New("slack.wasm", []byte("\x00asm module"), []byte(`{"name":"slack"}`), signature, map[string]string{"org.opencontainers.image.version": "1.2.0"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func tarOf(t testing.TB, a *oci.Artifact) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := a.WriteTar(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestTar: what is written is read again, and is the same bytes each time.
func TestTar(t *testing.T) {
	for _, signature := range [][]byte{nil, []byte("a signature")} {
		a := pack(t, signature)
		text := tarOf(t, a)
		if !bytes.Equal(text, tarOf(t, pack(t, signature))) {
			t.Error("packed twice, other bytes")
		}
		if !oci.IsTar(text) || oci.IsCompressed(text) {
			t.Error("it is not known for a tar file")
		}
		b, err := oci.ReadTar(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if a.Digest() != b.Digest() || !bytes.Equal(a.Module, b.Module) || !bytes.Equal(a.Config, b.Config) || !bytes.Equal(a.Signature, b.Signature) {
			t.Errorf("read %+v, wrote %+v", b, a)
		}
		if diff := cmp.Diff(a.Annotations, b.Annotations); diff != "" {
			t.Error(diff)
		}
	}
}

// TestGolden holds the form: a package of today must be the one of tomorrow.
func TestGolden(t *testing.T) {
	const want = "sha256:ab90304a34e1d44fb48bc5760e586f03b0c84f5ae697c1abe1121397d6b56835"
	if got := pack(t, []byte("a signature")).Digest(); got != want {
		t.Errorf("the package is %s, it was %s: every recorded digest is void", got, want)
	}
}

type entry struct {
	name    string
	kind    byte
	content []byte
	size    int64 // if it is to be another than that of the content
	link    string
}

func layout(entries ...entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.content)), Linkname: e.link, Mode: 0o644}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if e.size > 0 {
			h.Size = e.size
		}
		_ = w.WriteHeader(h)
		_, _ = w.Write(e.content)
	}
	if len(entries) > 0 && entries[len(entries)-1].size == 0 {
		_ = w.Close()
	}
	return b.Bytes()
}

func hexOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// rebuild makes a layout of a manifest in which words of a good one are replaced.
func rebuild(old, with string) []byte {
	module, config := []byte("\x00asm module"), []byte(`{"name":"slack"}`)
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":%q,"config":{"mediaType":%q,"digest":"sha256:%s","size":%d},"layers":[{"mediaType":%q,"digest":"sha256:%s","size":%d}]}`,
		oci.ArtifactType, oci.ConfigType, hexOf(config), len(config), oci.ModuleType, hexOf(module), len(module))
	manifest = strings.Replace(manifest, old, with, 1)
	index := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%d}]}`, hexOf([]byte(manifest)), len(manifest))
	return layout(marker, entry{name: "index.json", content: []byte(index)}, blobEntry([]byte(manifest)), blobEntry(module), blobEntry(config))
}

var marker = entry{name: "oci-layout", content: []byte(`{"imageLayoutVersion":"1.0.0"}`)}

func blobEntry(content []byte) entry {
	return entry{name: "blobs/sha256/" + hexOf(content), content: content}
}

// TestHostileTar: each is refused with a code and a sentence that says why.
func TestHostileTar(t *testing.T) {
	if _, err := oci.ReadTar(bytes.NewReader(rebuild("", ""))); err != nil {
		t.Fatalf("the good one is refused: %v", err)
	}
	good := tarOf(t, pack(t, nil))
	swapped := bytes.Replace(good, []byte("\x00asm module"), []byte("\x00asm MODULE"), 1)
	many := make([]entry, 40)
	for i := range many {
		many[i] = blobEntry(fmt.Append(nil, i))
	}
	module := hexOf([]byte("\x00asm module"))
	tests := []struct {
		name string
		text []byte
		code abi.Code
		want string
	}{
		{"nothing", nil, abi.BadFields, "not an image layout"},
		{"no tar", []byte(strings.Repeat("x", 2000)), abi.BadFields, "incomplete tar file"},
		{"cut", good[:len(good)/2], abi.BadFields, "incomplete tar file"},
		{"upwards", layout(marker, entry{name: "../../etc/passwd", content: []byte("x")}), abi.Denied, "does not belong to a package"},
		{"upwards within", layout(marker, entry{name: "blobs/sha256/../../../x", content: []byte("x")}), abi.Denied, "does not belong to a package"},
		{"absolute", layout(marker, entry{name: "/etc/passwd", content: []byte("x")}), abi.Denied, "does not belong to a package"},
		{"symlink", layout(marker, entry{name: "index.json", kind: tar.TypeSymlink, link: "/etc/passwd"}), abi.Denied, "is not a file"},
		{"hard link", layout(marker, entry{name: "blobs/sha256/" + module, kind: tar.TypeLink, link: "/etc/passwd"}), abi.Denied, "is not a file"},
		{"device", layout(marker, entry{name: "index.json", kind: tar.TypeChar}), abi.Denied, "is not a file"},
		{"pipe", layout(marker, entry{name: "index.json", kind: tar.TypeFifo}), abi.Denied, "is not a file"},
		{"other folder", layout(marker, entry{name: "blobs/", kind: tar.TypeDir}, entry{name: "x/", kind: tar.TypeDir}), abi.Denied, "is not a file"},
		{"twice", layout(marker, marker), abi.BadFields, "is there twice"},
		{"many", layout(many...), abi.Limit, "more than"},
		{"huge blob", layout(marker, entry{name: "blobs/sha256/" + module, content: []byte("x"), size: 1 << 40}), abi.Limit, "at most"},
		{"huge index", layout(marker, entry{name: "index.json", content: []byte("x"), size: 1 << 20}), abi.Limit, "at most"},
		{"changed byte", swapped, abi.Denied, "in truth"},
		{"no index", layout(marker), abi.BadFields, "the text ends before the value does"},
		{"two things", layout(marker, entry{name: "index.json", content: []byte(`{"manifests":[{},{}]}`)}), abi.BadFields, "2 things"},
		{"an index inside", layout(marker, entry{name: "index.json", content: []byte(`{"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","size":9}]}`)}), abi.BadFields, "no plugin's manifest"},
		{"missing blob", layout(marker, entry{name: "index.json", content: []byte(`{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` + module + `","size":9}]}`)}), abi.BadFields, "is missing"},
		{"digest bomb", layout(marker, entry{name: "index.json", content: []byte(`{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + strings.Repeat("a", 60_000) + `","size":9}]}`)}), abi.BadFields, "not a sha256 digest"},
		{"no plugin", rebuild(oci.ArtifactType, "application/vnd.oci.image.config.v1+json"), abi.BadFields, "no plugin"},
		{"other config", rebuild(oci.ConfigType, "application/json"), abi.BadFields, "its config is of type"},
		{"other layer", rebuild(oci.ModuleType, "application/x-tar"), abi.BadFields, "its first layer"},
		{"more layers", rebuild(`"layers":[`, `"layers":[{"mediaType":"application/wasm"},{},`), abi.BadFields, "more than a signature"},
		{"no layers", rebuild(`"layers":[{`, `"layers":[],"x":[{`), abi.BadFields, "its first layer"},
		{"lying size", rebuild(`"size":11`, `"size":13`), abi.Denied, "in truth"},
		{"negative size", rebuild(`"size":11`, `"size":-1`), abi.Limit, "1 to"},
		{"size bomb", rebuild(`"size":11`, `"size":4611686018427387904`), abi.Limit, "1 to"},
		{"old schema", rebuild(`"schemaVersion":2`, `"schemaVersion":1`), abi.BadFields, "schema version 1"},
		{"other digest", rebuild(`"sha256:`+module, `"sha512:`+module), abi.BadFields, "not a sha256 digest"},
		{"deep", rebuild(`"layers":[`, `"x":`+strings.Repeat("[", 20_000)+`,"layers":[`), abi.BadFields, "nested more than 64 deep"},
		{"manifest bomb", rebuild(`"layers":[`, `"x":"`+strings.Repeat("a", 70_000)+`","layers":[`), abi.BadFields, "no plugin's manifest"},
		{"annotation bomb", rebuild(`"layers":[`, `"annotations":{`+annotations(100)+`},"layers":[`), abi.Limit, "annotations"},
	}
	for _, tt := range tests {
		a, err := oci.ReadTar(bytes.NewReader(tt.text))
		if err == nil || a != nil || !strings.Contains(err.Error(), tt.want) || abi.CodeOf(err) != tt.code {
			t.Errorf("%s: error %v (%s), want one with %q (%s)", tt.name, err, abi.CodeOf(err), tt.want, tt.code)
		}
	}
}

func annotations(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"a%d":""`, i)
	}
	return strings.Join(list, ",")
}

// TestSparse: a tar file of a kilobyte that says it holds a terabyte of zeros.
func TestSparse(t *testing.T) {
	// A PAX header of the GNU sparse kind, version 1.0, made by hand: the reader
	// would unroll it.
	pax := func(pairs ...string) []byte {
		var b strings.Builder
		for i := 0; i < len(pairs); i += 2 {
			line := " " + pairs[i] + "=" + pairs[i+1] + "\n"
			n := len(line) + 2
			for len(fmt.Sprint(n))+len(line) != n {
				n = len(fmt.Sprint(n)) + len(line)
			}
			fmt.Fprintf(&b, "%d%s", n, line)
		}
		return []byte(b.String())
	}
	header := pax("GNU.sparse.major", "1", "GNU.sparse.minor", "0", "GNU.sparse.name", "blobs/sha256/"+hexOf(nil), "GNU.sparse.realsize", "1099511627776")
	text := layout(marker)
	text = text[:len(text)-1024] // without its end
	raw := func(name string, kind byte, content []byte) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		_ = w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Format: tar.FormatUSTAR})
		_, _ = w.Write(content)
		_ = w.Flush()
		block := b.Bytes()
		block[156] = kind
		copy(block[148:156], "        ")
		sum := 0
		for _, c := range block[:512] {
			sum += int(c)
		}
		copy(block[148:156], fmt.Sprintf("%06o\x00 ", sum))
		return block
	}
	text = append(text, raw("pax", tar.TypeXHeader, header)...)
	content := make([]byte, 512)
	copy(content, "1\n1099511627776\n0\n")
	text = append(text, raw("GNUSparseFile.0/x", tar.TypeReg, content)...)
	if _, err := oci.ReadTar(bytes.NewReader(text)); err == nil || abi.CodeOf(err) != abi.Limit {
		t.Errorf("error %v (%s), want a limit", err, abi.CodeOf(err))
	}
}

func FuzzReadTar(f *testing.F) {
	f.Add(tarOf(f, pack(f, nil)))
	f.Add(tarOf(f, pack(f, []byte("a signature"))))
	f.Add(rebuild(oci.ModuleType, "x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := oci.ReadTar(bytes.NewReader(text))
		if err != nil {
			if abi.CodeOf(err) == abi.Internal {
				t.Fatalf("error without a code: %v", err)
			}
			return
		}
		var b bytes.Buffer
		if err := a.WriteTar(&b); err != nil {
			t.Fatal(err)
		}
		if again, err := oci.ReadTar(&b); err != nil || again.Digest() != a.Digest() {
			t.Fatalf("written and read again: %v", err)
		}
	})
}

// FuzzManifest has the manifest itself hostile, behind digests that are right.
func FuzzManifest(f *testing.F) {
	f.Add(`"layers":[`, `"layers":[{},`)
	f.Add(`"size":11`, `"size":1e3`)
	f.Add(`{"schemaVersion":2`, `{"schemaVersion":{}`)
	f.Fuzz(func(t *testing.T, old, with string) {
		a, err := oci.ReadTar(bytes.NewReader(rebuild(old, with)))
		if err != nil && abi.CodeOf(err) == abi.Internal || err == nil && string(a.Module) != "\x00asm module" {
			t.Fatalf("%+v, %v", a, err)
		}
	})
}
