package blobs

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/clock"
)

// setTier is Set Blob Tier.
func (r *rig) setTier(path, tier string, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPut, path+"?comp=tier", nil, append([]string{"x-ms-access-tier", tier}, header...)...)
}

// thawingRig is a rig whose clock the test sets, and where a rehydration takes an hour.
func thawingRig(t *testing.T) (*rig, *clock.Shifted) {
	at := &clock.Shifted{}
	return newRigAt(t, at, func(o *Options) { o.Clock, o.Rehydration = at, time.Hour }), at
}

// shown is what HEAD shows of the tier of a blob: tier, inferred, rehydration, priority.
func (r *rig) shown(path string, header ...string) [4]string {
	r.t.Helper()
	h := r.do(http.MethodHead, path, nil, header...).header
	return [4]string{h.Get("x-ms-access-tier"), h.Get("x-ms-access-tier-inferred"), h.Get("x-ms-archive-status"), h.Get("x-ms-rehydrate-priority")}
}

// Numbered cases of tiers (protocol/blob.md 15, 8, 7.4): a blob goes through all of them.
func TestTiers(t *testing.T) {
	t.Parallel()
	r, at := thawingRig(t)
	first := r.put("/cont/b", []byte("hello"))
	require.Equal(t, 201, first.status)
	// 1: nobody chose a tier: inferred, without a time.
	require.Equal(t, [4]string{"Hot", "true", "", ""}, r.shown("/cont/b"))
	require.Empty(t, r.do(http.MethodHead, "/cont/b", nil).header.Get("x-ms-access-tier-change-time"))
	// 2: one that is chosen is not inferred, and has the time, in GET too, since 2026-10-06.
	require.Equal(t, 200, r.setTier("/cont/b", "Hot").status)
	require.Equal(t, [4]string{"Hot", "", "", ""}, r.shown("/cont/b"))
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		changed := r.do(method, "/cont/b", nil).header.Get("x-ms-access-tier-change-time")
		_, err := http.ParseTime(changed)
		require.NoError(t, err)
		require.Empty(t, r.do(http.MethodGet, "/cont/b", nil, "x-ms-version", "2026-06-06").header.Get("x-ms-access-tier-change-time"))
		require.Contains(t, string(r.get(listPath).body), "<AccessTier>Hot</AccessTier><AccessTierChangeTime>"+changed+"</AccessTierChangeTime>")
	}
	require.NotContains(t, string(r.get(listPath, "x-ms-version", "2016-05-31").body), "Tier")
	// 3: ETag and content stay.
	head := r.do(http.MethodHead, "/cont/b", nil)
	require.Equal(t, first.header.Get("ETag"), head.header.Get("ETag"))
	// 4: an archived blob is shown and not read.
	require.Equal(t, 200, r.setTier("/cont/b", "Archive").status)
	require.Equal(t, [4]string{"Archive", "", "", ""}, r.shown("/cont/b"))
	r.requireCode(r.get("/cont/b"), 409, "BlobArchived")
	r.requireCode(r.get("/cont/b", "x-ms-range", "bytes=99-"), 409, "BlobArchived")
	r.requireCode(r.get("/cont/b?comp=blocklist"), 409, "BlobArchived")
	require.Equal(t, 200, r.get("/cont/b?comp=metadata").status)
	require.Equal(t, 200, r.get("/cont/b?comp=tags").status)
	require.Contains(t, string(r.get(listPath).body), "<AccessTier>Archive</AccessTier><AccessTierChangeTime>")
	// 5: conditions and the lease go before (2.6).
	r.requireCode(r.get("/cont/b", "If-Match", `"0x1"`), 412, "ConditionNotMet")
	require.Equal(t, 304, r.get("/cont/b", "If-None-Match", first.header.Get("ETag")).status)
	r.requireCode(r.get("/cont/b", "x-ms-lease-id", leaseA), 412, "LeaseNotPresentWithBlobOperation")
	// 6: its writes; a large body is not taken.
	for _, body := range [][]byte{[]byte("y"), content(50_000, 1)} {
		r.requireCode(r.put("/cont/b", body, "x-ms-access-tier", "Hot"), 409, "BlobArchived")
		r.requireCode(r.do(http.MethodPut, "/cont/b?comp=block&blockid=AAAA", body), 409, "BlobArchived")
	}
	require.Zero(t, r.abandoned.Load())
	r.requireCode(r.do(http.MethodPut, "/cont/b?comp=blocklist", []byte("<BlockList/>")), 409, "BlobArchived")
	r.requireCode(r.do(http.MethodPut, "/cont/b?comp=metadata", nil), 409, "BlobArchived")
	r.requireCode(r.do(http.MethodPut, "/cont/b?comp=properties", nil), 409, "BlobArchived")
	// 7: a rehydration is accepted, shown, and refuses reads by another code.
	require.Equal(t, 202, r.setTier("/cont/b", "Cool").status)
	require.Equal(t, [4]string{"Archive", "", "rehydrate-pending-to-cool", "Standard"}, r.shown("/cont/b"))
	require.Equal(t, [4]string{"Archive", "", "rehydrate-pending-to-cool", ""}, r.shown("/cont/b", "x-ms-version", "2018-11-09"))
	require.Contains(t, string(r.get(listPath).body), "<ArchiveStatus>rehydrate-pending-to-cool</ArchiveStatus><RehydratePriority>Standard</RehydratePriority>")
	old := string(r.get(listPath, "x-ms-version", "2018-11-09").body)
	require.Contains(t, old, "<ArchiveStatus>rehydrate-pending-to-cool</ArchiveStatus>")
	require.NotContains(t, old, "RehydratePriority")
	r.requireCode(r.get("/cont/b"), 409, "BlobBeingRehydrated")
	r.requireCode(r.put("/cont/b", []byte("y")), 409, "BlobBeingRehydrated")
	r.requireCode(r.setTier("/cont/b", "Hot"), 409, "BlobBeingRehydrated")
	require.Equal(t, 202, r.setTier("/cont/b", "Cool", "x-ms-rehydrate-priority", "High").status)
	require.Equal(t, [4]string{"Archive", "", "rehydrate-pending-to-cool", "High"}, r.shown("/cont/b"))
	// 8: it is over by the clock, at reads, in listings and at writes, though nothing was written.
	at.Shift(59 * time.Minute)
	r.requireCode(r.get("/cont/b"), 409, "BlobBeingRehydrated")
	at.Shift(61 * time.Minute)
	require.Equal(t, "hello", string(r.get("/cont/b").body))
	require.Equal(t, [4]string{"Cool", "", "", ""}, r.shown("/cont/b"))
	require.Equal(t, 200, r.get("/cont/b?comp=blocklist").status)
	require.Contains(t, string(r.get(listPath).body), "<AccessTier>Cool</AccessTier><AccessTierChangeTime>")
	require.NotContains(t, string(r.get(listPath).body), "ArchiveStatus")
	require.Equal(t, 201, r.put("/cont/b", []byte("over")).status)
	require.Equal(t, [4]string{"Cool", "", "", ""}, r.shown("/cont/b"), "it is kept by an overwrite")
}

