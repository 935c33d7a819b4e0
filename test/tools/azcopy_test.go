package tools

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/stretchr/testify/require"

	"antipode/test/rest"
)

// azcopy uploads, syncs and downloads with a signature of the container.
func TestAzcopy(t *testing.T) {
	needTools(t)
	path := built(t, "azcopy")
	p := startDev(t)
	f := newRelay(t, p.PortBase)
	at := f.url + "/" + string(rest.DevAccount)
	key, err := azblob.NewSharedKeyCredential(string(rest.DevAccount), rest.DevKey)
	require.NoError(t, err)
	service, err := azblob.NewClientWithSharedKeyCredential(at, key, &azblob.ClientOptions{ClientOptions: clientOptions(p.HTTP)})
	require.NoError(t, err)
	_, err = service.CreateContainer(t.Context(), "one", nil)
	require.NoError(t, err)
	everything := sas.ContainerPermissions{Read: true, Add: true, Create: true, Write: true, Delete: true, List: true}
	signature, err := sas.BlobSignatureValues{
		ContainerName: "one", Permissions: everything.String(), ExpiryTime: time.Now().Add(time.Hour).UTC(),
	}.SignWithSharedKey(key)
	require.NoError(t, err)
	url := fmt.Sprintf("%s/one?%s", at, signature.Encode())

	logs := t.TempDir()
	azcopy := program{name: "azcopy", path: path, relay: f, env: []string{
		"AZCOPY_LOG_LOCATION=" + logs, "AZCOPY_JOB_PLAN_LOCATION=" + logs, "HOME=" + logs, "AZCOPY_DISABLE_SYSLOG=true",
	}}
	azcopy.name = strings.TrimSpace(azcopy.must(t, "--version"))
	tree := newTree(t)
	if _, ok := azcopy.run(t, "copy", tree+"/*", url, "--recursive", "--skip-version-check", "--from-to", "LocalBlob", "--put-md5"); !ok {
		return
	}
	change(t, tree)
	if _, ok := azcopy.run(t, "sync", tree, url, "--recursive", "--skip-version-check", "--from-to", "LocalBlob", "--delete-destination", "true"); !ok {
		return
	}
	back := t.TempDir()
	azcopy.must(t, "copy", url, back, "--recursive", "--skip-version-check", "--from-to", "BlobLocal", "--check-md5", "FailIfDifferent")
	requireSame(t, tree, filepath.Join(back, "one"))
	synced := t.TempDir()
	azcopy.must(t, "sync", url, synced, "--recursive", "--skip-version-check", "--from-to", "BlobLocal")
	requireSame(t, tree, synced)
	require.Empty(t, withStatus(f.take(), http.StatusNotImplemented))
}
