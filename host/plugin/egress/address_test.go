package egress_test

import (
	"net/netip"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
)

func TestReachable(t *testing.T) {
	v4, six := netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("64:ff9b::/96")
	for _, test := range []struct {
		ip      string
		allowed []netip.Prefix
		want    bool
	}{
		{"1.1.1.1", nil, true}, {"8.8.8.8", nil, true}, {"93.184.216.34", nil, true}, {"2606:4700::1111", nil, true}, {"2a00:1450::1", nil, true},
		{"::ffff:8.8.8.8", nil, true}, {"::ffff:10.0.0.1", nil, false},
		{"0.0.0.0", nil, false}, {"0.1.2.3", nil, false}, {"10.255.255.255", nil, false}, {"11.0.0.0", nil, true},
		{"100.63.255.255", nil, true}, {"100.64.0.0", nil, false}, {"100.127.255.255", nil, false}, {"100.128.0.0", nil, true},
		{"127.0.0.1", nil, false}, {"127.255.255.255", nil, false}, {"168.63.129.16", nil, false}, {"169.254.169.254", nil, false},
		{"172.15.255.255", nil, true}, {"172.16.0.0", nil, false}, {"172.31.255.255", nil, false}, {"172.32.0.0", nil, true},
		{"192.0.0.1", nil, false}, {"192.0.2.9", nil, false}, {"192.88.99.1", nil, false}, {"192.168.0.1", nil, false}, {"192.169.0.1", nil, true},
		{"198.18.0.1", nil, false}, {"198.19.255.255", nil, false}, {"198.20.0.1", nil, true}, {"198.51.100.1", nil, false}, {"203.0.113.1", nil, false},
		{"224.0.0.1", nil, false}, {"239.255.255.255", nil, false}, {"240.0.0.1", nil, false}, {"255.255.255.255", nil, false},
		{"::", nil, false}, {"::1", nil, false}, {"::7f00:1", nil, false}, {"64:ff9b::808:808", nil, false}, {"64:ff9b:1::1", nil, false},
		{"100::1", nil, false}, {"2001::1", nil, false}, {"2001:20::1", nil, false}, {"2001:db8::1", nil, false}, {"2001:4860::1", nil, true},
		{"2002:808:808::1", nil, false}, {"3fff::1", nil, false}, {"4000::1", nil, false}, {"5f00::1", nil, false}, {"fc00::1", nil, false},
		{"fd00:ec2::254", nil, false}, {"fe80::1", nil, false}, {"fe80::1%lo", nil, false}, {"fec0::1", nil, false}, {"ff02::1", nil, false},

		{"10.1.2.3", []netip.Prefix{v4}, true}, {"::ffff:10.1.2.3", []netip.Prefix{v4}, true}, {"10.2.0.1", []netip.Prefix{v4}, false},
		{"64:ff9b::808:808", []netip.Prefix{six}, true}, {"64:ff9b::7f00:1", []netip.Prefix{six}, false}, {"64:ff9b::a01:203", []netip.Prefix{six}, false},
		{"64:ff9b::a01:203", []netip.Prefix{six, v4}, true},
		{"2002:7f00:1::", []netip.Prefix{netip.MustParsePrefix("2002::/16")}, false},
		{"2002:808:808::", []netip.Prefix{netip.MustParsePrefix("2002::/16")}, true},
		{"2001:0:0:0:0:0:80ff:fffe", []netip.Prefix{netip.MustParsePrefix("2001::/32")}, false}, // 127.0.0.1 turned round
		{"2001:0:0:0:0:0:f7f7:f7f7", []netip.Prefix{netip.MustParsePrefix("2001::/32")}, true},
	} {
		if got := egress.Reachable(netip.MustParseAddr(test.ip), test.allowed); got != test.want {
			t.Errorf("%s with %v: %v, want %v", test.ip, test.allowed, got, test.want)
		}
	}
	if egress.Reachable(netip.Addr{}, nil) {
		t.Error("no address is reachable")
	}
}

// A service of this machine takes a connection to its public address for one from inside.
func TestOwnPublicAddress(t *testing.T) {
	own := netip.MustParseAddr("1.2.3.4")
	t.Cleanup(egress.SetOwnAddress(func(ip netip.Addr) bool { return ip == own }))
	if egress.Reachable(own, nil) || egress.Reachable(netip.MustParseAddr("::ffff:1.2.3.4"), nil) {
		t.Error("the public address of this machine is reachable")
	}
	if !egress.Reachable(own, []netip.Prefix{netip.MustParsePrefix("1.2.3.4/32")}) || !egress.Reachable(own.Next(), nil) {
		t.Error("another address, or one that is allowed, is not reachable")
	}
}
