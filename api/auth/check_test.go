package auth

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// A part of a batch has its version, and is signed as a request of that version: the string of requests without a
// version, which leaves parameters out, is none for it. SharedKeyLite is one for both.
func TestCheckOfParts(t *testing.T) {
	key := testKey(t)
	a := &catalog.Account{Name: testAccount, Key1: key}
	check := func(sc scheme, way variant, signed, sent string, part bool) error {
		r := read(t, "DELETE "+signed, hostBlob, msDate)
		signAs(t, r, geo.Blob, sc, way, key)
		r.RequestURI = sent
		target, err := protocol.ParseTarget(geo.Blob, "http", r.Host, r.RequestURI, hostZones...)
		require.NoError(t, err)
		q, err := protocol.ParseQuery(target.RawQuery)
		require.NoError(t, err)
		request := &protocol.Request{HTTP: r, Target: target, Query: q, Version: "2020-10-02", InBatch: part}
		sas, err := testVerifier().Check(request, operation.Match{}, a)
		require.Nil(t, sas)
		return err
	}
	for _, part := range []bool{false, true} {
		require.NoError(t, check(sharedKey, fullLayout, "/c/b", "/c/b", part))
		wantFailed(t, check(sharedKey, fullLayout, "/c/b", "/c/b?snapshot=x", part), "")
		require.NoError(t, check(sharedKeyLite, 0, "/c/b", "/c/b", part))
	}
	require.NoError(t, check(sharedKey, 0, "/c/b", "/c/b?snapshot=x", false), "the rule of such requests")
	wantFailed(t, check(sharedKey, 0, "/c/b", "/c/b?snapshot=x", true), "")
	wantFailed(t, check(sharedKey, 0, "/c/b", "/c/b", true), "")
}

// The policies of a signature are those of the container that was looked up: none if there is no such container, and what else
// kept it from being read is the answer.
//
// Capability: Clients: Shared access signatures.
func TestPermitFound(t *testing.T) {
	on := Resource{Container: "c", Blob: "b"}
	q, err := protocol.ParseQuery("sv=2020-02-10&sr=c&si=p")
	require.NoError(t, err)
	target := protocol.Target{Service: geo.Blob, Account: testAccount}
	s, err := ParseSAS(target, on, q)
	require.NoError(t, err)
	r := &protocol.Request{HTTP: read(t, "DELETE /c/b", hostBlob, msDate), Target: target, Query: q, At: testNow}
	permit := func(found *catalog.Found) error {
		r.Container = found
		_, err := s.PermitFound(r, operation.Named(geo.Blob, "DeleteBlob"))
		return err
	}
	policy := catalog.Policy{ID: "p", Permission: "d", Expiry: "2999-01-01"}
	require.NoError(t, permit(&catalog.Found{Container: &catalog.Container{Policies: []catalog.Policy{policy}}}))
	policy.Permission = "r"
	require.ErrorIs(t, permit(&catalog.Found{Container: &catalog.Container{Policies: []catalog.Policy{policy}}}), storageerr.PermissionMismatch)
	wantFailed(t, permit(&catalog.Found{Container: &catalog.Container{}}), "")
	wantFailed(t, permit(nil), "")
	wantFailed(t, permit(&catalog.Found{Err: storageerr.ContainerNotFound}), "")
	require.ErrorIs(t, permit(&catalog.Found{Err: storageerr.ServerBusy}), storageerr.ServerBusy)
}
