package tools

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// azcopyRig is azcopy, and containers that it reaches by a signature.
type azcopyRig struct {
	program
	p *devproc.Process
}

func newAzcopyRig(t *testing.T) *azcopyRig {
	t.Helper()
	needTools(t)
	path := built(t, "azcopy")
	p := startDev(t)
	logs := t.TempDir()
	r := &azcopyRig{program{name: "azcopy", path: path, relay: newRelay(t, p.PortBase), env: []string{
		"AZCOPY_LOG_LOCATION=" + logs, "AZCOPY_JOB_PLAN_LOCATION=" + logs, "HOME=" + logs, "AZCOPY_DISABLE_SYSLOG=true",
	}}, p}
	r.name = strings.TrimSpace(r.must(t, "--version"))
	return r
}

// container makes a container and returns its URL, without a signature, and the key of its account.
func (r *azcopyRig) container(t *testing.T, account geo.Account, name string) (string, *azblob.SharedKeyCredential) {
	t.Helper()
	at := r.relay.url + "/" + string(account)
	key, err := azblob.NewSharedKeyCredential(string(account), rest.DevKey)
	require.NoError(t, err)
	service, err := azblob.NewClientWithSharedKeyCredential(at, key, &azblob.ClientOptions{ClientOptions: clientOptions(r.p.HTTP)})
	require.NoError(t, err)
	_, err = service.CreateContainer(t.Context(), name, nil)
	require.NoError(t, err)
	return at + "/" + name, key
}

// azcopy uploads, syncs and downloads with a signature of the container.
//
// Capability: Blobs: Programs that others wrote.
func TestAzcopy(t *testing.T) {
	r := newAzcopyRig(t)
	url, key := r.container(t, rest.DevAccount, "one")
	everything := sas.ContainerPermissions{Read: true, Add: true, Create: true, Write: true, Delete: true, List: true}
	signature, err := sas.BlobSignatureValues{
		ContainerName: "one", Permissions: everything.String(), ExpiryTime: time.Now().Add(time.Hour).UTC(),
	}.SignWithSharedKey(key)
	require.NoError(t, err)
	url += "?" + signature.Encode()
	tree := newTree(t)
	if _, ok := r.run(t, "copy", tree+"/*", url, "--recursive", "--skip-version-check", "--from-to", "LocalBlob", "--put-md5"); !ok {
		return
	}
	change(t, tree)
	if _, ok := r.run(t, "sync", tree, url, "--recursive", "--skip-version-check", "--from-to", "LocalBlob", "--delete-destination", "true"); !ok {
		return
	}
	r.requireHas(t, url, "one", tree)
	synced := t.TempDir()
	r.must(t, "sync", url, synced, "--recursive", "--skip-version-check", "--from-to", "BlobLocal")
	requireSame(t, tree, synced)
	require.Empty(t, withStatus(r.relay.take(), http.StatusNotImplemented))
}

// requireHas requires that a container has the files of a tree.
func (r *azcopyRig) requireHas(t *testing.T, url, name, tree string) {
	t.Helper()
	back := t.TempDir()
	r.must(t, "copy", url, back, "--recursive", "--skip-version-check", "--from-to", "BlobLocal", "--check-md5", "FailIfDifferent")
	requireSame(t, tree, filepath.Join(back, name))
}

// azcopy copies and syncs containers of two accounts: the server reads what it names.
//
// Capability: Blobs: Programs that others wrote.
func TestAzcopyBetweenAccounts(t *testing.T) {
	r := newAzcopyRig(t)
	const other = geo.Account("another")
	_, err := r.p.Admin().CreateAccount(t.Context(), admin.NewAccount{
		Name: other, Location: "northcentralus", Key1: rest.DevKey, Key2: rest.DevKey, Ensure: true,
	})
	require.NoError(t, err)
	everything := sas.AccountPermissions{Read: true, Add: true, Create: true, Write: true, Delete: true, List: true, Tag: true}
	signed := func(account geo.Account, name string) (at, signature string) {
		at, key := r.container(t, account, name)
		of, err := sas.AccountSignatureValues{
			Permissions: everything.String(), ResourceTypes: "sco", ExpiryTime: time.Now().Add(time.Hour).UTC(),
		}.SignWithSharedKey(key)
		require.NoError(t, err)
		return at, "?" + of.Encode()
	}
	path, signature := signed(rest.DevAccount, "one")
	from := path + signature
	at, end := signed(other, "two")
	to := at + end
	tree := newTree(t)
	r.must(t, "copy", tree+"/*", from, "--recursive", "--skip-version-check", "--from-to", "LocalBlob", "--put-md5")
	r.must(t, "copy", path+"/*"+signature, to, "--recursive", "--skip-version-check", "--from-to", "BlobBlob")
	r.requireHas(t, to, "two", tree)

	change(t, tree)
	r.must(t, "sync", tree, from, "--recursive", "--skip-version-check", "--from-to", "LocalBlob", "--delete-destination", "true", "--put-md5")
	r.must(t, "sync", from, to, "--recursive", "--skip-version-check", "--from-to", "BlobBlob", "--delete-destination", "true")
	r.requireHas(t, to, "two", tree)
	require.Empty(t, withStatus(r.relay.take(), http.StatusNotImplemented))
}