// Put Blob and Put Block List take every tier. Without an hour of rehydration it is over at once, and yet 202.
func TestTierOfWrites(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, tier := range []string{"Hot", "Cool", "Cold", "Archive"} {
		require.Equal(t, 201, r.put("/cont/p"+tier, []byte("x"), "x-ms-access-tier", tier).status)
		require.Equal(t, 201, r.do(http.MethodPut, "/cont/l"+tier+"?comp=blocklist", []byte("<BlockList/>"), "x-ms-access-tier", tier).status)
		for _, name := range []string{"/cont/p" + tier, "/cont/l" + tier} {
			require.Equal(t, [4]string{tier, "", "", ""}, r.shown(name))
			h := r.do(http.MethodHead, name, nil).header
			require.Equal(t, h.Get("Last-Modified"), h.Get("x-ms-access-tier-change-time"))
		}
	}
	require.Equal(t, 202, r.setTier("/cont/pArchive", "Hot").status)
	require.Equal(t, [4]string{"Hot", "", "", ""}, r.shown("/cont/pArchive"))
	require.Equal(t, "x", string(r.get("/cont/pArchive").body))
	require.Equal(t, 201, r.put("/cont/pArchive", []byte("y"), "x-ms-access-tier", "Cold").status)
	// Priorities are of versions from 2019-02-02 on: what an older one has there is no header of its.
	require.Equal(t, 200, r.setTier("/cont/pArchive", "Archive", "x-ms-version", "2018-11-09", "x-ms-rehydrate-priority", "x").status)
}

