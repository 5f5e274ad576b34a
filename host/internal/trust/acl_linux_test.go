package trust_test

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestAccessLists: the bits of the group say what an access list allows at most, so a
// file with a list is not trusted because its group is the own one.
func TestAccessLists(t *testing.T) {
	dir := tree(t, "file")
	file := filepath.Join(dir, "file")
	list := binary.LittleEndian.AppendUint32(nil, 2) // the version, then tag, rights and id of each entry
	for _, e := range []struct {
		tag, rights uint16
		id          uint32
	}{{1, 6, ^uint32(0)}, {2, 6, other}, {4, 0, ^uint32(0)}, {16, 6, ^uint32(0)}, {32, 0, ^uint32(0)}} { // owner, a user, group, mask, others
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.rights)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	if err := syscall.Setxattr(file, "system.posix_acl_access", list, 0); err != nil {
		t.Skipf("access lists cannot be set here: %v", err)
	}
	var none *trust.Policy
	err := none.Check(file)
	if e := abi.As(err); e == nil || e.Code != abi.Denied || !strings.Contains(e.Message, "access list") || !strings.HasPrefix(e.Hint, "setfacl -b ") {
		t.Errorf("got %+v", err)
	}
}
