package blobs

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

const (
	leaseA = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	leaseB = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
)

// lease does something to the lease of what a path names.
func (r *rig) lease(path, action string, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPut, path+"comp=lease", nil, append([]string{"x-ms-lease-action", action}, header...)...)
}

// shiftedRig is a rig whose wall clock the test sets, at the stamp and at the front end.
func shiftedRig(t *testing.T) (*rig, *clock.Shifted) {
	at := &clock.Shifted{}
	return newRigAt(t, at, func(o *Options) { o.Clock = at }), at
}

// A lease ends by the clock, at writes and at reads, also where commit times are ahead of it (R6), and where they have leapt ahead
// meanwhile. A blob and a container are alike.
//
// Capability: Blobs: Leases.
func TestR6LeaseEndsByTheClock(t *testing.T) {
	for name, before := range map[string]time.Duration{"times are right": 0, "times are ahead": time.Hour} {
		r, at := shiftedRig(t)
		at.Shift(before)
		require.Equal(t, 201, r.put("/cont/b", []byte("x")).status)
		require.Equal(t, 200, r.do(http.MethodPut, "/cont?restype=container&comp=metadata", nil).status)
		at.Shift(0)
		for _, path := range []string{"/cont/b?", "/cont?restype=container&"} {
			require.Equal(t, 201, r.lease(path, "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", leaseA).status, name)
		}
		at.Shift(14 * time.Second)
		require.Equal(t, "leased", r.do(http.MethodHead, "/cont/b", nil).header.Get("x-ms-lease-state"))
		require.Equal(t, "fixed", r.do(http.MethodHead, "/cont?restype=container", nil).header.Get("x-ms-lease-duration"))
		r.requireCode(r.put("/cont/b", []byte("y")), 412, "LeaseIdMissing")
		r.requireCode(r.do(http.MethodDelete, "/cont?restype=container", nil), 412, "LeaseIdMissing")
		at.Shift(16 * time.Second)
		for _, path := range []string{"/cont/b", "/cont?restype=container"} {
			require.Equal(t, "expired", r.do(http.MethodHead, path, nil).header.Get("x-ms-lease-state"), name)
			a := r.do(http.MethodHead, path, nil, "x-ms-lease-id", leaseA)
			require.Equal(t, "LeaseLost", a.header.Get("x-ms-error-code"), name)
		}
		require.Equal(t, 201, r.put("/cont/b", []byte("y")).status, name)
		require.Equal(t, 202, r.do(http.MethodDelete, "/cont?restype=container", nil).status, name)
	}
	r, at := shiftedRig(t)
	require.Equal(t, 201, r.put("/cont/b", []byte("x")).status)
	require.Equal(t, 201, r.lease("/cont/b?", "acquire", "x-ms-lease-duration", "60").status)
	at.Shift(2 * time.Hour)
	require.Equal(t, 201, r.put("/cont/other", []byte("x")).status)
	at.Shift(0)
	r.requireCode(r.put("/cont/b", []byte("y")), 412, "LeaseIdMissing")
}

// A break with a rest is over by the clock.
func TestBreakEndsByTheClock(t *testing.T) {
	r, at := shiftedRig(t)
	for _, path := range []string{"/cont/b?", "/cont?restype=container&"} {
		if path == "/cont/b?" {
			require.Equal(t, 201, r.put("/cont/b", []byte("x")).status)
		}
		at.Shift(0)
		require.Equal(t, 201, r.lease(path, "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", leaseA).status)
		a := r.lease(path, "break", "x-ms-lease-break-period", "10")
		require.Equal(t, "10", a.header.Get("x-ms-lease-time"))
		require.Equal(t, "breaking", r.do(http.MethodHead, path[:len(path)-1], nil).header.Get("x-ms-lease-state"))
		at.Shift(11 * time.Second)
		require.Equal(t, "broken", r.do(http.MethodHead, path[:len(path)-1], nil).header.Get("x-ms-lease-state"))
	}
	a := r.do(http.MethodHead, "/cont/b", nil, "x-ms-lease-id", leaseA)
	require.Equal(t, "LeaseNotPresentWithBlobOperation", a.header.Get("x-ms-error-code"))
}

// A large body that the lease refuses is not taken, whether the request names one or not: its chunks would stay.
func TestLargePutAtALeasedBlob(t *testing.T) {
	r := newRig(t, nil)
	require.Equal(t, 201, r.put("/cont/b", []byte("x")).status)
	require.Equal(t, 201, r.lease("/cont/b?", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", leaseA).status)
	r.requireCode(r.put("/cont/b", make([]byte, 3<<20)), 412, "LeaseIdMissing")
	r.requireCode(r.put("/cont/b", make([]byte, 3<<20), "x-ms-lease-id", leaseB), 412, "LeaseIdMismatchWithBlobOperation")
	require.Zero(t, r.abandoned.Load(), "bytes in chunks that nothing names")
}

// The guard of a Put Block List comes before its blocks (protocol/blob.md 2.6). A header of another action is ignored, and the
// conditions of a container's lease count.
func TestOrderOfLeaseChecks(t *testing.T) {
	r := newRig(t, nil)
	require.Equal(t, 201, r.put("/cont/b", []byte("x")).status)
	require.Equal(t, 201, r.lease("/cont/b?", "acquire", "x-ms-lease-duration", "60", "x-ms-lease-id", "no id").status)
	list := []byte("<BlockList><Latest>AAAA</Latest></BlockList>")
	r.requireCode(r.do(http.MethodPut, "/cont/b?comp=blocklist", list), 412, "LeaseIdMissing")
	const whole = "/cont?restype=container&"
	const past = "Mon, 01 Jan 2001 00:00:00 GMT"
	r.requireCode(r.lease(whole, "acquire", "x-ms-lease-duration", "60", "If-Unmodified-Since", past), 412, "ConditionNotMet")
	made := r.lease(whole, "acquire", "x-ms-lease-duration", "60", "If-Modified-Since", past)
	require.Equal(t, 201, made.status)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, made.header.Get("x-ms-lease-id"))
	// The id of the lease is no part of the guard.
	require.Equal(t, 200, r.lease(whole, "renew", "x-ms-lease-id", made.header.Get("x-ms-lease-id")).status)
}

// Before 2012-02-12 a lease is of a minute, with an id of the server, and a break leaves its rest (protocol/blob.md 17.1).
func TestLeasesOf2009(t *testing.T) {
	r := newRig(t, nil)
	require.Equal(t, 201, r.put("/cont/b", []byte("x")).status)
	const version = "2011-08-18"
	a := r.lease("/cont/b?", "acquire", "x-ms-version", version, "x-ms-proposed-lease-id", leaseA)
	require.Equal(t, 201, a.status)
	require.NotEqual(t, leaseA, a.header.Get("x-ms-lease-id"))
	a = r.lease("/cont/b?", "break", "x-ms-version", version, "x-ms-lease-break-period", "5")
	require.Equal(t, 202, a.status)
	left, err := strconv.Atoi(a.header.Get("x-ms-lease-time"))
	require.NoError(t, err)
	require.Greater(t, left, 5)
	require.LessOrEqual(t, left, 60)
}
