package dev

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/services/catalog"
)

// containers are what a test does with containers and tables of the north's account.
type containers struct {
	t         *testing.T
	c         *Cluster
	b, second *azblob.Client
}

func newContainers(t *testing.T, c *Cluster) *containers {
	cred, err := azblob.NewSharedKeyCredential("northacct", base64.StdEncoding.EncodeToString(key64))
	require.NoError(t, err)
	transport := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(transport.CloseIdleConnections)
	url := "http://" + c.gateway.Of(geo.Blob) + "/northacct" + geo.SecondarySuffix
	second, err := azblob.NewClientWithSharedKeyCredential(url, cred, &azblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: transport},
	})
	require.NoError(t, err)
	return &containers{t, c, blobClient(t, c, "northacct"), second}
}

func (k *containers) create(name string) {
	k.t.Helper()
	_, err := k.b.CreateContainer(k.t.Context(), name, &azblob.CreateContainerOptions{Metadata: map[string]*string{"of": to.Ptr(name)}})
	require.NoError(k.t, err)
}

func (k *containers) remove(name string) {
	k.t.Helper()
	_, err := k.b.DeleteContainer(k.t.Context(), name, nil)
	require.NoError(k.t, err)
}

func (k *containers) upload(name, blob, value string) {
	k.t.Helper()
	_, err := k.b.UploadBuffer(k.t.Context(), name, blob, []byte(value), nil)
	require.NoError(k.t, err)
}

// described sets the metadata of a container.
func (k *containers) described(name, value string) {
	k.t.Helper()
	_, err := k.b.ServiceClient().NewContainerClient(name).SetMetadata(k.t.Context(), &container.SetMetadataOptions{Metadata: map[string]*string{"of": &value}})
	require.NoError(k.t, err)
}

func (k *containers) table(method, name string, status int) {
	k.t.Helper()
	path, body := "/northacct/Tables", fmt.Sprintf(`{"TableName":%q}`, name)
	if method == http.MethodDelete {
		path, body = fmt.Sprintf("/northacct/Tables('%s')", name), ""
	}
	a := call(k.t, k.c.gateway, "northacct", method, path, body)
	require.Equal(k.t, status, a.status, a.body)
}

// of reads the record of a container at a location, nil for none.
func (k *containers) of(l geo.Location, name string) (found *catalog.Container) {
	k.t.Helper()
	found, err := catalog.Lookup(leaderOf(k.c, l, geo.FirstRange(geo.Catalog)).State(), geo.Blob, "northacct", name)
	require.NoError(k.t, err)
	return found
}

// swept waits until the north has no row of a container's generation.
func (k *containers) swept(of *catalog.Container) {
	k.t.Helper()
	eventually(k.t, "the north has swept "+of.Name, func() bool {
		return rowsAt(k.t, k.c, North, geo.Blob, "northacct", of.Prefix(geo.Blob, "northacct")) == 0
	})
}

// read reads a blob at the secondary, "" where it is not there.
func (k *containers) read(name, blob string) string {
	k.t.Helper()
	got, err := k.second.DownloadStream(k.t.Context(), name, blob, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.ContainerNotFound) {
		return ""
	}
	require.NoError(k.t, err)
	body, err := io.ReadAll(got.Body)
	require.NoError(k.t, errors.Join(err, got.Body.Close()))
	return string(body)
}

// A former primary whose lost changes have created, changed, deleted and created again containers and tables is rewound
// without a copy, while the present primary changes the same ones (R22): also one of which it has deleted all rows. The
// report lists these changes as all others.
//
// Capability: Failover: Lost changes of containers and tables are rewound, too (R22).
// Capability: Failover: The lost-change report (R22).
func TestR22LostContainersAreRewound(t *testing.T) {
	t.Parallel()
	c := startAdjusted(t, func(o *location.Options) { o.SweepEvery = 20 * time.Millisecond })
	k := newContainers(t, c)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "before")
	for _, name := range []string{"described", "removed", "again", "both", "ended", "hers"} {
		k.create(name)
		for i := range 3 {
			k.upload(name, fmt.Sprint("blob", i), "before")
		}
	}
	k.table(http.MethodPost, "gone", http.StatusCreated)
	drained(t, c)
	drainedRange(t, c, geo.Blob)
	drainedRange(t, c, geo.Catalog)
	c.link.Cut()

	k.create("made") // And not at the south.
	k.upload("made", "blob0", "lost")
	k.create("same") // At the south, too.
	k.upload("same", "blob0", "lost")
	k.described("described", "lost")
	k.upload("described", "blob1", "lost")
	removed := k.of(North, "removed")
	k.remove("removed")
	k.swept(removed)
	old := k.of(North, "again")
	k.remove("again")
	k.swept(old)
	k.create("again")
	k.upload("again", "blob1", "lost")
	k.upload("again", "lost", "lost")
	lost := k.of(North, "again")
	k.remove("both")
	k.remove("ended") // The south ends it, and makes another one of the name.
	k.described("hers", "lost")
	k.table(http.MethodDelete, "gone", http.StatusNoContent)
	k.table(http.MethodDelete, "tbl", http.StatusNoContent)
	k.table(http.MethodPost, "fresh", http.StatusCreated)
	require.NoError(t, c.stopLocation(t.Context(), North))
	c.link.Heal()
	promote(t, c, "northacct")
	taken, err := c.locations[South].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)

	putEventually(t, c, "northacct", "after")
	k.create("same")
	k.upload("same", "blob1", "after")
	k.upload("removed", "blob1", "after")
	k.remove("both")
	k.remove("ended")
	k.create("ended")
	k.upload("ended", "blob1", "after")
	k.described("hers", "after")
	require.NoError(t, c.startLocation(t.Context(), North))
	_, err = c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
	after, err := c.locations[North].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, taken.GeoEpoch(), after.GeoEpoch(), "no copy was made again")
	require.NotZero(t, after.Copied)

	require.Equal(t, "after", read(t, c, "northacct", "-secondary", "k"))
	for name, want := range map[string][3]string{
		"made": {}, "same": {"", "after", ""}, "described": {"before", "before", "before"}, "removed": {"before", "after", "before"},
		"again": {"before", "before", "before"}, "both": {}, "ended": {"", "after", ""}, "hers": {"before", "before", "before"},
	} {
		for i, value := range want {
			require.Equal(t, value, k.read(name, fmt.Sprint("blob", i)), "%s/blob%d", name, i)
		}
		require.Equal(t, k.of(South, name), k.of(North, name))
	}
	require.Nil(t, k.of(North, "made"))
	require.Equal(t, old, k.of(North, "again"))
	require.Equal(t, "described", k.of(North, "described").Metadata[0].Value)
	require.Equal(t, "after", k.of(North, "hers").Metadata[0].Value)
	k.swept(lost)
	require.Equal(t, wire.VerifyEqual, verifiedWhole(t, c, "northacct", wire.VerifyQuery{}).Outcome)

	claims, changes := lostAt(t, c, North, "northacct")
	for _, claim := range claims {
		require.True(t, claim.Complete, claim.Reason)
	}
	of := map[string]int{}
	for _, ch := range changes {
		if ch.Service == geo.Catalog.String() {
			of[ch.Object]++
			require.Equal(t, 1, ch.Rows)
		}
	}
	require.Equal(t, map[string]int{
		"blob/made": 1, "blob/same": 1, "blob/described": 1, "blob/removed": 1, "blob/again": 2, "blob/both": 1, "blob/ended": 1, "blob/hers": 1,
		"table/gone": 1, "table/tbl": 1, "table/fresh": 1,
	}, of)
}
