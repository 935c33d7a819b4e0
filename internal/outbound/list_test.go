package outbound

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func list(t testing.TB, hosts ...string) List {
	t.Helper()
	var entries []Entry
	for _, h := range hosts {
		entries = append(entries, Entry{Host: h})
	}
	l, err := NewList(entries...)
	require.NoError(t, err)
	return l
}

// A server is listed by its name or address and its port, however a URL spells them; nothing that only looks like it is.
func TestPermits(t *testing.T) {
	t.Parallel()
	l := list(t, "storage.example", "minio.example:9000", "*.Blob.Example.", "10.1.2.3", "127.0.0.1:9000", "2001:db8::7", "[2001:db8::8]:9000")
	for _, uri := range []string{
		"http://storage.example/x", "https://storage.example/x", "http://storage.example:80", "https://storage.example:443", "http://storage.example:443",
		"HTTP://STORAGE.Example./x", "http://minio.example:9000/x", "https://minio.example:9000", "https://acct.blob.example/c/b", "http://a.b.blob.example.",
		"http://10.1.2.3/", "http://[::ffff:10.1.2.3]/", "http://127.0.0.1:9000", "http://[2001:db8::7]", "http://[2001:DB8:0::7]:80", "http://[2001:db8::8]:9000",
	} {
		u, err := url.Parse(uri)
		require.NoError(t, err, uri)
		require.True(t, l.Permits(u), uri)
		require.False(t, List(nil).Permits(u), "nothing is listed by itself: %s", uri)
	}
	for _, uri := range []string{
		"http://storage.example:8080", "http://storage.example:", "http://storage.example:0", "http://storage.example:65616", "http://minio.example", "https://minio.example",
		"http://minio.example:9001", "http://blob.example", "http://xblob.example", "http://evil.example/storage.example", "http://storage.example.evil",
		"http://xstorage.example", "http://x.storage.example", "http://.storage.example", "http://storage.example..", "http://", "http://example",
		"http://storage.example@127.0.0.1/", "http://user@storage.example/", "http://storage.example:80@127.0.0.1/", "ftp://storage.example/", "storage.example/x",
		"http://127.0.0.1", "http://127.0.0.1:10000", "http://localhost:9000", "http://[::1]:9000", "http://2130706433:9000", "http://0x7f000001:9000",
		"http://0177.0.0.1:9000", "http://127.1:9000", "http://0:9000", "http://10.1.2.3.:8080", "http://167838211/", "http://10.1.515/", "http://[2001:db8::8]",
		"http://[2001:db8::7%25eth0]", "http://10.1.2.4", "http://10.1.2.3.nip.io", "http://\u24d4torage.example", "http://storage\u3002example",
	} {
		u, err := url.Parse(uri)
		if err == nil {
			require.False(t, l.Permits(u), uri)
		}
	}
	for _, bad := range []string{
		"", "*", "*.", "a b", "http://a.example", "a.example/x", "a.example:", "a.example:0", "a.example:99999", "a.example:http", "a@b.example", "*.*.example", "a.*.example",
		"*a.example", "0.0.0.0", "::", "[::]:80", "224.0.0.1", "ff02::1", "fe80::1%eth0", "10.0.0.0/8", "*.10", "1.2.3", "[a.example]:80:80", ":80",
	} {
		_, err := NewList(Entry{Host: bad})
		require.ErrorIs(t, err, ErrEntry, bad)
	}
}

