package tools

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/test/rest"
)

// Thanos' provider of Azure passes the acceptance test of Thanos' object stores.
func TestThanos(t *testing.T) {
	needTools(t)
	path := built(t, "objstore.test")
	f := newRelay(t, startDev(t).PortBase)
	config := fmt.Sprintf("storage_account: %s\nstorage_account_key: %s\ncontainer: thanos\nstorage_create_container: true\n",
		rest.DevAccount, rest.DevKey)
	thanos := program{name: "thanos", path: path, relay: f, env: append(f.secure(), "CONFIG="+config, fmt.Sprint("BYTES=", *size))}
	out := thanos.must(t, "-test.v", "-test.run=TestAcceptance")
	require.Contains(t, out, "--- PASS: TestAcceptance")
	require.Empty(t, withStatus(f.take(), http.StatusNotImplemented))
}