// A tier is set under a lease without its id, and not with another one (protocol/blob.md 17.4). The lease stays.
func TestTierUnderALease(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, 201, r.put("/cont/b", nil).status)
	require.Equal(t, 201, r.lease("/cont/b?", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", leaseA).status)
	require.Equal(t, 200, r.setTier("/cont/b", "Cool").status)
	require.Equal(t, 200, r.setTier("/cont/b", "Cold", "x-ms-lease-id", leaseA).status)
	r.requireCode(r.setTier("/cont/b", "Hot", "x-ms-lease-id", leaseB), 412, "LeaseIdMismatchWithBlobOperation")
	require.Equal(t, "leased", r.do(http.MethodHead, "/cont/b", nil).header.Get("x-ms-lease-state"))
	require.Equal(t, "Cold", r.shown("/cont/b")[0])
}

// The conditions of Delete Blob on the change of the tier, since 2026-04-06; the two may stand together, beside those of HTTP.
func TestDeleteByTierChange(t *testing.T) {
	t.Parallel()
	r, at := thawingRig(t)
	etag := r.put("/cont/b", nil).header.Get("ETag")
	at.Shift(time.Hour)
	require.Equal(t, 200, r.setTier("/cont/b", "Cool").status)
	changed, err := http.ParseTime(r.do(http.MethodHead, "/cont/b", nil).header.Get("x-ms-access-tier-change-time"))
	require.NoError(t, err)
	before, after := changed.Add(-time.Second).Format(http.TimeFormat), changed.Format(http.TimeFormat)
	const since, until = "x-ms-access-tier-if-modified-since", "x-ms-access-tier-if-unmodified-since"
	for _, header := range [][]string{{since, after}, {until, before}, {since, after, until, after}, {since, before, "If-Match", `"0x1"`}} {
		r.requireCode(r.do(http.MethodDelete, "/cont/b", nil, header...), 412, "ConditionNotMet")
	}
	require.Equal(t, 202, r.do(http.MethodDelete, "/cont/b", nil, since, before, until, after, "If-Match", etag).status)
}

// A snapshot keeps its tier and its tags: they are shown, listed and set by the parameter, and a blob whose snapshot is
// archived is read.
func TestTierOfSnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Rehydration = time.Hour })
	require.Equal(t, 201, r.put("/cont/b", []byte("x"), "x-ms-tags", "k=1", "x-ms-access-tier", "Cool").status)
	snap := r.snap("/cont/b")
	require.Equal(t, 204, r.do(http.MethodPut, "/cont/b?comp=tags", tagSet("<Key>k</Key><Value>2</Value>")).status)
	require.Equal(t, map[string]string{"k": "1"}, parsedTags(t, r.get(snap+"&comp=tags").body))
	r.requireCode(r.get(snap, "x-ms-if-tags", "k='2'"), 412, "ConditionNotMet")
	require.Equal(t, 200, r.do(http.MethodPut, snap+"&comp=tier", nil, "x-ms-access-tier", "Archive").status)
	r.requireCode(r.get(snap), 409, "BlobArchived")
	require.Equal(t, 200, r.get("/cont/b").status)
	require.Equal(t, 202, r.do(http.MethodPut, snap+"&comp=tier", nil, "x-ms-access-tier", "Hot").status)
	require.Equal(t, "rehydrate-pending-to-hot", r.shown(snap)[2])
	require.Equal(t, [4]string{"Cool", "", "", ""}, r.shown("/cont/b"))
	require.Regexp(t, `<ArchiveStatus>.*<Value>1</Value>.*<AccessTier>Cool<.*<Value>2</Value>`, string(r.get(listPath+"&include=snapshots,tags").body))
	r.requireCode(r.do(http.MethodPut, snap+"&comp=tags", tagSet("<Key>k</Key><Value>2</Value>")), 400, "InvalidQueryParameterValue")
	require.Equal(t, 200, r.setTier("/cont/b", "Archive").status)
	r.requireCode(r.do(http.MethodPut, "/cont/b?comp=snapshot", nil), 409, "BlobArchived")
	require.Equal(t, 202, r.do(http.MethodDelete, snap, nil, "x-ms-access-tier-if-modified-since", "Mon, 01 Jan 2001 00:00:00 GMT").status)
}