// What a name may lead to: servers of the Internet; private networks where that is permitted; never this machine, what is
// on the same link (which answers with credentials in clouds), or an IPv4 address in another form than it is.
func TestPermittedAddresses(t *testing.T) {
	t.Parallel()
	own := []netip.Addr{netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr("192.168.7.7"), netip.MustParseAddr("2a00::7")}
	const never, private, public = 0, 1, 2
	for text, want := range map[string]int{
		"8.8.8.8": public, "1.1.1.1": public, "9.255.255.255": public, "11.0.0.0": public, "100.63.255.255": public, "100.128.0.0": public, "126.255.255.255": public,
		"128.0.0.1": public, "169.253.255.255": public, "169.255.0.0": public, "172.15.255.255": public, "172.32.0.0": public, "192.167.255.255": public,
		"192.169.0.0": public, "198.17.255.255": public, "198.20.0.0": public, "223.255.255.255": public, "168.63.129.15": public, "::ffff:8.8.8.8": public,
		"2a00::1": public, "2606:4700::1111": public, "64:ff9b::808:808": public, "2002:808:808::1": public, "3ffe::1": public,

		"10.0.0.0": private, "10.255.255.255": private, "172.16.0.1": private, "172.31.255.255": private, "192.168.0.1": private, "100.64.0.0": private,
		"100.127.255.255": private, "fc00::1": private, "fdff::1": private, "::ffff:10.0.0.1": private,
		"64:ff9b::a00:1": private, "2002:a00:1::1": private,

		"0.0.0.0": never, "0.1.2.3": never, "127.0.0.1": never, "127.255.255.254": never, "169.254.0.1": never, "169.254.169.254": never, "192.0.0.192": never,
		"192.0.2.1": never, "198.18.0.1": never, "198.19.255.255": never, "198.51.100.1": never, "203.0.113.1": never, "192.88.99.1": never, "224.0.0.1": never,
		"239.255.255.255": never, "240.0.0.1": never, "255.255.255.255": never, "168.63.129.16": never,
		"::": never, "::1": never, "::ffff:127.0.0.1": never, "::ffff:169.254.169.254": never, "::ffff:0:127.0.0.1": never, "::127.0.0.1": never, "::8.8.8.8": never,
		"fe80::1": never, "fe80::1%eth0": never, "2a00::1%eth0": never, "fec0::1": never, "ff02::1": never, "100::1": never, "64:ff9b::7f00:1": never,
		"64:ff9b::a9fe:a9fe": never, "64:ff9b:1::808:808": never, "2001::1": never, "2001:0:4136:e378:8000:63bf:3fff:fdd2": never, "2001:db8::1": never,
		"3fff::1": never, "2002:7f00:1::1": never, "2002:a9fe:a9fe::1": never, "4000::1": never, "5f00::1": never,
		"100.100.100.200": never, "fd00:ec2::254": never, "8.8.4.4": never, "192.168.7.7": never, "2a00::7": never, "::ffff:8.8.4.4": never, "64:ff9b::808:404": never,
	} {
		a := netip.MustParseAddr(text)
		require.Equal(t, want == public, permission{}.permits(a, own), text)
		require.Equal(t, want >= private, permission{private: true}.permits(a, own), "where private ones are permitted: %s", text)
		require.True(t, permission{literal: true}.permits(a, own), "listed itself: %s", text)
	}
	own, err := ownAddresses()
	require.NoError(t, err)
	require.Contains(t, own, netip.MustParseAddr("127.0.0.1"))
}

// Which addresses a listed host may have follows from all its entries, and is that of its port alone.
func TestPermissions(t *testing.T) {
	t.Parallel()
	l, err := NewList(
		Entry{Host: "*.example"}, Entry{Host: "minio.example:9000", AllowPrivate: true}, Entry{Host: "*.lab.example", AllowPrivate: true}, Entry{Host: "10.0.0.1:9000"})
	require.NoError(t, err)
	for _, c := range []struct {
		host, port string
		want       permission
		listed     bool
	}{
		{"minio.example", "9000", permission{private: true}, true},
		{"minio.example", "80", permission{}, true},
		{"minio.example", "9001", permission{}, false},
		{"a.lab.example", "443", permission{private: true}, true},
		{"a.LAB.example.", "443", permission{private: true}, true},
		{"10.0.0.1", "9000", permission{literal: true}, true},
		{"10.0.0.1", "80", permission{}, false},
		{"example", "80", permission{}, false},
	} {
		p, listed := l.of(c.host, c.port)
		require.Equal(t, c.listed, listed, c)
		require.Equal(t, c.want, p, c)
	}
}

// No text in a URL makes a list permit what it does not have, nor panics.
func FuzzPermits(f *testing.F) {
	for _, seed := range []string{"http://storage.example/", "http://a.blob.example:443/", "http://[::1]:80", "http://127.0.0.1:9000", "http://x@storage.example"} {
		f.Add(seed)
	}
	l := list(f, "storage.example", "*.blob.example", "127.0.0.1:9000")
	f.Fuzz(func(t *testing.T, uri string) {
		u, err := url.Parse(uri)
		if err != nil || !l.Permits(u) {
			return
		}
		require.Regexp(t, `(?i)^(storage\.example|[^/@:]+\.blob\.example)\.?(:80|:443)?$|^(127\.0\.0\.1|\[::ffff:(127\.0\.0\.1|7f00:1)\]|\[[0:]*:ffff:.*\]):9000$`, u.Host)
		require.Nil(t, u.User)
	})
}
